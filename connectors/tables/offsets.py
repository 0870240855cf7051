"""How far a table has a connector's records. Tables state it in their own commits, each in its way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from connect.api import RecordBatch, TopicPartition

__all__ = ["Mark", "Offsets", "offsets_of_text", "offsets_text"]


class Mark(NamedTuple):
    """Every record before ``next_offset`` is in the table. ``timestamp_ms`` is that of the last of them."""

    next_offset: int
    timestamp_ms: int | None = None

    @property
    def start(self) -> int:
        """Where to read on from: at the last record where its time is known, to see that it is still the same one."""
        return self.next_offset - (self.timestamp_ms is not None and self.next_offset > 0)

    def is_contradicted_by(self, batch: RecordBatch) -> bool:
        """Whether the batch has another record where the last one was; False where the times are not known."""
        import pyarrow.compute as pc

        row = pc.index(batch.offsets, self.next_offset - 1).as_py()
        if row < 0 or batch.timestamps_ms is None or self.timestamp_ms is None:
            return False
        return bool(batch.timestamps_ms[row].as_py() != self.timestamp_ms)


Offsets: TypeAlias = Mapping[TopicPartition, Mark]


def offsets_text(offsets: Offsets) -> str:
    """As JSON: topic, partition, and the next offset with the timestamp of the record before it."""
    topics: dict[str, dict[str, list[int | None]]] = {}
    for partition in sorted(offsets):
        topics.setdefault(partition.topic, {})[str(partition.partition)] = list(offsets[partition])
    return json.dumps(topics, separators=(",", ":"))


def offsets_of_text(text: str) -> dict[TopicPartition, Mark]:
    return {
        TopicPartition(topic, int(partition)): Mark(*mark)
        for topic, partitions in json.loads(text).items()
        for partition, mark in partitions.items()
    }
