"""Our connectors pass the suites that kill, stop and cut off, on our broker and on Apache Kafka."""

from __future__ import annotations

import http.server
import json
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from connect.api import Record, Rows, RowsConfig, RowsTask, Schema, SchemaType, SourceConnector, config
from connect.testing import Forwarder, SinkFaultSuite, SourceFaultSuite
from connectors.files.sink import FileStreamSinkConnector
from connectors.files.source import FileStreamSourceConnector
from connectors.http.sink import HttpSinkConnector
from connectors.jdbc.sink import JdbcSinkConnector
from connectors.jdbc.source import JdbcSourceConnector
from connectors.local.sink import LocalSinkConnector
from connectors.mysql.source import MariaDbSource
from connectors.postgres.source import PostgresSource
from connectors.s3.source import S3SourceConnector
from connectors.sqlite.source import SqliteSource
from connectors.s3.sink import S3SinkConnector
from tests.connectors.jdbc.sink_places import PostgresPlace
from tests.connectors.suite_targets import FileTarget, LocalTarget, S3Target
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until
from tests.servers.s3 import S3Server
from tests.support.buckets import Bucket, bucket_on

pytestmark = [pytest.mark.proof, pytest.mark.servers]

ROWS = 120


class OnBothBrokers:
    @pytest.fixture(scope="class", params=["tidegate_broker", pytest.param("apache_kafka", marks=pytest.mark.long)])
    @classmethod
    def bootstrap_servers(cls, request: pytest.FixtureRequest) -> str:
        return str(request.getfixturevalue(request.param).bootstrap_servers)


class ThroughForwarder:
    """The connector reaches its server through one forwarder."""

    @pytest.fixture
    def parties(self, server_port: int) -> Iterator[Sequence[Forwarder]]:
        with Forwarder.to(server_port) as forwarder:
            yield [forwarder]

    @pytest.fixture
    def port(self, parties: Sequence[Forwarder]) -> int:
        return parties[0].port


class OnS3(ThroughForwarder):
    @pytest.fixture
    def server_port(self, s3_server: S3Server) -> int:
        return s3_server.port

    @pytest.fixture
    def endpoint(self, port: int) -> str:
        return f"http://127.0.0.1:{port}"


class OnPostgres(ThroughForwarder):
    @pytest.fixture
    def server_port(self, postgres_server: PostgresServer) -> int:
        return postgres_server.port


class NumberedRows(OnBothBrokers, SourceFaultSuite):
    """The source has rows 1 to ROWS."""

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(1, ROWS + 1)


class CapturedRows(NumberedRows):
    """Told in Debezium's envelope, with records of other kinds between them."""

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        return value["after"]["id"] if "after" in value else None


@pytest.mark.long
class TestFileStreamSink(FileTarget, OnBothBrokers, SinkFaultSuite):
    pass


@pytest.mark.long
class TestLocalSink(LocalTarget, OnBothBrokers, SinkFaultSuite):
    pass


class TestS3Sink(OnS3, S3Target, OnBothBrokers, SinkFaultSuite):
    pass


@pytest.mark.long
class TestJdbcSinkOnPostgres(OnPostgres, OnBothBrokers, SinkFaultSuite):
    connector_class = JdbcSinkConnector
    exactly_once = True

    @pytest.fixture
    def properties(self, postgres_server: PostgresServer, port: int) -> Iterator[Mapping[str, str]]:
        self.database = PostgresPlace(postgres_server)
        url = self.database.url.replace(f":{postgres_server.port}/", f":{port}/")
        yield {
            "connection.url": url,
            "auto.create": "true",
            "tidegate.offsets.table": "offsets",
            "retry.backoff.ms": "50",
        }
        self.database.close()

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        if not self.database.ask(f"SELECT 1 FROM information_schema.tables WHERE table_name = '{self.topic}'"):
            return []
        return [n for (n,) in self.database.ask(f'SELECT id FROM "{self.topic}"')]


@pytest.mark.long
class TestFileStreamSource(OnBothBrokers, SourceFaultSuite):
    connector_class = FileStreamSourceConnector

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        (tmp_path / "lines").write_text("".join(f"{n}\n" for n in range(ROWS)))
        return {"file": str(tmp_path / "lines"), "topic": "fault-lines", "batch.size": "10"}

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(ROWS)

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        return int(value)


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


@config
class ManyRowsConfig(RowsConfig):
    pass


class ManyRowsTask(RowsTask[ManyRowsConfig]):
    """All rows at once, in several batches: each row is wide."""

    def rows(self, offset: Mapping[str, Any] | None) -> Iterator[Any]:
        done = int((offset or {"done": 0})["done"])
        if done < ROWS:
            rows = [{"id": n, "name": "x" * 250_000} for n in range(done, ROWS)]
            yield Rows(rows, offset={"done": ROWS})


class ManyRows(SourceConnector[ManyRowsConfig]):
    config_class, task_class = ManyRowsConfig, ManyRowsTask


@pytest.mark.long
class TestRowsOfAGenerator(OnBothBrokers, SourceFaultSuite):
    connector_class = ManyRows

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        return {"topic": f"many{time.time_ns()}"}

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(ROWS)


@pytest.mark.long
class TestMariaDbChanges(ThroughForwarder, CapturedRows):
    connector_class = MariaDbSource

    @pytest.fixture
    def server_port(self, mariadb_server: MariaDbServer) -> int:
        return mariadb_server.port

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


@pytest.mark.long
class TestS3Source(OnS3, OnBothBrokers, SourceFaultSuite):
    connector_class = S3SourceConnector

    @pytest.fixture
    def bucket(self, s3_server: S3Server) -> Iterator[Bucket]:
        with bucket_on(s3_server) as made:
            for n in range(6):
                lines = [json.dumps({"id": n * 20 + line}) for line in range(20)]
                made.put(f"topics/objects/partition=0/objects+0+{n * 20:010d}.json", "\n".join(lines).encode() + b"\n")
            yield made

    @pytest.fixture
    def properties(self, bucket: Bucket, endpoint: str) -> Mapping[str, str]:
        given = {
            **bucket.access,
            "format.class": "JsonFormat",
            "s3.poll.interval.ms": "50",
            "record.batch.max.size": "10",
        }
        return given | {"store.url": endpoint}

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(120)


@pytest.mark.long
class TestHttpSink(ThroughForwarder, OnBothBrokers, SinkFaultSuite):
    connector_class = HttpSinkConnector

    @pytest.fixture
    def server_port(self) -> Iterator[int]:
        self.taken = taken = list[Any]()

        class Taker(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                taken.extend(row["id"] for row in (rows if isinstance(rows, list) else [rows]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()
        server.server_close()

    @pytest.fixture
    def properties(self, port: int) -> Mapping[str, str]:
        return {
            "http.api.url": f"http://127.0.0.1:{port}/rows",
            "request.body.format": "json",
            "batch.json.as.array": "true",
            "batch.max.size": "5",
            "retry.backoff.ms": "100",
            "max.retries": "50",
        }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return list(self.taken)
