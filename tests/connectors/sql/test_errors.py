"""Which errors of real drivers are lost connections, and which part of a login was refused."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import duckdb
import psycopg
import pymysql
import pytest
import sqlalchemy

from connectors.sql.errors import is_locked_sqlite, is_lost_connection, login_fault
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer

TRAP = 'connection refused, connection reset, "database is locked", failed: FATAL:  password authentication failed'
"""A name as a table, a column or a value may have it."""


def error_of(call: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as raised:
        call()
    return raised.value


def by_psycopg(url: str) -> Any:
    return psycopg.connect(url, connect_timeout=5, autocommit=True)


def by_adbc(url: str) -> Any:
    return adbc_driver_postgresql.dbapi.connect(url, autocommit=True)


def by_sqlalchemy(url: str) -> Any:
    engine = sqlalchemy.create_engine(
        url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sqlalchemy.NullPool
    )
    return engine.raw_connection()


@pytest.mark.servers
@pytest.mark.parametrize("connect", [by_psycopg, by_adbc, by_sqlalchemy])
def test_postgresql_says_what_of_a_login_is_wrong(
    postgres_server: PostgresServer, connect: Callable[[str], Any]
) -> None:
    def fault(user: str, database: str, port: int) -> tuple[bool, str | None]:
        error = error_of(lambda: connect(f"postgresql://{user}@127.0.0.1:{port}/{database}"))
        return is_lost_connection(error, "postgresql"), login_fault(error)

    port = postgres_server.port
    assert fault("tidegate", "tidegate", 1) == (True, None)
    assert fault("tidegate", "connection%20refused", port) == (False, "database")
    assert fault("database%20is%20locked", "tidegate", port) == (False, "user")


@pytest.mark.servers
@pytest.mark.parametrize("connect", [by_psycopg, by_adbc, by_sqlalchemy])
def test_a_connection_that_postgresql_ended_is_lost_and_a_wrong_statement_is_not(
    postgres_server: PostgresServer, connect: Callable[[str], Any]
) -> None:
    url = postgres_server.url
    with closing(connect(url)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
        quoted = TRAP.replace('"', '""')
        wrong = error_of(lambda: cursor.execute(f'SELECT "{quoted}" FROM pg_class'))
        assert not is_lost_connection(wrong, "postgresql") and login_fault(wrong) is None
        with by_psycopg(url) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [pid])
        time.sleep(0.2)
        for _ in range(2):
            assert is_lost_connection(error_of(lambda: cursor.execute("SELECT 1")), "postgresql")


@pytest.mark.servers
def test_mariadb_says_it_by_numbers(mariadb_server: MariaDbServer) -> None:
    port = mariadb_server.port
    refused = error_of(lambda: pymysql.connect(host="127.0.0.1", port=1, user="root"))
    assert is_lost_connection(refused, "mysql") and login_fault(refused) is None
    password = error_of(lambda: pymysql.connect(host="127.0.0.1", port=port, user="connection refused", password="x"))
    assert not is_lost_connection(password, "mysql") and login_fault(password) == "password"


@contextmanager
def holding(code: str) -> Iterator[None]:
    """Another process that runs this and then waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"{code}; print(1, flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"1\n"
        yield
    finally:
        process.communicate(b"\n")


def test_a_file_of_sqlite_is_locked_while_another_process_writes(tmp_path: Path) -> None:
    path = str(tmp_path / "connection refused.db")
    with (
        closing(adbc_driver_sqlite.dbapi.connect(path, autocommit=True)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        cursor.execute("CREATE TABLE t (x INTEGER UNIQUE)")
        cursor.execute("PRAGMA busy_timeout = 50")
        with holding(
            f"import sqlite3; c = sqlite3.connect({path!r}, isolation_level=None); c.execute('BEGIN EXCLUSIVE')"
        ):
            locked = error_of(lambda: cursor.execute("INSERT INTO t VALUES (1)"))
        assert is_locked_sqlite(locked) and is_lost_connection(locked, "sqlite")
        for statement in ('SELECT * FROM "x: database is locked"', "INSERT INTO t VALUES (2), (2)", "SELECT"):
            other = error_of(lambda statement=statement: cursor.execute(statement))
            assert not is_lost_connection(other, "sqlite"), other
    missing = error_of(lambda: adbc_driver_sqlite.dbapi.connect(str(tmp_path / "database is locked" / "x.db")))
    assert isinstance(missing, adbc_driver_manager.Error) and not is_lost_connection(missing, "sqlite")


def test_a_file_of_duckdb_is_locked_while_another_process_has_it(tmp_path: Path) -> None:
    path = str(tmp_path / "x.db")
    with holding(f"import duckdb; c = duckdb.connect({path!r})"):
        assert is_lost_connection(error_of(lambda: duckdb.connect(path)), "duckdb")
    gone = error_of(lambda: duckdb.connect(str(tmp_path / "Could not set lock on file" / "x.db")))
    assert not is_lost_connection(gone, "duckdb")
