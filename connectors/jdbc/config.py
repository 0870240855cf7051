"""Keys of the JDBC source: Confluent's, and Aiven's where they differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from connect.api import Check, KeyType, Password, Problem, at_least, config, key, one_of, valid_regex, valid_regexes
from connectors.jdbc.connection import ConnectionKeys

__all__ = ["MODES", "JdbcSourceConfig", "JdbcSourceTaskConfig", "MySqlSourceConfig", "MySqlSourceTaskConfig"]

MODES = ("bulk", "timestamp", "incrementing", "timestamp+incrementing")
_GRANULARITIES = (
    "connect_logical",
    "micros_long",
    "micros_string",
    "micros_iso_datetime_string",
    "nanos_long",
    "nanos_string",
    "nanos_iso_datetime_string",
)
_TOPIC = re.compile(r"[a-zA-Z0-9._-]*")


def _topic_part(value: str) -> str | None:
    if _TOPIC.fullmatch(value) and len(value) <= 249:
        return None
    return "Must be at most 249 letters, digits, points, underscores and hyphens"


def _mappings(value: list[str]) -> str | None:
    for item in value:
        regex, colon, named = item.rpartition(":")
        if not colon or not regex or not named.strip("[] "):
            return f"{item!r} should be a regular expression for a table's full name, a colon and columns: regex:column"
        if (wrong := valid_regex(regex)) is not None:
            return f"{item!r}: {wrong}"
    return None


def _incrementing(values: Mapping[str, Any]) -> bool:
    return "incrementing" in str(values.get("mode"))


def _by_timestamp(values: Mapping[str, Any]) -> bool:
    return "timestamp" in str(values.get("mode"))


def _noticed(values: Mapping[str, Any]) -> bool:
    return _incrementing(values) or _by_timestamp(values)


_isolation: Check = one_of(
    "DEFAULT", "READ_UNCOMMITTED", "READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE", "SQL_SERVER_SNAPSHOT"
)


@config
class JdbcSourceConfig(ConnectionKeys):
    """Which database and tables are read, how new rows are found, and which topics they are written to."""

    whitelist: list[str] = key(
        "table.whitelist",
        default=[],
        doc="Tables to read, by name, schema.name or database.schema.name. Excludes table.blacklist.",
        group="Database",
    )
    blacklist: list[str] = key(
        "table.blacklist", default=[], doc="Tables to leave out, all others are read.", group="Database"
    )
    include: list[str] = key(
        "table.include.list",
        default=[],
        check=valid_regexes,
        doc="Regular expressions; a table is read when its full name matches one whole.",
        group="Database",
    )
    exclude: list[str] = key(
        "table.exclude.list",
        default=[],
        check=valid_regexes,
        doc="Regular expressions for tables that table.include.list names but that are to be left out.",
        group="Database",
    )
    catalog_pattern: str | None = key(
        "catalog.pattern", default=None, doc="LIKE pattern for the database's name.", group="Database"
    )
    schema_pattern: str | None = key(
        "schema.pattern",
        default=None,
        doc="LIKE pattern for schemas to look for tables in.",
        importance="high",
        group="Database",
    )
    numeric_precision_mapping: bool = key(
        "numeric.precision.mapping",
        default=False,
        doc="NUMERIC without decimals becomes an integer.",
        importance="low",
        group="Database",
        deprecated="Use numeric.mapping=precision_only.",
    )
    numeric_mapping: str | None = key(
        "numeric.mapping",
        default=None,
        check=one_of("none", "precision_only", "best_fit", "best_fit_eager_double", ignore_case=True),
        doc="What NUMERIC becomes: none, always Connect's Decimal; precision_only, integers where there are no decimals; "
        "best_fit, also float64 where its digits suffice; best_fit_eager_double, float64 for all decimals.",
        importance="low",
        group="Database",
    )
    isolation: str = key(
        "transaction.isolation.mode",
        default="DEFAULT",
        check=_isolation,
        doc="Isolation level of queries; DEFAULT leaves it to the database.",
        importance="low",
        group="Database",
    )
    mode: str = key(
        "mode",
        default="",
        check=one_of("", *MODES),
        doc="How new rows are noticed: bulk reads all rows each time; incrementing those with a higher "
        "incrementing.column.name; timestamp those with a newer timestamp.column.name; timestamp+incrementing by both, "
        "which also sees updates and never misses rows of the same instant. With connection.host it may be left out: the columns "
        "that are named say it.",
        importance="high",
        group="Mode",
    )
    incrementing: str = key(
        "incrementing.column.name",
        default="",
        doc="The strictly growing column; empty: the column that the database numbers rows by.",
        group="Mode",
        visible=_incrementing,
    )
    timestamps: list[str] = key(
        "timestamp.column.name",
        default=[],
        doc="Timestamp columns; the first that is not null counts.",
        group="Mode",
        visible=_by_timestamp,
    )
    timestamps_mapping: list[str] = key(
        "timestamp.columns.mapping",
        default=[],
        check=_mappings,
        doc="Timestamp columns by table: regex:[column|column], the regex for the table's full name.",
        group="Mode",
        visible=_by_timestamp,
    )
    incrementing_mapping: list[str] = key(
        "incrementing.column.mapping",
        default=[],
        check=_mappings,
        doc="Incrementing column by table: regex:column, the regex for the table's full name.",
        group="Mode",
        visible=_incrementing,
    )
    timestamp_initial: int | None = key(
        "timestamp.initial",
        default=None,
        aliases=("timestamp.initial.ms",),
        doc="Rows older than this are not read at first: milliseconds since 1970, -1 for now; all rows when not given.",
        importance="low",
        group="Mode",
    )
    incrementing_initial: int | None = key(
        "incrementing.initial",
        default=None,
        doc="Only rows with a higher value of the incrementing column are read at first; all when not given.",
        importance="low",
        group="Mode",
    )
    validate_non_null: bool = key(
        "validate.non.null",
        default=True,
        doc="Refuse incrementing and timestamp columns that may be null: rows with a null there are never read.",
        importance="low",
        group="Mode",
        visible=_noticed,
    )
    query: str = key(
        "query",
        default="",
        doc="A SELECT to read instead of tables. Unless mode is bulk, its rows are restricted by appending WHERE and ORDER BY.",
        group="Mode",
    )
    query_masked: Password | None = key(
        "query.masked", default=None, doc="The same as query, but never shown.", group="Mode"
    )
    qualify: bool = key(
        "table.names.qualify",
        default=True,
        doc="Whether tables stand with their schema in SQL.",
        importance="low",
        group="Mode",
    )
    query_suffix: str = key(
        "query.suffix", default="", doc="Appended to every query, such as LIMIT 1000.", importance="low", group="Mode"
    )
    retry_attempts: int = key(
        "query.retry.attempts",
        default=-1,
        type=KeyType.INT,
        doc="How often in a row a query may fail for the connection's sake before the task does; -1: any number.",
        importance="low",
        group="Mode",
    )
    table_types: list[str] = key(
        "table.types",
        default=["TABLE"],
        doc="Kinds of tables to look for: TABLE, VIEW, MATERIALIZED VIEW.",
        importance="low",
        group="Connector",
    )
    poll_interval_ms: int = key(
        "poll.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="Milliseconds until a table in which nothing new was found, or that was read whole, is asked again.",
        importance="high",
        group="Connector",
    )
    batch_max_rows: int = key(
        "batch.max.rows",
        default=1000,
        type=KeyType.INT,
        check=at_least(1),
        doc="Rows in a batch at most. Reading goes ahead of it; several batches are handed on together.",
        importance="low",
        group="Connector",
    )
    max_buffer_size: int = key(
        "max.buffer.size",
        default=0,
        type=KeyType.INT,
        doc="Accepted for compatibility: what is read ahead is bounded in bytes, whatever the number of rows.",
        importance="low",
        group="Connector",
    )
    startup_limit_ms: int = key(
        "table.monitoring.startup.polling.limit.ms",
        default=10000,
        doc="Accepted for compatibility: tables are looked for before the first task starts, however long it takes.",
        importance="low",
        group="Connector",
    )
    poll_linger_ms: int = key(
        "poll.linger.ms",
        default=5000,
        doc="Milliseconds that a task waits for rows before it lets the worker look around.",
        importance="low",
        group="Connector",
    )
    table_poll_interval_ms: int = key(
        "table.poll.interval.ms",
        default=60000,
        check=at_least(1),
        doc="Milliseconds between looks for new or dropped tables.",
        importance="low",
        group="Connector",
    )
    topic_prefix: str = key(
        "topic.prefix",
        default="",
        check=_topic_part,
        doc="A table's topic is this and its name; a query's topic is this.",
        importance="high",
        group="Connector",
    )
    delay_ms: int = key(
        "timestamp.delay.interval.ms",
        default=0,
        doc="Milliseconds that a row must be old before it is read by timestamp, so that transactions still open can end.",
        importance="high",
        group="Connector",
    )
    granularity: str = key(
        "timestamp.granularity",
        default="connect_logical",
        check=one_of(*_GRANULARITIES, ignore_case=True),
        doc="What timestamps become: Connect's Timestamp (milliseconds), or microseconds or nanoseconds as number or text.",
        importance="low",
        group="Connector",
    )

    @property
    def time_form(self) -> str:
        """timestamp.granularity in lower case."""
        return self.granularity.lower()

    @property
    def sql_query(self) -> str:
        """The query to read instead of tables, without its last semicolon; empty for tables."""
        query = self.query or (self.query_masked.reveal() if self.query_masked else "")
        return query.strip().rstrip(";").rstrip()

    @property
    def effective_mode(self) -> str:
        """``mode``. Where it is not set but Confluent Cloud's connection.host is, the mode follows from which columns
        are named.

        Source: docs.confluent.io/cloud, "PostgreSQL Source (JDBC) Connector", Features, "Insert modes".
        """
        if self.mode or not self.host:
            return self.mode
        named = {
            "timestamp": self.timestamps or self.timestamps_mapping,
            "incrementing": self.incrementing or self.incrementing_mapping,
        }
        return "+".join(mode for mode, columns in named.items() if columns) or "bulk"

    @property
    def by_timestamp(self) -> bool:
        return "timestamp" in self.effective_mode

    @property
    def by_incrementing(self) -> bool:
        return "incrementing" in self.effective_mode

    @property
    def numeric(self) -> str:
        """The numeric.mapping that applies."""
        if self.numeric_mapping is not None:
            return self.numeric_mapping.lower()
        return "precision_only" if self.numeric_precision_mapping else "none"

    def problems(self) -> Iterable[Problem]:
        yield from self.url_problems()
        if not self.effective_mode:
            yield Problem("mode", f"Query mode must be specified: one of {', '.join(MODES)}")
        if self.by_timestamp and not (self.timestamps or self.timestamps_mapping):
            message = f"mode {self.effective_mode} needs timestamp.column.name or timestamp.columns.mapping"
            yield Problem("timestamp.column.name", message)
        yield from self._table_problems()

    def _table_problems(self) -> Iterable[Problem]:
        filters = {
            "table.whitelist": self.whitelist,
            "table.blacklist": self.blacklist,
            "table.include.list": self.include,
        }
        named_filters = [name for name, value in filters.items() if value]
        if len(named_filters) > 1:
            yield Problem(named_filters[1], f"{' and '.join(named_filters)} exclude one another: give one of them")
        if self.exclude and not self.include:
            yield Problem("table.exclude.list", "table.exclude.list needs table.include.list")
        if self.sql_query and named_filters:
            yield Problem("query", f"query and {named_filters[0]} exclude one another: give one of them")
        if self.query and self.query_masked:
            yield Problem("query.masked", "query and query.masked exclude one another: give one of them")
        if self.sql_query and not self.topic_prefix:
            yield Problem("topic.prefix", "with a query, topic.prefix is the topic: it must not be empty")


@config
class JdbcSourceTaskConfig(JdbcSourceConfig):
    """A task's share: the tables it reads; empty for a query."""

    tables: str = key(
        "tables",
        default="",
        doc="The tables of this task, quoted full names; the connector computes it.",
        importance="low",
    )


@config
class MySqlSourceConfig(JdbcSourceConfig):
    """The keys of Confluent Cloud's MySqlSource."""

    cloud_kind: ClassVar = "mysql"


@config
class MySqlSourceTaskConfig(JdbcSourceTaskConfig):
    """A task's share of a MySqlSource."""

    cloud_kind: ClassVar = "mysql"
