"""Temporary files of task hosts."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from connect.worker.process import HostProcess
from connect.worker.scratch import Scratch


@pytest.fixture(autouse=True)
def _temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_folder_goes_with_what_is_in_it_and_is_nobody_else_s(tmp_path):
    scratch = Scratch()
    (scratch.path / "rows").mkdir()
    (scratch.path / "rows" / "part").write_text("x")
    assert scratch.path.parent == tmp_path and scratch.path.stat().st_mode & 0o777 == 0o700
    scratch.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_left_alone_while_its_worker_runs_and_removed_when_that_was_killed(tmp_path):
    code = "from connect.worker.scratch import Scratch; print(Scratch().path, flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, **pipes) as other:
        path = Path(other.stdout.readline().strip())
        (path / "rows").write_text("x")
        first = Scratch()
        assert path.exists() and first.path.exists()
        other.kill()
    second = Scratch()
    assert sorted(tmp_path.iterdir()) == sorted([first.path, second.path])
    first.remove()
    second.remove()


def test_a_host_that_cannot_be_started_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
    host = HostProcess(1, on_event=print, on_call=print, on_death=print)
    with pytest.raises(FileNotFoundError):
        asyncio.run(host.start({}))
    assert list(tmp_path.iterdir()) == []


def test_a_link_or_file_with_the_folders_name_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    (tmp_path / "tidegate-host-link").symlink_to(elsewhere)
    (tmp_path / "tidegate-host-file").write_text("x")
    Scratch().remove()
    assert (elsewhere / "precious").exists() and (tmp_path / "tidegate-host-file").exists()
