"""Our connectors pass the suite that is published for all connectors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect.testing import SinkSuite, SourceSuite
from connectors.files.source import FileStreamSourceConnector
from connectors.jdbc.sink import JdbcSinkConnector
from connectors.jdbc.source import JdbcSourceConnector
from tests.connectors.jdbc.sink_databases import DuckDbDatabase, PostgresDatabase, SinkDatabase, SqliteDatabase
from tests.connectors.suite_targets import (
    AzureTarget,
    DeltaTarget,
    FileTarget,
    HdfsTarget,
    IcebergTarget,
    LocalTarget,
    S3Target,
    SftpTarget,
)
from tests.servers.postgres import PostgresServer

ROWS = 250
_SQLITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, amount DECIMAL(9,2), at TIMESTAMP NOT NULL)")
connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [
    (n, f"name {n}", n / 4, f"2024-01-01 00:00:{n // 10 % 60:02d}") for n in range(1, int(sys.argv[2]) + 1)])
connection.commit()
"""


class JdbcSuite(SourceSuite):
    connector_class = JdbcSourceConnector

    @pytest.fixture
    def expected_rows(self) -> int:
        return ROWS


def jdbc(url: str, **more: str) -> dict[str, str]:
    properties = {"connection.url": url, "topic.prefix": "s-", "poll.linger.ms": "100", "batch.max.rows": "100"}
    return properties | {key.replace("_", "."): value for key, value in more.items()}


class TestJdbcSourceOnSqlite(JdbcSuite):
    @pytest.fixture(params=["incrementing", "timestamp+incrementing"])
    def properties(self, request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
        subprocess.run([sys.executable, "-c", _SQLITE, tmp_path / "s.db", str(ROWS)], check=True)
        more = {"timestamp_column_name": "at"} if "timestamp" in request.param else {}
        return jdbc(f"jdbc:sqlite:{tmp_path / 's.db'}", mode=request.param, **more)


@pytest.mark.servers
class TestJdbcSourceOnPostgres(JdbcSuite):
    @pytest.fixture
    def properties(self, postgres_server: PostgresServer) -> Mapping[str, str]:
        with postgres_server.connect() as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS suite; DROP TABLE IF EXISTS suite.t")
            connection.execute("CREATE TABLE suite.t (id serial PRIMARY KEY, name text, amount numeric(9,2))")
            connection.execute(f"INSERT INTO suite.t SELECT n, 'name ' || n, n / 4.0 FROM generate_series(1, {ROWS}) n")
        return jdbc(postgres_server.jdbc_url, mode="incrementing", schema_pattern="suite")


class TestFileStreamSource(SourceSuite):
    connector_class = FileStreamSourceConnector

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        (tmp_path / "lines").write_text("".join(f"line {n}\n" for n in range(ROWS)))
        return {"file": str(tmp_path / "lines"), "topic": "lines", "batch.size": "100"}

    @pytest.fixture
    def expected_rows(self) -> int:
        return ROWS


class TestFileStreamSink(FileTarget, SinkSuite):
    pass


class JdbcSinkSuite(SinkSuite):
    connector_class = JdbcSinkConnector
    exactly_once = True
    database: SinkDatabase

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        return self.database.properties() | {
            "topics": self.topic,
            "auto.create": "true",
            "tidegate.offsets.table": "offsets",
        }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return [n for (n,) in self.database.ask("SELECT id FROM suite")]


class TestJdbcSinkOnSqlite(JdbcSinkSuite):
    @pytest.fixture(autouse=True)
    def _database(self, tmp_path: Path) -> None:
        self.database = SqliteDatabase(tmp_path)


class TestJdbcSinkOnDuckDb(JdbcSinkSuite):
    @pytest.fixture(autouse=True)
    def _database(self, tmp_path: Path) -> None:
        self.database = DuckDbDatabase(tmp_path)


@pytest.mark.servers
class TestJdbcSinkOnPostgres(JdbcSinkSuite):
    @pytest.fixture(autouse=True)
    def _database(self, postgres_server: PostgresServer) -> Iterator[None]:
        database = PostgresDatabase(postgres_server)
        self.database = database
        yield
        database.close()


class TestLocalSink(LocalTarget, SinkSuite):
    pass


@pytest.mark.proof
class TestSftpSink(SftpTarget, SinkSuite):
    pass


class TestDeltaSink(DeltaTarget, SinkSuite):
    pass


class TestIcebergSink(IcebergTarget, SinkSuite):
    pass


@pytest.mark.servers
class TestS3Sink(S3Target, SinkSuite):
    pass


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
class TestAzureSink(AzureTarget, SinkSuite):
    pass


@pytest.mark.servers
@pytest.mark.proof
class TestHdfsSink(HdfsTarget, SinkSuite):
    pass
