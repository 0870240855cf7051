"""The cluster's image behaves like a dictionary of topics, on a disk that fails at any step: once, for a while, or in
the middle of a write.

A success reported to a client is final, and a failed change is done wholly or not at all, now and after a restart.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.errors import (
    CorruptMessage,
    InvalidPartitions,
    KafkaStorageError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata
from broker.metadata.records import RemoveTopicRecord, TopicRecord, decode_record
from broker.protocol.records import Record
from broker.steps import run_through
from tests.support.faults import FLUSHES, WRITES, Fault, FaultyDisk

NAMES = ("a", "b", "c.d")


FAULTS = st.builds(
    Fault,
    st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 6, 9, 13]),  # a change of a topic takes some ten steps
    st.sampled_from([1, 1, 2, 1000]),
    st.sampled_from([None, None, FLUSHES, WRITES, frozenset({"rename", "replace", "mkdir", "open"})]),
    st.booleans(),
)
OFTEN = st.none() | FAULTS


class MetadataMachine(RuleBasedStateMachine):
    """``expected`` has each topic's partitions and retention; ``doubtful`` those topics of which a failure left open which it is.

    ``without_logs`` are topics that a failure may have left without some logs until the broker keeps house on a disk that works.
    ``undone`` is what changes that failed would have made: while the disk fails, a restart may find them done.
    """

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.generation = 0
        self.stack = ExitStack()
        self.disk = self.stack.enter_context(FaultyDisk(self.path))
        self.expected: dict[str, tuple[int, str]] = {}
        self.doubtful: set[str] = set()
        self.without_logs: set[str] = set()
        self.undone: list[tuple[str, tuple[int, str] | None]] = []
        self.probes = 0
        self._open(self.path / "0")

    def _open(self, path: Path) -> None:
        self.directory = LogDirectory(path)
        self.directory.open()
        self.metadata = ClusterMetadata.open(self.directory)

    def teardown(self) -> None:
        self.disk.mend()
        self.directory.repair()
        self.directory.close()
        self.stack.close()
        shutil.rmtree(self.path)

    # Faults

    @rule(fault=FAULTS)
    def let_it_fail(self, fault: Fault) -> None:
        self.disk.arm(fault)

    @rule()
    def mend(self) -> None:
        self.disk.mend()
        self._keep_house()
        self._settled()
        assert not self.directory.has_failed_logs
        self.probes += 1
        name = f"probe-{self.probes}"
        self.metadata.create_topic(name, partitions=2)
        self.expected[name] = (2, "")
        for topic in self.metadata.topics:
            for log in self.metadata.logs(topic):
                end = log.log_end_offset
                log.append_records([Record(b"k", b"v")])
                assert log.flush() == end + 1
        self.metadata.delete_topic(name)
        del self.expected[name]

    def _keep_house(self) -> None:
        """The repair step that the broker runs every second or so."""
        self.directory.repair()
        self.directory.reopen_damaged()
        run_through(self.directory.take_away())
        self.metadata.make_missing_logs()

    @rule()
    def keep_house(self) -> None:
        self._keep_house()

    def _settled(self) -> None:
        """No change is pending any more: the outcome is the state."""
        for name in self.doubtful:
            self.expected.pop(name, None)
            if name in self.metadata.topics:
                self.expected[name] = self._shown(name)
        self.doubtful.clear()
        self.without_logs.clear()
        self.undone.clear()

    # Changes

    def _change(
        self, name: str, change: Callable[[], object], after: tuple[int, str] | None, fault: Fault | None
    ) -> None:
        self.disk.arm(fault)
        try:
            change()
        except KafkaStorageError:
            assert self.disk.is_armed or self.directory.has_failed_logs
            self.undone.append((name, after))
            if self._shown(name) != self.expected.get(name):
                self.doubtful.add(name)
                self.without_logs.add(name)
            return
        self.doubtful.discard(name)
        self.expected.pop(name, None)
        if after is not None:
            self.expected[name] = after

    @rule(name=st.sampled_from(NAMES), partitions=st.integers(1, 3), fault=OFTEN)
    def create(self, name: str, partitions: int, fault: Fault | None) -> None:
        try:
            self._change(name, lambda: self.metadata.create_topic(name, partitions=partitions), (partitions, ""), fault)
        except TopicAlreadyExists:
            assert name in self.expected or name in self.doubtful

    @rule(name=st.sampled_from(NAMES), fault=OFTEN)
    def delete(self, name: str, fault: Fault | None) -> None:
        try:
            self._change(name, lambda: self.metadata.delete_topic(name), None, fault)
        except UnknownTopicOrPartition:
            assert name not in self.expected or name in self.doubtful

    @rule(name=st.sampled_from(NAMES), total=st.integers(1, 5), fault=OFTEN)
    def grow(self, name: str, total: int, fault: Fault | None) -> None:
        shown = self._shown(name)
        try:
            self._change(
                name, lambda: self.metadata.create_partitions(name, total), (total, shown[1] if shown else ""), fault
            )
        except UnknownTopicOrPartition:
            assert name not in self.expected or name in self.doubtful
        except InvalidPartitions:
            assert shown is not None and total <= shown[0]

    @rule(name=st.sampled_from(NAMES), retention=st.integers(1, 1000).map(str), fault=OFTEN)
    def configure(self, name: str, retention: str, fault: Fault | None) -> None:
        shown = self._shown(name)
        try:
            self._change(
                name,
                lambda: self.metadata.set_topic_configs(name, {"retention.ms": retention}),
                (shown[0] if shown else 0, retention),
                fault,
            )
        except UnknownTopicOrPartition:
            assert name not in self.expected or name in self.doubtful

    # Restarts

    @rule()
    def stop_and_start(self) -> None:
        with suppress(KafkaStorageError):
            self.directory.close()
        self._start(self.directory.path)

    @rule()
    def crash_and_start(self) -> None:
        self.generation += 1
        copy = self.path / str(self.generation)
        self.disk.mend()  # for who copies
        shutil.copytree(self.directory.path, copy)
        with suppress(KafkaStorageError):  # of a log that was not repaired
            self.directory.close()
        self._start(copy)

    def _start(self, path: Path) -> None:
        """On a failing disk a start may fail too. It can be repeated."""
        try:
            self._open(path)
        except (KafkaStorageError, CorruptMessage, OSError):
            assert self.disk.is_armed
            for disk in self.directory.disks:
                disk.unlock()
            self.disk.mend()
            self._open(path)
        for name in {*self.expected, *self.metadata.topics} - self.doubtful:
            shown = self._shown(name)
            if shown != self.expected.get(name):
                assert (name, shown) in self.undone
                self.doubtful.add(name)
        self._settled()

    # The image

    def _shown(self, name: str) -> tuple[int, str] | None:
        topic = self.metadata.topics.get(name)
        return None if topic is None else (topic.partitions, topic.configs.get("retention.ms", ""))

    @invariant()
    def topics_are_as_they_were_told(self) -> None:
        for name in {*self.expected, *self.metadata.topics} - self.doubtful:
            assert self._shown(name) == self.expected.get(name), name

    @invariant()
    def the_log_says_the_same_as_the_image(self) -> None:
        names: dict[uuid.UUID, str] = {}
        for record in self.metadata.log.iter_records():
            match decode_record(record.value or b""):
                case TopicRecord(name=name, topic_id=topic_id):
                    assert name not in names.values(), "two topics of one name"
                    names[topic_id] = name
                case RemoveTopicRecord(topic_id=topic_id):
                    del names[topic_id]
        assert names == {topic.id: topic.name for topic in self.metadata.topics.values()}

    @invariant()
    def every_topic_is_whole(self) -> None:
        ids = [topic.id for topic in self.metadata.topics.values()]
        assert len(set(ids)) == len(ids)
        for name, topic in self.metadata.topics.items():
            assert self.metadata.topic_name(topic.id) == name
            if name not in self.without_logs:
                logs = self.metadata.logs(name)
                assert len(logs) == topic.partitions
                assert {log.topic_id for log in logs} == {topic.id}


TestMetadata = MetadataMachine.TestCase
TestMetadata.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
