"""Functions of users: what is refused before a job runs, and with what words. Each is imported in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from connectors.spark import functions
from connectors.spark.functions import load_function, problem_of_function
from connectors.spark.transform import SparkTransformConnector
from connectors.spark.transform_config import SparkTransformConfig
from tests.support.pages import ROOT
from tidegate.kit.config import parse
from tidegate.kit.errors import UsageError

MODULE = """
print("imported")
LIMIT = 3
def result(views, spark): return views["sales"]
def narrow(views): return views["sales"]
def none(): return None
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(functions, "_PATIENCE_S", 120.0)  # Python may start slowly on a machine that is busy with tests
    (tmp_path / "of_a_user.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import pandaz\n")
    return tmp_path


def test_a_function_is_imported_from_the_folders_that_the_connector_names(folder: Path) -> None:
    assert problem_of_function("of_a_user:result", [str(folder)]) is None
    assert problem_of_function("of_a_user:narrow", [str(folder)]) is None
    given = {"spark.output.topic": "t", "spark.function": "broken:result", "spark.python.path": str(folder)}
    (problem,) = SparkTransformConnector.check(parse(SparkTransformConfig, given))
    assert problem.key == "spark.function"
    assert "the module broken can't be imported: ModuleNotFoundError: No module named 'pandaz'" in problem.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("of_a_user", "it must be module:function"),
        ("of_a_user:missing", "the module of_a_user has no function missing"),
        ("of_a_user:LIMIT", "has no function, but a value, LIMIT"),
        ("of_a_user:none", r"takes \(\): it is called with the views by name, and with the SparkSession"),
    ],
)
def test_what_is_no_function_of_views_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    with pytest.raises(UsageError, match=words):
        load_function(name)


def test_the_function_of_an_owner_who_may_start_no_programs_is_refused_with_the_reason() -> None:
    code = (
        "from connectors.spark.functions import problem_of_function; from tidegate.kit.file_access import limit_files; "
        "limit_files('alice', []); print(problem_of_function('of_a_user:result', []))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert "can't be looked at: the connector of alice starts a program" in said
    assert "only the connectors of an admin may" in said
