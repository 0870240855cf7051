"""The Spark sink: topic ranges in, files out, each range exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from connect.api import ConnectError, JobTask, OffsetRange, RecordBatch, SinkConnector
from connectors.spark.client import SparkDriver
from connectors.spark.config import SparkSinkConfig
from connectors.spark.driver import Input, Job

__all__ = ["SparkSinkConnector", "SparkSinkTask"]


class SparkSinkTask(JobTask[SparkSinkConfig]):
    """Hands each job to Spark and waits for it."""

    def start(self) -> None:
        self._driver = SparkDriver(stopping=self.context.stopping, idle_s=self.config.idle_timeout_ms / 1000)
        self.resources.callback(self._driver.close)

    def cancel(self) -> None:
        self._driver.kill()

    def run(self, ranges: Sequence[OffsetRange], run_id: str) -> None:
        inputs = [self._input(topic, of_topic) for topic, of_topic in _by_topic(ranges).items()]
        inputs += [self._lookup(topic) for topic in self.config.lookup_topics]
        done = self._driver.run(self._job(inputs, run_id), self._tell)
        rows = sum(done["rows"].get(topic, 0) for topic in _by_topic(ranges))
        self.context.progress(rows, rows, unit="rows", note=f"wrote {done['files']} files")

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        rows = sum(len(batch) for batch in batches)
        config = self.config
        by = f", in folders by {', '.join(config.partition_by)}" if config.partition_by else ""
        asked = f" of what the query makes of them ({config.sql})" if config.sql else ""
        yield f"Spark job on {config.master}: {rows} rows to {config.format} files below {config.path}{by}{asked}"

    def _tell(self, said: Any) -> None:
        self.context.progress(said["done"], said["total"], unit=said["unit"], note=said["note"])

    def _job(self, inputs: list[Input], run_id: str) -> Job:
        config = self.config
        return Job(
            run_id=run_id,
            name=f"tidegate {self.context.connector}",
            inputs=inputs,
            sql=config.sql,
            path=config.path,
            format=config.format,
            partition_by=config.partition_by,
            files=config.files,
            metadata_columns=config.metadata_columns,
            master=config.master,
            jars=config.jars,
            conf=config.conf,
            kafka={"bootstrap.servers": self.context.kafka.bootstrap_servers, **self.context.kafka.properties},
        )

    def _input(self, topic: str, ranges: Sequence[OffsetRange]) -> Input:
        return Input(
            topic=topic,
            starts={str(r.partition.partition): r.start for r in ranges},
            stops={str(r.partition.partition): r.stop for r in ranges},
            value_format=self.config.value_format,
            value_schema=self.config.value_schema,
            writer_schemas=self._writer_schemas(topic) if self.config.value_format == "avro" else [],
        )

    def _lookup(self, topic: str) -> Input:
        from broker.client import TopicPartition
        from broker.client.blocking import Admin

        with Admin(self.context.kafka) as admin:
            partitions = [TopicPartition(topic, p.partition) for p in admin.describe_topics([topic])[topic].partitions]
            starts, stops = admin.beginning_offsets(partitions), admin.end_offsets(partitions)
        return Input(
            topic=topic,
            starts={str(p.partition): offset for p, offset in starts.items()},
            stops={str(p.partition): offset for p, offset in stops.items()},
            value_format=self.config.value_format,
            value_schema=self.config.value_schema,
            writer_schemas=self._writer_schemas(topic) if self.config.value_format == "avro" else [],
        )

    def _writer_schemas(self, topic: str) -> list[tuple[int, str]]:
        """Every version of the topic's value subject as (id, schema text), oldest first."""
        registry = self.context.registry()
        subject = f"{topic}-value"
        schemas = [registry.version(subject, number) for number in registry.versions(subject)]
        if not schemas:
            raise ConnectError(
                f"topic {topic} has no schema under subject {subject}; for other values set spark.value.format"
            )
        return [(registered.id, registered.text) for registered in schemas]


class SparkSinkConnector(SinkConnector[SparkSinkConfig]):
    """Topics to files through Spark, as jobs that the worker starts, watches and can cancel."""

    config_class = SparkSinkConfig
    task_class = SparkSinkTask


def _by_topic(ranges: Sequence[OffsetRange]) -> dict[str, list[OffsetRange]]:
    by_topic: dict[str, list[OffsetRange]] = {}
    for range_ in ranges:
        by_topic.setdefault(range_.partition.topic, []).append(range_)
    return by_topic
