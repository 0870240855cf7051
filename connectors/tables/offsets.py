"""How far a table has a connector's records. Tables state it in their own commits, each in its way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from connect.api import TopicPartition

__all__ = ["Mark", "Offsets", "offsets_of_text", "offsets_text"]


class Mark(NamedTuple):
    """Every record before ``next_offset`` is in the table. ``timestamp_ms`` is that of the last of them."""

    next_offset: int
    timestamp_ms: int | None = None


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
