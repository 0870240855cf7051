"""The distribution's packages, as other projects see them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.wheel import ROOT, check_types, packages


@pytest.mark.parametrize("name", packages())
def test_a_package_says_that_it_has_types(name: str) -> None:
    assert (ROOT / name / "py.typed").exists(), f"{name} has no py.typed: type checkers ignore its annotations"


def test_a_wheel_without_the_mark_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "tidegate-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in packages()[1:]:
            archive.writestr(f"{name}/py.typed", "")
    with pytest.raises(SystemExit, match=f"no py.typed in {packages()[0]}"):
        check_types(wheel)
