"""Distributions that install a package with one of our names are reported, using the records of installed files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.cli import shadows
from tidegate.kit.errors import UsageError

EVENTS = "events/__init__.py,sha256=AAAA,10\nEvents-0.5.dist-info/METADATA,,\n"


def record(folder: Path, distribution: str, text: str) -> None:
    path = folder / f"{distribution}.dist-info" / "RECORD"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_owners_are_read_from_the_records(tmp_path: Path) -> None:
    record(tmp_path, "Events-0.5", EVENTS)
    record(tmp_path, "later-2.0", "later/events/__init__.py,,\nother.py,,\nconnect/__init__.py,,\n")
    record(tmp_path, "tidegate-0.1.0", "events/__init__.py,,\n")
    expected = {"events": ["Events 0.5"], "connect": ["later 2.0"], "broker": []}
    assert shadows.distributions_with(tmp_path, list(expected)) == expected


def test_a_package_elsewhere_is_named_with_its_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path, "Events-0.5", EVENTS)
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "__init__.py").write_text("")
    spec = type("Spec", (), {"origin": str(tmp_path / "events" / "__init__.py")})
    monkeypatch.setattr(shadows, "_PACKAGES", ("events",))
    monkeypatch.setattr(shadows.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(UsageError, match=r"shadowed by .*events/__init__.py of Events 0.5: uninstall it, or install"):
        shadows.refuse_shadowed_packages()
