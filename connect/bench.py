"""Runs connectors and tasks without a worker: makes their calls in the order of the contract, and stores offsets in
memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from connect.api import Connector, Record, RecordBatch, Task, TopicPartition
from connect.stores.offsets import canonical
from connect.task.context import RunningSinkContext
from connect.task.parts import registry_keys
from tidegate.kit.config import parse

__all__ = ["Bench", "BenchContext", "RunningTask"]


class BenchContext(RunningSinkContext):
    """The context of any task on the bench. ``errant`` has the records reported by the task."""

    def __init__(
        self,
        properties: Mapping[str, str],
        offsets: Mapping[str, Mapping[str, Any]],
        number: int,
        connector: str = "bench",
    ) -> None:
        from broker.client import ClientConfig

        super().__init__(
            connector,
            number,
            properties,
            stopping=threading.Event(),
            kafka=ClientConfig(properties.get("bootstrap.servers", "127.0.0.1:9092")),
            registry=registry_keys(properties),
            errant_records=self,
        )
        self._offsets = offsets
        self.transaction = None
        self.errant: list[tuple[Record, Exception]] = []
        self.skipped = 0
        self.progress_told: list[tuple[int, int | None]] = []
        self.parts_told: list[Sequence[Mapping[str, Any]]] = []

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._offsets.get(canonical(partition))

    def create_topic(self, topic: str) -> int:
        from broker.client import NewTopic
        from broker.client.blocking import Admin

        with Admin(self.kafka) as admin:
            admin.create_topics([NewTopic(topic, -1, -1)], exist_ok=True)
            return len(admin.describe_topics([topic])[topic].partitions)

    def report(self, record: Record, error: Exception) -> None:
        self.errant.append((record, error))

    def count_skipped(self, rows: int, *, dead_letters: int = 0) -> None:
        self.skipped += rows

    @property
    def tolerates_errors(self) -> bool:
        return self.properties.get("errors.tolerance") == "all"

    def leave_out(self, record: RecordBatch, error: Exception) -> None:
        self.errant += [(each, error) for each in record.records()]

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
        self.progress_told.append((done, total))
        self.parts_told.append(parts)


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task and its context."""

    task: Any
    context: BenchContext

    def poll_rows(self, rows: int, timeout_s: float = 30) -> list[RecordBatch]:
        """Poll until at least this many rows have arrived. Raises AssertionError after the timeout."""
        batches: list[RecordBatch] = []
        deadline = time.monotonic() + timeout_s
        while sum(len(batch) for batch in batches) < rows:
            batches.extend(self.task.poll())
            got = sum(len(batch) for batch in batches)
            assert time.monotonic() < deadline, f"{got} rows within {timeout_s:g} s, expected {rows}"
        return batches


class Bench:
    """One connector class and its offsets, which survive tasks as in a worker. Tasks take ``connector`` for its name."""

    def __init__(
        self, connector_class: type[Connector[Any]], properties: Mapping[str, str], *, connector: str = "bench"
    ) -> None:
        self.connector_class = connector_class
        self._connector = connector
        self.properties = {"name": "bench", "connector.class": connector_class.__name__, **properties}
        self._offsets: dict[str, Mapping[str, Any]] = {}
        self.reconfigurations = 0

    @property
    def name(self) -> str:
        """The connector's name (ConnectorContext)."""
        return "bench"

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The committed position of a source partition (ConnectorContext)."""
        return self._offsets.get(canonical(partition))

    def request_task_reconfiguration(self) -> None:
        """Counted (ConnectorContext)."""
        self.reconfigurations += 1

    def commit(self, batches: Sequence[RecordBatch]) -> None:
        """Commit the positions of these batches."""
        for batch in batches:
            if batch.source_partition is not None and batch.source_offset is not None:
                self._offsets[canonical(batch.source_partition)] = dict(batch.source_offset)

    def plan(self, max_tasks: int = 1) -> list[dict[str, str]]:
        """The connector's plan, after a start and before a stop."""
        connector = self.connector_class(
            parse(self.connector_class.config_class, self.properties), self.properties, self
        )
        try:
            connector.start()
            return [dict(task) for task in connector.task_properties(max_tasks)]
        finally:
            connector.stop()

    def unstarted(self) -> Any:
        """The plan's first task, not started."""
        return self._made(self.plan()[0], 0)[0]

    def _made(self, properties: Mapping[str, str], number: int) -> tuple[Task[Any], BenchContext]:
        cls = self.connector_class
        context = BenchContext(properties, self._offsets, number, self._connector)
        return cls.task_class(parse(cls.task_config_class or cls.config_class, properties), context), context

    @contextmanager
    def task(self, properties: Mapping[str, str] | None = None, number: int = 0) -> Iterator[RunningTask]:
        """A running task; the first of the plan unless ``properties`` are passed."""
        with self.created(properties, number) as running:
            running.task.start()
            yield running

    @contextmanager
    def created(self, properties: Mapping[str, str] | None = None, number: int = 0) -> Iterator[RunningTask]:
        """Like ``task``, but the caller starts it.

        At the end it is stopped and releases its resources, as in a worker.
        """
        planned = dict(properties) if properties is not None else self.plan()[0]
        task, context = self._made(planned, number)
        try:
            yield RunningTask(task, context)
        finally:
            context.stopping.set()
            try:
                task.stop()
            finally:
                task.resources.close()

    @contextmanager
    def sink(self, *partitions: TopicPartition) -> Iterator[RunningTask]:
        """A sink task with its partitions opened."""
        with self.task() as running:
            running.context.assigned = frozenset(partitions)
            running.task.open(list(partitions))
            yield running
