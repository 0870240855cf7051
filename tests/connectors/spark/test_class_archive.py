"""The archive of Spark's classes, as the worker sees it that starts Spark; tests/connectors/spark/test_driver.py uses one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.spark.cache import arriving
from connectors.spark.class_archive import archive_options


def test_the_worker_asks_for_options_without_importing_spark(tmp_path: Path) -> None:
    asked = (
        "import sys; from pathlib import Path; from connectors.spark.class_archive import archive_options; "
        "print(archive_options(Path(sys.argv[1])), 'pyspark' in sys.modules)"
    )
    home = tmp_path / "java"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    printed = subprocess.run([sys.executable, "-c", asked, home], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("-XX:+RecordDynamicDumpInfo ") and printed.endswith(" False\n")


def test_without_spark_or_javas_archive_there_are_no_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive_options(tmp_path) == ""
    (tmp_path / "lib" / "server").mkdir(parents=True)
    (tmp_path / "lib" / "server" / "classes.jsa").touch()
    assert archive_options(tmp_path) != ""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert archive_options(tmp_path) == ""


def test_what_a_killed_process_left_goes_with_the_next_that_arrives(tmp_path: Path) -> None:
    old, new = tmp_path / ".arriving-old", tmp_path / ".arriving-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "half").touch()
    os.utime(old, (1, 1))
    with arriving(tmp_path) as made:
        assert {path.name for path in tmp_path.iterdir()} == {".arriving-new", made.name}
    assert [path.name for path in tmp_path.iterdir()] == [".arriving-new"]
