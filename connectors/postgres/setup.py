"""The server's prerequisites: checked, and created where the configuration says so."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import pq

from connect.api import ConnectError, Problem, get_logger
from connectors.debezium.filters import Filters
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connections import application, connect, lsn_number, replication
from connectors.postgres.tables import Catalog, Table, captured
from connectors.sql.errors import login_fault

__all__ = [
    "Slot",
    "SlotReader",
    "drop_slot",
    "find_problems",
    "find_slot",
    "make_publication",
    "make_slot",
    "set_identities",
]

logger = get_logger(__name__)


_BLAMED: Final = {"password": "database.password", "user": "database.user", "database": "database.dbname"}
_NO_MORE: Final = b"53400"
"""SQLSTATE of a slot that would be one too many."""


_READER: Final = """
SELECT reader.pid, coalesce(reader.reply_time::text, '')
FROM pg_replication_slots slot JOIN pg_stat_replication reader ON reader.pid = slot.active_pid
WHERE slot.slot_name = %s AND reader.application_name = %s AND reader.usename = current_user
  AND reader.state IS NOT NULL
"""
"""A user who may not see what readers say gets their rows without it: without a state too."""
_LEAST_SILENCE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Slot:
    """``confirmed`` is up to where the server was told that all is done, ``restart`` where the log begins that it keeps; ``snapshot`` names the view of the data at that point,
    usable until the replication connection that made it does anything else."""

    confirmed: int
    restart: int = 0
    active_pid: int | None = None
    lost: bool = False
    snapshot: str | None = None


def find_slot(connection: psycopg.Connection[Any], config: PostgresConfig) -> Slot | None:
    """The slot, if there is one; raises ConnectError where it is of another plugin or database."""
    row = connection.execute(
        "SELECT plugin, database, active_pid, confirmed_flush_lsn::text, restart_lsn::text, coalesce(wal_status, '') FROM pg_replication_slots WHERE slot_name = %s",
        [config.slot],
    ).fetchone()
    if row is None:
        return None
    plugin, database, pid, confirmed, restart, status = row
    if plugin != "pgoutput" or database != config.database:
        raise ConnectError(
            f"replication slot {config.slot!r} belongs to plugin {plugin!r} and database {database!r}, not to pgoutput "
            f"and {config.database!r}: give another slot.name, or drop it with SELECT pg_drop_replication_slot('{config.slot}')"
        )
    return Slot(
        lsn_number(confirmed) if confirmed else 0, lsn_number(restart) if restart else 0, pid, lost=status == "lost"
    )


class SlotReader:
    """The connection that has a slot. One of the same connector that the server no longer hears of is ended.

    A machine that was cut off leaves its connection behind, and PostgreSQL keeps it for wal_sender_timeout, a minute by
    default. The server shows its readers to superusers and members of pg_read_all_stats; for others nothing is ended. A
    reader's time is by its own clock, so what counts is that it does not change.
    """

    def __init__(self, config: PostgresConfig) -> None:
        self._config = config
        self._silence_s = max(_LEAST_SILENCE_S, 3 * config.status_interval_ms / 1000)
        self._heard: tuple[int, str] | None = None
        """The reader's process and its last word."""
        self._heard_at = 0.0

    def end_silent(self, connection: psycopg.Connection[Any]) -> bool:
        """Look at the reader; whether it was ended, because it has said nothing since looks of so long ago."""
        try:
            row = connection.execute(_READER, [self._config.slot, application(self._config)]).fetchone()
        except psycopg.ProgrammingError:  # a version before 12, or a view that the user may not read
            row = None
        heard, now = None if row is None else (row[0], row[1]), time.monotonic()
        if heard != self._heard:
            self._heard, self._heard_at = heard, now
        if heard is None or now - self._heard_at < self._silence_s:
            return False
        logger.warning(
            "the reader of the replication slot is silent and is ended",
            slot=self._config.slot,
            pid=heard[0],
            silent_s=round(now - self._heard_at, 1),
        )
        connection.execute("SELECT pg_terminate_backend(%s)", [heard[0]])
        return True


def make_slot(config: PostgresConfig, version: int) -> tuple[Slot, pq.abc.PGconn]:
    """A new slot; the connection keeps its snapshot alive. Raises psycopg.OperationalError."""
    connection = replication(config)
    options = "(SNAPSHOT 'export'" + (", FAILOVER true)" if config.slot_failover and version >= 170000 else ")")
    if version < 150000:
        options = "EXPORT_SNAPSHOT"
    result = connection.exec_(f'CREATE_REPLICATION_SLOT "{config.slot}" LOGICAL pgoutput {options}'.encode())
    if result.status != pq.ExecStatus.TUPLES_OK:
        text = result.get_error_message()
        connection.finish()
        raise ConnectError(f"replication slot {config.slot!r} could not be made: {text}{_slot_advice(result)}")
    consistent, snapshot = (result.get_value(0, 1) or b"").decode(), (result.get_value(0, 2) or b"").decode()
    return Slot(lsn_number(consistent), snapshot=snapshot), connection


