"""Keys of the MySQL and MariaDB sources: Debezium's."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from connect.api import JavaRegex, KeyType, Password, Problem, at_least, between, config, key, one_of, valid_regexes
from connectors.debezium.accepted import only, without_effect
from connectors.debezium.config import not_both, snapshot_mode_key
from connectors.debezium.filters import Chosen
from connectors.debezium.server_config import DebeziumConfig
from connectors.mysql.history_config import HistoryConfig

__all__ = ["SYSTEM_DATABASES", "MariaDbConfig", "MySqlConfig"]

SYSTEM_DATABASES: Final = frozenset({"mysql", "performance_schema", "sys", "information_schema"})
_NO_DRIVER = "there is no JDBC driver here"


@config
class MySqlConfig(HistoryConfig, DebeziumConfig):
    """How a MySQL server is followed."""

    port: int = key(
        "database.port",
        default=3306,
        doc="Its port.",
        importance="high",
        group="Database",
        type=KeyType.INT,
        check=between(1, 65535),
    )
    server_id: int | None = key(
        "database.server.id",
        default=None,
        doc="The number under which the connector reads as a replica; no server nor other reader may have it. Without it one is made of "
        "topic.prefix.",
        importance="high",
        group="Database",
        check=between(1, 4294967295),
    )
    ssl_mode: str = key(
        "database.ssl.mode",
        default="preferred",
        doc="Whether connections are encrypted and the server's certificate is checked: MySQL's words, or MariaDB's.",
        group="Database",
        check=one_of(
            "disabled",
            "preferred",
            "required",
            "verify_ca",
            "verify_identity",
            "disable",
            "trust",
            "verify-ca",
            "verify-full",
            ignore_case=True,
        ),
    )
    truststore: str | None = key(
        "database.ssl.truststore",
        default=None,
        doc="File of the certificates that the server's must come from (PEM, PKCS12 or JKS).",
        group="Database",
    )
    truststore_password: Password | None = key(
        "database.ssl.truststore.password", default=None, doc="Password of that file.", group="Database"
    )
    keystore: str | None = key(
        "database.ssl.keystore",
        default=None,
        doc="File of the client's key and certificate (PEM, PKCS12 or JKS).",
        group="Database",
    )
    keystore_password: Password | None = key(
        "database.ssl.keystore.password", default=None, doc="Password of that file.", group="Database"
    )
    connect_timeout_ms: int = key(
        "connect.timeout.ms",
        default=30000,
        doc="How long connecting may take.",
        group="Database",
        check=at_least(1),
        type=KeyType.INT,
    )
    keep_alive: bool = key(
        "connect.keep.alive",
        default=True,
        doc="Whether a connection over which nothing came any more, not even the server's heartbeats, is made again.",
        importance="low",
        group="Database",
    )
    keep_alive_ms: int = key(
        "connect.keep.alive.interval.ms",
        default=60_000,
        doc="After how long.",
        importance="low",
        group="Database",
        check=at_least(1),
    )
    net_read_timeout_s: int = key(
        "binlog.net.read.timeout",
        default=0,
        doc="Seconds that the server waits for the connection that reads its log; 0: as the server has it.",
        importance="medium",
        group="Database",
        check=at_least(0),
    )
    net_write_timeout_s: int = key(
        "binlog.net.write.timeout",
        default=0,
        doc="Seconds that the server waits for that connection to take its log; 0: an hour.",
        importance="medium",
        group="Database",
        check=at_least(0),
    )
    driver: str | None = without_effect("database.jdbc.driver", None, _NO_DRIVER)
    protocol: str = without_effect("database.protocol", "jdbc:mysql", _NO_DRIVER)
    hard_disconnect: bool = without_effect(
        "use.nongraceful.disconnect",
        False,
        "a connection that is lost is always dropped without a word",
        importance="medium",
    )
    initial_statements: str | None = key(
        "database.initial.statements",
        default=None,
        doc="SQL to run on each new connection but the one that reads the binary log; statements are separated by semicolons.",
        importance="low",
        group="Database",
    )
    server_id_offset: int = without_effect(
        "database.server.id.offset",
        10_000,
        "one connection reads the log, however many read a snapshot",
        importance="high",
    )
    buffer_size: int = without_effect(
        "binlog.buffer.size",
        0,
        "the log has transactions only that were committed",
        type=KeyType.INT,
        check=at_least(0),
        importance="medium",
    )
    event_failures_1x: str = only(
        "event.deserialization.failure.handling.mode",
        "fail",
        "a change that cannot be read stops the task, as it would be lost otherwise",
        importance="medium",
    )
    database_include: list[str] = key(
        "database.include.list",
        default=[],
        doc="Regular expressions that match the databases to capture; all but the server's own where none is given.",
        importance="high",
        group="Tables",
        aliases=("database.whitelist",),
        check=valid_regexes,
    )
    database_exclude: list[str] = key(
        "database.exclude.list",
        default=[],
        doc="Databases not to capture.",
        group="Tables",
        aliases=("database.blacklist",),
        check=valid_regexes,
    )
    ignore_builtin: bool = key(
        "table.ignore.builtin",
        default=True,
        doc="Leave out the server's own databases whatever the lists say.",
        importance="low",
        group="Tables",
    )
    gtid_includes: list[str] = key(
        "gtid.source.includes",
        default=[],
        doc="Regular expressions of the servers (uuid, for MariaDB domain-server) whose transactions count.",
        group="Replication",
        check=valid_regexes,
        importance="high",
    )
    gtid_excludes: list[str] = key(
        "gtid.source.excludes",
        default=[],
        doc="Servers whose transactions do not count.",
        group="Replication",
        check=valid_regexes,
    )
    gtid_filter_rows: bool = key(
        "gtid.source.filter.dml.events",
        default=True,
        doc="Deliver no changes from servers that do not count.",
        importance="medium",
        group="Replication",
    )
    include_query: bool = key(
        "include.query",
        default=False,
        doc="Put the statement into source.query; the server must log it (binlog_rows_query_log_events, MariaDB: binlog_annotate_row_events).",
        importance="medium",
        group="Values",
    )
    include_schema_changes: bool = key(
        "include.schema.changes",
        default=True,
        doc="Write DDL to the topic named topic.prefix too.",
        group="Topics",
    )
    include_comments: bool = key(
        "include.schema.comments",
        default=False,
        doc="Keep comments of tables and columns in the history.",
        importance="medium",
        group="Topics",
    )
    time_mode: str = key(
        "time.precision.mode",
        default="adaptive_time_microseconds",
        doc="The form of dates and times: by the column's precision, Kafka Connect's, ISO 8601 text, or one unit for all.",
        group="Values",
        check=one_of(
            "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds", ignore_case=True
        ),
    )
    bigint_unsigned_mode: str = key(
        "bigint.unsigned.handling.mode",
        default="long",
        doc="BIGINT UNSIGNED as a long, which cannot hold the upper half, or exactly as a decimal.",
        group="Values",
        check=one_of("long", "precise", ignore_case=True),
    )
    adjust_years: bool = key(
        "enable.time.adjuster",
        default=True,
        doc="Read years below 100 as the server reads years of two digits: 70 to 99 in the 20th century, 0 to 69 in the 21st.",
        importance="low",
        group="Values",
    )
    inconsistent_schema: str = key(
        "inconsistent.schema.handling.mode",
        default="fail",
        doc="Changes of a table whose structure is not known: fail, warn and go on, or skip silently.",
        group="Replication",
        check=one_of("fail", "warn", "skip", "ignore", ignore_case=True),
    )
    snapshot_mode: str = snapshot_mode_key(
        "recovery",
        "schema_only_recovery",
        doc=" recovery reads only their structure, since the history is lost; never reads the log from where it begins.",
        importance="low",
    )
    snapshot_locking: str = key(
        "snapshot.locking.mode",
        default="minimal",
        doc="The lock against writes: while structure and position are read (minimal), while all is read (extended), or none.",
        importance="low",
        group="Snapshot",
        check=one_of(
            "minimal", "minimal_percona", "minimal_percona_no_table_locks", "extended", "none", ignore_case=True
        ),
    )
    snapshot_lock_timeout_ms: int = key(
        "snapshot.lock.timeout.ms",
        default=10000,
        doc="How long to wait for that lock.",
        group="Snapshot",
        check=at_least(1),
    )
    streamed_rows: int = without_effect(
        "min.row.count.to.stream.results",
        1000,
        "rows of all tables are streamed",
        type=KeyType.INT,
        check=at_least(0),
    )
    snapshot_parts: int = without_effect(
        "snapshot.max.threads.multiplier",
        1,
        "a table is read by one connection",
        type=KeyType.INT,
        check=at_least(1),
        importance="medium",
    )
    chunk_changes: bool = without_effect(
        "incremental.snapshot.allow.schema.changes", False, "a chunk of a table that was altered is always read again"
    )
    snapshot_threads: int = key(
        "snapshot.max.threads",
        default=1,
        doc="Connections that read tables at the same time, all from one view of the data.",
        group="Snapshot",
        check=between(1, 64),
        type=KeyType.INT,
    )
    connection_time_zone: str | None = key(
        "database.connectionTimeZone",
        default=None,
        doc="Taken; TIMESTAMP columns are read in UTC always.",
        importance="low",
        group="Database",
        aliases=("database.serverTimezone",),
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from not_both(
            "database.include.list", self.database_include, "database.exclude.list", self.database_exclude
        )
        yield from self.history_problems()
        yield from not_both("gtid.source.includes", self.gtid_includes, "gtid.source.excludes", self.gtid_excludes)

    @property
    def reader_id(self) -> int:
        """The server id used for reading the log."""
        return self.server_id or 1_000_000_000 + zlib.crc32(self.prefix.encode()) % 1_000_000_000

    @cached_property
    def _databases(self) -> Chosen:
        return Chosen(self.database_include, self.database_exclude)

    def database_is_meant(self, name: str) -> bool:
        if self.ignore_builtin and name.lower() in SYSTEM_DATABASES:
            return False
        return self._databases.has(name)

    @cached_property
    def gtid_sources(self) -> tuple[JavaRegex | None, bool]:
        """A pattern of servers, and whether those that it matches are excluded."""
        patterns = self.gtid_includes or self.gtid_excludes
        if not patterns:
            return None, False
        return JavaRegex("|".join(f"(?:{part.strip()})" for part in patterns), ignore_case=True), not self.gtid_includes


@config
class MariaDbConfig(MySqlConfig):
    """How a MariaDB server is followed: the same keys."""
