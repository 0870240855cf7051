"""The guarantees of every sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest

from connect.api import Origin, Record, RecordBatch, Schema, SchemaType, SinkConnector, TopicPartition
from connect.bench import Bench, RunningTask
from tidegate.kit.config import validate

__all__ = ["ROW", "SinkSuite"]

ROW = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "name": Schema(SchemaType.STRING, optional=True),
        "amount": Schema(SchemaType.FLOAT64, optional=True),
    },
    name="suite.Row",
)


class SinkSuite:
    """Set ``connector_class``, the fixture ``properties``, and ``read_back``; override ``record`` for rows of another
    kind.

    ``exactly_once`` means that a row delivered again after a crash is stored once.
    """

    connector_class: ClassVar[type[SinkConnector[Any]]]
    topic: ClassVar[str] = "suite"
    exactly_once: ClassVar[bool] = False

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        """The connector's own keys.

        Written rows must be durable after ``flush``, or after the ``pre_commit`` of a whole put.
        """
        raise NotImplementedError

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        """An id of each row that arrived: the ``n`` passed to ``record``."""
        raise NotImplementedError

    def record(self, n: int) -> Record:
        """Row number ``n``."""
        return Record(self.topic, {"id": n, "name": f"name {n}", "amount": n / 2}, ROW)

    @pytest.fixture
    def bench(self, properties: Mapping[str, str]) -> Bench:
        return Bench(self.connector_class, {"topics": self.topic, **properties})

    def batch(self, start: int, stop: int, partition: int = 0) -> RecordBatch:
        """Rows ``start`` to ``stop`` at the offsets of the same numbers."""
        from dataclasses import replace

        origin = Origin(self.topic, partition)
        stamp = 1_700_000_000_000
        rows = [replace(self.record(n), offset=n, origin=origin, timestamp_ms=stamp + n) for n in range(start, stop)]
        return RecordBatch.from_records(rows)

    def test_its_configuration_is_right(self, bench: Bench) -> None:
        judged = validate(self.connector_class.config_class, {**bench.properties, "no.such.key": "x"})
        errors = [error for judged_key in judged for error in judged_key.errors]
        assert errors == [], f"the fixture properties is not a right configuration: {'; '.join(errors)}"

    def test_every_key_says_what_it_is_for(self) -> None:
        for judged in validate(self.connector_class.config_class, {}):
            assert judged.key.doc.strip(), f"{judged.key.name} has no doc"

    def test_what_is_committed_has_arrived(self, bench: Bench, properties: Mapping[str, str]) -> None:
        topic_partition = TopicPartition(self.topic, 0)
        with bench.sink(topic_partition) as running:
            running.task.put([self.batch(0, 20)])
            running.task.put([])
            safe = _committed(running, {topic_partition: 20}).get(topic_partition, 0)
            arrived = self.read_back(properties)
            _require_arrived(arrived, safe)

    def test_it_never_commits_what_it_was_not_given(self, bench: Bench) -> None:
        partitions = [TopicPartition(self.topic, 0), TopicPartition(self.topic, 1)]
        with bench.sink(*partitions) as running:
            early = _committed(running, {})
            assert early == {}, (
                f"pre_commit returned {early} before the first put: return only offsets that it was given"
            )
            running.task.put([self.batch(0, 5, 0)])
            safe = _committed(running, {partitions[0]: 5})
            extra = {tp: offset for tp, offset in safe.items() if tp != partitions[0] or offset > 5}
            assert extra == {}, f"pre_commit returned {extra}, and was given {{{partitions[0]}: 5}}"

    def test_a_crash_loses_nothing(self, bench: Bench, properties: Mapping[str, str]) -> None:
        """After a kill with uncommitted puts and a restart from the committed offsets, every row arrives."""
        topic_partition = TopicPartition(self.topic, 0)
        with bench.sink(topic_partition) as running:
            running.task.put([self.batch(0, 10)])
            safe = _committed(running, {topic_partition: 10}).get(topic_partition, 0)
            running.task.put([self.batch(10, 15)])
        with bench.sink(topic_partition) as running:
            running.task.put([self.batch(safe, 30)])
            safe = max(safe, _committed(running, {topic_partition: 30}).get(topic_partition, 0))
            running.task.close([topic_partition])
            arrived = self.read_back(properties)
        _require_arrived(arrived, safe)
        if self.exactly_once:
            twice = sorted({n for n in arrived if n < safe and arrived.count(n) > 1})
            assert twice == [], f"exactly_once is set, and these rows arrived twice after a crash: {_few(twice)}"

    def test_partitions_can_be_handed_over(self, bench: Bench, properties: Mapping[str, str]) -> None:
        topic_partition = TopicPartition(self.topic, 0)
        with bench.sink(topic_partition) as first:
            first.task.put([self.batch(0, 10)])
            safe = _committed(first, {topic_partition: 10}).get(topic_partition, 0)
            first.task.close([topic_partition])
            first.context.assigned = frozenset()
        with bench.sink(topic_partition) as second:
            second.task.put([self.batch(safe, 20)])
            safe = max(safe, _committed(second, {topic_partition: 20}).get(topic_partition, 0))
            second.task.close([topic_partition])
            _require_arrived(self.read_back(properties), safe)


def _require_arrived(arrived: Sequence[Any], safe: int) -> None:
    """Every row below the committed offset must have arrived."""
    missing = [n for n in range(safe) if n not in set(arrived)]
    assert missing == [], (
        f"the offset {safe} is committed, and {len(missing)} rows below it have not arrived: {_few(missing)}. read_back "
        f"returned {_few(list(arrived))}. flush (or pre_commit) may return only when its rows are durable; read_back "
        "returns the n of each row"
    )


def _few(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values[:10])) + (", ..." if len(values) > 10 else "") or "nothing"


def _committed(running: RunningTask, delivered: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    committed: Mapping[TopicPartition, int] = running.task.pre_commit(dict(delivered))
    return dict(committed)
