"""Which files of segments are open: few, never one less than waits for the disk."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import KafkaStorageError
from broker.log.directory import LogDirectory
from broker.log.open_files import OpenFiles
from broker.log.partition import PartitionLog
from broker.protocol.records import Record, encode_batch

BATCH = encode_batch([Record(b"k", b"v", (), 1_700_000_000_000)])


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[LogDirectory]:
    opened = LogDirectory(tmp_path, open_files=OpenFiles(2, 4))
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def logs(directory: LogDirectory) -> list[PartitionLog]:
    return [directory.create("t", number, uuid.UUID(int=1)) for number in range(6)]


def open_ones(logs: list[PartitionLog]) -> list[int]:
    """The partitions with an open file, as the system sees it."""
    shown = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _exists(fd)]
    return [log.partition for log in logs if str(log.active.path) in shown]


def _exists(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def test_of_flushed_files_those_used_last_are_open(logs: list[PartitionLog]) -> None:
    assert open_ones(logs) == []
    for log in logs:
        log.append(BATCH)
        log.flush()
    for number in (3, 0, 3):
        assert logs[number].read(0, 1000).read()
    assert open_ones(logs) == [0, 3]


def test_a_file_stays_open_until_it_is_on_disk(logs: list[PartitionLog]) -> None:
    for log in logs[:3]:
        log.append(BATCH)
    assert open_ones(logs) == [0, 1, 2]
    logs[1].flush()
    assert logs[5].read(0, 1000).size == 0  # opens nothing
    logs[3].append(BATCH)
    assert open_ones(logs) == [0, 2, 3]


def test_too_many_files_that_wait_for_the_disk_are_refused_until_one_is_flushed(logs: list[PartitionLog]) -> None:
    for log in logs[:4]:
        log.append(BATCH)
    with pytest.raises(KafkaStorageError, match="Too many open files"):
        logs[4].append(BATCH)
    assert logs[4].log_end_offset == 0
    for log in logs[:3]:
        log.flush()
    assert logs[4].append(BATCH).base_offset == 0
    assert [list(log.iter_records(0)) != [] for log in logs] == [True] * 5 + [False]


def test_a_reader_goes_on_with_a_file_that_was_closed_or_deleted(
    directory: LogDirectory, logs: list[PartitionLog]
) -> None:
    for log in logs:
        log.append(BATCH)
        log.flush()
    kept = logs[0].read(0, 1000)
    for log in logs[1:]:
        assert log.read(0, 1000).read()
    directory.delete("t", 0)
    assert kept.read().endswith(BATCH[-8:])
    del kept
    assert open_ones(logs[:1]) == []
