"""The change data capture connectors pass the suite that kills, stops and cuts connections."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from connectors.mysql.source import MariaDbSource
from connectors.postgres.source import PostgresSource
from connectors.sqlite.source import SqliteSource
from tests.connectors.faults.parts import ROWS, CapturedRows, OnMariaDb, OnPostgres
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until

pytestmark = [pytest.mark.proof, pytest.mark.servers]


@pytest.mark.long
class TestPostgresChanges(OnPostgres, CapturedRows):
    """With a heartbeat query, so that there is a second connection to lose."""

    connector_class = PostgresSource

    @pytest.fixture
    def properties(self, postgres_server: PostgresServer, port: int) -> Iterator[Mapping[str, str]]:
        slot = f"faults{time.time_ns()}"
        with postgres_server.connect() as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS captured; DROP TABLE IF EXISTS captured.t, captured.beats")
            connection.execute("CREATE TABLE captured.t (id int PRIMARY KEY, name text)")
            connection.execute("CREATE TABLE captured.beats (at timestamptz)")
            connection.execute("CREATE PUBLICATION " + slot + " FOR TABLE captured.t")
            connection.execute(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
            for n in range(1, ROWS + 1):
                connection.execute(f"INSERT INTO captured.t VALUES ({n}, 'name {n}')")
        yield {
            "database.hostname": "127.0.0.1",
            "database.port": str(port),
            "database.user": postgres_server.user,
            "database.password": "-",
            "database.dbname": postgres_server.database,
            "topic.prefix": slot,
            "slot.name": slot,
            "publication.name": slot,
            "plugin.name": "pgoutput",
            "snapshot.mode": "no_data",
            "table.include.list": "captured.t",
            "max.batch.size": "8",
            "max.queue.size": "16",
            "heartbeat.interval.ms": "1",
            "heartbeat.action.query": "INSERT INTO captured.beats VALUES (now())",
            "retriable.restart.connector.wait.ms": "200",
        }
        with postgres_server.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
                f"WHERE slot_name = '{slot}' AND active"
            )
            wait_until(
                lambda: (
                    connection.execute(f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot}'").fetchone()
                    in (None, (False,))
                ),
                "the slot free",
            )
            connection.execute(
                f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{slot}'"
            )
            connection.execute(f"DROP PUBLICATION {slot}")


@pytest.mark.long
class TestSqliteChanges(CapturedRows):
    connector_class = SqliteSource

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        path = tmp_path / "captured.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(n, f"name {n}") for n in range(1, ROWS + 1)])
            connection.commit()
        return {"database.path": str(path), "topic.prefix": f"s{time.time_ns()}", "max.batch.size": "8"}


@pytest.mark.long
class TestMariaDbChanges(OnMariaDb, CapturedRows):
    connector_class = MariaDbSource

    @pytest.fixture
    def properties(self, mariadb_server: MariaDbServer, port: int, tmp_path: Path) -> Mapping[str, str]:
        name = f"faults_{time.time_ns()}"
        with closing(mariadb_server.connect("")) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            cursor.execute(f"CREATE TABLE {name}.t (id int PRIMARY KEY, name text)")
            for n in range(1, ROWS + 1):
                cursor.execute(f"INSERT INTO {name}.t VALUES ({n}, 'name {n}')")
            connection.commit()
        return {
            "database.hostname": "127.0.0.1",
            "database.port": str(port),
            "database.user": mariadb_server.user,
            "database.server.id": str(9000 + time.time_ns() % 1000),
            "database.include.list": name,
            "topic.prefix": name,
            "poll.interval.ms": "20",
            "max.batch.size": "8",
            "max.queue.size": "16",
            "include.schema.changes": "false",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(tmp_path / "history"),
        }
