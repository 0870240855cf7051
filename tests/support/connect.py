"""Contexts for connectors and tasks without a runtime; they record the calls made to them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from connect.api import Record, RecordBatch, TopicPartition
from tidegate.kit.config import parse


def _frozen(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True)


class FakeContext:
    """One context for all: connector, source task and sink task."""

    name = connector = "under-test"
    task = 0
    transaction = None

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.properties = dict(properties or {})
        self.stopping = threading.Event()
        self.offsets: dict[str, Mapping[str, Any] | None] = {}
        self.reconfigured = threading.Event()
        self.assignment: frozenset[TopicPartition] = frozenset()
        self.rewound: dict[TopicPartition, int] = {}
        self.errant: list[tuple[Record, Exception]] = []
        self.skipped = 0
        self.commit_requested = False

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self.offsets.get(_frozen(partition))

    def commit(self, batches: Sequence[RecordBatch]) -> None:
        """Take the positions of batches as committed."""
        for batch in batches:
            if batch.source_partition is not None and batch.source_offset is not None:
                self.offsets[_frozen(batch.source_partition)] = batch.source_offset

    def request_task_reconfiguration(self) -> None:
        self.reconfigured.set()

    def progress(
        self,
        done: int,
        total: int | None = None,
        *,
        unit: str = "rows",
        note: str = "",
        seconds_left: float | None = None,
        parts: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        pass

    @property
    def errant_records(self) -> FakeContext:
        return self

    def report(self, record: Record, error: Exception) -> None:
        self.errant.append((record, error))

    def count_skipped(self, rows: int, *, dead_letters: int = 0) -> None:
        self.skipped += rows

    def rewind(self, positions: Mapping[TopicPartition, int]) -> None:
        self.rewound.update(positions)

    def pause(self, *partitions: TopicPartition) -> None:
        pass

    def resume(self, *partitions: TopicPartition) -> None:
        pass

    def request_commit(self) -> None:
        self.commit_requested = True


def source_task(connector: Any, properties: Mapping[str, str], context: FakeContext | None = None) -> Any:
    """The first task that a source connector plans, started."""
    context = context or FakeContext(properties)
    planner = connector(parse(connector.config_class, properties), properties, context)
    planned = planner.task_properties(1)[0]
    context.properties = dict(planned)
    task = connector.task_class(parse(connector.task_config_class or connector.config_class, planned), context)
    task.start()
    return task


def sink_task(connector: Any, properties: Mapping[str, str], context: FakeContext | None = None) -> Any:
    context = context or FakeContext(properties)
    task = connector.task_class(parse(connector.config_class, properties), context)
    task.start()
    return task


def drain(task: Any) -> list[RecordBatch]:
    """All batches until several consecutive polls return none, as a poll may read only one of several tables; their
    offsets are committed on the way.

    Set poll.linger.ms low.
    """
    batches: list[RecordBatch] = []
    empty = 0
    while empty < 4:
        polled = task.poll()
        task.context.commit(polled)
        batches += polled
        empty = 0 if polled else empty + 1
    return batches


def rows(batches: Sequence[RecordBatch]) -> list[Any]:
    return [value for batch in batches for value in batch.values.to_pylist()]
