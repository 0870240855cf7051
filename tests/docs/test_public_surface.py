"""The public names, signatures and commands are those that are recorded."""

from __future__ import annotations

import re
import sys

from tests.support.reference import surface

MEASURED_ON = (3, 11)
"""The Python whose texts of signatures are recorded. Others write some annotations in another way: there, names are compared."""


def shown(line: str) -> str:
    return line if sys.version_info[:2] == MEASURED_ON or line.startswith("tidegate ") else re.split(r"[(=]", line)[0]


def test_the_public_surface_is_the_recorded_one() -> None:
    recorded = [shown(line) for line in surface.RECORDED.read_text().splitlines()]
    current = [shown(line) for line in surface.surface().splitlines()]
    gone = [line for line in recorded if line not in current]
    new = [line for line in current if line not in recorded]
    assert (gone, new) == ([], []), (
        "the public surface has changed. docs/explanation/versioning.md says what may change; `make surface` records it anew"
    )


def test_the_public_surface_lists_each_module_and_the_command_line() -> None:
    lines = surface.RECORDED.read_text().splitlines()
    for name in surface.PUBLIC_MODULES:
        assert any(line.startswith(f"{name}: ") for line in lines), name
    assert any(line.startswith("tidegate up ") and "--detach" in line for line in lines)


def test_a_change_is_noticed(tmp_path, monkeypatch) -> None:
    text = surface.RECORDED.read_text()
    monkeypatch.setattr(surface, "RECORDED", tmp_path / "surface.txt")
    surface.RECORDED.write_text(text.replace("connect.api: API_VERSION = 1\n", "connect.api: gone(a: int) -> None\n"))
    assert surface.differences() == (["connect.api: gone(a: int) -> None"], ["connect.api: API_VERSION = 1"])
