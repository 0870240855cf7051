"""The JDBC source through SQLAlchemy alone, as for unknown databases: PostgreSQL under another name."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy.dialects import registry

from connect.api import MAX_BATCH_BYTES
from connectors.jdbc.source import JdbcSourceConnector
from tests.servers.postgres import PostgresServer
from tests.support.connect import drain, rows, source_task
from tidegate.kit.config import parse

pytestmark = pytest.mark.servers


@pytest.fixture
def connection_properties(postgres_server: PostgresServer) -> Any:
    """Properties for a separate schema."""
    registry.register("elsewhere", "sqlalchemy.dialects.postgresql.psycopg", "PGDialect_psycopg")
    address = postgres_server.jdbc_url.partition("//")[2].partition("?")[0]
    with postgres_server.connect() as connection:
        connection.execute("CREATE SCHEMA elsewhere")
        connection.execute(
            "CREATE TABLE elsewhere.t (id int NOT NULL, made timestamp NOT NULL, n numeric(30,4), f float8, b bool, v text, "
            "by bytea, d date, ti time, tz timestamptz, u uuid)"
        )
        connection.execute(
            "INSERT INTO elsewhere.t SELECT i, timestamp '2024-01-01' + i * interval '1 second', i / 4.0, i, i % 2 = 0, "
            "repeat('x', CASE WHEN i % 50 = 0 THEN 1000000 ELSE i % 5 END), '\\x00ff', '2024-02-29', '01:02:03', "
            "'2024-01-02 03:04:05+02', '10349801-5e5b-4006-a542-fe9a9a6d0b24' FROM generate_series(1, 600) AS i"
        )
    yield {
        "connection.url": f"jdbc:elsewhere://{address}",
        "connection.user": postgres_server.user,
        "schema.pattern": "elsewhere",
        "topic.prefix": "",
        "poll.linger.ms": "1",
        "poll.interval.ms": "1",
    }
    with postgres_server.connect() as connection:
        connection.execute("DROP SCHEMA elsewhere CASCADE")


@pytest.mark.parametrize("mode", ["incrementing", "timestamp+incrementing"])
def test_rows_are_read_as_by_a_driver_of_their_own(connection_properties: dict[str, str], mode: str) -> None:
    connection_properties |= {"mode": mode, "incrementing.column.name": "id", "timestamp.column.name": "made"}
    assert list(JdbcSourceConnector.check(parse(JdbcSourceConnector.config_class, connection_properties))) == []
    task = source_task(JdbcSourceConnector, connection_properties)
    batches = drain(task)
    task.stop()
    assert all(batch.nbytes <= MAX_BATCH_BYTES for batch in batches)
    result = rows(batches)
    assert [row["id"] for row in result] == list(range(1, 601))
    assert result[0] == {
        "id": 1,
        "made": dt.datetime(2024, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
        "n": Decimal("0.2500"),
        "f": 1.0,
        "b": False,
        "v": "x",
        "by": b"\x00\xff",
        "d": dt.date(2024, 2, 29),
        "ti": dt.time(1, 2, 3),
        "tz": dt.datetime(2024, 1, 2, 1, 4, 5, tzinfo=dt.UTC),
        "u": "10349801-5e5b-4006-a542-fe9a9a6d0b24",
    }


def test_a_missing_dialect_or_driver_is_named() -> None:
    for url, said in (
        ("jdbc:sqlserver://127.0.0.1;databaseName=d", "pip install pyodbc"),
        ("jdbc:nowhere://127.0.0.1:1/d", "no SQLAlchemy dialect for nowhere"),
    ):
        config = {"connection.url": url, "mode": "bulk"}
        (problem,) = JdbcSourceConnector.check(parse(JdbcSourceConnector.config_class, config))
        assert problem.key == "connection.url" and said in problem.message
