"""The log's behaviour when the disk rejects or loses its bytes."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from broker.errors import KafkaStorageError, UnknownTopicOrPartition
from broker.log import files, segment
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.protocol.records import Record, encode_batch

NOW = 1_700_000_000_000
BATCH = encode_batch([Record(b"k", b"v" * 100, (), NOW)] * 5)


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    directory = LogDirectory(tmp_path)
    directory.open()
    return directory.create("t", 0, uuid.uuid4(), LogConfig(segment_bytes=2000))


class FullDisk:
    """Takes ``room`` bytes, then says ENOSPC as a full disk does: a short write first."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.pwritev, self.pwrite = os.pwritev, os.pwrite

    def writev(self, fd: int, buffers: Sequence[bytes], position: int) -> int:
        return self.write(fd, b"".join(buffers), position)

    def write(self, fd: int, data: bytes, position: int) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.pwrite(fd, bytes(data)[: self.room], position)
        self.room -= written
        return written


@pytest.mark.parametrize("room", [0, 1, 61, 300])
def test_a_full_disk_refuses_the_batch_and_leaves_the_log_as_it_was(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    log.append(BATCH, now_ms=NOW)
    before, size = list(log.iter_records()), log.active.path.stat().st_size
    with monkeypatch.context() as patched:
        disk = FullDisk(room)
        patched.setattr(os, "pwritev", disk.writev)
        patched.setattr(os, "pwrite", disk.write)
        with pytest.raises(KafkaStorageError, match="cannot append to t-0: No space left on device"):
            log.append(BATCH, now_ms=NOW)
    assert list(log.iter_records()) == before
    assert log.active.path.stat().st_size == size
    assert log.append(BATCH, now_ms=NOW).base_offset == 5


def test_a_short_write_is_gone_on_with(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwritev
    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, position: real(fd, [b"".join(buffers)[:70]], position))
    log.append(BATCH + BATCH, now_ms=NOW)
    assert [record.offset for record in log.iter_records()] == list(range(10))


def broken(fd: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.fixture
def failed(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> PartitionLog:
    """A log whose first five of ten records are on disk; the flush of the others failed."""
    log.append(BATCH, now_ms=NOW)
    log.flush()
    log.append(BATCH, now_ms=NOW)
    with monkeypatch.context() as patched:
        patched.setattr(segment, "sync_data", broken)
        with pytest.raises(KafkaStorageError, match="t-0: cannot flush: Input/output error"):
            log.flush()
        with pytest.raises(KafkaStorageError, match="takes no records for now: cannot flush: Input/output error"):
            log.append(BATCH, now_ms=NOW)
        assert not log.flusher.repair()
    assert log.flushed_offset == 5
    assert len(list(log.iter_records())) == 10
    assert log.upkeep.failed == {log}
    return log


def test_a_log_that_could_not_be_flushed_is_written_again_when_the_disk_works(
    failed: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    real = os.pwritev

    def noted(fd: int, buffers: Sequence[bytes], position: int) -> int:
        written.append(position)
        return real(fd, buffers, position)

    monkeypatch.setattr(os, "pwritev", noted)
    with pytest.raises(KafkaStorageError, match="cannot flush: Input/output error"):
        failed.flush()  # a disk that works again says nothing about the pages that failed
    assert failed.flusher.repair()
    assert written == [len(BATCH)], "what was on the disk before is left alone"
    assert failed.flushed_offset == 10
    assert failed.append(BATCH, now_ms=NOW).base_offset == 10


def test_records_that_the_disk_lost_are_cut_off_and_the_log_goes_on(failed: PartitionLog, tmp_path: Path) -> None:
    with failed.active.path.open("r+b") as file:
        file.seek(len(BATCH) + 70)
        file.write(bytes(20))
    assert not failed.flusher.repair()
    assert failed.is_damaged
    directory = LogDirectory(tmp_path)
    directory.disks[0].upkeep = failed.upkeep
    directory.reopen_damaged()
    assert failed.failure is None
    assert failed.log_end_offset == 5
    assert failed.append(BATCH, now_ms=NOW).base_offset == 5
    assert [record.offset for record in failed.iter_records()] == list(range(10))


def test_a_deleted_log_takes_nothing_and_its_flush_is_let_go(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    directory.open()
    log = directory.create("t", 0, uuid.uuid4())
    log.append(BATCH, now_ms=NOW)
    view = log.read(0, 1000)
    directory.delete("t", 0)
    log.flush()
    with pytest.raises(UnknownTopicOrPartition, match="t-0 has been deleted"):
        log.append(BATCH, now_ms=NOW)
    assert len(view.read()) == len(BATCH)
    assert not (tmp_path / "t-0").exists()
    assert not directory.graves.is_due
    directory.graves.clear(all_of_them=True)
    assert not list(tmp_path.glob("t-0*"))
    directory.close()


def test_many_batches_in_one_append_are_written_whole(log: PartitionLog) -> None:
    log.config = LogConfig()
    log.append(BATCH * 700, now_ms=NOW)
    assert log.log_end_offset == 3500
    assert sum(1 for _ in log.iter_records()) == 3500


def test_a_replaced_file_is_the_new_one_and_no_other_is_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"old", b"new"):
        files.write_atomically(path, content)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]
