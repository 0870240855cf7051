"""Keys of Debezium's JDBC sink (debezium.io, "JDBC connector", 3.x, and the older names of 2.x)."""

from __future__ import annotations

from collections.abc import Iterable

from connect.api import KeyType, Password, Problem, at_least, config, key, non_empty, one_of, time_zone
from connectors.jdbc.connection import URL_DOC
from connectors.jdbc.sink_config import SinkKeys
from connectors.jdbc.sink_settings import SinkSettings
from connectors.sql.urls import Database, parse_jdbc_url

__all__ = ["DebeziumSinkConfig"]

_NAMING = "io.debezium.connector.jdbc.naming.DefaultTableNamingStrategy"
_COLLECTION_NAMING = "io.debezium.sink.naming.DefaultCollectionNamingStrategy"
_COLUMN_NAMING = "io.debezium.connector.jdbc.naming.DefaultColumnNamingStrategy"


@config
class DebeziumSinkConfig(SinkKeys):
    """Writes change events, or plain records, to tables."""

    url: str = key(
        "connection.url",
        check=non_empty,
        doc=URL_DOC,
        importance="high",
        group="Connection",
        width="LONG",
    )
    user: str | None = key(
        "connection.username",
        default=None,
        doc="Database user; wins over one in the URL.",
        importance="high",
        group="Connection",
    )
    password: Password | None = key(
        "connection.password", default=None, doc="Password of that user.", importance="high", group="Connection"
    )
    connection_provider: str = key(
        "connection.provider",
        default="org.hibernate.c3p0.internal.C3P0ConnectionProvider",
        doc="Accepted for compatibility, like the other keys of the pool: a task has one connection.",
        importance="low",
        group="Connection",
    )
    pool_min: int = key("connection.pool.min_size", default=5, doc="Accepted for compatibility.", importance="low")
    pool_max: int = key("connection.pool.max_size", default=32, doc="Accepted for compatibility.", importance="low")
    pool_increment: int = key(
        "connection.pool.acquire_increment", default=32, doc="Accepted for compatibility.", importance="low"
    )
    pool_timeout: int = key(
        "connection.pool.timeout", default=1800, doc="Accepted for compatibility.", importance="low"
    )
    restart_on_errors: bool = key(
        "connection.restart.on.errors",
        default=False,
        doc="Accepted for compatibility: a lost connection is always made again, within flush.max.retries.",
        importance="low",
        group="Connection",
    )
    zone: str = key(
        "use.time.zone",
        default="UTC",
        check=time_zone(),
        doc="The time zone of columns that have none: instants are written as a clock there shows them.",
        group="Data mapping",
    )
    old_zone: str | None = key(
        "database.time_zone",
        default=None,
        check=time_zone(or_empty=True),
        doc="The older name of use.time.zone.",
        deprecated="Use use.time.zone.",
        group="Data mapping",
    )
    delete_enabled: bool = key(
        "delete.enabled",
        default=False,
        doc="Whether delete events and records without value delete the row of their key. Needs primary.key.mode=record_key.",
        group="Writes",
    )
    truncate_enabled: bool = key(
        "truncate.enabled", default=False, doc="Whether truncate events empty the table.", group="Writes"
    )
    batch_size: int = key(
        "batch.size",
        default=500,
        type=KeyType.INT,
        check=at_least(1),
        doc="Rows in a statement at most, where the driver sends statements (MySQL, MariaDB).",
        group="Writes",
    )
    reduction_buffer: bool = key(
        "use.reduction.buffer",
        default=False,
        doc="Accepted for compatibility: of several changes to a row within a transaction only the last is written anyway, "
        "with insert.mode=upsert.",
        importance="low",
        group="Writes",
    )
    pk_mode: str = key(
        "primary.key.mode",
        default="none",
        check=one_of("none", "kafka", "record_key", "record_value", ignore_case=True),
        doc="Where the primary key comes from: none; kafka, topic, partition and offset; record_key, the record's key; "
        "record_value, fields of its value.",
        importance="high",
        group="Data mapping",
    )
    pk_fields: list[str] = key(
        "primary.key.fields",
        default=[],
        doc="The columns of the primary key; empty: all fields of the key or value, or __connect_topic, "
        "__connect_partition and __connect_offset.",
        group="Data mapping",
    )
    quoting: bool = key("quote.identifiers", default=False, doc="Whether names stand in quotes in SQL.", group="DDL")
    schema_evolution: str = key(
        "schema.evolution",
        default="none",
        check=one_of("none", "basic", ignore_case=True),
        doc="basic: missing tables are created, and missing columns added, for fields that are optional or have a default.",
        group="DDL",
    )
    collection_format: str | None = key(
        "collection.name.format",
        default=None,
        doc="The table of a record, ${topic} unless given, points in the topic's name as underscores.",
        group="Data mapping",
    )
    table_format: str | None = key(
        "table.name.format",
        default=None,
        doc="The older name of collection.name.format.",
        deprecated="Use collection.name.format.",
        group="Data mapping",
    )
    collection_table_format: str = key(
        "collection.table.format",
        default="${table}",
        doc="Accepted for compatibility: the original shows it and does not use it.",
        importance="low",
        group="Data mapping",
    )
    cloud_events_pattern: str = key(
        "cloud.events.schema.name.pattern",
        default=r".*CloudEvents\.Envelope$",
        doc="Accepted for compatibility: CloudEvents are not unpacked here.",
        importance="low",
        group="Data mapping",
    )
    unnest: bool = key(
        "dialect.postgres.unnest.insert.enabled",
        default=False,
        doc="Accepted for compatibility: rows of a batch are always written together.",
        importance="low",
        group="Writes",
    )
    table_naming: str = key(
        "table.naming.strategy",
        default=_NAMING,
        check=one_of(_NAMING),
        type=KeyType.CLASS,
        doc="Only the default.",
        importance="low",
    )
    collection_naming: str = key(
        "collection.naming.strategy",
        default=_COLLECTION_NAMING,
        check=one_of(_COLLECTION_NAMING, _NAMING),
        type=KeyType.CLASS,
        doc="Only the default.",
        importance="low",
    )
    column_naming: str = key(
        "column.naming.strategy",
        default=_COLUMN_NAMING,
        check=one_of(_COLUMN_NAMING),
        type=KeyType.CLASS,
        doc="Only the default.",
        importance="low",
    )
    include: list[str] = key(
        "field.include.list",
        default=[],
        doc="Fields to write besides the primary key, as field or topic:field; empty: all.",
        group="Data mapping",
    )
    exclude: list[str] = key(
        "field.exclude.list", default=[], doc="Fields to leave out, as field or topic:field.", group="Data mapping"
    )
    postgis: str = key(
        "dialect.postgres.postgis.schema",
        default="public",
        doc="Accepted for compatibility: geometries are not written.",
        importance="low",
    )
    identity_insert: bool = key(
        "dialect.sqlserver.identity.insert",
        default=False,
        doc="Accepted for compatibility: SQL Server is not written to.",
        importance="low",
    )
    hibernate_dialect: str | None = key(
        "hibernate.dialect",
        default=None,
        doc="Accepted for compatibility: the URL says which database it is.",
        importance="low",
    )
    max_retries: int = key(
        "flush.max.retries",
        default=5,
        type=KeyType.INT,
        check=at_least(0),
        doc="How often writing is tried again after a lost connection, a deadlock or a serialisation failure.",
        group="Retries",
    )
    retry_delay_ms: int = key(
        "flush.retry.delay.ms",
        default=1000,
        check=at_least(0),
        doc="Milliseconds before it is tried again.",
        group="Retries",
    )

    @property
    def database(self) -> Database:
        return parse_jdbc_url(self.url, self.user, self.password)

    @property
    def settings(self) -> SinkSettings:
        evolves = self.schema_evolution.lower() == "basic"
        return SinkSettings(
            insert_mode=self.insert_mode.lower(),
            pk_mode=self.pk_mode.lower(),
            pk_fields=tuple(self.pk_fields),
            table_format=self.collection_format or self.table_format or "${topic}",
            quoting=self.quoting,
            auto_create=evolves,
            auto_evolve=evolves,
            delete_enabled=self.delete_enabled,
            truncate_enabled=self.truncate_enabled,
            batch_size=self.batch_size,
            max_retries=self.max_retries,
            retry_backoff_ms=self.retry_delay_ms,
            connect_attempts=1,
            timezone=self.old_zone or self.zone,
            dots="_",
            include=frozenset(self.include),
            exclude=frozenset(self.exclude),
            debezium=True,
            offsets_table=self.offsets_table,
        )

    def problems(self) -> Iterable[Problem]:
        mode = self.pk_mode.lower()
        if self.delete_enabled and mode != "record_key":
            yield Problem("delete.enabled", "delete.enabled needs primary.key.mode=record_key")
        if self.insert_mode.lower() != "insert" and mode == "none":
            message = f"insert.mode={self.insert_mode} needs a primary key: set primary.key.mode"
            yield Problem("primary.key.mode", message)
        if mode == "kafka" and self.pk_fields and len(self.pk_fields) != 3:
            message = "with primary.key.mode=kafka, primary.key.fields is empty or names three columns"
            yield Problem("primary.key.fields", message)
        if self.include and self.exclude:
            yield Problem("field.exclude.list", "field.include.list and field.exclude.list exclude one another")
