"""Compaction in the broker runs in another process, and clients see the last value of each key."""

from __future__ import annotations

import asyncio
import os
import uuid
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from broker.config import BrokerConfig
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.protocol.records import Record
from broker.storage.cleaner import Cleaner, own_process
from tidegate.kit.config import parse


def filled(path: Path) -> LogDirectory:
    directory = LogDirectory(path)
    directory.open()
    config = parse(LogConfig, {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)})
    log = directory.create("t", 0, uuid.UUID(int=7), config)
    for number in range(40):
        log.append_records([Record(b"%d" % key, os.urandom(5_000)) for key in range(10)])
        log.append_records([Record(b"last", b"%d" % number)])
    return directory


def test_a_log_is_compacted_in_a_process_of_its_own(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    log = directory.get("t", 0)
    assert log is not None
    before, end = log.size, log.log_end_offset
    cleaner = Cleaner(directory, own_process)
    assert asyncio.run(cleaner.clean()) == 1
    assert cleaner.records_removed > 200
    assert log.size < before
    assert log.log_end_offset == end
    assert [record.value for record in log.iter_records() if record.key == b"last"][-1] == b"39"
    directory.close()


def test_no_process_is_started_when_there_is_nothing_to_clean(tmp_path: Path) -> None:
    def refuse(_: int) -> Executor:
        raise AssertionError("no process is needed")

    directory = LogDirectory(tmp_path)
    directory.open()
    directory.create("t", 0, uuid.UUID(int=7))
    assert asyncio.run(Cleaner(directory, refuse).clean()) == 0
    directory.close()


def test_a_topic_deleted_meanwhile_is_left_alone(tmp_path: Path) -> None:
    directory = filled(tmp_path)

    class DeletesFirst(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):  # type: ignore[no-untyped-def]
            directory.delete("t", 0)
            return super().submit(*args, **kwargs)

    cleaner = Cleaner(directory, DeletesFirst)
    assert asyncio.run(cleaner.clean()) == 0
    assert cleaner.runs == 0
    directory.close()


def test_several_logs_are_compacted_side_by_side(tmp_path: Path) -> None:
    directory = filled(tmp_path)
    first = directory.get("t", 0)
    assert first is not None
    second = directory.create("u", 0, uuid.UUID(int=8), first.config)
    for _ in range(40):
        second.append_records([Record(b"%d" % key, os.urandom(5_000)) for key in range(10)])
    asked: list[int] = []

    def threads(count: int) -> Executor:
        asked.append(count)
        return ThreadPoolExecutor(count)

    limits = parse(BrokerConfig, {"log.dirs": "/nowhere", "log.cleaner.threads": "3"})
    assert asyncio.run(Cleaner(directory, threads, lambda: limits).clean()) == 2
    assert asked == [2]
    directory.close()
