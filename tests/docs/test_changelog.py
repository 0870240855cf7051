"""The changelog has the form of Keep a Changelog."""

from __future__ import annotations

import re
import tomllib

from tests.support.pages import ROOT

KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def faults(text: str) -> list[str]:
    lines = []
    versions = re.findall(r"^## (.*)$", text, re.MULTILINE)
    if versions[:1] != ["[Unreleased]"]:
        lines.append("the first section is not [Unreleased]")
    lines += [
        f"{version!r} is not '[VERSION] - YYYY-MM-DD'"
        for version in versions[1:]
        if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", version)
    ]
    return lines + [
        f"{kind!r} is no kind of change" for kind in re.findall(r"^### (.*)$", text, re.MULTILINE) if kind not in KINDS
    ]


def test_the_changelog_has_the_required_form() -> None:
    assert faults((ROOT / "CHANGELOG.md").read_text()) == []


def test_faults_are_noticed() -> None:
    assert faults("## [Unreleased]\n\n### New\n\n## 0.1.0 (unreleased)\n") == [
        "'0.1.0 (unreleased)' is not '[VERSION] - YYYY-MM-DD'",
        "'New' is no kind of change",
    ]


def test_a_version_of_pyproject_that_is_released_is_listed() -> None:
    """The version in pyproject.toml is the next one, which Unreleased names, or the newest that has a section."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    text = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\]", text, re.MULTILINE)
    unreleased = text.partition("## [Unreleased]")[2].partition("\n## ")[0]
    assert version in unreleased or (newest is not None and newest[1] == version)
