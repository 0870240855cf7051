"""Files in the repository for a release: workflow, templates and pre-commit match the project."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from tests.support.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def test_ci_runs_on_every_python_that_is_supported() -> None:
    job = read(".github/workflows/ci.yml")["jobs"]["test"]
    pythons = job["strategy"]["matrix"]["python"]
    assert pythons == ["3.11", "3.12", "3.13", "3.14"]
    assert all(SpecifierSet(PROJECT["requires-python"]).contains(python) for python in pythons)
    assert {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c} <= set(pythons)
    assert ".ci/run" in [step.get("run") for step in job["steps"]]


def test_only_a_tag_that_passed_is_published() -> None:
    jobs = read(".github/workflows/ci.yml")["jobs"]
    for name, before in (("build", "test"), ("publish", "build")):
        assert jobs[name]["needs"] == before
        assert jobs[name]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    secrets = re.findall(r"secrets\.\w+|password:", (ROOT / ".github/workflows/ci.yml").read_text())
    assert secrets == [], "trusted publishing needs no stored token"


@pytest.mark.parametrize("name", ["bug_report", "feature_request"])
def test_an_issue_form_has_what_forges_need(name: str) -> None:
    form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= form.keys()
    ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0


def test_files_that_templates_and_hooks_name_exist() -> None:
    texts = [path.read_text() for path in (ROOT / ".github").rglob("*") if path.is_file()]
    texts.append((ROOT / ".pre-commit-config.yaml").read_text())
    named = {name for text in texts for name in re.findall(r"(?:docs/[\w/-]+\.\w+|\.ci/run|[A-Z]{5,}\.md)", text)}
    assert {".ci/run", "SECURITY.md", "CHANGELOG.md"} <= named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    verbs = {
        verb
        for text in texts
        for verb in re.findall(r"`make ([a-z-]+)`|- run: make ([a-z-]+)", text)
        for verb in verb
        if verb
    }
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert verbs <= targets


def test_pre_commit_runs_parts_of_make_check() -> None:
    checked = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    for hook in read(".pre-commit-config.yaml")["repos"][0]["hooks"]:
        command = hook["entry"].removeprefix(".venv/bin/")
        assert command in checked, f"`make check` does not run {command}"
