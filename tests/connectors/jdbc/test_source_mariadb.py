"""The JDBC source on a real MariaDB, through its task."""

from __future__ import annotations

import datetime as dt
import itertools
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from connect.api import MAX_BATCH_BYTES, DataError, RetriableConnectError, Schema, SchemaType
from connectors.jdbc.source import JdbcSourceConnector
from tests.servers.mariadb import MariaDbServer
from tests.support.connect import FakeContext, drain, rows, source_task
from tidegate.kit.config import parse

pytestmark = pytest.mark.servers
_numbers = itertools.count()


class SourceDatabase:
    """A separate database on the shared server."""

    def __init__(self, server: MariaDbServer) -> None:
        self.server = server
        self.name = f"jdbc_{next(_numbers)}"
        self.connection = server.connect()
        self.execute(f"CREATE DATABASE {self.name}", f"USE {self.name}")

    def execute(self, *statements: str) -> Any:
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def properties(self, **more: str) -> dict[str, str]:
        properties = {
            "connection.url": f"jdbc:mysql://127.0.0.1:{self.server.port}/{self.name}",
            "connection.user": self.server.user,
            "mode": "incrementing",
            "topic.prefix": "my-",
            "poll.linger.ms": "1",
        }
        return properties | {key.replace("_", "."): value for key, value in more.items()}

    def task(self, context: FakeContext | None = None, **more: str) -> Any:
        return source_task(JdbcSourceConnector, self.properties(**more), context)


@pytest.fixture
def database(mariadb_server: MariaDbServer) -> Iterator[SourceDatabase]:
    made = SourceDatabase(mariadb_server)
    yield made
    made.execute(f"DROP DATABASE {made.name}")
    made.connection.close()


def test_incrementing_follows_new_rows_over_a_restart(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, word text)")
    database.execute("INSERT INTO t (word) VALUES ('a'), (NULL)")
    task = database.task(poll_interval_ms="1")
    batches = drain(task)
    assert rows(batches) == [{"id": 1, "word": "a"}, {"id": 2, "word": None}]
    assert dict(batches[0].source_partition or {}) == {"protocol": "1", "table": f"{database.name}.t"}
    assert batches[0].source_offset == {"incrementing": 2}
    task.stop()
    database.execute("INSERT INTO t (word) VALUES ('ä🎈')")
    again = database.task(task.context)
    assert rows(drain(again)) == [{"id": 3, "word": "ä🎈"}]
    again.stop()


_TYPES: dict[str, tuple[str, str, Schema, Any]] = {
    "id": ("bigint unsigned NOT NULL", "9223372036854775807", Schema(SchemaType.INT64), 2**63 - 1),
    "b1": ("boolean", "true", Schema(SchemaType.INT8), 1),
    "t1": ("tinyint", "-128", Schema(SchemaType.INT8), -128),
    "tu": ("tinyint unsigned", "255", Schema(SchemaType.INT16), 255),
    "su": ("smallint unsigned", "65535", Schema(SchemaType.INT32), 65535),
    "m": ("mediumint", "-8388608", Schema(SchemaType.INT32), -8388608),
    "iu": ("int unsigned", "4294967295", Schema(SchemaType.INT64), 4294967295),
    "f4": ("float", "16777217.1", Schema(SchemaType.FLOAT32), 16777218.0),
    "f8": ("double", "0.1", Schema(SchemaType.FLOAT64), 0.1),
    "n": ("decimal(30,4)", "-12345678901234567890123456.7891", Schema.decimal(4, 30), Decimal("-12345678901234567890123456.7891")),
    "nb": ("decimal(65,30)", "1.000000000000000000000000000001", Schema.decimal(30, 65), Decimal("1.000000000000000000000000000001")),
    "v": ("varchar(10)", "'%''\\\\'", Schema(SchemaType.STRING), "%'\\"),
    "tx": ("longtext", "repeat('x', 70000)", Schema(SchemaType.STRING), "x" * 70000),
    "by": ("varbinary(9)", "x'00ff'", Schema(SchemaType.BYTES), b"\x00\xff"),
    "bl": ("longblob", "x'fe'", Schema(SchemaType.BYTES), b"\xfe"),
    "bt": ("bit(9)", "b'100000001'", Schema(SchemaType.INT16), 257),
    "d": ("date", "'0044-03-15'", Schema.date(), dt.date(44, 3, 15)),
    "ti": ("time(6)", "'23:59:59.999999'", Schema.time(), dt.time(23, 59, 59, 999000)),
    "ts": ("datetime(6)", "'2024-01-02 03:04:05.678901'", Schema.timestamp(), dt.datetime(2024, 1, 2, 3, 4, 5, 678000, dt.UTC)),
    "tz": ("timestamp(3) NULL", "'2024-01-02 03:04:05.678'", Schema.timestamp(), dt.datetime(2024, 1, 2, 1, 4, 5, 678000, dt.UTC)),
    "y": ("year", "2024", Schema.date(), dt.date(2024, 1, 1)),
    "e": ("enum('a','b')", "'b'", Schema(SchemaType.STRING), "b"),
    "se": ("set('a','b')", "'a,b'", Schema(SchemaType.STRING), "a,b"),
    "j": ("json", """'{"a": 1}'""", Schema(SchemaType.STRING), '{"a": 1}'),
    "u": ("uuid", "'10349801-5e5b-4006-a542-fe9a9a6d0b24'", Schema(SchemaType.STRING), "10349801-5e5b-4006-a542-fe9a9a6d0b24"),
    "ip": ("inet6", "'::1'", Schema(SchemaType.STRING), "::1"),
}  # fmt: skip


