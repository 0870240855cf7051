"""A power cut removes any bytes that were not flushed.

Everything below the recovery point survives, and no record after a hole does.
"""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log import disk, partition
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.protocol.compression import Codec
from broker.protocol.records import Record, encode_batch

NOW = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=120)
Step = tuple[str, int]

steps = st.lists(
    st.tuples(st.sampled_from(["append", "append", "append", "flush", "checkpoint", "abort"]), st.integers(0, 400)),
    min_size=5,
    max_size=60,
)
from tests.support.times import newest, offset_for_time


class Load:
    """Appends of an idempotent producer and of one whose transactions are aborted, flushed and checkpointed at times."""

    def __init__(self, path: Path) -> None:
        self.directory = LogDirectory(path, CONFIG)
        self.directory.open()
        self.log = self.directory.create("t", 0, uuid.uuid4(), CONFIG)
        self.sequences = [0, 0]
        self.flushed: dict[str, int] = {}
        self.number = 0

    def step(self, what: str, size: int) -> None:
        if what in ("append", "abort"):
            self._append(int(what == "abort"), size)
        else:
            self.log.flush()
            if what == "checkpoint":
                self.directory.checkpoint()
            self.flushed = {segment.path.name: segment.size for segment in self.log.segments}

    def _append(self, producer: int, size: int) -> None:
        self.number += 1
        record = Record(b"k%d" % self.number, b"v" * size, (), NOW + self.number)
        batch = encode_batch(
            [record],
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.sequences[producer],
            transactional=bool(producer),
            compression=Codec(self.number % 5),
        )
        self.log.append(batch, now_ms=NOW)
        self.sequences[producer] += 1
        if producer:
            self.log.append_marker(1, 0, commit=False, now_ms=NOW)


def tear(path: Path, load: Load, keep: int, junk: bytes) -> None:
    """Keep the flushed part of each log file, ``keep`` bytes of the rest, then ``junk``; unflushed later files are
    removed or torn too.
    """
    for file in sorted((path / "t-0").glob("*.log")):
        flushed = load.flushed.get(file.name, 0)
        size = file.stat().st_size
        if size > flushed:
            os.truncate(file, min(size, flushed + keep))
            with file.open("ab") as out:
                out.write(junk)


@settings(max_examples=80, deadline=None)
@given(
    done=steps,
    keep=st.integers(0, 600),
    junk=st.binary(max_size=80),
    indexes=st.sampled_from(["as they are", "short", "zeros", "gone"]),
    rebooted=st.booleans(),
)
def test_flushed_records_survive_and_the_rest_is_consistent(
    tmp_path_factory: pytest.TempPathFactory, done: list[Step], keep: int, junk: bytes, indexes: str, rebooted: bool
) -> None:
    path = tmp_path_factory.mktemp("torn")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(disk, "_MARK_BYTES", 200)
        patched.setattr(partition, "UNSYNCED_INDEX_BYTES", 500)
        load = Load(path / "data")
        for what, size in done:
            load.step(what, size)
    before, end = list(load.log.iter_records()), load.log.flushed_offset
    aborted = list(load.log.aborted)
    shutil.copytree(path / "data", path / "copy")
    load.directory.close()
    tear(path / "copy", load, keep, junk)
    if rebooted:
        (path / "copy" / ".lock").write_text("another start of the machine")
        spoil(path / "copy", load, indexes)
    directory = LogDirectory(path / "copy", CONFIG)
    directory.open()
    again = directory.get("t", 0)
    assert again is not None
    records = list(again.iter_records())
    assert again.log_end_offset >= end
    assert records == before[: len(records)]
    assert [transaction for transaction in again.aborted if transaction.last_offset < end] == [
        transaction for transaction in aborted if transaction.last_offset < end
    ]
    expect_same_look_ups(again, records)
    expect_producers_remembered(again, load)
    directory.close()


def spoil(path: Path, load: Load, how: str) -> None:
    """Index files of the segment that was active: a power cut may take what was not yet synced of them."""
    name = load.log.active.path.name[:20]
    for suffix in (".index", ".timeindex"):
        file = path / "t-0" / f"{name}{suffix}"
        if not file.exists() or how == "as they are":
            continue
        size = file.stat().st_size
        unit = 8 if suffix == ".index" else 12
        if how == "gone":
            file.unlink()
        elif how == "short":
            os.truncate(file, size // unit // 2 * unit)
        else:
            os.truncate(file, size // unit // 2 * unit)
            os.truncate(file, size)


def expect_same_look_ups(log: PartitionLog, records: list[Record]) -> None:
    for record in records[::7]:
        assert offset_for_time(log, record.timestamp_ms) == (record.timestamp_ms, record.offset)
        assert next(log.iter_records(record.offset)).offset == record.offset
    latest = newest(log)
    assert latest is None or not records or latest[0] >= records[-1].timestamp_ms


def expect_producers_remembered(log: PartitionLog, load: Load) -> None:
    """The next batch of the idempotent producer is the one behind the last that is still there."""
    kept = sum(1 for raw in log.iter_batches() if raw[43:51] == bytes(8))
    batch = encode_batch([Record(b"k", b"v", (), NOW)], producer_id=0, producer_epoch=0, base_sequence=kept)
    end = log.log_end_offset
    assert log.append(batch, now_ms=NOW).base_offset == end
