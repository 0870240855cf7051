"""Keys of the PostgreSQL source: Debezium's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from connect.api import (
    JavaRegex,
    KeyType,
    Password,
    Problem,
    at_least,
    between,
    config,
    key,
    non_empty,
    one_of,
    valid_regexes,
)
from connectors.debezium.accepted import without_effect
from connectors.debezium.config import not_both, snapshot_mode_key
from connectors.debezium.filters import Chosen, compiled
from connectors.debezium.server_config import DebeziumConfig

__all__ = ["PostgresConfig"]

_PLUGINS = ("pgoutput", "decoderbufs", "wal2json", "wal2json_streaming", "wal2json_rds", "wal2json_rds_streaming")
_NO_WAIT = "what is done is told to the server without waiting for it"
_NAME = re.compile(r"[a-z0-9_]{1,63}")


_FACTORIES = ("org.postgresql.ssl.NonValidatingFactory", "org.postgresql.ssl.DefaultJavaSSLFactory")


def _ssl_factory(value: str) -> str | None:
    if value in ("", *_FACTORIES[:1]):
        return None
    return f"Must be {_FACTORIES[0]}: classes of Java's cannot be loaded here; database.sslrootcert names the certificates to trust"


def _slot_name(value: str) -> str | None:
    return None if _NAME.fullmatch(value) else "Must be at most 63 lower-case letters, digits and underscores"


@config
class PostgresConfig(DebeziumConfig):
    """How a PostgreSQL database is followed."""

    snapshot_mode: str = snapshot_mode_key("exported")
    port: int = key(
        "database.port",
        default=5432,
        doc="Its port.",
        importance="high",
        group="Database",
        type=KeyType.INT,
        check=between(1, 65535),
    )
    database: str = key(
        "database.dbname", doc="The database to capture.", importance="high", group="Database", check=non_empty
    )
    sslmode: str = key(
        "database.sslmode",
        default="prefer",
        doc="Whether the connection is encrypted and the server's certificate checked, in libpq's words.",
        group="Database",
        check=one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full", ignore_case=True),
    )
    sslcert: str | None = key(
        "database.sslcert", default=None, doc="File of the client's certificate.", group="Database"
    )
    sslkey: str | None = key("database.sslkey", default=None, doc="File of the client's private key.", group="Database")
    sslpassword: Password | None = key(
        "database.sslpassword", default=None, doc="Password of that key.", group="Database"
    )
    sslrootcert: str | None = key(
        "database.sslrootcert",
        default=None,
        doc="File of the certificates that the server's must come from.",
        group="Database",
    )
    sslfactory: str | None = key(
        "database.sslfactory",
        default=None,
        doc="Only org.postgresql.ssl.NonValidatingFactory: certificates are not checked then.",
        group="Database",
        check=_ssl_factory,
    )
    keep_alive: bool = key(
        "database.tcpKeepAlive",
        default=True,
        doc="Whether TCP looks now and then if the server is still there.",
        group="Database",
    )
    initial_statements: str | None = key(
        "database.initial.statements",
        default=None,
        doc="SQL to run on each new connection but the replicating one; statements are separated by semicolons.",
        importance="low",
        group="Database",
    )
    plugin: str = key(
        "plugin.name",
        default="pgoutput",
        doc="Always read through pgoutput, which every PostgreSQL since 10 has; the names of other plugins are taken as that.",
        group="Replication",
        check=one_of(*_PLUGINS, ignore_case=True),
    )
    slot: str = key(
        "slot.name",
        default="debezium",
        doc="The replication slot; made where it is missing. It keeps the server's log until the connector has read it.",
        group="Replication",
        check=_slot_name,
    )
    slot_drop: bool = key(
        "slot.drop.on.stop",
        default=False,
        doc="Drop the slot when the task stops. What is written until it starts again is then lost.",
        group="Replication",
        aliases=("slot.drop_on_stop",),
    )
    slot_failover: bool = key(
        "slot.failover",
        default=False,
        doc="Make the slot one that standbys keep too (PostgreSQL 17 and later; earlier ones make an ordinary slot).",
        group="Replication",
    )
    slot_params: str | None = key(
        "slot.stream.params",
        default=None,
        doc="Options for pgoutput: name=value;name=value. proto_version, publication_names, messages are set; streaming=off has the "
        "server keep large transactions until they end.",
        importance="low",
        group="Replication",
    )
    slot_retries: int = key(
        "slot.max.retries",
        default=6,
        doc="Tries to take the slot while another holds it.",
        importance="low",
        group="Replication",
        check=at_least(0),
        type=KeyType.INT,
    )
    slot_retry_delay_ms: int = key(
        "slot.retry.delay.ms",
        default=10000,
        doc="Pause between them.",
        importance="low",
        group="Replication",
        check=at_least(0),
    )
    publication: str = key(
        "publication.name", default="dbz_publication", doc="The publication to read.", group="Replication"
    )
    autocreate: str = key(
        "publication.autocreate.mode",
        default="all_tables",
        doc="Make a missing publication for all tables (a superuser's right), for the captured ones (and keep it so), for none, or fail.",
        group="Replication",
        check=one_of("all_tables", "filtered", "disabled", "no_tables", ignore_case=True),
    )
    via_root: bool = key(
        "publish.via.partition.root",
        default=False,
        doc="In a publication that is made: changes of partitions go by the name of the partitioned table.",
        group="Replication",
    )
    identities: str | None = key(
        "replica.identity.autoset.values",
        default=None,
        check=non_empty,
        doc="Replica identities to set: schema.table:FULL,schema.other:INDEX name (regular expressions; DEFAULT, FULL, NOTHING, INDEX name).",
        group="Replication",
    )
    status_interval_ms: int = key(
        "status.update.interval.ms",
        default=10000,
        doc="How often the server is told what is done.",
        group="Replication",
        check=at_least(1),
        type=KeyType.INT,
    )
    flush_mode: str | None = key(
        "lsn.flush.mode",
        default=None,
        doc="What the server is told is done: what the topics have (connector), also what concerns no captured table "
        "(connector_and_driver), nothing (manual).",
        importance="low",
        group="Replication",
        check=one_of("connector", "connector_and_driver", "manual", ignore_case=True),
    )
    flush: bool = key(
        "flush.lsn.source",
        default=True,
        doc="false: as lsn.flush.mode=manual.",
        importance="low",
        group="Replication",
        deprecated="Use lsn.flush.mode.",
    )
    xmin_interval_ms: int = key(
        "xmin.fetch.interval.ms",
        default=0,
        doc="How often the slot's catalog_xmin is asked for, which then stands in source.xmin; 0: never.",
        group="Replication",
        importance="medium",
        check=at_least(0),
    )
    flush_timeout_ms: int = without_effect(
        "lsn.flush.timeout.ms", 30_000, _NO_WAIT, check=at_least(1), importance="medium"
    )
    flush_timeout_action: str = without_effect(
        "lsn.flush.timeout.action",
        "fail",
        _NO_WAIT,
        check=one_of("fail", "warn", "ignore", ignore_case=True),
        importance="medium",
    )
    refresh_mode: str = without_effect(
        "schema.refresh.mode",
        "columns_diff",
        "the log tells of a table's columns before its next change, with either value",
        check=one_of("columns_diff", "columns_diff_exclude_unchanged_toast", ignore_case=True),
        importance="medium",
    )
    ignore_builtin: bool = without_effect("table.ignore.builtin", True, "PostgreSQL publishes no tables of its own")
    include_comments: bool = key(
        "include.schema.comments",
        default=False,
        doc="With column.propagate.source.type: comments of columns are parameters too.",
        importance="medium",
        group="Columns",
    )
    schema_include: list[str] = key(
        "schema.include.list",
        default=[],
        doc="Regular expressions that match the schemas to capture.",
        importance="high",
        group="Tables",
        aliases=("schema.whitelist",),
        check=valid_regexes,
    )
    schema_exclude: list[str] = key(
        "schema.exclude.list",
        default=[],
        doc="Schemas not to capture.",
        group="Tables",
        aliases=("schema.blacklist",),
        check=valid_regexes,
    )
    message_include: list[str] = key(
        "message.prefix.include.list",
        default=[],
        doc="Prefixes (regular expressions) of logical messages to capture; all where none is given.",
        group="Tables",
        check=valid_regexes,
    )
    message_exclude: list[str] = key(
        "message.prefix.exclude.list",
        default=[],
        doc="Prefixes of logical messages not to capture.",
        group="Tables",
        check=valid_regexes,
    )
    interval_mode: str = key(
        "interval.handling.mode",
        default="numeric",
        doc="Intervals as microseconds, or as ISO 8601 text.",
        importance="low",
        group="Values",
        check=one_of("numeric", "string", ignore_case=True),
    )
    hstore_mode: str = key(
        "hstore.handling.mode",
        default="json",
        doc="hstore as JSON text or as a map.",
        importance="low",
        group="Values",
        check=one_of("json", "map", ignore_case=True),
    )
    snapshot_threads: int = key(
        "snapshot.max.threads",
        default=1,
        doc="Connections that read parts of a table at the same time, all from one view of the data.",
        group="Snapshot",
        check=between(1, 64),
        type=KeyType.INT,
    )
    snapshot_parts: int = key(
        "snapshot.max.threads.multiplier",
        default=1,
        doc="Parts of a large table for each of these connections.",
        group="Snapshot",
        importance="medium",
        check=between(1, 1000),
        type=KeyType.INT,
    )
    snapshot_isolation: str = without_effect(
        "snapshot.isolation.mode",
        "serializable",
        "all connections read one exported view, under REPEATABLE READ",
        check=one_of("serializable", "repeatable_read", "read_committed", "read_uncommitted", ignore_case=True),
    )
    snapshot_lock_timeout_ms: int = key(
        "snapshot.lock.timeout.ms",
        default=10_000,
        doc="How long to wait for the locks of snapshot.locking.mode=shared.",
        group="Snapshot",
        check=at_least(1),
    )
    snapshot_locking: str = key(
        "snapshot.locking.mode",
        default="none",
        doc="shared: hold ACCESS SHARE locks on the tables while a snapshot runs.",
        importance="low",
        group="Snapshot",
        check=one_of("none", "shared", ignore_case=True),
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        yield from not_both("schema.include.list", self.schema_include, "schema.exclude.list", self.schema_exclude)
        for part in filter(None, (p.strip() for p in (self.slot_params or "").split(";"))):
            name = part.partition("=")[0].strip()
            if "=" not in part or name in ("proto_version", "publication_names", "messages", "binary", "two_phase"):
                yield Problem(
                    "slot.stream.params",
                    f"{part!r} should be name=value of an option of pgoutput other than those the connector sets",
                )
            elif name == "streaming" and part.partition("=")[2].strip().lower() not in ("on", "off"):
                yield Problem("slot.stream.params", f"{part!r} should be streaming=on or streaming=off")
        try:
            self.identity_rules()
        except ValueError as error:
            yield Problem("replica.identity.autoset.values", str(error))

    def identity_rules(self) -> list[tuple[JavaRegex, str]]:
        """Patterns of table names and the replica identity as SQL; raises ValueError that says what is wrong."""
        rules = []
        for part in filter(None, (p.strip() for p in (self.identities or "").split(","))):
            table, _, identity = part.rpartition(":")
            words = identity.split(None, 1)
            kind = words[0].upper() if words else ""
            if not table or not (
                (kind in ("DEFAULT", "FULL", "NOTHING") and len(words) == 1) or (kind == "INDEX" and len(words) == 2)
            ):
                raise ValueError(f"{part!r} should be schema.table:DEFAULT, FULL, NOTHING or INDEX name")
            sql = kind if kind != "INDEX" else 'USING INDEX "' + words[1].replace('"', '""') + '"'
            rules.append((compiled([table])[0], sql))
        return rules

    @cached_property
    def _schemas(self) -> Chosen:
        return Chosen(self.schema_include, self.schema_exclude)

    def schema_is_meant(self, name: str) -> bool:
        return self._schemas.has(name)

    @property
    def flushing(self) -> str:
        """``connector``, ``connector_and_driver`` or ``manual``."""
        if self.flush_mode is not None:
            return self.flush_mode.lower()
        return "connector" if self.flush else "manual"