@pytest.mark.parametrize("query", [False, True])
def test_every_type_has_its_schema_and_arrives_exactly(database: SourceDatabase, query: bool) -> None:
    database.execute(f"CREATE TABLE t ({', '.join(f'`{name}` {kind}' for name, (kind, *_) in _TYPES.items())})")
    database.execute("SET time_zone = '+02:00'", f"INSERT INTO t VALUES ({', '.join(v[1] for v in _TYPES.values())})")
    database.execute("INSERT INTO t (id) VALUES (2)")
    more = {"query": "SELECT * FROM t", "topic_prefix": "q"} if query else {}
    task = database.task(incrementing_column_name="id", **more)
    (batch,) = drain(task)
    task.stop()
    made = {field.name: field.schema for field in batch.value_schema.fields}
    assert made == {name: schema.as_optional(name != "id") for name, (_, _, schema, _) in _TYPES.items()}
    empty, full = batch.values.to_pylist()
    assert full == {name: value for name, (_, _, _, value) in _TYPES.items()}
    assert {name for name, value in empty.items() if value is not None} == {"id"}


@pytest.mark.parametrize("kind", ["datetime(6)", "timestamp(6)"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_timestamps_continue_to_the_microsecond(database: SourceDatabase, kind: str, zone: str) -> None:
    local = kind.startswith("datetime") and zone != "UTC"
    database.execute("SET time_zone = '+00:00'", f"CREATE TABLE t (name text, at {kind} NOT NULL)")
    database.execute("INSERT INTO t VALUES ('a', '2024-01-01 00:00:00.000001'), ('b', '2024-01-01 00:00:00.000002')")
    more = {"mode": "timestamp", "timestamp_column_name": "at", "db_timezone": zone, "batch_max_rows": "1"}
    task = database.task(**more)
    first, second = task.poll()
    task.stop()
    shift = 5 * 3_600_000 if local else 0
    assert first.source_offset == {"timestamp": 1704067200000 + shift, "timestamp_nanos": 1000}
    assert first.values.to_pylist()[0]["at"] == dt.datetime(2024, 1, 1, 5 if local else 0, tzinfo=dt.UTC)
    context = FakeContext()
    context.commit([first])
    again = database.task(context, **more)
    assert [row["name"] for row in rows(drain(again))] == ["b"]
    again.stop()


def test_a_query_is_read_in_the_order_of_its_positions(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, at datetime(3) NOT NULL, `a%b` int)")
    database.execute("INSERT INTO t SELECT seq, '2024-01-01' - INTERVAL seq SECOND, seq FROM seq_1_to_5000")
    more = {"mode": "timestamp+incrementing", "timestamp_column_name": "at", "incrementing_column_name": "id"}
    task = database.task(query="SELECT * FROM t AS x", topic_prefix="q", **more)
    assert [row["a%b"] for row in rows(drain(task))] == list(range(5000, 0, -1))
    task.stop()


@pytest.mark.proof
def test_wide_values_are_bounded_in_bytes_and_longer_than_a_packet(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, body longblob)")
    database.execute("INSERT INTO t SELECT seq, repeat(char(seq), 1000000) FROM seq_1_to_20")
    database.execute("INSERT INTO t VALUES (21, repeat('z', 17000000))", "INSERT INTO t VALUES (22, repeat('y', 300))")
    task = database.task(incrementing_column_name="id")
    batches = drain(task)
    task.stop()
    result = rows(batches)
    assert [row["id"] for row in result] == list(range(1, 23))
    assert all(row["body"] == bytes([row["id"]]) * 1_000_000 for row in result[:20])
    assert result[20]["body"] == b"z" * 17_000_000 and result[21]["body"] == b"y" * 300
    assert all(batch.values.nbytes <= MAX_BATCH_BYTES or len(batch) == 1 for batch in batches)


def test_a_zero_date_is_refused_by_name_or_read_as_null(database: SourceDatabase) -> None:
    database.execute(
        "SET sql_mode = ''", "CREATE TABLE t (id int PRIMARY KEY, d date)", "INSERT INTO t VALUES (1, '0000-00-00')"
    )
    task = database.task(incrementing_column_name="id")
    with pytest.raises(DataError, match="column 'd' holds the date 0000-00-00.*zeroDateTimeBehavior=CONVERT_TO_NULL"):
        task.poll()
    task.stop()
    url = database.properties()["connection.url"] + "?zeroDateTimeBehavior=convertToNull"
    task = database.task(incrementing_column_name="id", connection_url=url)
    assert rows(drain(task)) == [{"id": 1, "d": None}]
    task.stop()


@pytest.mark.proof
def test_several_tables_share_one_connection(database: SourceDatabase) -> None:
    for name in ("a", "b"):
        database.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, body varchar(1000))")
        database.execute(f"INSERT INTO {name} SELECT seq, repeat('x', 1000) FROM seq_1_to_9000")
    task = database.task(incrementing_column_name="id")
    batches = drain(task)
    task.stop()
    for name in ("a", "b"):
        ids = [row["id"] for batch in batches if batch.topic == f"my-{name}" for row in batch.values.to_pylist()]
        assert ids == list(range(1, 9001))


@pytest.mark.proof
def test_a_lost_connection_is_retried_from_where_it_was(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, body varchar(2000))")
    database.execute("INSERT INTO t SELECT seq, repeat('x', 2000) FROM seq_1_to_30000")
    task = database.task(incrementing_column_name="id", connection_attempts="1")
    seen = task.poll()
    running = "SELECT id FROM information_schema.processlist WHERE info LIKE '%tidegate_incrementing%' AND id <> connection_id()"
    for (number,) in database.execute(running):
        database.execute(f"KILL {number}")
    with pytest.raises(RetriableConnectError):
        while polled := task.poll():
            seen += polled
    seen += drain(task)
    task.stop()
    assert [row["id"] for row in rows(seen)] == list(range(1, 30001))


def test_a_running_statement_is_cut_off_when_the_task_is_to_stop(database: SourceDatabase) -> None:
    task = database.task(query="SELECT sleep(600) AS slept", mode="bulk", topic_prefix="q")
    polled: list[object] = []
    polling = threading.Thread(target=lambda: polled.append(task.poll()))
    polling.start()
    running = "SELECT 1 FROM information_schema.processlist WHERE state = 'User sleep' AND info LIKE '%sleep(600)%' AND id <> connection_id()"
    while not database.execute(running):
        pass
    task.context.stopping.set()
    polling.join(60)
    assert polled == [[]]
    task.stop()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"connection_url": "jdbc:mysql://127.0.0.1:1/x"}, "is the server running there"),
        ({"connection_user": "nobody", "connection_password": "s3cret"}, "check connection.user and connection.password"),
        ({"connection_url": "jdbc:mysql://127.0.0.1:{port}/nowhere"}, "Unknown database 'nowhere'; check the name at the end of connection.url"),
        ({"table_whitelist": "missing"}, "table.whitelist names 'missing', but there is no such table"),
        ({"incrementing_column_name": "nr"}, "has no column 'nr'; it has: id"),
    ],
)  # fmt: skip
def test_check_says_what_to_do(database: SourceDatabase, change: dict[str, str], message: str) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    config = database.properties(incrementing_column_name="id") | {
        key.replace("_", "."): value.replace("{port}", str(database.server.port)) for key, value in change.items()
    }
    (problem,) = JdbcSourceConnector.check(parse(JdbcSourceConnector.config_class, config))
    assert message in problem.message
    assert "s3cret" not in problem.message


def test_a_table_that_may_not_be_read_says_what_right_is_missing(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    database.execute("CREATE USER poor@'127.0.0.1'", f"GRANT INSERT ON {database.name}.t TO poor@'127.0.0.1'")
    config = database.properties(incrementing_column_name="id", connection_user="poor")
    try:
        (problem,) = JdbcSourceConnector.check(parse(JdbcSourceConnector.config_class, config))
    finally:
        database.execute("DROP USER poor@'127.0.0.1'")
    assert "command denied to user 'poor'" in problem.message and "GRANT SELECT ON" in problem.message
