"""Helpers for the incremental snapshot tests of all databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connect.api import RecordBatch
from connect.bench import Bench

__all__ = ["finished", "told"]


def told(batches: Sequence[RecordBatch], topic: str) -> list[Any]:
    """For a topic's records without tombstones: the first key column, the operation and the snapshot mark."""
    return [
        (next(iter(record.key.values())), record.value["op"], record.value["source"]["snapshot"])
        for batch in batches
        if batch.topic == topic
        for record in batch.records()
        if record.value is not None
    ]


def finished(task: Any, bench: Bench) -> list[RecordBatch]:
    """The batches until a requested snapshot has ended; all of them are committed."""
    received: list[RecordBatch] = []
    asked = False
    while True:
        batches = list(task.poll())
        received += batches
        bench.commit(batches)
        asked = asked or any("incremental_snapshot_collections" in (batch.source_offset or {}) for batch in batches)
        if asked and "incremental_snapshot_collections" not in (bench.offset({"server": "t"}) or {}):
            return received
