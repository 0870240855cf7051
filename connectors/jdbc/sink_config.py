"""Keys of the JDBC sink: Confluent's, and Aiven's where they differ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from connect.api import KeyType, Problem, at_least, config, key, non_empty, one_of
from connectors.jdbc.connection import ConnectionKeys
from connectors.jdbc.sink_settings import SinkSettings

__all__ = ["JdbcSinkConfig", "MySqlSinkConfig", "SinkKeys"]


@config
class SinkKeys:
    """Keys that all JDBC sinks share under the same names."""

    topics: list[str] = key(
        "topics",
        default=[],
        doc="What is written. Where tables are not made, those of these topics are looked for when a configuration is validated.",
        importance="high",
    )
    transforms: list[str] = key(
        "transforms",
        default=[],
        doc="With transformations, which may call topics otherwise, no table is looked for then.",
        importance="low",
    )

    offsets_table: str = key(
        "tidegate.offsets.table",
        default="",
        doc="A table for the offsets of what was written, in the same transaction as the rows: each record is then in the "
        "database exactly once, whatever fails. Created if missing; several connectors may share one. Empty: at least once.",
        importance="medium",
        group="Exactly once",
    )
    insert_mode: str = key(
        "insert.mode",
        default="insert",
        check=one_of("insert", "upsert", "update", ignore_case=True),
        doc="insert: every record is a new row; upsert: a row of the same primary key is replaced; update: only rows that "
        "are there are changed.",
        importance="high",
        group="Writes",
    )


@config
class JdbcSinkConfig(SinkKeys, ConnectionKeys):
    """Which database and tables are written, and how."""

    batch_size: int = key(
        "batch.size",
        default=3000,
        type=KeyType.INT,
        check=at_least(0),
        doc="Rows in a statement at most, where the driver sends statements (MySQL, MariaDB). All that the worker hands over "
        "at once is one transaction in any case.",
        group="Writes",
    )
    delete_enabled: bool = key(
        "delete.enabled",
        default=False,
        doc="Whether a record without value deletes the row of its key. Needs pk.mode=record_key.",
        group="Writes",
        visible=lambda values: str(values.get("pk.mode")).lower() == "record_key",
    )
    table_types: list[str] = key(
        "table.types",
        default=["TABLE"],
        doc="Accepted for compatibility: tables, partitioned tables and views that take rows are all written to.",
        importance="low",
        group="Writes",
    )
    replace_null: bool = key(
        "replace.null.with.default",
        default=True,
        doc="Whether a null becomes its field's default.",
        importance="low",
        group="Writes",
    )
    table_format: str = key(
        "table.name.format",
        default="${topic}",
        check=non_empty,
        doc="The table of a record, with ${topic} for its topic; schema.table where it holds a point.",
        group="Data mapping",
    )
    normalize: bool = key(
        "table.name.normalize",
        default=False,
        doc="Aiven's: whether what is no letter, digit or underscore in a topic's name becomes an underscore.",
        group="Data mapping",
    )
    tables: list[str] = key(
        "topics.to.tables.mapping",
        default=[],
        doc="Aiven's: tables of single topics, as topic:table,…",
        group="Data mapping",
    )
    pk_mode: str = key(
        "pk.mode",
        default="none",
        check=one_of("none", "kafka", "record_key", "record_value", ignore_case=True),
        doc="Where the primary key comes from: none; kafka, topic, partition and offset; record_key, the record's key; "
        "record_value, fields of its value.",
        importance="high",
        group="Data mapping",
    )
    pk_fields: list[str] = key(
        "pk.fields",
        default=[],
        doc="The columns of the primary key; empty: all fields of the key or value, or __connect_topic, "
        "__connect_partition and __connect_offset.",
        group="Data mapping",
    )
    whitelist: list[str] = key(
        "fields.whitelist",
        default=[],
        doc="Fields of the value to write besides the primary key; empty: all.",
        group="Data mapping",
    )
    date_timezone: str = key(
        "date.timezone",
        default="DB_TIMEZONE",
        check=one_of("DB_TIMEZONE", "UTC", ignore_case=True),
        doc="Accepted for compatibility: a date is a day, and written as that day in any time zone.",
        importance="low",
        group="Data mapping",
    )
    timestamp_fields: list[str] = key(
        "timestamp.fields.list",
        default=[],
        doc="Fields with numbers, or texts of digits, that are written as timestamps.",
        group="Data mapping",
    )
    timestamp_precision: str = key(
        "timestamp.precision.mode",
        default="MICROSECONDS",
        check=one_of("MICROSECONDS", "NANOSECONDS", ignore_case=True),
        doc="What these numbers count since 1970.",
        importance="low",
        group="Data mapping",
    )
    string_column: str = key(
        "string.output.value.column.name",
        default="record_value",
        check=non_empty,
        doc="The column for values that are text rather than a structure (StringConverter).",
        importance="low",
        group="Data mapping",
    )
    auto_create: bool = key(
        "auto.create", default=False, doc="Whether a missing table is created from the records' schema.", group="DDL"
    )
    auto_evolve: bool = key(
        "auto.evolve",
        default=False,
        doc="Whether missing columns are added, for fields that are optional or have a default.",
        group="DDL",
    )
    hold_lock: bool = key(
        "mssql.use.merge.holdlock", default=True, doc="Whether SQL Server's MERGE holds its lock.", group="DDL"
    )
    max_retries: int = key(
        "max.retries",
        default=10,
        type=KeyType.INT,
        check=at_least(0),
        doc="How often writing is tried again after a lost connection, a deadlock or a serialisation failure.",
        group="Retries",
    )
    retry_backoff_ms: int = key(
        "retry.backoff.ms",
        default=3000,
        type=KeyType.INT,
        check=at_least(0),
        doc="Milliseconds before it is tried again.",
        group="Retries",
    )
    trim_log: bool = key(
        "trim.sensitive.log",
        default=False,
        doc="Accepted for compatibility: values of records never stand in logs but for what the database says of them.",
        importance="low",
        group="Retries",
    )

    @property
    def settings(self) -> SinkSettings:
        return SinkSettings(
            insert_mode=self.insert_mode.lower(),
            pk_mode=self.pk_mode.lower(),
            pk_fields=tuple(self.pk_fields),
            table_format=self.table_format,
            quoting=self.quoting,
            auto_create=self.auto_create,
            auto_evolve=self.auto_evolve,
            delete_enabled=self.delete_enabled,
            batch_size=self.batch_size or 3000,
            max_retries=self.max_retries,
            retry_backoff_ms=self.retry_backoff_ms,
            timezone=self.timezone,
            connect_attempts=self.attempts,
            connect_backoff_ms=self.backoff_ms,
            tables=dict(_pair(each) for each in self.tables),
            normalize=self.normalize,
            include=frozenset(self.whitelist),
            replace_null=self.replace_null,
            timestamp_fields=frozenset(self.timestamp_fields),
            timestamp_unit="us" if self.timestamp_precision.upper() == "MICROSECONDS" else "ns",
            string_column=self.string_column,
            hold_lock=self.hold_lock,
            offsets_table=self.offsets_table,
        )

    def problems(self) -> Iterable[Problem]:
        yield from self.url_problems()
        mode = self.pk_mode.lower()
        if self.delete_enabled and mode != "record_key":
            yield Problem("delete.enabled", "Deletes are only supported for pk.mode record_key")
        if self.insert_mode.lower() != "insert" and mode == "none":
            message = (
                f"insert.mode={self.insert_mode} needs a primary key: set pk.mode to kafka, record_key or record_value"
            )
            yield Problem("pk.mode", message)
        if mode == "kafka" and self.pk_fields and len(self.pk_fields) != 3:
            message = "with pk.mode=kafka, pk.fields is empty or names three columns: for topic, partition and offset"
            yield Problem("pk.fields", message)
        for each in self.tables:
            if not all(_pair(each)):
                yield Problem("topics.to.tables.mapping", f"{each!r} should look like topic:table")


@config
class MySqlSinkConfig(JdbcSinkConfig):
    """The keys of Confluent Cloud's MySqlSink."""

    cloud_kind: ClassVar = "mysql"


def _pair(text: str) -> tuple[str, str]:
    topic, _, table = text.partition(":")
    return topic.strip(), table.strip()
