"""Compares the target of a sink with its topics, both at one position of the log.

The sink's own converters, transforms and code turn records into rows, so both sides have the same form. Records are read up to
where the target says that it is, else up to the group's offsets. A target that does not say may have more by now: whatever
records after that position are about is left out.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.backup.taking import READING
from tidegate.kit.errors import UsageError
from tidegate.verify.rows import RowStates

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from broker.client import TopicPartition as InLog
    from broker.client.blocking import Admin
    from connect.api import RecordBatch, SinkContents, TargetRows, TopicPartition
    from connect.plugins.registry import PluginRegistry

__all__ = ["LEFT", "RIGHT", "Compared", "compare_sink"]

LEFT, RIGHT = 0, 1
"""The sides: the target, and its topics."""
Progress = Callable[[str, int], None]


class Compared(NamedTuple):
    """``records`` were read up to ``positions``; ``refused`` of them the sink doesn't write. ``shortened`` are partitions
    whose log no longer begins at 0.
    """

    targets: Sequence[str]
    records: int
    refused: int
    positions: Mapping[TopicPartition, int]
    shortened: Sequence[TopicPartition]


def compare_sink(
    plugins: PluginRegistry,
    worker: Mapping[str, str],
    config: Mapping[str, str],
    states: RowStates,
    *,
    kafka: ClientConfig,
    keys: Sequence[str] = (),
    progress: Progress,
) -> Compared:
    """Put the rows of both sides into ``states``. ``config`` has the connector's name. ``keys`` are columns that identify
    rows which the sink appends.
    """
    with ExitStack() as opened:
        return _Comparison(plugins, worker, config, states, kafka, keys, progress, opened).run()


class _Comparison:
    def __init__(
        self,
        plugins: PluginRegistry,
        worker: Mapping[str, str],
        config: Mapping[str, str],
        states: RowStates,
        kafka: ClientConfig,
        keys: Sequence[str],
        progress: Progress,
        opened: ExitStack,
    ) -> None:
        from broker.client.blocking import BatchConsumer
        from connect.api import SinkConnector, SinkTask
        from connect.config.cloud_keys import with_cloud_keys
        from connect.config.connector import SinkConfig
        from connect.plugins.config_providers import resolved
        from tidegate.kit.config import parse

        plugin = plugins.connector(config.get("connector.class", ""))
        self._config = with_cloud_keys(resolved(worker, config), plugin.type)
        connector = plugin.load()
        if not issubclass(connector, SinkConnector) or not issubclass(connector.task_class, SinkTask):
            raise UsageError(
                f"{config.get('connector.class')} is no sink whose target can be read back; for a source of changes there is "
                "`tidegate verify tables`"
            )
        self._states, self._keys, self._progress, self._opened = states, list(keys), progress, opened
        self._sink, self._kafka = parse(SinkConfig, self._config), kafka
        self._pipeline = self._receiving(plugins, worker)
        self._connector, self._name = connector, config["name"]
        self._consumer = opened.enter_context(BatchConsumer(kafka.with_properties(READING)))
        self._targets: set[str] = set()
        self._read: dict[TopicPartition, int] = {}
        self._records = 0
        self._with_keys = False
        self._without: dict[str, str] = {}

    def _receiving(self, plugins: PluginRegistry, worker: Mapping[str, str]) -> Any:
        from connect.config.connector import CommonConfig
        from connect.converters.headers import header_conversion
        from connect.task.assembly import converter
        from connect.task.error_policy import ErrorPolicy
        from connect.task.sinks.pipeline import SinkPipeline
        from connect.transforms.chain import TransformChain
        from tidegate.kit.config import parse

        name = self._config["name"]
        common = parse(CommonConfig, {**self._config, "errors.tolerance": "all", "errors.log.enable": "false"})
        self._left_out: list[Any] = []
        policy = ErrorPolicy(common, name, 0, threading.Event(), on_tolerated=self._left_out.append)
        chain = TransformChain.configured(plugins, common, self._config)
        keys, values = (
            converter(plugins, worker, self._config, is_key=is_key, connector=name) for is_key in (True, False)
        )
        headers = header_conversion(plugins, worker, self._config, connector=name)
        for part in (chain, keys, values, headers):
            self._opened.callback(part.close)
        return SinkPipeline(chain, keys, values, policy, headers=headers)

    def run(self) -> Compared:
        from broker.client.blocking import Admin
        from connect.bench import Bench

        with Admin(self._kafka) as admin:
            in_log = self._partitions(admin)
            starts = _named(admin.beginning_offsets(in_log))
            partitions = sorted(starts)
            group = self._config.get("consumer.override.group.id", f"connect-{self._name}")
            committed = {tp: offset for tp, offset in _named(admin.group_offsets(group)).items() if tp in starts}
            bench = Bench(self._connector, self._config, connector=self._name)
            contents: SinkContents = bench.unstarted().contents(committed)
            self._opened.callback(contents.close)
            for rows in self._expected(contents, starts, lambda: self._until(contents, committed, partitions)):
                self._put(RIGHT, rows)
            for count, rows in enumerate(contents.stored()):
                self._put(LEFT, rows)
                self._progress(rows.target, count)
            until, records = dict(self._read), self._records
            after = contents.positions_after(partitions)
            ends = _named(admin.end_offsets(in_log, committed=True)) if after is None else after
            for rows in self._expected(contents, starts, lambda: ends):
                self._touch(rows)
        if self._without and not self._with_keys:
            raise UsageError("; ".join(self._without.values()))
        shortened = [tp for tp in partitions if starts[tp] > 0]
        self._states.older = bool(shortened)
        return Compared(sorted(self._targets), records, contents.refused + len(self._left_out), until, shortened)

    def _partitions(self, admin: Admin) -> list[InLog]:
        from broker.client import TopicPartition as InLog

        there = set(admin.list_topics())
        topics = [name for name in self._sink.topics if name in there]
        if self._sink.topics_regex:
            topics += sorted(name for name in there if re.fullmatch(self._sink.topics_regex, name))
        if not topics:
            raise UsageError(f"{self._name} has no topic: {', '.join(self._sink.topics) or self._sink.topics_regex}")
        described = admin.describe_topics(topics)
        return [InLog(name, p.partition) for name in topics for p in described[name].partitions]

    def _until(
        self, contents: SinkContents, committed: Mapping[TopicPartition, int], partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        stated = contents.positions(partitions)
        return {tp: max(committed.get(tp, 0), stated.get(tp, 0)) for tp in partitions}

    def _expected(
        self,
        contents: SinkContents,
        starts: Mapping[TopicPartition, int],
        until: Callable[[], Mapping[TopicPartition, int]],
    ) -> Iterator[TargetRows]:
        """Read the records up to the positions, which may move meanwhile, from where the last call ended. Yields what becomes of them."""
        while True:
            ends = until()
            left = [tp for tp in sorted(ends) if self._read.get(tp, starts[tp]) < ends[tp]]
            if not left:
                break
            for tp in left:
                for batch in self._batches(tp, self._read.get(tp, starts[tp]), ends[tp]):
                    self._records += len(batch)
                    self._progress(str(tp), self._records)
                    yield from contents.expected(batch)
                self._read[tp] = ends[tp]
        yield from contents.rest()

    def _batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[RecordBatch]:
        """The records from ``start`` to before ``end`` as the sink's task gets them."""
        import pyarrow.compute as pc

        from broker.client import TopicPartition as InLog
        from tidegate.backup.records import fetched_parts

        for part in fetched_parts(self._consumer, InLog(*tp), start, end):
            for batch in self._pipeline.receive([part]):
                if len(batch) and batch.offsets[-1].as_py() >= end:
                    batch = batch.filter(pc.less(batch.offsets, end))
                if len(batch) and batch.offsets[0].as_py() < start:
                    batch = batch.filter(pc.greater_equal(batch.offsets, start))
                if len(batch):
                    yield batch

    def _keys_of(self, rows: TargetRows) -> Sequence[str]:
        """Rows without a column of ``keys``, such as tombstones, have none."""
        if not self._keys or rows.keys:
            return rows.keys
        missing = [name for name in self._keys if name not in rows.columns]
        if missing:
            self._without[rows.target] = (
                f"{rows.target} has no column {', '.join(missing)}; it has {', '.join(rows.columns)}"
            )
            return ()
        self._with_keys = True
        return self._keys

    def _put(self, side: int, rows: TargetRows) -> None:
        self._targets.add(rows.target)
        if rows.action == "truncate":
            self._states.clear(side, rows.target)
            return
        put = getattr(self._states, rows.action)
        put(side, rows.target, rows.columns, self._keys_of(rows))

    def _touch(self, rows: TargetRows) -> None:
        if rows.action == "truncate":
            self._states.touch_all(rows.target)
        else:
            self._states.touch(rows.target, rows.columns, self._keys_of(rows))


def _named(offsets: Mapping[InLog, int]) -> dict[TopicPartition, int]:
    """Partitions as connectors know them."""
    from connect.api import TopicPartition

    return {TopicPartition(*partition): offset for partition, offset in offsets.items()}
