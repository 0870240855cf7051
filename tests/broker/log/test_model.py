"""A log does what a list of records would, whatever happens to it in whatever order."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.errors import OffsetOutOfRange
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.protocol.compression import Codec
from broker.protocol.records import Record, encode_batch
from tests.support.times import newest, offset_for_time

START = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=150, retention_ms=5000)


class LogMachine(RuleBasedStateMachine):
    """``records`` is the list, ``start`` the first offset in it that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.generation = 0
        self.records: list[Record] = []
        self.start = 0
        self.now = START
        self._open(self.path / "0")
        self.log = self.directory.create("t", 0, uuid.uuid4(), CONFIG)

    def _open(self, path: Path) -> None:
        self.directory = LogDirectory(path, CONFIG)
        self.directory.open()

    def _reopened(self) -> PartitionLog:
        found = self.directory.get("t", 0)
        assert found is not None
        return found

    @rule(count=st.integers(1, 6), size=st.integers(0, 200), codec=st.sampled_from(Codec), late=st.integers(-50, 50))
    def append(self, count: int, size: int, codec: Codec, late: int) -> None:
        made = [Record(b"k", b"x" * size, (), self.now + late + n) for n in range(count)]
        appended = self.log.append(encode_batch(made, compression=codec), now_ms=self.now)
        assert appended.base_offset == len(self.records)
        self.records += [record._replace(offset=len(self.records) + n) for n, record in enumerate(made)]

    @rule(by=st.integers(1, 3000))
    def wait(self, by: int) -> None:
        self.now += by

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        self.start = max(self.start, int(len(self.records) * part))
        self.log.delete_records(self.start)
        self.directory.checkpoint_start_offsets()

    @rule()
    def enforce_retention(self) -> None:
        self.log.enforce_retention(self.now)
        assert self.log.log_start_offset >= self.start
        self.start = self.log.log_start_offset
        assert self.start == len(self.records) or self.log.segments[0].size

    @rule()
    def flush_and_checkpoint(self) -> None:
        assert self.log.flush() == len(self.records)
        self.directory.checkpoint()

    @rule()
    def stop_and_start(self) -> None:
        self.directory.close()
        self._open(self.directory.path)
        self.log = self._reopened()

    @rule(save=st.booleans())
    def crash_and_start(self, save: bool) -> None:
        if save:
            self.log.save_indexes()
        self.generation += 1
        copy = self.path / str(self.generation)
        shutil.copytree(self.directory.path, copy)
        self.directory.close()
        self._open(copy)
        self.log = self._reopened()

    @invariant()
    def ends_are_right(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, len(self.records))

    @rule(part=st.floats(0, 1))
    def read_on(self, part: float) -> None:
        offset = int(len(self.records) * part)
        if offset < self.start:
            try:
                self.log.read(offset, 100)
            except OffsetOutOfRange:
                return
            raise AssertionError(f"{offset} was readable before {self.start}")
        assert list(self.log.iter_records(offset)) == self.records[offset:]

    @precondition(lambda self: self.records)
    @rule(part=st.floats(0, 1), shift=st.integers(-60, 60))
    def look_up_a_time(self, part: float, shift: int) -> None:
        wanted = self.records[int((len(self.records) - 1) * part)].timestamp_ms + shift
        expected = next((r for r in self.records[self.start :] if r.timestamp_ms >= wanted), None)
        found = offset_for_time(self.log, wanted)
        assert found == (None if expected is None else (expected.timestamp_ms, expected.offset))

    @rule()
    def look_up_the_latest(self) -> None:
        left = self.records[self.start :]
        expected = max(left, key=lambda record: (record.timestamp_ms, -record.offset), default=None)
        assert newest(self.log) == (None if expected is None else (expected.timestamp_ms, expected.offset))

    def teardown(self) -> None:
        self.directory.close()
        shutil.rmtree(self.path)


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
