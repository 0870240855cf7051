"""Appends and reads from the view of clients: when records are flushed, and the errors when the disk fails."""

from __future__ import annotations

import asyncio
import errno
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.errors import KafkaStorageError, NotEnoughReplicas, OutOfOrderSequence
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.log.segment import Segment
from broker.protocol.records import Record, encode_batch
from broker.storage.arrivals import Arrivals
from broker.storage.durability import Durability
from broker.storage.partitions import Partitions

BATCH = encode_batch([Record(None, b"value", timestamp_ms=1_700_000_000_000)])


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogDirectory]:
    directory = LogDirectory(tmp_path)
    directory.open()
    yield directory
    directory.close()


class NoIds:
    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return None


def run(logs: LogDirectory, test: Callable[[Partitions], Any]) -> None:
    async def inner() -> None:
        async with asyncio.timeout(60):
            durability = Durability(background_interval_s=3600)
            try:
                await test(Partitions(NoIds(), logs, durability, Arrivals()))
            finally:
                await durability.close()

    asyncio.run(inner())


async def flushed(log: PartitionLog) -> None:
    while log.flushed_offset < log.log_end_offset:
        await asyncio.sleep(0.001)


def test_records_are_flushed_within_flush_ms(logs: LogDirectory) -> None:
    slow, quick, at_once = (
        logs.create("t", number, uuid.UUID(int=7), LogConfig(**overrides))
        for number, overrides in enumerate(({}, {"flush_ms": 5}, {"flush_messages": 1}))
    )

    async def test(partitions: Partitions) -> None:
        for log in (slow, at_once):
            partitions.append(log, BATCH, acks=1)
        waiting = partitions.due([slow, at_once])
        assert waiting is not None and await waiting == {}
        assert (slow.flushed_offset, at_once.flushed_offset) == (0, 1)
        assert partitions.due([slow, at_once]) is None
        partitions.append(quick, BATCH, acks=1)
        await flushed(quick)
        await flushed(slow)  # what waits for the background goes along

    run(logs, test)


def test_a_flush_that_fails_is_not_told_as_nothing_written(logs: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logs.create("t", 0, uuid.UUID(int=7), LogConfig(flush_messages=1))

    def broken() -> int:
        raise KafkaStorageError("the disk is gone")

    async def test(partitions: Partitions) -> None:
        monkeypatch.setattr(log, "flush", broken)
        partitions.append(log, BATCH, acks=1)
        waiting = partitions.due([log])
        assert waiting is not None
        assert [error.message for error in (await waiting).values()] == ["the disk is gone"]
        assert log.log_end_offset == 1
        partitions.appended(log, 0)  # the coordinators learn it from the future that they wait for
        monkeypatch.undo()

    run(logs, test)


def test_a_disk_that_cannot_be_read_is_a_storage_error(logs: LogDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    log = logs.create("t", 0, uuid.UUID(int=7))

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError(5, "Input/output error")

    async def test(partitions: Partitions) -> None:
        monkeypatch.setattr(log, "read", broken)
        with pytest.raises(KafkaStorageError, match="cannot read t-0: Input/output error"):
            partitions.read(log, 0, 1000, isolation_level=0, first=True)

    run(logs, test)


@pytest.mark.parametrize("why", ["the disk is full", "too few replicas"])
def test_a_producer_s_first_batches_that_are_refused_come_in_their_order(
    logs: LogDirectory, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    log = logs.create("t", 0, uuid.UUID(int=7), LogConfig())

    def batch(sequence: int) -> bytes:
        record = Record(None, b"value", timestamp_ms=1_700_000_000_000)
        return encode_batch([record], producer_id=9, producer_epoch=0, base_sequence=sequence)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, why)

    async def test(partitions: Partitions) -> None:
        with monkeypatch.context() as refusing:
            if why == "the disk is full":
                refusing.setattr(Segment, "append", full)
            else:
                refusing.setattr(log, "config", LogConfig(min_insync_replicas=2))
            with pytest.raises((KafkaStorageError, NotEnoughReplicas)):
                partitions.append(log, batch(0), acks=-1)
            with pytest.raises((OutOfOrderSequence, NotEnoughReplicas)):
                partitions.append(log, batch(1), acks=-1)
        for _ in range(2):
            with pytest.raises(OutOfOrderSequence, match="where 0, which was refused, is next"):
                partitions.append(log, batch(2), acks=-1)
        for sequence in range(3):
            assert partitions.append(log, batch(sequence), acks=-1).base_offset == sequence

    run(logs, test)
