"""A change of topics on a disk that fails at each of its steps in turn can be repeated, and is never half done."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.errors import InvalidPartitions, KafkaStorageError, TopicAlreadyExists, UnknownTopicOrPartition
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata
from broker.protocol.records import Record
from broker.steps import run_through
from tests.support.faults import FaultyDisk

Change = Callable[[ClusterMetadata], object]

CHANGES: dict[str, Change] = {
    "create": lambda metadata: metadata.create_topic("new", partitions=3, configs={"retention.ms": "5"}),
    "delete": lambda metadata: metadata.delete_topic("old"),
    "grow": lambda metadata: metadata.create_partitions("old", 4),
    "configure": lambda metadata: metadata.set_topic_configs("old", {"retention.ms": "7"}),
}
DONE = (TopicAlreadyExists, UnknownTopicOrPartition, InvalidPartitions)
"""The errors that a repeated change may get because the first attempt succeeded."""


class Cluster:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.start()

    def start(self) -> None:
        self.directory = LogDirectory(self.path)
        self.directory.open()
        self.metadata = ClusterMetadata.open(self.directory)

    def keep_house(self) -> None:
        self.directory.repair()
        self.directory.reopen_damaged()
        run_through(self.directory.take_away())
        self.metadata.make_missing_logs()

    def shown(self) -> dict[str, tuple[int, str | None]]:
        """Partitions and retention of each topic; every one has all its logs, and they take records."""
        contents = {}
        for name, topic in self.metadata.topics.items():
            logs = self.metadata.logs(name)
            assert [log.topic_id for log in logs] == [topic.id] * topic.partitions
            for log in logs:
                log.append_records([Record(b"k", b"v")])
                assert log.flush() == log.log_end_offset
            contents[name] = (topic.partitions, topic.configs.get("retention.ms"))
        return contents


def changed(path: Path, change: Change, first: int, count: int, *, half: bool) -> bool:
    """Make a change, and let some of its steps fail; whether it had so many steps."""
    path.mkdir()
    with FaultyDisk(path) as disk:
        cluster = Cluster(path / "data")
        cluster.metadata.create_topic("old", partitions=2)
        before = cluster.shown()
        change(cluster.metadata)
        after = cluster.shown()
        cluster.directory.close()

        cluster = Cluster(path / "again")
        cluster.metadata.create_topic("old", partitions=2)
        cluster.shown()
        disk.fail(first, count, half=half)
        failed = True
        try:
            change(cluster.metadata)
            failed = False
        except KafkaStorageError:
            pass
        repaired = len(disk.mend()) > first
        cluster.keep_house()
        now = cluster.shown()
        assert now == after if not failed else now in (before, after)
        try:
            change(cluster.metadata)
        except DONE:
            assert now == after
        assert cluster.shown() == after
        cluster.directory.close()
        cluster.start()
        assert cluster.shown() == after
        cluster.directory.close()
    return repaired


@pytest.mark.parametrize(("count", "half"), [(1, False), (1, True), (2, False), (10**6, False), (10**6, True)])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_fails_at_any_step_can_be_repeated(tmp_path: Path, name: str, count: int, half: bool) -> None:
    for step in itertools.count():
        if not changed(tmp_path / str(step), CHANGES[name], step, count, half=half):
            assert step > 1
            break
