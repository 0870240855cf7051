"""Keys of the Spark source. Scheduling keys (``job.*``) are the runtime's, common to all jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connect.api import Problem, at_least, between, config, family, key, non_empty, one_of
from connectors.spark.config import REGISTERED, key_problems, path_problems, table_problems
from connectors.spark.job import TABLES
from connectors.spark.session_config import SparkSessionConfig

__all__ = ["FILES", "SparkSourceConfig"]

FILES: Final = ("parquet", "orc", "csv", "json", "avro", "text")
"""The formats of files."""
_NAMED: Final = ("jdbc", "table")
"""Formats of tables, which have a name and no path."""


@config
class SparkSourceConfig(SparkSessionConfig):
    """The input, the transform, the topic, and the Spark to run on."""

    format: str = key(
        "spark.input.format",
        default="parquet",
        doc="What is read: files of a folder (parquet, orc, csv, json, avro, text), a table of iceberg or delta, a table or query of a "
        "database (jdbc), or any other table or view of Spark's catalogs (table).",
        check=one_of(*FILES, *TABLES, *_NAMED),
        importance="high",
        group="Input",
    )
    path: str | None = key(
        "spark.input.path",
        default=None,
        doc="The folder of the files, as Spark takes it: an absolute path, file:, hdfs: or s3a: URI. Files in folders below it are read "
        "too. A table of iceberg or delta is at this path, unless spark.input.table names it.",
        importance="high",
        group="Input",
    )
    table: str | None = key(
        "spark.input.table",
        default=None,
        doc="The name of the table in a catalog of Spark, which is configured by spark.conf.spark.sql.catalog.*. For jdbc a table of the "
        "database, or a query in parentheses with a name: (SELECT ...) t.",
        importance="high",
        group="Input",
    )
    schema: str = key(
        "spark.input.schema",
        default="",
        doc="The columns of files, in Spark's DDL: 'id BIGINT, name STRING'. By default those that Spark finds in the files of each job.",
        group="Input",
    )
    options: dict[str, str] = family(
        "spark.input.option.",
        doc="Options of Spark's reader for the format, prefix removed: spark.input.option.delimiter=;. For jdbc url, user, password, and "
        "partitionColumn, lowerBound, upperBound and numPartitions for parallel reads. CSV has a header unless "
        "spark.input.option.header=false.",
    )
    mode: str = key(
        "spark.input.mode",
        default="incremental",
        doc="'incremental': all there is, then what is new: files, snapshots of iceberg, versions of delta, or rows above the highest value "
        "of spark.input.watermark.column. 'snapshot': each job reads everything again. 'once': everything, once.",
        check=one_of("incremental", "snapshot", "once"),
        group="Input",
    )
    changes: str = key(
        "spark.input.changes",
        default="fail",
        doc="For incremental loads of iceberg and delta: what becomes of commits that update or delete rows. 'fail': the job fails. "
        "'skip': they are passed over, and new rows are sent. 'send': the newest state of each row that changed is sent, and a tombstone "
        "for one that is gone; it needs spark.output.key.columns, and of a table of delta its change data feed.",
        check=one_of("fail", "skip", "send"),
        group="Input",
    )
    watermark: str = key(
        "spark.input.watermark.column",
        default="",
        doc="A column that grows, such as a number or a time of update: each job reads the rows above the highest value so far. Rows that "
        "are committed later with a lower value are not seen.",
        group="Input",
    )
    most_files: int = key(
        "spark.input.max.files",
        default=1000,
        check=at_least(0),
        doc="Most files of one job; the next one follows at once. 0 takes all.",
        group="Input",
    )
    late_ms: int = key(
        "spark.input.late.ms",
        default=60_000,
        check=at_least(0),
        doc="How much older than the newest file that was loaded a file may be when it appears and is still loaded.",
        group="Input",
    )
    sql: str | None = key(
        "spark.sql",
        default=None,
        doc="A query over the view 'input', what was read. It is parsed when the configuration is validated, where there is a Java.",
        importance="high",
        group="Transform",
    )
    topic: str = key(
        "spark.output.topic",
        doc="The topic to write to. One that does not exist is created as topic.creation.* says.",
        check=non_empty,
        importance="high",
        group="Output",
    )
    key_columns: list[str] = key(
        "spark.output.key.columns",
        default=[],
        doc="The columns of the result that make the records' keys. They stay in the values too.",
        group="Output",
    )
    value_format: str = key(
        "spark.output.value.format",
        default="avro",
        doc="What the values are. Schemas of avro, protobuf and json-schema are derived from the columns and registered.",
        check=one_of(*REGISTERED, "json"),
        group="Output",
    )
    key_format: str | None = key(
        "spark.output.key.format",
        default=None,
        doc="What the keys are, by default the same as the values. string and binary take one column.",
        check=one_of(*REGISTERED, "json", "string", "binary"),
        group="Output",
    )
    write_options: dict[str, str] = family(
        "spark.output.option.",
        doc="Options of the data source's write, prefix removed: spark.output.option.use.latest.version=true. "
        "spark.output.option.kafka.* are settings of its producers.",
    )
    exactly_once: bool = key(
        "spark.output.exactly.once",
        default=True,
        doc="Each job writes in transactions, and its rows are there once for readers with isolation.level=read_committed. A job may take "
        "no longer than spark.output.option.kafka.transaction.timeout.ms, by default 15 minutes. Otherwise a job that is repeated "
        "writes its rows again.",
        group="Output",
    )
    tasks: int = key(
        "spark.output.tasks",
        default=64,
        check=between(1, 1000),
        doc="Most tasks of a job that write at the same time; each has a transaction of its own.",
        group="Output",
    )

    @property
    def format_of_keys(self) -> str:
        return self.key_format or self.value_format

    @property
    def source(self) -> str:
        return self.table or self.path or ""

    def problems(self) -> Iterable[Problem]:
        yield from SparkSessionConfig.problems(self)
        yield from self._problems_of_input()
        yield from self._problems_of_mode()
        yield from key_problems(self.key_columns, self.format_of_keys)

    def _problems_of_input(self) -> Iterable[Problem]:
        if self.path and self.table:
            yield Problem(
                "spark.input.table", "spark.input.path and spark.input.table are both set: give one of the two"
            )
        elif self.format in _NAMED and not self.table:
            yield Problem("spark.input.table", f"spark.input.format is {self.format}: give spark.input.table")
        elif self.format in FILES and not self.path:
            yield Problem("spark.input.path", f"spark.input.format is {self.format}: give spark.input.path, the folder")
        elif not self.source:
            yield Problem(
                "spark.input.path",
                "spark.input.path is missing: give the table's path, or its name as spark.input.table",
            )
        elif self.path:
            yield from path_problems("spark.input.path", self.path)
        if self.table:
            yield from table_problems("spark.input.table", self.table, self.format)
        if self.format == "jdbc" and not self.options.get("url"):
            yield Problem("spark.input.format", "spark.input.format is jdbc: give spark.input.option.url, jdbc:...")
        if self.schema and self.format not in FILES:
            yield Problem(
                "spark.input.schema", f"spark.input.schema is for files, and spark.input.format is {self.format}"
            )

    def _problems_of_mode(self) -> Iterable[Problem]:
        if self.mode == "incremental":
            if self.format in _NAMED and not self.watermark:
                yield Problem(
                    "spark.input.mode",
                    f"spark.input.mode is incremental, and nothing says what is new in a {self.format}: give "
                    "spark.input.watermark.column, or spark.input.mode 'once' or 'snapshot'",
                )
        elif self.watermark:
            yield Problem(
                "spark.input.watermark.column",
                f"spark.input.watermark.column is for spark.input.mode=incremental, which is {self.mode}",
            )
        if self.changes != "fail" and (self.format not in TABLES or self.mode != "incremental" or self.watermark):
            yield Problem(
                "spark.input.changes",
                f"spark.input.changes is {self.changes}: only incremental loads of iceberg and delta, without a watermark, see changes",
            )
        if self.changes == "send" and not self.key_columns:
            yield Problem(
                "spark.output.key.columns",
                "spark.input.changes is send, which sends the newest state of each row: give the columns that tell rows apart",
            )
