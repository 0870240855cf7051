"""Checks the server's prerequisites; each problem says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pymysql

from connect.api import Problem
from connectors.debezium.filters import Filters
from connectors.mysql.binlog.gtid import gtid_set
from connectors.mysql.catalog import Catalog
from connectors.mysql.config import MySqlConfig
from connectors.mysql.connections import Server, connect, message_of

__all__ = ["find_problems", "lost_because"]


def lost_because(server: Server, offset: Mapping[str, Any], config: MySqlConfig) -> str | None:
    """Why the server can no longer deliver its log from an offset; None where it can.

    Transactions of servers that ``gtid.source.includes`` leaves out may be missing.
    """
    if offset.get("gtids"):
        known = gtid_set(str(offset["gtids"]), mariadb=server.mariadb)
        if server.mariadb:
            return None  # the server itself reports files that it no longer has
        pattern, excluded = config.gtid_sources
        purged = server.purged().retain(pattern, excluded=excluded)
        if not purged.within(known):
            return f"it has purged transactions {purged}, which are not all among those that were read"
        return None
    file = str(offset.get("file") or "")
    if file and not server.has_file(file):
        return f"it has no file {file!r} any more"
    return None


def find_problems(config: MySqlConfig) -> Iterable[Problem]:
    """Problems that a connection to the server shows."""
    try:
        connection = connect(config)
    except pymysql.err.OperationalError as error:
        code = error.args[0] if error.args else 0
        name = {1045: "database.password", 1044: "database.user", 1698: "database.user"}.get(code, "database.hostname")
        yield Problem(
            name, f"Could not connect to {config.hostname}:{config.port} as {config.user!r}. {message_of(error)}"
        )
        return
    except pymysql.err.Error as error:
        yield Problem("database.initial.statements", message_of(error))
        return
    try:
        server = Server(connection)
        yield from _server_problems(server, config)
        yield from _right_problems(server, config)
        yield from _table_problems(server, config)
    finally:
        connection.close()


def _server_problems(server: Server, config: MySqlConfig) -> Iterable[Problem]:
    if str(server.variable("log_bin") or "OFF").upper() not in ("ON", "1"):
        yield Problem(
            "database.hostname",
            "the server writes no binary log: set log_bin and binlog_format=ROW in its configuration (a managed server: switch on "
            "backups with a binary log) and restart it",
        )
        return
    needed = {"binlog_format": ("ROW",), "binlog_row_image": ("FULL", "NOBLOB", "FULL_NODUP")}
    for name, right in needed.items():
        value = server.variable(name)
        if value is not None and value.upper() not in right:
            yield Problem(
                "database.hostname",
                f"the server has {name}={value}: SET GLOBAL {name} = '{right[0]}', also in its configuration",
            )
    if str(server.variable("binlog_row_value_options") or "").upper() == "PARTIAL_JSON":
        yield Problem(
            "database.hostname",
            "the server logs parts of JSON values only: SET GLOBAL binlog_row_value_options = '', also in its configuration",
        )
    if config.include_query:
        name = "binlog_annotate_row_events" if server.mariadb else "binlog_rows_query_log_events"
        if str(server.variable(name) or "OFF").upper() not in ("ON", "1"):
            yield Problem("include.query", f"the server does not log statements: SET GLOBAL {name} = ON")
    server_id = str(server.variable("server_id") or "")
    if config.server_id is not None and server_id == str(config.server_id):
        yield Problem(
            "database.server.id",
            f"{config.server_id} is the id of the server itself: give the connector a number that no server and no other reader has",
        )
    elif config.server_id is not None and _is_taken(server, config.server_id):
        yield Problem(
            "database.server.id",
            f"a replica reads under {config.server_id} already: stop it, or give the connector a number of its own",
        )


def _is_taken(server: Server, server_id: int) -> bool:
    """Whether another reader uses the server id.

    A task of this same connector may be using it; it is recognized by the name of its thread.
    """
    for statement in ("SHOW REPLICAS", "SHOW SLAVE HOSTS"):
        try:
            return any(str(row[0]) == str(server_id) and str(row[1] or "") for row in server.rows(statement))
        except pymysql.err.Error:
            continue
    return False


def _right_problems(server: Server, config: MySqlConfig) -> Iterable[Problem]:
    rights = _rights(server)

    def lacks(*any_of: str) -> bool:
        return "ALL PRIVILEGES" not in rights and not rights & set(any_of)

    if lacks("REPLICATION SLAVE", "REPLICATION REPLICA"):
        yield Problem(
            "database.user",
            f"user {config.user!r} may not read the binary log: GRANT REPLICATION SLAVE ON *.* TO {_account(server)}",
        )
    if lacks("REPLICATION CLIENT", "BINLOG MONITOR", "SUPER"):
        yield Problem(
            "database.user",
            f"user {config.user!r} may not ask for the log's position: GRANT REPLICATION CLIENT ON *.* TO {_account(server)}",
        )
    snapshot = config.snapshot_mode.lower() != "never" and config.snapshot_locking.lower() != "none"
    if snapshot and lacks("RELOAD", "LOCK TABLES"):
        yield Problem(
            "database.user",
            f"user {config.user!r} may not lock tables for the snapshot: GRANT RELOAD ON *.* TO {_account(server)}, or set "
            "snapshot.locking.mode=none",
        )


def _rights(server: Server) -> set[str]:
    """The user's privileges; a privilege that depends on the database only counts where it applies to all of them.

    Includes active roles.
    """
    rows = server.rows("SHOW GRANTS")
    if not server.mariadb:  # MariaDB includes the privileges of roles by default, MySQL 8 only on request
        try:
            roles = str(server.value("SELECT CURRENT_ROLE()"))
            if roles.upper() != "NONE":
                rows = server.rows(f"SHOW GRANTS FOR CURRENT_USER() USING {roles}")
        except pymysql.err.Error:  # before MySQL 8 there are no roles
            pass
    rights: set[str] = set()
    for row in rows:
        grant = re.match(r"GRANT (.+?) ON (.+?) TO ", str(row[0]).upper())
        if grant is not None:
            names = {name.strip() for name in grant[1].split(",")}
            if grant[2] == "*.*":
                rights |= names
            elif names & {"LOCK TABLES", "ALL PRIVILEGES"}:  # all others count only if granted on everything
                rights.add("LOCK TABLES")
    return rights


def _account(server: Server) -> str:
    name, _, host = str(server.value("SELECT CURRENT_USER()")).rpartition("@")
    return f"'{name}'@'{host}'"


def _table_problems(server: Server, config: MySqlConfig) -> Iterable[Problem]:
    catalog = Catalog(server)
    filters = Filters(config)
    names = [name for name in catalog.tables() if config.database_is_meant(name[0])]
    tables = [name for name in names if filters.table(".".join(name))]
    if not tables and (config.table_include or config.database_include):
        known = ", ".join(".".join(name) for name in names[:20]) or "none that the user may see"
        key = "table.include.list" if config.table_include else "database.include.list"
        yield Problem(key, f"no table matches: names are database.table, and the tables there are: {known}")
    yield from config.guardrail_problems(len(tables))
