"""The database connectors pass the suites that kill, stop and cut connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from connect.api import Record, Schema, SchemaType
from connect.testing import SinkFaultSuite
from connectors.jdbc.sink import DebeziumSinkConnector, JdbcSinkConnector, MySqlSinkConnector
from connectors.jdbc.source import JdbcSourceConnector
from tests.connectors.faults.parts import ROWS, NumberedRows, OnBothBrokers, OnMariaDb, OnPostgres
from tests.connectors.jdbc.sink_databases import MariaDbDatabase, PostgresDatabase, SinkDatabase
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer

pytestmark = [pytest.mark.proof, pytest.mark.servers]


class JdbcSinkFaultSuite(OnBothBrokers, SinkFaultSuite):
    """The sinks to ``database``, which an implementer makes and removes."""

    connector_class: ClassVar[Any] = JdbcSinkConnector
    exactly_once = True
    database: SinkDatabase
    tables: ClassVar[str] = "SELECT 1 FROM information_schema.tables WHERE table_name = '{}'"
    rows: ClassVar[str] = 'SELECT id FROM "{}"'

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        if not self.database.ask(self.tables.format(self.topic)):
            return []
        return [n for (n,) in self.database.ask(self.rows.format(self.topic))]


class OnPostgresDatabase(OnPostgres):
    database: SinkDatabase

    @pytest.fixture
    def url(self, postgres_server: PostgresServer, port: int) -> Iterator[str]:
        """The database's URL, by way of the forwarder."""
        database = self.database = PostgresDatabase(postgres_server)
        yield database.url.replace(f":{postgres_server.port}/", f":{port}/")
        database.close()


class OnMariaDbDatabase(OnMariaDb):
    database: SinkDatabase
    tables = "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '{}'"
    rows = "SELECT id FROM `{}`"

    @pytest.fixture
    def url(self, mariadb_server: MariaDbServer, port: int) -> Iterator[str]:
        database = self.database = MariaDbDatabase(mariadb_server)
        yield database.url.replace(f":{mariadb_server.port}/", f":{port}/")
        database.close()


class ByOffsetsTable:
    """Exactly once, by the table in which the sink stores its offsets."""

    @pytest.fixture
    def properties(self, url: str) -> Mapping[str, str]:
        return {
            "connection.url": url,
            "auto.create": "true",
            "tidegate.offsets.table": "offsets",
            "retry.backoff.ms": "50",
        }


@pytest.mark.long
class TestJdbcSinkOnPostgres(OnPostgresDatabase, ByOffsetsTable, JdbcSinkFaultSuite):
    pass


@pytest.mark.long
class TestJdbcSinkOnMariaDb(OnMariaDbDatabase, ByOffsetsTable, JdbcSinkFaultSuite):
    pass


@pytest.mark.long
class TestMySqlSink(OnMariaDbDatabase, JdbcSinkFaultSuite):
    """Confluent Cloud's keys. Once, by upserts."""

    connector_class = MySqlSinkConnector

    @pytest.fixture
    def properties(self, url: str, mariadb_server: MariaDbServer, port: int) -> Mapping[str, str]:
        assert isinstance(self.database, MariaDbDatabase)
        return {
            "connection.host": "127.0.0.1",
            "connection.port": str(port),
            "connection.user": mariadb_server.user,
            "connection.password": "",
            "db.name": self.database.name,
            "ssl.mode": "prefer",
            "auto.create": "true",
            "insert.mode": "UPSERT",
            "pk.mode": "record_value",
            "pk.fields": "id",
        }


@pytest.mark.long
class TestDebeziumSink(OnPostgresDatabase, JdbcSinkFaultSuite):
    """Debezium's sink. Once, by upserts with the record's key."""

    connector_class = DebeziumSinkConnector

    @pytest.fixture
    def properties(self, url: str, postgres_server: PostgresServer) -> Mapping[str, str]:
        return {
            "connection.url": url,
            "connection.username": postgres_server.user,
            "connection.password": "-",
            "insert.mode": "upsert",
            "primary.key.mode": "record_key",
            "schema.evolution": "basic",
            "flush.retry.delay.ms": "50",
        }

    def record(self, n: int) -> Record:
        row = super().record(n)
        key = Schema.struct({"id": Schema(SchemaType.INT64)})
        return Record(row.topic, row.value, row.value_schema, key={"id": n}, key_schema=key)


@pytest.mark.long
class TestJdbcSourceOnPostgres(OnPostgres, NumberedRows):
    connector_class = JdbcSourceConnector

    @pytest.fixture
    def properties(self, postgres_server: PostgresServer, port: int) -> Mapping[str, str]:
        with postgres_server.connect() as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS faults; DROP TABLE IF EXISTS faults.t")
            connection.execute("CREATE TABLE faults.t (id serial PRIMARY KEY, name text)")
            connection.execute(f"INSERT INTO faults.t SELECT n, 'name ' || n FROM generate_series(1, {ROWS}) n")
        return {
            "connection.url": postgres_server.jdbc_url.replace(f":{postgres_server.port}/", f":{port}/"),
            "mode": "incrementing",
            "schema.pattern": "faults",
            "topic.prefix": "faults-",
            "batch.max.rows": "10",
            "poll.interval.ms": "200",
            "connection.backoff.ms": "200",
        }
