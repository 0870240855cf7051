"""Keys of the Spark sink. Scheduling keys (``job.*``) are the runtime's, common to all job sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from connect.api import Problem, at_least, config, family, key, one_of
from connectors.spark.job import TABLES
from connectors.spark.session_config import SparkSessionConfig

__all__ = ["REGISTERED", "SparkSinkConfig", "key_problems", "path_problems", "table_problems"]

REGISTERED: Final = ("avro", "protobuf", "json-schema")
"""The formats of values whose schemas are in a registry."""
_WITHOUT_RENAME: Final = ("s3", "s3a", "s3n")


@config
class SparkSinkConfig(SparkSessionConfig):
    """The topics to read, the transform, the target, and the Spark to run on."""

    path: str | None = key(
        "spark.output.path",
        default=None,
        doc="Folder to write to, as Spark takes it: an absolute path, file:, hdfs: or s3a: URI. ${topic} stands for the topic. A table "
        "of iceberg or delta is at this path, unless spark.output.table names it.",
        importance="high",
        group="Output",
    )
    table: str | None = key(
        "spark.output.table",
        default=None,
        doc="For iceberg and delta: the name of the table in a catalog of Spark: catalog.namespace.table. ${topic} stands for the topic, "
        "with _ for characters other than letters and digits. The catalog is configured by spark.conf.spark.sql.catalog.*. A table that "
        "does not exist is created.",
        importance="high",
        group="Output",
    )
    format: str = key(
        "spark.output.format",
        default="parquet",
        doc="Format of the files, or of the table: iceberg or delta.",
        check=one_of("parquet", "orc", "json", "csv", "avro", *TABLES),
        group="Output",
    )
    mode: str = key(
        "spark.output.mode",
        default="append",
        doc="'append': each job adds its rows. 'overwrite': a job's rows replace those of earlier jobs, in the partitions that it has rows "
        "for. 'merge' (iceberg and delta): each record inserts, updates or deletes the row of its key.",
        check=one_of("append", "overwrite", "merge"),
        group="Output",
    )
    partition_by: list[str] = key(
        "spark.output.partition.by",
        default=[],
        doc="Columns that become folders (column=value), in this order. For a table: how it is partitioned when it is created; Iceberg takes "
        "transforms such as days(time) and bucket(16, id) too.",
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
    table_properties: dict[str, str] = family(
        "spark.table.property.",
        doc="Properties of a table that is created, prefix removed: spark.table.property.format-version=2.",
    )
    evolution: str = key(
        "spark.output.schema.evolution",
        default="widen",
        doc="What a table's columns may become when records have others: 'none', 'add' (new columns), or 'widen' (new columns, and wider "
        "numbers). Anything else fails the job, before it writes.",
        check=one_of("none", "add", "widen"),
        group="Output",
    )
    merge_keys: list[str] = key(
        "spark.merge.keys",
        default=[],
        doc="For spark.output.mode=merge: the columns that tell rows apart. By default the fields of the records' keys, in "
        "spark.key.format.",
        group="Merge",
    )
    merge_envelope: str = key(
        "spark.merge.envelope",
        default="auto",
        doc="What the values are: 'debezium' (before, after and op), 'none' (rows), or 'auto': debezium where the schema has these fields.",
        check=one_of("auto", "debezium", "none"),
        group="Merge",
    )
    merge_history: str = key(
        "spark.merge.history",
        default="none",
        doc="'scd2': each change adds a version of its row, in a table with the columns valid_from, valid_to and is_current (slowly changing "
        "dimension, type 2). 'none': rows are updated and deleted.",
        check=one_of("none", "scd2"),
        group="Merge",
    )
    merge_unavailable: str = key(
        "spark.merge.unavailable.value",
        default="",
        doc="The text that a source writes in place of a large value that did not change: the merge keeps the value that the row has. By "
        "default it is __debezium_unavailable_value in envelopes, and there is none in rows.",
        group="Merge",
    )
    maintenance_schedule: str | None = key(
        "spark.maintenance.schedule",
        default=None,
        doc="When a table is maintained, as cron in UTC: small files become large ones, and what no version within "
        "spark.maintenance.keep.hours needs is deleted. It is done after the first job that writes at that time or later.",
        group="Maintenance",
    )
    maintenance_keep_hours: int = key(
        "spark.maintenance.keep.hours",
        default=168,
        doc="How long versions of a table are kept by maintenance.",
        check=at_least(1),
        group="Maintenance",
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
        "Without it every topic is written as it is. It is parsed when the configuration is validated, where there is a Java.",
        importance="high",
        group="Transform",
    )
    lookup_topics: list[str] = key(
        "spark.lookup.topics",
        default=[],
        doc="Topics that spark.sql joins with, as tables: read whole in every job, the newest record of each key. Records without a key are "
        "all there.",
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
    key_format: str = key(
        "spark.key.format",
        default="binary",
        doc="What the records' keys are, for spark.output.mode=merge: avro, protobuf, json-schema, json (give spark.key.schema), string or "
        "binary.",
        check=one_of(*REGISTERED, "json", "string", "binary"),
        group="Input",
    )
    key_schema: str | None = key(
        "spark.key.schema",
        default=None,
        doc="The schema that keys are read as, like spark.value.schema.",
        group="Input",
    )
    key_message: str | None = key(
        "spark.key.message",
        default=None,
        doc="The full name of the Protobuf message that keys are read as; by default the first of the schema.",
        group="Input",
    )

    def problems(self) -> Iterable[Problem]:
        yield from SparkSessionConfig.problems(self)
        yield from self._problems_of_target()
        if self.mode == "merge":
            yield from self._problems_of_merge()
        if self.value_format == "json" and not self.value_schema:
            yield Problem(
                "spark.value.schema",
                'spark.value.format "json" needs spark.value.schema, e.g. "id BIGINT, name STRING"',
            )
        if self.key_format == "json" and not self.key_schema:
            yield Problem("spark.key.schema", 'spark.key.format "json" needs spark.key.schema, e.g. "id BIGINT"')
        if self.files and self.file_bytes:
            yield Problem(
                "spark.output.file.bytes",
                f"spark.output.files is {self.files}, and spark.output.file.bytes {self.file_bytes}: give one of the two",
            )
        if not self.has_one_result and self.lookup_topics:
            yield Problem("spark.lookup.topics", "spark.lookup.topics is used by spark.sql, which is not set")

        if self.maintenance_schedule is not None:
            from apscheduler.triggers.cron import CronTrigger

            try:
                CronTrigger.from_crontab(self.maintenance_schedule, timezone="UTC")
            except ValueError as error:
                yield Problem(
                    "spark.maintenance.schedule",
                    f"spark.maintenance.schedule is {self.maintenance_schedule!r}, no cron expression of five fields ({error})",
                )

    @property
    def has_one_result(self) -> bool:
        """Whether the topics become one result. Otherwise each is written as it is."""
        return bool(self.sql)

    def _problems_of_target(self) -> Iterable[Problem]:
        is_table = self.format in TABLES
        name, target = ("spark.output.table", self.table) if self.table else ("spark.output.path", self.path)
        if not target:
            more = ", or spark.output.table the name of a table" if is_table else ""
            yield Problem("spark.output.path", f"spark.output.path is missing: give the folder to write to{more}")
        elif self.table and self.path:
            yield Problem(
                "spark.output.table", "spark.output.path and spark.output.table are both set: give one of the two"
            )
        elif self.has_one_result and "${topic}" in target:
            yield Problem(name, f"with spark.sql there is one result: {name} cannot hold ${{topic}}")
        elif self.path:
            yield from path_problems("spark.output.path", self.path)
        if self.table and not is_table:
            yield Problem(
                "spark.output.table",
                f"spark.output.format is {self.format}, whose files have no table: give spark.output.path, or the format iceberg or delta",
            )
        elif self.table:
            yield from table_problems("spark.output.table", self.table, self.format)
        if self.format == "iceberg" and self.path and self.path.partition(":")[0] in _WITHOUT_RENAME:
            yield Problem(
                "spark.output.path",
                f"spark.output.path is {self.path!r}, where no file can be renamed if no other has the name, which Iceberg needs without a "
                "catalog: give spark.output.table, and the catalog by spark.conf.spark.sql.catalog.*",
            )
        if not is_table:
            for key_name, given in {
                "spark.output.mode": self.mode == "merge",
                "spark.maintenance.schedule": self.maintenance_schedule is not None,
            }.items():
                if given:
                    yield Problem(
                        key_name, f"{key_name} needs a table: spark.output.format iceberg or delta, not {self.format}"
                    )
        elif self.options:
            yield Problem(
                "spark.output.format",
                f"spark.output.option.{next(iter(self.options))} is for files: give spark.table.property.* for a table that is created",
            )
        if (
            self.format == "iceberg"
            and self.path
            and not self.path.rstrip("/").partition("${")[0].rpartition("/")[0].strip("/")
        ):
            yield Problem(
                "spark.output.path",
                f"spark.output.path is {self.path!r}: a table of iceberg can't be at the root, give a folder below",
            )
        if self.format == "delta" and any("(" in column for column in self.partition_by):
            yield Problem(
                "spark.output.partition.by",
                f"spark.output.partition.by is {', '.join(self.partition_by)}: Delta takes columns, not transforms of them",
            )

    def _problems_of_merge(self) -> Iterable[Problem]:
        if not self.merge_keys and self.key_format in ("binary", "string"):
            yield Problem(
                "spark.merge.keys",
                f"spark.output.mode is merge, and nothing says which rows are the same: give spark.merge.keys, or in spark.key.format "
                f"(now {self.key_format}) a format of keys with fields",
            )
        if self.value_format == "string":
            yield Problem(
                "spark.value.format", "spark.output.mode is merge, which needs records with fields: string has none"
            )


def path_problems(name: str, path: str) -> Iterable[Problem]:
    """Of a folder that Spark reads or writes."""
    if not path.startswith("/") and ":" not in path.partition("/")[0]:
        message = f"{name} is {path!r}, and a job has no folder of its own: give an absolute path or a URI"
        yield Problem(name, message)


def table_problems(name: str, table: str, format_: str) -> Iterable[Problem]:
    """Of a table's name in a catalog of Spark."""
    if format_ == "iceberg" and table.count(".") < 2:
        yield Problem(name, f"{name} is {table!r}: give catalog.namespace.table for iceberg")


def key_problems(columns: Sequence[str], format_: str) -> Iterable[Problem]:
    """Of the columns that make the keys of records."""
    if len(columns) > 1 and format_ in ("string", "binary"):
        yield Problem(
            "spark.output.key.format",
            f"spark.output.key.columns has {len(columns)} columns, and the key's format is {format_}, which takes one: give "
            "spark.output.key.format a format of records",
        )
