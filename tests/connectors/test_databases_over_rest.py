"""``config/validate`` reports problems with a database, and a connector with such a problem is not created: over REST,
with real servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from psycopg import pq

from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.proof, pytest.mark.servers]
POSTGRES = "io.debezium.connector.postgresql.PostgresConnector"
MARIADB = "io.debezium.connector.mariadb.MariaDbConnector"
SOURCE = "io.confluent.connect.jdbc.JdbcSourceConnector"
SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"


@pytest.fixture(scope="module")
def worker(tidegate_broker: TidegateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectWorker]:
    made = ConnectWorker(tmp_path_factory.mktemp("worker"), tidegate_broker.bootstrap_servers, name="databases")
    made.start()
    yield made
    made.stop()


def told(worker: ConnectWorker, config: dict[str, str]) -> dict[str, str]:
    """The messages of the validation, by key; creating a connector with this configuration is rejected with the same
    messages.
    """
    plugin = config["connector.class"]
    answer = worker.ask("PUT", f"/connector-plugins/{plugin}/config/validate", {"name": "x", **config}, expect=200)
    errors_by_key = {
        entry["value"]["name"]: entry["value"]["errors"] for entry in answer["configs"] if entry["value"]["errors"]
    }
    if errors_by_key:
        refused = worker.ask("PUT", "/connectors/x/config", config, expect=400)
        assert all(error in refused["message"] for errors in errors_by_key.values() for error in errors)
    return {key: " ".join(errors) for key, errors in errors_by_key.items()}


def test_problems_of_postgresql_are_reported(worker: ConnectWorker, postgres_server: PostgresServer) -> None:
    server, name = postgres_server, "over_rest"
    with ExitStack() as stack:
        root = stack.enter_context(server.connect("postgres"))
        root.execute(f"CREATE DATABASE {name}".encode())
        inside = stack.enter_context(server.connect(name))
        inside.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE keyless (id int)")
        root.execute("DROP ROLE IF EXISTS over_rest; CREATE ROLE over_rest LOGIN PASSWORD 'right'")
        server.ask_password_of("over_rest")
        good = {
            "connector.class": POSTGRES,
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": server.user,
            "database.dbname": name,
            "topic.prefix": "x",
            "slot.name": name,
        }
        mine = good | {"database.user": "over_rest", "database.password": "right"}
        assert told(worker, good) == {}
        assert (
            "password authentication failed" in told(worker, mine | {"database.password": "wrong"})["database.password"]
        )
        assert "public.t" in told(worker, good | {"table.include.list": "public.missing"})["table.include.list"]
        assert (
            "REPLICA IDENTITY FULL"
            in told(worker, good | {"table.include.list": "public.keyless"})["table.include.list"]
        )
        problems = told(worker, mine | {"publication.autocreate.mode": "filtered"})
        assert 'ALTER ROLE "over_rest" REPLICATION' in problems["database.user"]
        assert 'GRANT SELECT ON "public"."keyless", "public"."t"' in problems["database.user"]
        assert "does not own" in problems["publication.autocreate.mode"]
        inside.execute("CREATE PUBLICATION dbz_publication FOR ALL TABLES")
        inside.execute(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
        reader = pq.PGconn.connect(
            f"{server.dsn.replace('dbname=tidegate', f'dbname={name}')} replication=database".encode()
        )
        try:
            options = "(proto_version '1', publication_names 'dbz_publication')"
            assert (
                reader.exec_(f"START_REPLICATION SLOT {name} LOGICAL 0/0 {options}".encode()).status
                == pq.ExecStatus.COPY_BOTH
            )
            assert "slot.name of its own" in told(worker, good)["slot.name"]
        finally:
            reader.finish()
    plain = PostgresServer("wal_level = replica")
    plain.start()
    try:
        changed = good | {"database.port": str(plain.port), "database.dbname": plain.database}
        assert "set wal_level=logical in postgresql.conf" in told(worker, changed)["database.hostname"]
    finally:
        plain.stop()


def test_problems_of_mariadb_are_reported(worker: ConnectWorker, mariadb_server: MariaDbServer) -> None:
    server, name = mariadb_server, "over_rest"
    with server.connect("") as root, root.cursor() as cursor:
        for statement in (
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.t (id int PRIMARY KEY)",
            "CREATE USER over_rest@'127.0.0.1' IDENTIFIED BY 'right'",
            f"GRANT SELECT ON {name}.* TO over_rest@'127.0.0.1'",
        ):
            cursor.execute(statement)
        good = {
            "connector.class": MARIADB,
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": server.user,
            "database.server.id": "9401",
            "database.include.list": name,
            "topic.prefix": "x",
        }
        mine = good | {"database.user": "over_rest", "database.password": "right"}
        try:
            assert told(worker, good) == {}
            assert "Access denied" in told(worker, mine | {"database.password": "wrong"})["database.password"]
            assert f"{name}.t" in told(worker, good | {"table.include.list": f"{name}.missing"})["table.include.list"]
            assert "GRANT REPLICATION SLAVE" in told(worker, mine)["database.user"]
            assert "server itself" in told(worker, good | {"database.server.id": "1"})["database.server.id"]
        finally:
            for statement in (f"DROP DATABASE {name}", "DROP USER over_rest@'127.0.0.1'"):
                cursor.execute(statement)


def test_problems_of_jdbc_are_reported(worker: ConnectWorker, postgres_server: PostgresServer, tmp_path: Path) -> None:
    server = postgres_server
    with server.connect() as root:
        root.execute("DROP ROLE IF EXISTS jdbc_over_rest; CREATE ROLE jdbc_over_rest LOGIN PASSWORD 'right'")
        root.execute("DROP TABLE IF EXISTS over_rest; CREATE TABLE over_rest (id int PRIMARY KEY)")
    server.ask_password_of("jdbc_over_rest")
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/{server.database}"
    who: dict[str, Any] = {"connection.url": url, "connection.user": server.user}
    stranger = {"connection.url": url, "connection.user": "jdbc_over_rest", "connection.password": "wrong"}
    source = {"connector.class": SOURCE, "mode": "bulk", "topic.prefix": "x", "table.whitelist": "over_rest"}
    sink = {"connector.class": SINK, "topics": "over_rest"}
    assert told(worker, source | who) == {} and told(worker, sink | who) == {}
    assert "password authentication failed" in told(worker, source | stranger)["connection.url"]
    assert "password authentication failed" in told(worker, sink | stranger)["connection.password"]
    assert "no such table" in told(worker, source | who | {"table.whitelist": "missing"})["table.whitelist"]
    assert "there is no table missing" in told(worker, sink | who | {"topics": "missing"})["auto.create"]
    assert told(worker, sink | who | {"topics": "missing", "auto.create": "true"}) == {}
    may_not = told(worker, source | {**stranger, "connection.password": "right"})
    assert "over_rest" in may_not["table.whitelist"]
