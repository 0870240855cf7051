"""The Spark sink: topic ranges in, files out, each range exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import ConnectError, DataError, JobTask, OffsetRange, Origin, RecordBatch, SinkConnector
from connectors.spark.client import SparkDriver
from connectors.spark.config import REGISTERED, SparkSinkConfig
from connectors.spark.jars import PACKAGES
from connectors.spark.job import Input, Job

__all__ = ["SparkSinkConnector", "SparkSinkTask"]


class SparkSinkTask(JobTask[SparkSinkConfig]):
    """Hands each job to Spark and waits for it."""

    def start(self) -> None:
        self._driver = SparkDriver(
            stopping=self.context.stopping,
            idle_s=self.config.idle_timeout_ms / 1000,
            packages=PACKAGES.get(self.config.format, ()),
        )
        self.resources.callback(self._driver.close)

    def cancel(self) -> None:
        self._driver.kill()

    def run(self, ranges: Sequence[OffsetRange], run_id: str) -> None:
        inputs = [self._input(topic, of_topic) for topic, of_topic in _by_topic(ranges).items()]
        inputs += [self._lookup(topic) for topic in self.config.lookup_topics]
        done = self._driver.run(self._job(inputs, run_id), self._tell, self._leave_out)
        rows = sum(done["rows"].get(topic, 0) for topic in _by_topic(ranges))
        left_out = f", left {done['left_out']} records out" if done["left_out"] else ""
        self.context.progress(rows, rows, unit="rows", note=f"wrote {done['files']} files{left_out}")

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        rows = sum(len(batch) for batch in batches)
        config = self.config
        by = f", in folders by {', '.join(config.partition_by)}" if config.partition_by else ""
        asked = f" of what the query makes of them ({config.sql})" if config.sql else ""
        yield f"Spark job on {config.master}: {rows} rows to {config.format} files below {config.path}{by}{asked}"

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
        self.context.progress(said["done"], said["total"], unit=said["unit"], note=said["note"])

    def _job(self, inputs: list[Input], run_id: str) -> Job:
        config, registry = self.config, self.context.registry_properties
        if config.value_format in REGISTERED and not registry:
            raise ConnectError(
                f"spark.value.format is {config.value_format}, and the worker has no schema registry: set schema.registry.url in its "
                "configuration, or another format"
            )
        return Job(
            run_id=run_id,
            name=f"tidegate {self.context.connector}",
            inputs=inputs,
            sql=config.sql,
            path=config.path,
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

    def _input(self, topic: str, ranges: Sequence[OffsetRange]) -> Input:
        return self._read(
            topic, {r.partition.partition: r.start for r in ranges}, {r.partition.partition: r.stop for r in ranges}
        )

    def _lookup(self, topic: str) -> Input:
        from broker.client import TopicPartition
        from broker.client.blocking import Admin

        with Admin(self.context.kafka) as admin:
            partitions = [TopicPartition(topic, p.partition) for p in admin.describe_topics([topic])[topic].partitions]
            starts, stops = admin.beginning_offsets(partitions), admin.end_offsets(partitions)
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
            lookup=lookup,
        )


class SparkSinkConnector(SinkConnector[SparkSinkConfig]):
    """Topics to files through Spark, as jobs that the worker starts, watches and can cancel."""

    config_class = SparkSinkConfig
    task_class = SparkSinkTask


def _by_topic(ranges: Sequence[OffsetRange]) -> dict[str, list[OffsetRange]]:
    by_topic: dict[str, list[OffsetRange]] = {}
    for range_ in ranges:
        by_topic.setdefault(range_.partition.topic, []).append(range_)
    return by_topic
