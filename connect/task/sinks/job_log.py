"""The log as a job's runner sees it: partitions with their bounds, the offsets committed for them, and the run that is not done.

A run is written down before it begins: each of its partitions is committed where it starts, with the run's id and its stop
as the metadata of that commit. So who takes over from a worker that was killed repeats that run, and no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from connect.api import TopicPartition
from connect.config.connector import SinkConfig
from connect.task.clients import ClientLoop
from tidegate.kit.java_regex import JavaRegex

if TYPE_CHECKING:
    from broker.client import ClientConfig

__all__ = ["GroupOffsets", "Intent", "JobLog", "PartitionState"]

_NONE: Final[Mapping[TopicPartition, Intent]] = MappingProxyType({})
_RUN_ID: Final = re.compile("[0-9a-f]{16}")


class Intent(NamedTuple):
    """The range that a run reads in a partition: from the committed offset up to ``stop``, which is excluded."""

    run_id: str
    stop: int

    def to_metadata(self) -> str:
        return json.dumps({"run": self.run_id, "stop": self.stop})

    @classmethod
    def from_metadata(cls, text: str) -> Intent | None:
        """None for what another program has written there, or nobody: the id becomes part of names of files."""
        try:
            match json.loads(text):
                case {"run": str(run_id), "stop": int(stop)} if _RUN_ID.fullmatch(run_id):
                    return cls(run_id, stop)
        except (ValueError, RecursionError):
            pass
        return None


class PartitionState(NamedTuple):
    """Offsets of a partition: what the job has committed (None: never anything), the first one there, and the end."""

    committed: int | None
    first: int
    end: int
    intent: Intent | None = None

    @property
    def has_position(self) -> bool:
        """Whether the log still holds what comes after the committed offset, and all of the run that is not done."""
        last = self.committed if self.intent is None else self.intent.stop
        return self.committed is None or last is None or self.first <= self.committed <= last <= self.end

    @property
    def start(self) -> int:
        """Where the next run begins."""
        return self.first if self.committed is None else self.committed


class JobLog(Protocol):
    """The runner's questions to the log, on its thread."""

    def partitions(self, config: SinkConfig) -> dict[TopicPartition, PartitionState]:
        """The partitions of the connector's topics, and those of a run that is not done."""
        ...

    def commit(self, offsets: Mapping[TopicPartition, int], intents: Mapping[TopicPartition, Intent] = ...) -> None:
        """All of them or none; a partition without an intent has no run that is not done."""
        ...


class GroupOffsets:
    """A JobLog over any Kafka: positions are those of the group ``connect-<connector>``.

    With ``committed`` a partition ends where its oldest open transaction begins.
    """

    def __init__(self, loop: ClientLoop, config: ClientConfig, group: str, *, committed: bool = False) -> None:
        from broker.client import Admin

        self._loop, self._group, self._committed = loop, group, committed
        self._admin = Admin(config)

    def start(self) -> None:
        """Connect; waits for a cluster that is away. Raises Stopped."""
        self._loop.patiently(self._admin.start, "starting a job's admin client")

    def partitions(self, config: SinkConfig) -> dict[TopicPartition, PartitionState]:
        return self._loop.patiently(lambda: self._partitions(config), f"offsets of group {self._group}")

    async def _partitions(self, config: SinkConfig) -> dict[TopicPartition, PartitionState]:
        from broker.client import TopicPartition as ClientPartition

        there = await self._admin.list_topics()
        committed = await self._admin.group_offsets_with_notes(self._group)
        begun = {p.topic for p, (_, note) in committed.items() if Intent.from_metadata(note) is not None}
        topics = [name for name in there if _takes(config, name) or name in begun]
        described = await self._admin.describe_topics(topics) if topics else {}
        partitions = [ClientPartition(name, p.partition) for name, topic in described.items() for p in topic.partitions]
        firsts = await self._admin.beginning_offsets(partitions)
        ends = await self._admin.end_offsets(partitions, committed=self._committed)
        states: dict[TopicPartition, PartitionState] = {}
        for partition in partitions:
            offset, note = committed.get(partition, (None, ""))
            intent = Intent.from_metadata(note)
            if intent is not None or _takes(config, partition.topic):
                states[TopicPartition(*partition)] = PartitionState(offset, firsts[partition], ends[partition], intent)
        return states

    def commit(self, offsets: Mapping[TopicPartition, int], intents: Mapping[TopicPartition, Intent] = _NONE) -> None:
        from broker.client import TopicPartition as ClientPartition

        committed = {ClientPartition(*partition): offset for partition, offset in offsets.items()}
        notes = {ClientPartition(*partition): intent.to_metadata() for partition, intent in intents.items()}
        self._loop.patiently(
            lambda: self._admin.alter_group_offsets(self._group, committed, notes), f"offsets of group {self._group}"
        )

    def close(self) -> None:
        self._loop.run(self._admin.stop())


def _takes(config: SinkConfig, topic: str) -> bool:
    topics: Sequence[str] = config.topics
    return topic in topics or bool(config.topics_regex and JavaRegex(config.topics_regex).fullmatch(topic))
