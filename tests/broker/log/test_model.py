"""A log behaves like a list of records under any sequence of operations, on a disk that fails now and then."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.errors import CorruptMessage, KafkaStorageError, OffsetOutOfRange
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.open_files import OpenFiles
from broker.log.partition import PartitionLog
from broker.protocol.compression import Codec
from broker.protocol.records import Record, encode_batch
from tests.support.faults import FLUSHES, WRITES, Fault, FaultyDisk
from tests.support.times import newest, offset_for_time

START = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=150, retention_ms=5000)


FAULTS = st.builds(
    Fault,
    st.sampled_from([0, 0, 0, 1, 1, 2, 3, 5, 8]),
    st.sampled_from([1, 1, 1, 1, 2, 1000]),
    st.sampled_from([None, None, FLUSHES, WRITES, frozenset({"rename", "replace", "unlink", "open"})]),
    st.booleans(),
)
SOMETIMES = st.none() | st.none() | FAULTS


class LogMachine(RuleBasedStateMachine):
    """``records`` is the list, ``start`` the first offset in it that counts; a restart may find ``durable_start`` instead."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.stack = ExitStack()
        self.disk = self.stack.enter_context(FaultyDisk(self.path))
        self.generation = 0
        self.records: list[Record] = []
        self.start = self.durable_start = 0
        self.now = START
        self._open(self.path / "0")
        self.log = self.directory.create("t", 0, uuid.uuid4(), CONFIG)

    def _open(self, path: Path) -> None:
        self.directory = LogDirectory(path, CONFIG, open_files=OpenFiles(1))
        self.directory.open()

    def _reopened(self) -> PartitionLog:
        reopened = self.directory.get("t", 0)
        assert reopened is not None
        return reopened

    def _done(self, work: Callable[[], object], fault: Fault | None = None) -> bool:
        """Whether it succeeded, which it must do if the disk works and the log was repaired."""
        self.disk.arm(fault)
        try:
            work()
        except KafkaStorageError:
            assert self.disk.is_armed or self.log.failure is not None
            return False
        return True

    # Faults

    @rule()
    def mend(self) -> None:
        self.disk.mend()
        self.keep_house()
        assert self.log.failure is None
        assert self.log.flush() == len(self.records)

    @rule()
    def keep_house(self) -> None:
        """The repair step that the broker runs each second after a failure."""
        self.directory.repair()
        self.directory.reopen_damaged()

    # Changes

    @rule(
        count=st.integers(1, 6),
        size=st.integers(0, 200),
        codec=st.sampled_from(Codec),
        late=st.integers(-50, 50),
        fault=SOMETIMES,
    )
    def append(self, count: int, size: int, codec: Codec, late: int, fault: Fault | None) -> None:
        made = [Record(b"k", b"x" * size, (), self.now + late + n) for n in range(count)]
        batch = encode_batch(made, compression=codec)
        if self._done(lambda: self.log.append(batch, now_ms=self.now), fault):
            self.records += [record._replace(offset=len(self.records) + n) for n, record in enumerate(made)]

    @rule(batches=st.integers(5, 20), size=st.integers(0, 200))
    def fill(self, batches: int, size: int) -> None:
        for _ in range(batches):
            self.append(3, size, Codec.NONE, 0, None)

    @rule(by=st.integers(1, 6000))
    def wait(self, by: int) -> None:
        self.now += by

    @rule(part=st.floats(0, 1), fault=SOMETIMES)
    def delete_records(self, part: float, fault: Fault | None) -> None:
        self.start = max(self.start, int(len(self.records) * part))
        self.log.delete_records(self.start)
        if self._done(self.directory.checkpoint_start_offsets, fault):
            self.durable_start = self.start

    @rule(fault=SOMETIMES)
    def enforce_retention(self, fault: Fault | None) -> None:
        done = self._done(lambda: self.log.enforce_retention(self.now), fault)
        assert self.log.log_start_offset >= self.start
        self.start = self.log.log_start_offset
        assert not done or self.start == len(self.records) or self.log.segments[0].size

    @rule(fault=SOMETIMES)
    def flush_and_checkpoint(self, fault: Fault | None) -> None:
        if self._done(self.log.flush, fault):
            assert self.log.flushed_offset == len(self.records)
        self._done(self.directory.checkpoint)

    # Restarts

    @rule(fault=SOMETIMES)
    def stop_and_start(self, fault: Fault | None) -> None:
        self._done(self.directory.close, fault)
        self._start(self.directory.path)

    @rule(save=st.booleans(), fault=SOMETIMES)
    def crash_and_start(self, save: bool, fault: Fault | None) -> None:
        if save:
            self._done(self.log.recovery_files.save_indexes)
        self.generation += 1
        copy = self.path / str(self.generation)
        self.disk.mend()  # for who copies
        shutil.copytree(self.directory.path, copy)
        with suppress(KafkaStorageError):  # of a log that was not repaired
            self.directory.close()
        self.disk.arm(fault)
        self._start(copy)

    def _start(self, path: Path) -> None:
        """On a failing disk a start may fail too. It can be repeated."""
        try:
            self._open(path)
        except (KafkaStorageError, CorruptMessage):
            assert self.disk.is_armed
            for disk in self.directory.disks:
                disk.unlock()
            self.disk.mend()
            self._open(path)
        self.log = self._reopened()
        assert self.durable_start <= self.log.log_start_offset <= self.start
        self.start = self.durable_start = self.log.log_start_offset

    # Questions

    @invariant()
    def ends_are_right(self) -> None:
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, len(self.records))

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        assert list(self.log.iter_records()) == self.records[self.start :]

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
        timestamp = self.records[int((len(self.records) - 1) * part)].timestamp_ms + shift
        expected = next((r for r in self.records[self.start :] if r.timestamp_ms >= timestamp), None)
        offset = offset_for_time(self.log, timestamp)
        assert offset == (None if expected is None else (expected.timestamp_ms, expected.offset))

    @rule()
    def look_up_the_latest(self) -> None:
        left = self.records[self.start :]
        expected = max(left, key=lambda record: (record.timestamp_ms, -record.offset), default=None)
        assert newest(self.log) == (None if expected is None else (expected.timestamp_ms, expected.offset))

    def teardown(self) -> None:
        self.disk.mend()
        self.keep_house()
        self.directory.close()
        self.stack.close()
        shutil.rmtree(self.path)


def test_reading_goes_on_where_the_index_of_another_segment_cannot_be_saved() -> None:
    state = LogMachine()
    state.append(count=1, size=50, codec=Codec.NONE, late=0, fault=None)
    state.what_was_acknowledged_is_there()
    state.fill(batches=5, size=200)
    state.what_was_acknowledged_is_there()
    state.disk.fail()
    state.what_was_acknowledged_is_there()
    assert state.disk.failed
    state.teardown()


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
