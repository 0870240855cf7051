"""A preview of a change data capture source leaves nothing in the database, and does not touch a connector's objects
there.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from connect.bench import Bench
from connect.plugins.registry import PluginRegistry, load_plugins
from connect.preview import preview
from connectors.postgres.source import PostgresSource
from connectors.sqlite.source import SqliteSource
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer

JSON = {f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")}


@pytest.fixture(scope="module")
def plugins() -> PluginRegistry:
    return load_plugins()


def ids(plugins: PluginRegistry, config: Mapping[str, str]) -> list[Any]:
    shown = preview(plugins, {}, {"name": "shown", "topic.prefix": "t", **JSON, **config}, rows=2, timeout_s=10)
    return [record.value["after"]["id"] for batch in shown.batches for record in batch.records()]


class PostgresDatabase:
    def __init__(self, server: PostgresServer) -> None:
        self.name = f"preview_{uuid.uuid4().hex[:8]}"
        with server.connect("postgres") as root:
            root.execute(f"CREATE DATABASE {self.name}".encode())
        self.connection = server.connect(self.name)
        self.connection.execute(b"CREATE TABLE orders (id int PRIMARY KEY)")
        self.connection.execute(b"INSERT INTO orders VALUES (1), (2), (3)")
        self.config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": server.user,
            "database.dbname": self.name,
            "slot.name": self.name,
            "publication.autocreate.mode": "filtered",
            "replica.identity.autoset.values": "public.orders:FULL",
        }

    def made(self) -> list[tuple[Any, ...]]:
        """The objects that a connector would create in the database: slot, publication, replica identity of the table."""
        statements = (
            f"SELECT slot_name FROM pg_replication_slots WHERE slot_name = '{self.name}'",
            "SELECT pubname FROM pg_publication",
            "SELECT relreplident FROM pg_class WHERE relname = 'orders' AND relreplident <> 'd'",
        )
        return [row for text in statements for row in self.connection.execute(text.encode()).fetchall()]


@pytest.mark.servers
@pytest.mark.parametrize("mode", ["initial", "no_data", "always"])
def test_a_preview_makes_nothing_in_postgresql(
    plugins: PluginRegistry, postgres_server: PostgresServer, mode: str
) -> None:
    database = PostgresDatabase(postgres_server)
    assert ids(plugins, {**database.config, "snapshot.mode": mode, "slot.drop.on.stop": "true"}) == [1, 2]
    assert database.made() == []
    database.connection.close()


@pytest.mark.servers
def test_a_preview_leaves_the_slot_of_a_connector_that_runs(
    plugins: PluginRegistry, postgres_server: PostgresServer
) -> None:
    database = PostgresDatabase(postgres_server)
    config = {"topic.prefix": "t", **database.config}
    with Bench(PostgresSource, config).task() as running:
        running.poll_rows(3)
        before = database.made()
        assert ids(plugins, {**database.config, "slot.drop.on.stop": "true"}) == [1, 2]
        assert database.made() == before != []
        database.connection.execute(b"INSERT INTO orders VALUES (4)")
        (batch,) = running.poll_rows(1)
        assert [record.value["after"]["id"] for record in batch.records()] == [4]
    database.connection.execute(
        b"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
    )
    database.connection.close()


@pytest.mark.servers
def test_a_preview_writes_no_history_of_mariadbs_tables(
    plugins: PluginRegistry, mariadb_server: MariaDbServer, tmp_path: Path
) -> None:
    name = f"preview_{uuid.uuid4().hex[:8]}"
    connection = mariadb_server.connect("")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"CREATE TABLE {name}.orders (id int PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {name}.orders VALUES (1), (2), (3)")
    connection.commit()
    config = {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(mariadb_server.port),
        "database.user": mariadb_server.user,
        "database.server.id": "7999",
        "database.include.list": name,
        "include.schema.changes": "false",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(tmp_path / "history"),
    }
    assert ids(plugins, config) == [1, 2]
    assert not (tmp_path / "history").exists()
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")
    connection.close()


@pytest.fixture
def shop(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("CREATE TABLE orders (id integer PRIMARY KEY)")
    connection.execute("INSERT INTO orders VALUES (1), (2), (3)")
    return connection


def made_in(shop: sqlite3.Connection) -> set[str]:
    """Tables and triggers, but for the table of counters, which SQLite itself makes and lets nobody drop."""
    return {name for (name,) in shop.execute("SELECT name FROM sqlite_master")} - {"orders", "sqlite_sequence"}


def test_a_preview_leaves_no_triggers_in_sqlite(
    plugins: PluginRegistry, shop: sqlite3.Connection, tmp_path: Path
) -> None:
    config = {"connector.class": "tidegate.sqlite.SqliteCdcSourceConnector", "database.path": str(tmp_path / "shop.db")}
    assert ids(plugins, config) == [1, 2]
    assert made_in(shop) == set()


def test_a_preview_leaves_the_triggers_of_a_connector(
    plugins: PluginRegistry, shop: sqlite3.Connection, tmp_path: Path
) -> None:
    path = str(tmp_path / "shop.db")
    with Bench(SqliteSource, {"database.path": path, "topic.prefix": "t", "poll.interval.ms": "1"}).task() as running:
        running.poll_rows(3)
        before = made_in(shop)
        config = {"connector.class": "tidegate.sqlite.SqliteCdcSourceConnector", "database.path": path}
        assert ids(plugins, {**config, "change.log.drop.on.stop": "true"}) == [1, 2]
        assert made_in(shop) == before != set()
        shop.execute("INSERT INTO orders VALUES (4)")
        (batch,) = running.poll_rows(1)
        assert [record.value["after"]["id"] for record in batch.records()] == [4]
