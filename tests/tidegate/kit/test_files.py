"""Files that are replaced atomically."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.support.faults import FaultyDisk
from tidegate.kit.files import write_whole


def test_a_file_is_its_owners_alone_from_the_first_byte(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("old")
    write_whole(path, "new", mode=0o600)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
    write_whole(tmp_path / "open", b"\0\xff", mode=0o644)
    assert (tmp_path / "open").read_bytes() == b"\0\xff"
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o644


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_a_write_that_fails_at_any_step_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, durable: bool, half: bool
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with FaultyDisk(tmp_path) as disk:
        for step in range(20):
            disk.fail(step, 1, half=half, error=errno.ENOSPC)
            try:
                write_whole(path, "new", durable=durable)
            except OSError:
                disk.mend()
                assert path.read_text() == "old"
                # A file that could not be taken away is taken away by the next write.
                assert len(os.listdir(tmp_path)) <= 2
            else:
                disk.mend()
                assert path.read_text() == "new"
                if step > 2:
                    break
                path.write_text("old")
        write_whole(path, "last", durable=durable)
        assert os.listdir(tmp_path) == ["file"]


def test_leftovers_of_another_process_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / f".file.{os.getpid()}.new").write_text("half")
    write_whole(tmp_path / "file", "whole")
    assert (tmp_path / "file").read_text() == "whole"
    assert os.listdir(tmp_path) == ["file"]
