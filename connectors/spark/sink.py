"""The Spark sink: topic ranges in, files out, each range exactly once."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import (
    ConnectError,
    DataError,
    Dataset,
    JobTask,
    OffsetRange,
    Origin,
    Problem,
    RecordBatch,
    SinkConnector,
    TopicPartition,
)
from connectors.spark.client import SparkDriver, tell
from connectors.spark.config import REGISTERED, SparkSinkConfig
from connectors.spark.jars import packages_for
from connectors.spark.job import TABLES, Input, Job, Maintenance, Merge
from connectors.spark.parsing import problems_of_query
from tidegate.kit.logs import get_logger

__all__ = ["SparkSinkConnector", "SparkSinkTask"]

logger = get_logger(__name__)


class SparkSinkTask(JobTask[SparkSinkConfig]):
    """Hands each job to Spark and waits for it."""

    def start(self) -> None:
        self._driver = self._new_driver(self.config.idle_timeout_ms / 1000, self._stopping)
        self.resources.callback(self._driver.close)
        if self.config.warm_start:
            self._driver.warm(self._job([], "warm"), self._tell)

    def dataset(self, topic: str) -> Dataset | None:
        config = self.config
        if config.table:
            return Dataset(
                config.conf.get(f"spark.sql.catalog.{config.table.partition('.')[0]}.warehouse", "spark"), config.table
            )
        return Dataset.of_location(config.path) if config.path else None

    def _new_driver(self, idle_s: float, stopping: threading.Event) -> SparkDriver:
        config = self.config
        return SparkDriver(
            stopping=stopping, idle_s=idle_s, packages=packages_for(config.format, config.conf, config.path)
        )

    @property
    def _stopping(self) -> threading.Event:
        """Set, it ends a job that runs."""
        return self.context.stopping

    def cancel(self) -> None:
        self._driver.kill()

    def run(self, ranges: Sequence[OffsetRange], run_id: str) -> None:
        of_topics = _by_topic(ranges)
        done = self._driver.run(self._job(self._inputs(of_topics), run_id), self._tell, self._leave_out)
        rows = sum(done["rows"].get(topic, 0) for topic in of_topics)
        left_out = f", left {_counted(done['left_out'], 'record')} out" if done["left_out"] else ""
        wrote = f"wrote {_counted(done['files'], 'file')}" if self._into_files else f"committed to {self._target}"
        note = "".join(f"; {words}" for words in (done["note"], done["lost"]) if words)
        if "maintenance failed" in done["note"]:
            logger.warning("a table was not maintained", connector=self.context.connector, reason=done["note"])
        self.context.progress(rows, rows, unit="rows", note=f"{wrote}{left_out}{note}")

    @property
    def _target(self) -> str:
        return self.config.table or self.config.path or ""

    @property
    def _into_table(self) -> bool:
        return self.config.format in TABLES

    @property
    def _into_files(self) -> bool:
        return not self._into_table

    def _inputs(self, of_topics: Mapping[str, Sequence[OffsetRange]]) -> list[Input]:
        """The topics of a run, where all of them make one result those without new records too (it may name them), and the lookups."""
        named = self.context.properties.get("topics", "") if self.config.has_one_result else ""
        idle = [name for topic in named.split(",") if (name := topic.strip()) and name not in of_topics]
        ids = self._topic_ids([*of_topics, *idle]) if self._into_table else {}
        inputs = [
            *(self._input(topic, ranges) for topic, ranges in of_topics.items()),
            *(self._read(topic, {0: 0}, {0: 0}) for topic in idle),
        ]
        return [
            *(dataclasses.replace(input_, topic_id=ids.get(input_.topic, "")) for input_ in inputs),
            *(self._lookup(topic) for topic in self.config.lookup_topics),
        ]

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        """Spark reads the records and says what it would do: that takes as long as a job."""
        config, rows = self.config, sum(len(batch) for batch in batches)
        by = f", partitioned by {', '.join(config.partition_by)}" if config.partition_by else ""
        yield f"{rows} records by Spark on {config.master} to {config.format} at {self._target}{by}, mode {config.mode}"
        yield from self._previewed(batches, max(1, rows))

    def _previewed(self, batches: Sequence[RecordBatch], rows: int) -> Iterable[str]:
        driver = self._new_driver(0, self.context.stopping)
        inputs = self._inputs(_by_topic(_ranges(batches)))
        try:
            job = dataclasses.replace(self._job(inputs, "preview"), preview_rows=rows, stream=None)
            yield from driver.run(job, lambda said: None)["preview"]
        finally:
            driver.close()

    def _leave_out(self, batch: pa.RecordBatch) -> None:
        for row in range(len(batch)):
            one = batch.slice(row, 1)
            topic, partition = one["topic"][0].as_py(), one["partition"][0].as_py()
            record = RecordBatch(
                topic,
                one["bytes"],
                None,
                keys=one["key"],
                timestamps_ms=pc.divide(one["timestamp"].cast(pa.int64()), 1000),
                headers=one["headers"],
                origin=Origin(topic, partition),
                offsets=one["offset"],
            )
            self.context.leave_out(record, DataError(one["error"][0].as_py()))

    def _tell(self, said: Any) -> None:
        tell(self.context, said)

    def _job(self, inputs: list[Input], run_id: str) -> Job:
        config, registry = self.config, self.context.registry_properties
        for name, format_ in self._formats().items():
            if format_ in REGISTERED and not registry:
                raise ConnectError(
                    f"{name} is {format_}, and the worker has no schema registry: set schema.registry.url in its configuration, or "
                    "another format"
                )
        return Job(
            run_id=run_id,
            name=f"tidegate {self.context.connector}",
            inputs=inputs,
            sql=config.sql,
            path=config.path or "",
            table=config.table or "",
            connector=self.context.connector,
            properties=config.table_properties,
            evolution=config.evolution,
            merge=Merge(config.merge_keys, config.merge_envelope, config.merge_history, config.merge_unavailable),
            maintenance=Maintenance(config.maintenance_schedule or "", config.maintenance_keep_hours, time.time()),
            format=config.format,
            mode=config.mode,
            options=config.options,
            partition_by=config.partition_by,
            files=config.files,
            file_bytes=config.file_bytes,
            metadata_columns=config.metadata_columns,
            master=config.master,
            jars=config.jars,
            tolerates_errors=self.context.tolerates_errors,
            conf=config.conf,
            kafka={"bootstrap.servers": self.context.kafka.bootstrap_servers, **self.context.kafka.properties},
            registry=dict(registry),
        )

    def _formats(self) -> dict[str, str]:
        """The formats of keys and values, by the key that says so."""
        return {"spark.value.format": self.config.value_format, "spark.key.format": self.config.key_format}

    def _topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        from broker.client.blocking import Admin

        with Admin(self.context.kafka) as admin:
            return {name: str(described.topic_id) for name, described in admin.describe_topics(list(topics)).items()}

    def _input(self, topic: str, ranges: Sequence[OffsetRange]) -> Input:
        starts, stops = ({r.partition.partition: getattr(r, end) for r in ranges} for end in ("start", "stop"))
        return self._read(topic, starts, stops)

    def _lookup(self, topic: str) -> Input:
        from broker.client import TopicPartition
        from broker.client.blocking import Admin

        with Admin(self.context.kafka) as admin:
            partitions = [TopicPartition(topic, p.partition) for p in admin.describe_topics([topic])[topic].partitions]
            starts = admin.beginning_offsets(partitions)
            stops = admin.end_offsets(partitions, committed=self.context.kafka.reads_committed)
        return self._read(
            topic,
            {p.partition: at for p, at in starts.items()},
            {p.partition: at for p, at in stops.items()},
            lookup=True,
        )

    def _read(self, topic: str, starts: Mapping[int, int], stops: Mapping[int, int], *, lookup: bool = False) -> Input:
        return Input(
            topic=topic,
            starts={str(partition): offset for partition, offset in starts.items()},
            stops={str(partition): offset for partition, offset in stops.items()},
            value_format=self.config.value_format,
            value_schema=self.config.value_schema,
            value_message=self.config.value_message,
            key_format=self.config.key_format,
            key_schema=self.config.key_schema,
            key_message=self.config.key_message,
            lookup=lookup,
        )


class SparkSinkConnector(SinkConnector[SparkSinkConfig]):
    """Topics to files through Spark, as jobs that the worker starts, watches and can cancel."""

    config_class: ClassVar[type[SparkSinkConfig]] = SparkSinkConfig
    task_class: ClassVar[type[SparkSinkTask]] = SparkSinkTask

    @classmethod
    def check(cls, config: SparkSinkConfig) -> Iterable[Problem]:
        return problems_of_query(config.sql)


def _ranges(batches: Sequence[RecordBatch]) -> list[OffsetRange]:
    """From the first to the last record of each partition."""
    ends: dict[TopicPartition, tuple[int, int]] = {}
    for batch in batches:
        assert batch.origin is not None and batch.offsets is not None
        first, last = batch.offsets[0].as_py(), batch.offsets[-1].as_py()
        partition = TopicPartition(batch.origin.topic, batch.origin.partition)
        start, stop = ends.get(partition, (first, 0))
        ends[partition] = (min(start, first), max(stop, last + 1))
    return [OffsetRange(partition, start, stop) for partition, (start, stop) in ends.items()]


def _counted(number: int, unit: str) -> str:
    return f"{number:,} {unit if number == 1 else f'{unit}s'}"


def _by_topic(ranges: Sequence[OffsetRange]) -> dict[str, list[OffsetRange]]:
    by_topic: dict[str, list[OffsetRange]] = {}
    for range_ in ranges:
        by_topic.setdefault(range_.partition.topic, []).append(range_)
    return by_topic
