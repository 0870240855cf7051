"""Compares the target of a sink with its topics, both at one position of the log.

The sink's own converters, transforms and code turn records into rows, so both sides have the same form. Records are read up to
where the target says that it is, else up to the group's offsets. A target that does not say may have more by now: whatever
records after that position are about is left out.

Rows that the sink appends are compared by sums of their hashes first, a batch at a time. Where sums differ, both sides are read
once more, and the rows that the sums belong to are compared one by one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidegate.backup.taking import READING
from tidegate.kit.errors import RetriableError, TidegateError, UsageError
from tidegate.verify.digests import RowDigests, in_buckets
from tidegate.verify.rows import RowStates

if TYPE_CHECKING:
    import numpy as np

    from broker.client import ClientConfig
    from broker.client import TopicPartition as InLog
    from broker.client.blocking import Admin
    from connect.api import RecordBatch, SinkContents, TargetRows, TopicPartition
    from connect.plugins.registry import PluginRegistry
    from connect.task.error_policy import Failure

__all__ = ["LEFT", "RIGHT", "Compared", "compare_sink"]

_ERRORS: Final = {"errors.tolerance": "all", "errors.log.enable": "false", "errors.retry.timeout": "5000"}
"""A record that cannot be converted is left out, whatever the sink did with it."""
LEFT, RIGHT = 0, 1
"""The sides: the target, and its topics."""
Progress = Callable[[str, int], None]


class Compared(NamedTuple):
    """``records`` were read up to ``positions``; ``refused`` of them the sink doesn't write, and ``reason`` is the first one's
    where it cannot be converted. ``shortened`` are partitions whose log no longer begins at 0.
    """

    targets: Sequence[str]
    records: int
    refused: int
    positions: Mapping[TopicPartition, int]
    shortened: Sequence[TopicPartition]
    reason: str = ""


def compare_sink(
    plugins: PluginRegistry,
    worker: Mapping[str, str],
    config: Mapping[str, str],
    states: RowStates,
    *,
    kafka: ClientConfig,
    keys: Sequence[str] = (),
    by_row: bool = False,
    progress: Progress,
) -> Compared:
    """Put the rows of both sides that may differ into ``states``, with ``by_row`` all of them. ``config`` has the connector's
    name. ``keys`` are columns that identify rows which the sink appends.
    """
    with ExitStack() as opened:
        comparison = _Comparison(plugins, worker, config, states, kafka, keys, progress, opened)
        return comparison.run(by_row=by_row or bool(keys))


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
        self._buckets: np.ndarray[Any, Any] | None = None
        """Which buckets of rows are compared one by one; None for all."""

    def _receiving(self, plugins: PluginRegistry, worker: Mapping[str, str]) -> Any:
        from connect.config.connector import CommonConfig
        from connect.converters.headers import header_conversion
        from connect.task.assembly import converter
        from connect.task.error_policy import ErrorPolicy
        from connect.task.sinks.pipeline import SinkPipeline
        from connect.transforms.chain import TransformChain
        from tidegate.kit.config import parse

        name = self._config["name"]
        common = parse(CommonConfig, {**self._config, **_ERRORS})
        self._left_out: list[Failure] = []
        policy = ErrorPolicy(common, name, 0, threading.Event(), on_tolerated=self._leave_out)
        chain = TransformChain.configured(plugins, common, self._config)
        keys, values = (
            converter(plugins, worker, self._config, is_key=is_key, connector=name) for is_key in (True, False)
        )
        headers = header_conversion(plugins, worker, self._config, connector=name)
        for part in (chain, keys, values, headers):
            self._opened.callback(part.close)
        return SinkPipeline(chain, keys, values, policy, headers=headers)

    def _leave_out(self, failure: Failure) -> None:
        """Count a record that the sink leaves out too. An error that is not the record's fault ends the comparison."""
        if isinstance(failure.error, RetriableError):
            raise TidegateError(
                f"{_record_of(failure)}: {failure.stage} ({failure.component}): {failure.error}. The records cannot be read, so "
                "nothing was compared. Start that service; or say where it is: --registry, or --worker with the worker's properties"
            ) from failure.error
        self._left_out.append(failure)

    def run(self, *, by_row: bool) -> Compared:
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

            def until() -> Mapping[TopicPartition, int]:
                positions = self._until(contents, committed, partitions)
                in_topic = _named(admin.end_offsets(in_log))
                for tp, position in positions.items():
                    if position > in_topic[tp]:
                        raise TidegateError(
                            f"{self._name} says that {tp} is written up to offset {position}, and the topic ends at {in_topic[tp]}: it "
                            "was deleted and made again. Nothing was compared. "
                            f"`tidegate connectors offsets reset {self._name} --stop --execute` has the sink read it from its start"
                        )
                return positions

            def ends() -> Mapping[TopicPartition, int]:
                after = contents.positions_after(partitions)
                return _named(admin.end_offsets(in_log, committed=True)) if after is None else after

            summed = None if by_row else self._summed(contents, starts, until)
            if summed is None or (self._buckets is not None and self._buckets.any()):
                if not by_row:
                    contents.restart()
                    self._read, self._records = {}, 0
                    self._left_out.clear()
                read = until if summed is None else lambda: summed.positions
                compared = self._compared(contents, starts, read, ends)
            else:
                compared = summed
        if self._without and not self._with_keys:
            raise UsageError("; ".join(self._without.values()))
        shortened = [tp for tp in partitions if starts[tp] > 0]
        self._states.older = bool(shortened)
        return compared._replace(targets=sorted(self._targets), shortened=shortened)

    def _summed(
        self,
        contents: SinkContents,
        starts: Mapping[TopicPartition, int],
        until: Callable[[], Mapping[TopicPartition, int]],
    ) -> Compared | None:
        """Find the buckets that differ. None where rows have keys, or are not in Arrow."""
        digests = RowDigests()
        for side, made in ((RIGHT, self._expected(contents, starts, until)), (LEFT, contents.stored())):
            for rows in made:
                if rows.action != "append" or rows.keys or isinstance(rows.columns, Mapping):
                    return None
                digests.add(side, rows.target, rows.columns)
                self._targets.add(rows.target)
                if side == LEFT:
                    self._progress(rows.target, digests.count(LEFT))
        self._buckets = digests.differing()
        if not self._buckets.any():
            for side in (LEFT, RIGHT):
                self._states.pass_over(side, digests.count(side))
        return self._so_far(contents)

    def _compared(
        self,
        contents: SinkContents,
        starts: Mapping[TopicPartition, int],
        until: Callable[[], Mapping[TopicPartition, int]],
        ends: Callable[[], Mapping[TopicPartition, int]],
    ) -> Compared:
        """Compare rows one by one. Those of records from ``until`` to ``ends`` are left out."""
        for rows in self._expected(contents, starts, until):
            self._put(RIGHT, rows)
        for count, rows in enumerate(contents.stored()):
            self._put(LEFT, rows)
            self._progress(rows.target, count)
        compared, after = self._so_far(contents), ends()
        for rows in self._expected(contents, starts, lambda: after):
            self._touch(rows)
        return compared

    def _so_far(self, contents: SinkContents) -> Compared:
        why = f"{_record_of(first)}: {first.error}" if (first := next(iter(self._left_out), None)) else ""
        refused = contents.refused + len(self._left_out)
        return Compared([], self._records, refused, dict(self._read), [], why)

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
        columns = rows.values()
        missing = [name for name in self._keys if name not in columns]
        if missing:
            self._without[rows.target] = (
                f"{rows.target} has no column {', '.join(missing)}; it has {', '.join(columns)}"
            )
            return ()
        self._with_keys = True
        return self._keys

    def _put(self, side: int, rows: TargetRows) -> None:
        self._targets.add(rows.target)
        if rows.action == "truncate":
            self._states.clear(side, rows.target)
            return
        examined = self._examined(rows)
        self._states.pass_over(side, len(rows) - len(examined))
        put = getattr(self._states, rows.action)
        put(side, rows.target, examined.values(), self._keys_of(examined))

    def _touch(self, rows: TargetRows) -> None:
        if rows.action == "truncate":
            self._states.touch_all(rows.target)
        else:
            examined = self._examined(rows)
            self._states.touch(rows.target, examined.values(), self._keys_of(examined))

    def _examined(self, rows: TargetRows) -> TargetRows:
        """The rows whose sums differ."""
        if self._buckets is None or isinstance(rows.columns, Mapping):
            return rows
        return rows.filter(in_buckets(rows.target, rows.columns, self._buckets))


def _record_of(failure: Failure) -> str:
    position = failure.position
    return f"{position.get('topic')}-{position.get('partition')} at offset {position.get('offset')}"


def _named(offsets: Mapping[InLog, int]) -> dict[TopicPartition, int]:
    """Partitions as connectors know them."""
    from connect.api import TopicPartition

    return {TopicPartition(*partition): offset for partition, offset in offsets.items()}