def _slot_advice(result: pq.abc.PGresult) -> str:
    if result.error_field(pq.DiagnosticField.SQLSTATE) == _NO_MORE:
        return "; raise max_replication_slots or drop slots that nobody uses"
    return ""


def _literal(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def drop_slot(connection: psycopg.Connection[Any], name: str, patience_s: float = 5) -> None:
    """Drop a slot if it is there, waiting while its last reader goes. Raises psycopg's errors."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", [name]
            )
            return
        except psycopg.errors.ObjectInUse:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def make_publication(connection: psycopg.Connection[Any], config: PostgresConfig, tables: Sequence[Table]) -> None:
    """Make the publication, or fit it to the tables, by ``publication.autocreate.mode``. Raises ConnectError."""
    mode = config.autocreate.lower()
    row = connection.execute(
        "SELECT puballtables FROM pg_publication WHERE pubname = %s", [config.publication]
    ).fetchone()
    name = _literal(config.publication)
    root = " WITH (publish_via_partition_root = true)" if config.via_root else ""
    # of a partitioned table and its partitions the parent says it all
    listed = ", ".join(table.quoted for table in tables)
    try:
        if row is None:
            if mode == "disabled":
                raise ConnectError(
                    f"there is no publication {config.publication!r}, and publication.autocreate.mode=disabled: "
                    f"CREATE PUBLICATION {name} FOR TABLE ..."
                )
            if mode == "filtered" and not listed:
                raise ConnectError("no table is captured, so no publication can be made: see table.include.list")
            what = {"all_tables": " FOR ALL TABLES", "filtered": f" FOR TABLE {listed}", "no_tables": ""}[mode]
            connection.execute(f"CREATE PUBLICATION {name}{what}{root}".encode())
        elif mode == "filtered" and not row[0] and listed:
            known = connection.execute(
                "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s", [config.publication]
            ).fetchall()
            if {tuple(k) for k in known} != {(t.schema, t.name) for t in tables}:
                connection.execute(f"ALTER PUBLICATION {name} SET TABLE {listed}".encode())
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConnectError(
            f"user {config.user!r} may not make publication {config.publication!r} ({str(error).strip()}): let a superuser make it, "
            "or set publication.autocreate.mode=filtered and own the tables"
        ) from error


def set_identities(connection: psycopg.Connection[Any], config: PostgresConfig, tables: Sequence[Table]) -> None:
    """``replica.identity.autoset.values``."""
    for table in tables:
        for pattern, identity in config.identity_rules():
            if pattern.fullmatch(table.full_name):
                connection.execute(f"ALTER TABLE {table.quoted} REPLICA IDENTITY {identity}".encode())
                break


def find_problems(config: PostgresConfig) -> Iterable[Problem]:
    """Problems that a connection to the server shows, each with what to do."""
    try:
        connection = connect(config)
    except psycopg.OperationalError as error:
        text = str(error).strip().splitlines()[-1] if str(error).strip() else "no answer"
        name = _BLAMED.get(login_fault(error) or "", "database.hostname")
        yield Problem(name, f"Could not connect to {config.hostname}:{config.port} as {config.user!r}. {text}")
        return
    except psycopg.Error as error:
        yield Problem("database.initial.statements", str(error).strip())
        return
    with connection:
        yield from _server_problems(connection, config)
        yield from _table_problems(connection, config)


def _server_problems(connection: psycopg.Connection[Any], config: PostgresConfig) -> Iterable[Problem]:
    level = (connection.execute("SHOW wal_level").fetchone() or ("?",))[0]
    if level != "logical":
        yield Problem(
            "database.hostname",
            f"the server has wal_level={level}: set wal_level=logical in postgresql.conf (a managed server: its parameter for "
            "logical replication) and restart it",
        )
    row = connection.execute("SELECT rolsuper, rolreplication FROM pg_roles WHERE rolname = current_user").fetchone()
    managed = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_roles r WHERE rolname IN ('rds_replication', 'azure_pg_admin', 'cloudsqlsuperuser') "
        "AND pg_has_role(current_user, r.oid, 'member'))"
    ).fetchone()
    if row is not None and not any(row) and not (managed or (False,))[0]:
        yield Problem(
            "database.user", f"user {config.user!r} may not replicate: ALTER ROLE {_literal(config.user)} REPLICATION"
        )
    try:
        slot = find_slot(connection, config)
    except ConnectError as error:
        yield Problem("slot.name", str(error))
        return
    if slot is not None and slot.lost:
        yield Problem(
            "slot.name",
            f"replication slot {config.slot!r} has lost log that was not read (max_slot_wal_keep_size): drop it with "
            f"SELECT pg_drop_replication_slot('{config.slot}') and take a new snapshot",
        )
    if slot is None:
        free = connection.execute(
            "SELECT current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots)"
        ).fetchone()
        if free is not None and free[0] <= 0:
            yield Problem(
                "slot.name",
                "all replication slots are in use: raise max_replication_slots or drop one that nobody uses",
            )
    elif slot.active_pid is not None:
        user = connection.execute(
            "SELECT application_name, client_addr::text FROM pg_stat_activity WHERE pid = %s", [slot.active_pid]
        ).fetchone()
        if user is None or user[0] != application(config):  # a task of the very connector may be that one
            yield Problem(
                "slot.name",
                f"replication slot {config.slot!r} is in use by process {slot.active_pid} ({user[0] if user else 'unknown'}): "
                "stop that consumer, or give this connector a slot.name of its own",
            )


def _right_problems(
    connection: psycopg.Connection[Any], config: PostgresConfig, tables: Sequence[Table]
) -> Iterable[Problem]:
    """Tables that the user may not read, or not publish."""
    rows = connection.execute(
        "SELECT c.oid::int8, has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'), "
        "pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = ANY (%s)",
        [[table.oid for table in tables]],
    ).fetchall()
    readable, owned = ({oid for oid, *rights in rows if rights[which]} for which in (0, 1))
    reads = config.snapshot_mode.lower() not in ("no_data", "never", "schema_only")
    if reads and (closed := [table.quoted for table in tables if table.oid not in readable]):
        yield Problem(
            "database.user",
            f"user {config.user!r} may not read {_some(closed)}, as the snapshot does: GRANT SELECT ON {_some(closed)} TO "
            f"{_literal(config.user)}",
        )
    there = connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", [config.publication]).fetchone()
    if there is not None or config.autocreate.lower() != "filtered":
        return
    if foreign := [table.quoted for table in tables if table.oid not in owned]:
        yield Problem(
            "publication.autocreate.mode",
            f"user {config.user!r} does not own {_some(foreign)}, and only owners can publish a table: let a superuser run "
            f"CREATE PUBLICATION {_literal(config.publication)} FOR TABLE {_some(foreign)}, or make the user a member of the owner's role",
        )
    may = connection.execute("SELECT has_database_privilege(current_database(), 'CREATE')").fetchone()
    if may is not None and not may[0]:
        yield Problem(
            "publication.autocreate.mode",
            f"user {config.user!r} may not make a publication in this database: GRANT CREATE ON DATABASE "
            f"{_literal(config.database)} TO {_literal(config.user)}",
        )


def _some(names: Sequence[str]) -> str:
    """At most five of them."""
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _table_problems(connection: psycopg.Connection[Any], config: PostgresConfig) -> Iterable[Problem]:
    catalog = Catalog(connection)
    names = catalog.names()
    filters = Filters(config, database=config.database)
    tables = catalog.tables(captured(names, filters, config))
    if not tables and config.table_include:
        known = ", ".join(f"{schema}.{name}" for _, schema, name in names[:20]) or "none"
        yield Problem(
            "table.include.list", f"no table matches: names are schema.table, and the tables there are: {known}"
        )
    yield from config.guardrail_problems(len(tables))
    yield from _right_problems(connection, config, tables)
    for table in tables:
        if config.table_include and not table.key and table.identity == "d" and filters.key_of(table.full_name) is None:
            yield Problem(
                "table.include.list",
                f"table {table.full_name} has no primary key, so PostgreSQL refuses to update and delete its rows once they are "
                f"published: add one, or ALTER TABLE {table.quoted} REPLICA IDENTITY FULL",
            )
    mode = config.autocreate.lower()
    there = connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", [config.publication]).fetchone()
    if there is None and mode == "disabled":
        yield Problem(
            "publication.name",
            f"there is no publication {config.publication!r} and publication.autocreate.mode=disabled: "
            f"CREATE PUBLICATION {_literal(config.publication)} FOR TABLE ...",
        )
    elif there is None and mode == "all_tables":
        row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
        if row is not None and not row[0]:
            yield Problem(
                "publication.autocreate.mode",
                f"only a superuser can make a publication for all tables and {config.user!r} is none: use "
                f"publication.autocreate.mode=filtered, or let a superuser run CREATE PUBLICATION {_literal(config.publication)} FOR ALL TABLES",
            )
