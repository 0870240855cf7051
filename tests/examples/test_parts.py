"""The parts of each example are right: schemas, event definitions, triggers, programs, and that its README names them all.

What an example does is tested by following its README (``test_examples.py``), mostly in the long proofs; the worker validates
each connector every day (``tests/docs/test_examples_run.py``).
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import fastavro
import pytest

from events.model.metadata_xml import read_object
from events.triggers.project import load
from tests.support.pages import ROOT

EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/README.md"))


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_the_parts_of_an_example_are_right(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (folder / "README.md").read_text()
    programs = "\n".join(path.read_text() for path in folder.rglob("*.py"))
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.name == "README.md" or "__pycache__" in path.parts or path.name.startswith("test_"):
            continue
        named = path.name in readme or path.stem in readme + programs or path.parent.name in readme
        assert named, f"README.md of {folder.name} does not speak of {path.relative_to(folder)}"
        if path.suffix == ".py":
            ast.parse(path.read_text(), str(path))
        elif path.suffix == ".avsc":
            fastavro.parse_schema(json.loads(path.read_text()))
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.name.endswith(".object-meta.xml"):
            read_object(path.name.removesuffix(".object-meta.xml"), path.read_bytes())
    if (folder / "triggers").is_dir():
        monkeypatch.setattr(sys, "path", [*sys.path])
        project = load(folder / "triggers")
        assert project.triggers and not project.problems
