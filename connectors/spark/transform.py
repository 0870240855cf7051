"""The Spark transform: topics in, a query or a function over them, a topic or a table out; in jobs or as a stream."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from connect.api import ConnectError, Dataset, OffsetChanges, Problem, RecordBatch, TopicPartition
from connectors.spark.config import SparkSinkConfig
from connectors.spark.functions import problem_of_function
from connectors.spark.job import TABLES, Input, Job, Stream, TopicOutput
from connectors.spark.parsing import problems_of_query
from connectors.spark.sink import SparkSinkConnector, SparkSinkTask
from connectors.spark.transform_config import SparkTransformConfig

__all__ = ["SparkTransformConnector", "SparkTransformTask"]


class SparkTransformTask(SparkSinkTask):
    """Hands each job, or the stream, to Spark and waits for it."""

    config: SparkTransformConfig

    @property
    def follows(self) -> bool:
        return self.config.streams

    @property
    def endless(self) -> bool:
        return self.config.run_mode == "continuous"

    def dataset(self, topic: str) -> Dataset | None:
        if not self.config.topic:
            return super().dataset(topic)
        return Dataset.of_topic(self.context.kafka.bootstrap_servers, self.config.topic)

    def follow(self, topics: Sequence[str]) -> None:
        self._committed: dict[str, dict[str, int]] = {}
        nothing: dict[int, int] = {}
        inputs = [
            *(self._read(topic, nothing, nothing) for topic in topics),
            *(self._read(topic, nothing, nothing, lookup=True) for topic in self.config.lookup_topics),
        ]
        done = self._driver.run(self._job(inputs, ""), self._tell, self._leave_out_for_good)
        self._commit(done["ends"])
        left_out = f", {done['left_out']} left out" if done["left_out"] else ""
        note = f"{done['batches']} micro-batches, {done['out']} rows written to {self._target}{left_out}"
        note += f"; {done['lost']}" if done["lost"] else ""
        self.context.progress(done["in"], done["in"], unit="rows", note=note)

    @property
    def _stopping(self) -> threading.Event:
        return self.context.interrupted if self.config.streams else self.context.stopping

    @property
    def _target(self) -> str:
        return self.config.topic or super()._target

    @property
    def _into_table(self) -> bool:
        return not self.config.topic and self.config.format in TABLES

    @property
    def _into_files(self) -> bool:
        return not self.config.topic and not self._into_table

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        if not self.config.topic:
            yield from super().preview(batches)
            return
        rows = sum(len(batch) for batch in batches)
        yield f"{rows} records by Spark on {self.config.master} to the topic {self.config.topic} as {self.config.output_value_format}"
        yield from self._previewed(batches, max(1, rows))

    def _leave_out_for_good(self, batch: pa.RecordBatch) -> None:
        """The checkpoint passes over these records next: they must be durable before."""
        self._leave_out(batch)
        self.context.commit({})

    def _tell(self, said: Any) -> None:
        super()._tell(said)
        if "ends" in said:
            self._commit(said["ends"])

    def _commit(self, ends: Mapping[str, Mapping[str, int]]) -> None:
        """Commit the offsets up to which the stream is done, where they have changed."""
        changed = {
            TopicPartition(topic, int(partition)): offset
            for topic, of_topic in ends.items()
            for partition, offset in of_topic.items()
            if self._committed.get(topic, {}).get(partition) != offset
        }
        if changed:
            self.context.commit(changed)
            self._committed = {topic: dict(of_topic) for topic, of_topic in ends.items()}

    def _formats(self) -> dict[str, str]:
        output = {"spark.output.value.format": self.config.output_value_format}
        if self.config.output_key:
            output["spark.output.key.format"] = self.config.key_format_of_output
        return super()._formats() | (output if self.config.topic else {})

    def _job(self, inputs: list[Input], run_id: str) -> Job:
        config, output = self.config, None
        job = super()._job(inputs, run_id)
        if config.topic:
            if run_id not in ("preview", "warm"):
                self._create_topic(config.topic)
            output = TopicOutput(
                topic=config.topic,
                key_columns=config.output_key,
                value_format=config.output_value_format,
                key_format=config.key_format_of_output if config.output_key else "binary",
                once=config.output_once,
                group=f"connect-{self.context.connector}-output",
            )
        return dataclasses.replace(
            job,
            function=config.function or "",
            python_path=config.python_path,
            topic=output,
            stream=self._stream() if config.streams else None,
        )

    def _stream(self) -> Stream:
        config, properties = self.config, self.context.properties
        return Stream(
            checkpoint=config.checkpoint or "",
            ends=config.run_mode == "available-now",
            interval_ms=config.interval_ms,
            max_offsets=config.max_offsets,
            starting=config.starting,
            output_mode=config.output_mode,
            watermark_column=config.watermark_column,
            watermark_delay=config.watermark_delay,
            loses_data=properties.get("job.offset.reset", "none") != "none",
        )

    def _create_topic(self, name: str) -> None:
        from broker.client import NewTopic
        from broker.client.blocking import Admin

        with Admin(self.context.kafka) as admin:
            if name not in admin.list_topics():
                admin.create_topics([NewTopic(name, self.config.topic_partitions or -1, -1)], exist_ok=True)


class SparkTransformConnector(SparkSinkConnector):
    """Topics to a topic, a table or files through a query or a function of Spark: in jobs, or as a stream."""

    config_class = SparkTransformConfig
    task_class = SparkTransformTask

    @classmethod
    def check(cls, config: SparkSinkConfig) -> Iterable[Problem]:
        assert isinstance(config, SparkTransformConfig)
        yield from problems_of_query(config.sql)
        if config.function and (problem := problem_of_function(config.function, config.python_path)) is not None:
            yield Problem("spark.function", problem)

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        if properties.get("spark.mode", "batch") == "batch":
            return super().alter_offsets(properties, offsets)
        raise ConnectError(
            f"the offsets of a stream are in its checkpoint, {properties.get('spark.checkpoint.path')}: to read the topics again, delete "
            "that folder or name another, and set spark.starting.offsets"
        )
