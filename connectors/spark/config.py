"""Keys of the Spark sink. Scheduling keys (``job.*``) are the runtime's, common to all job sinks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connect.api import Problem, at_least, config, family, key, non_empty, one_of

__all__ = ["REGISTERED", "SparkSinkConfig"]

REGISTERED: Final = ("avro", "protobuf", "json-schema")
"""The formats of values whose schemas are in a registry."""


@config
class SparkSinkConfig:
    """The topics to read, the transform, the target, and the Spark to run on."""

    path: str = key(
        "spark.output.path",
        doc="Folder to write to, as Spark takes it: an absolute path, file:, hdfs: or s3a: URI. ${topic} stands for the topic.",
        importance="high",
        check=non_empty,
        group="Output",
    )
    format: str = key(
        "spark.output.format",
        default="parquet",
        doc="Format of the files.",
        check=one_of("parquet", "orc", "json", "csv", "avro"),
        group="Output",
    )
    mode: str = key(
        "spark.output.mode",
        default="append",
        doc="'append': each job adds files. 'overwrite': a job's files replace those of earlier jobs, in the folders that it writes to; "
        "other folders of spark.output.partition.by stay as they are.",
        check=one_of("append", "overwrite"),
        group="Output",
    )
    partition_by: list[str] = key(
        "spark.output.partition.by",
        default=[],
        doc="Columns that become folders (column=value), in this order.",
        group="Output",
    )
    files: int = key(
        "spark.output.files",
        default=0,
        doc="Number of files a job writes per folder at most; 0 leaves it to Spark.",
        check=at_least(0),
        group="Output",
    )
    file_bytes: int = key(
        "spark.output.file.bytes",
        default=0,
        doc="Size that files should have, about: a job shuffles its rows into files of that size, and writes fewer, smaller ones where "
        "there are few rows. 0 leaves it to Spark, without a shuffle.",
        check=at_least(0),
        group="Output",
    )
    options: dict[str, str] = family(
        "spark.output.option.",
        doc="Options of Spark's writer for the format, prefix removed: spark.output.option.compression=zstd. CSV has a header unless "
        "spark.output.option.header=false.",
    )
    metadata_columns: bool = key(
        "spark.metadata.columns",
        default=False,
        doc="Add the columns __topic, __partition, __offset and __timestamp of each record.",
        group="Output",
    )
    sql: str | None = key(
        "spark.sql",
        default=None,
        doc="A query over the topics, each a view of its own name (characters other than letters and digits become _). "
        "Without it every topic is written as it is.",
        importance="high",
        group="Transform",
    )
    lookup_topics: list[str] = key(
        "spark.lookup.topics",
        default=[],
        doc="Topics that spark.sql joins with, read whole in every job rather than from where the last one ended.",
        group="Transform",
    )
    value_format: str = key(
        "spark.value.format",
        default="avro",
        doc="What the records' values are: avro, protobuf or json-schema (in the registry's framing), json (give spark.value.schema) "
        "or string.",
        check=one_of(*REGISTERED, "json", "string"),
        group="Input",
    )
    value_schema: str | None = key(
        "spark.value.schema",
        default=None,
        doc="The schema that values are read as. For json, which needs it: columns in Spark's DDL ('id BIGINT, name STRING') or a JSON "
        "Schema. For avro, protobuf and json-schema: the text of a schema, by default the newest of the subject TOPIC-value.",
        group="Input",
    )
    value_message: str | None = key(
        "spark.value.message",
        default=None,
        doc="The full name of the Protobuf message that values are read as; by default the first of the schema.",
        group="Input",
    )
    master: str = key(
        "spark.master",
        default="local[*]",
        doc="The Spark to run on: local[N], spark://host:port, yarn, k8s://...",
        importance="high",
        group="Spark",
    )
    jars: list[str] = key(
        "spark.jars.extra",
        default=[],
        doc="Jars for the job, as Spark takes them.",
        group="Spark",
    )
    idle_timeout_ms: int = key(
        "spark.idle.timeout.ms",
        default=60_000,
        check=at_least(0),
        doc="How long a Spark session stays for the next job before it is given back.",
        group="Spark",
    )
    conf: dict[str, str] = family("spark.conf.", doc="Passed to Spark's configuration, prefix removed.")

    def problems(self) -> Iterable[Problem]:
        if not self.path.startswith("/") and ":" not in self.path.partition("/")[0]:
            yield Problem(
                "spark.output.path",
                f"spark.output.path is {self.path!r}, and a job has no folder of its own: give an absolute path or a URI",
            )
        if self.value_format == "json" and not self.value_schema:
            yield Problem(
                "spark.value.schema",
                'spark.value.format "json" needs spark.value.schema, e.g. "id BIGINT, name STRING"',
            )
        if self.files and self.file_bytes:
            yield Problem(
                "spark.output.file.bytes",
                f"spark.output.files is {self.files}, and spark.output.file.bytes {self.file_bytes}: give one of the two",
            )
        if self.sql and "${topic}" in self.path:
            yield Problem(
                "spark.output.path", "with spark.sql there is one result: spark.output.path cannot hold ${topic}"
            )
        if not self.sql and self.lookup_topics:
            yield Problem("spark.lookup.topics", "spark.lookup.topics is used by spark.sql, which is not set")
