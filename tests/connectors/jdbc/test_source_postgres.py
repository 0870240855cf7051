"""The JDBC source on a real PostgreSQL, through its task."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from connect.api import ConnectError, DataError, RetriableConnectError, Schema, SchemaType
from connectors.jdbc import reader
from connectors.jdbc.config import JdbcSourceConfig
from connectors.jdbc.source import JdbcSourceConnector
from connectors.sql.dialects.postgres import PostgresDialect
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until
from tests.support.connect import FakeContext, drain, rows, source_task
from tidegate.kit.config import parse, validate

pytestmark = pytest.mark.servers
_numbers = itertools.count()


class SourceDatabase:
    """A separate schema on the shared server."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.schema = f"jdbc_{next(_numbers)}"
        self.connection = server.connect()
        self.execute(f"CREATE SCHEMA {self.schema}; SET search_path TO {self.schema}")

    def execute(self, statement: str) -> Any:
        return self.connection.execute(statement)  # type: ignore[arg-type]

    def properties(self, **more: str) -> dict[str, str]:
        properties = {
            "connection.url": self.server.jdbc_url,
            "schema.pattern": self.schema,
            "mode": "incrementing",
            "topic.prefix": "pg-",
            "poll.linger.ms": "1",
        }
        return properties | {key.replace("_", "."): value for key, value in more.items()}

    def task(self, context: FakeContext | None = None, **more: str) -> Any:
        return source_task(JdbcSourceConnector, self.properties(**more), context)


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[SourceDatabase]:
    made = SourceDatabase(postgres_server)
    yield made
    made.execute(f"DROP SCHEMA {made.schema} CASCADE")
    made.connection.close()


def test_incrementing_follows_new_rows_over_a_restart(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id serial PRIMARY KEY, word text); INSERT INTO t (word) VALUES ('a'), ('b')")
    task = database.task(poll_interval_ms="1")
    batches = drain(task)
    assert rows(batches) == [{"id": 1, "word": "a"}, {"id": 2, "word": "b"}]
    assert dict(batches[0].source_partition or {}) == {"protocol": "1", "table": f"tidegate.{database.schema}.t"}
    assert batches[0].source_offset == {"incrementing": 2}
    task.stop()
    database.execute("INSERT INTO t (word) VALUES ('c')")
    again = database.task(task.context)
    assert rows(drain(again)) == [{"id": 3, "word": "c"}]
    again.stop()


def test_every_type_has_its_schema_and_arrives_exactly(database: SourceDatabase) -> None:
    database.execute("CREATE TYPE mood AS ENUM ('fine', 'bad'); CREATE DOMAIN positive AS int CHECK (value > 0)")
    database.execute(
        "CREATE TABLE t (id int8 NOT NULL, i2 int2, i4 int4, f4 real, f8 float8, n numeric(30,4), nn numeric, b bool, "
        "v varchar(10), c char(3), by bytea, d date, ti time, ts timestamp, tz timestamptz, u uuid, j jsonb, x xml, "
        "m mood, p positive, mo money, o oid, ai int[], at text[], iv interval, ip inet, tt timetz, au uuid[], aj jsonb[], "
        "am mood[], an numeric(6,2)[], af float8[], ab bytea[], ad date[], ati time[], ats timestamp[], atz timestamptz[])"
    )
    database.execute(
        "INSERT INTO t VALUES (1, 2, 3, 1.5, 2.5, 12345678901234567890123456.7891, -0.000000000000000001, true, 'v', 'c', "
        "'\\x00ff', '0044-03-15', '23:59:59.999999', '2024-01-02 03:04:05.678901', '2024-01-02 03:04:05.678901+02', "
        "'10349801-5e5b-4006-a542-fe9a9a6d0b24', '{\"a\": 1}', '<a/>', 'fine', 7, 12.5, 4000000000, '{1,null}', '{x}', "
        "'1 day', '127.0.0.1', '01:00+02', '{10349801-5e5b-4006-a542-fe9a9a6d0b24,null}', ARRAY['{\"a\": 1}', NULL]::jsonb[], "
        "'{fine,null}', '{1.25,null}', '{1.5,null}', ARRAY['\\x00ff'::bytea, NULL], '{2024-02-29,null}', '{23:59:59.999,null}', "
        "'{2024-01-02 03:04:05.678901,null}', '{2024-01-02 03:04:05.678901+02,null}')"
    )
    database.execute("INSERT INTO t (id) VALUES (2)")
    task = database.task(incrementing_column_name="id")
    (batch,) = drain(task)
    task.stop()
    expected = {
        "id": (Schema(SchemaType.INT64), 1),
        "i2": (Schema(SchemaType.INT16), 2),
        "i4": (Schema(SchemaType.INT32), 3),
        "f4": (Schema(SchemaType.FLOAT32), 1.5),
        "f8": (Schema(SchemaType.FLOAT64), 2.5),
        "n": (Schema.decimal(4, 30), Decimal("12345678901234567890123456.7891")),
        "nn": (Schema.decimal(18), Decimal("-0.000000000000000001")),
        "b": (Schema(SchemaType.BOOLEAN), True),
        "v": (Schema(SchemaType.STRING), "v"),
        "c": (Schema(SchemaType.STRING), "c  "),
        "by": (Schema(SchemaType.BYTES), b"\x00\xff"),
        "d": (Schema.date(), dt.date(44, 3, 15)),
        "ti": (Schema.time(), dt.time(23, 59, 59, 999000)),
        "ts": (Schema.timestamp(), dt.datetime(2024, 1, 2, 3, 4, 5, 678000, dt.UTC)),
        "tz": (Schema.timestamp(), dt.datetime(2024, 1, 2, 1, 4, 5, 678000, dt.UTC)),
        "u": (Schema(SchemaType.STRING), "10349801-5e5b-4006-a542-fe9a9a6d0b24"),
        "j": (Schema(SchemaType.STRING), '{"a": 1}'),
        "x": (Schema(SchemaType.STRING), "<a/>"),
        "m": (Schema(SchemaType.STRING), "fine"),
        "p": (Schema(SchemaType.INT32), 7),
        "mo": (Schema(SchemaType.FLOAT64), 12.5),
        "o": (Schema(SchemaType.INT64), 4000000000),
        "ai": (Schema.array(Schema(SchemaType.INT32, optional=True)), [1, None]),
        "at": (Schema.array(Schema(SchemaType.STRING, optional=True)), ["x"]),
        "au": (Schema.array(Schema(SchemaType.STRING, optional=True)), ["10349801-5e5b-4006-a542-fe9a9a6d0b24", None]),
        "aj": (Schema.array(Schema(SchemaType.STRING, optional=True)), ['{"a": 1}', None]),
        "am": (Schema.array(Schema(SchemaType.STRING, optional=True)), ["fine", None]),
        "an": (Schema.array(Schema.decimal(2, 6).as_optional()), [Decimal("1.25"), None]),
        "af": (Schema.array(Schema(SchemaType.FLOAT64, optional=True)), [1.5, None]),
        "ab": (Schema.array(Schema(SchemaType.BYTES, optional=True)), [b"\x00\xff", None]),
        "ad": (Schema.array(Schema.date(optional=True)), [dt.date(2024, 2, 29), None]),
        "ati": (Schema.array(Schema.time(optional=True)), [dt.time(23, 59, 59, 999000), None]),
        "ats": (
            Schema.array(Schema.timestamp(optional=True)),
            [dt.datetime(2024, 1, 2, 3, 4, 5, 678000, dt.UTC), None],
        ),
        "atz": (
            Schema.array(Schema.timestamp(optional=True)),
            [dt.datetime(2024, 1, 2, 1, 4, 5, 678000, dt.UTC), None],
        ),
    }
    made = {field.name: field.schema for field in batch.value_schema.fields}
    assert made == {name: schema.as_optional(name != "id") for name, (schema, _) in expected.items()}
    full, empty = batch.values.to_pylist()
    assert full == {name: value for name, (_, value) in expected.items()}
    assert {name for name, value in empty.items() if value is not None} == {"id"}


@pytest.mark.parametrize("value", ["'NaN'", "1e25"])
def test_a_number_that_no_decimal_holds_is_refused_by_name(database: SourceDatabase, value: str) -> None:
    database.execute(f"CREATE TABLE t (id serial, amount numeric); INSERT INTO t (amount) VALUES ({value})")
    task = database.task()
    with pytest.raises(DataError, match="t: column 'amount' holds a value that does not fit its type, Decimal"):
        task.poll()
    task.stop()


@pytest.mark.parametrize(
    "mapping, whole, fraction",
    [
        ("none", Schema.decimal(0, 9), Schema.decimal(2, 9)),
        ("precision_only", Schema(SchemaType.INT32), Schema.decimal(2, 9)),
        ("best_fit", Schema(SchemaType.INT32), Schema(SchemaType.FLOAT64)),
    ],
)
def test_numeric_mapping(database: SourceDatabase, mapping: str, whole: Schema, fraction: Schema) -> None:
    database.execute("CREATE TABLE t (w numeric(9), f numeric(9,2)); INSERT INTO t VALUES (12, 1.25)")
    task = database.task(mode="bulk", numeric_mapping=mapping)
    (batch,) = task.poll()
    task.stop()
    assert [field.schema for field in batch.value_schema.fields] == [whole.as_optional(), fraction.as_optional()]
    assert [float(value) for value in batch.values.to_pylist()[0].values()] == [12.0, 1.25]


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_timestamps_continue_to_the_microsecond(database: SourceDatabase, kind: str, zone: str) -> None:
    database.execute(f"SET timezone TO '{zone}'; CREATE TABLE t (name text, at {kind} NOT NULL)")
    database.execute("INSERT INTO t VALUES ('a', '2024-01-01 00:00:00.000001'), ('b', '2024-01-01 00:00:00.000002')")
    more = {"mode": "timestamp", "timestamp_column_name": "at", "db_timezone": zone, "batch_max_rows": "1"}
    task = database.task(**more)
    first, second = task.poll()
    task.stop()
    shift = 0 if zone == "UTC" else 5 * 3_600_000
    assert first.source_offset == {"timestamp": 1704067200000 + shift, "timestamp_nanos": 1000}
    assert first.values.to_pylist()[0]["at"] == dt.datetime(2024, 1, 1, 5 if shift else 0, tzinfo=dt.UTC)
    context = FakeContext()
    context.commit([first])
    again = database.task(context, **more)
    assert [row["name"] for row in rows(drain(again))] == ["b"]
    again.stop()


def test_timestamp_and_incrementing_with_the_first_that_is_not_null(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, made timestamptz NOT NULL, changed timestamptz)")
    database.execute("INSERT INTO t SELECT i, '2024-01-01', NULL FROM generate_series(1, 5) i")
    more = {"mode": "timestamp+incrementing", "timestamp_column_name": "changed,made", "incrementing_column_name": "id"}
    task = database.task(**more, batch_max_rows="3")
    context = FakeContext()
    context.commit(task.poll()[:1])
    task.stop()
    database.execute("UPDATE t SET changed = '2024-02-01' WHERE id = 2")
    again = database.task(context, **more)
    assert [row["id"] for row in rows(drain(again))] == [4, 5, 2]
    again.stop()


def test_a_query_keeps_types_and_what_must_not_be_null(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY, price numeric(8,2) NOT NULL, note varchar(9))")
    database.execute("INSERT INTO a VALUES (1, 2.50, 'x'), (2, 3.75, NULL)")
    query = f"SELECT a.id, a.price, a.note, a.price * 2 AS twice, now()::date AS today FROM {database.schema}.a AS a;"
    task = database.task(query=query, incrementing_column_name="a.id", topic_prefix="q")
    (batch,) = drain(task)
    task.stop()
    kinds = {field.name: field.schema for field in batch.value_schema.fields}
    assert kinds == {
        "id": Schema(SchemaType.INT32),
        "price": Schema.decimal(2, 8),
        "note": Schema(SchemaType.STRING, optional=True),
        "twice": Schema.decimal(18, optional=True),
        "today": Schema.date(optional=True),
    }
    assert [row["twice"] for row in batch.values.to_pylist()] == [Decimal(5), Decimal("7.5")]


def test_names_that_need_quotes_are_quoted(database: SourceDatabase) -> None:
    database.execute(
        'CREATE TABLE "Select ""x""" ("the id" serial, "A" int NOT NULL); INSERT INTO "Select ""x""" ("A") VALUES (1)'
    )
    task = database.task(topic_prefix="p")
    assert rows(drain(task)) == [{"the id": 1, "A": 1}]
    task.stop()


def test_views_are_read_when_asked_for(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id int); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT id + 1 AS n FROM t")
    task = database.task(mode="bulk", table_types="VIEW")
    assert [(batch.topic, batch.values.to_pylist()) for batch in drain(task)] == [("pg-v", [{"n": 2}])]
    task.stop()


def test_tables_of_one_name_are_refused_until_one_is_named_in_full(database: SourceDatabase) -> None:
    other = f"{database.schema}_b"
    database.execute(f"CREATE TABLE t (id serial); CREATE SCHEMA {other}; CREATE TABLE {other}.t (id serial)")
    try:
        with pytest.raises(ConnectError, match=r"would both go to topic 'pg-t': name one of them in full"):
            database.task(schema_pattern=f"{database.schema}%")
        database.task(schema_pattern=f"{database.schema}%", table_whitelist=f"{other}.t").stop()
    finally:
        database.execute(f"DROP SCHEMA {other} CASCADE")


def test_a_lost_connection_is_retried_from_where_it_was(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id serial, body text)")
    database.execute("INSERT INTO t (body) SELECT repeat('x', 1000) FROM generate_series(1, 30000)")
    task = database.task(batch_max_rows="5000", connection_attempts="1")
    seen = task.poll()
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY%' AND pid <> pg_backend_pid()"
    )
    with pytest.raises(RetriableConnectError):
        while polled := task.poll():
            seen += polled
    seen += drain(task)
    task.stop()
    assert [row["id"] for row in rows(seen)] == list(range(1, 30001))


def test_a_server_that_closed_all_connections_is_connected_to_again(database: SourceDatabase) -> None:
    database.execute("CREATE TABLE t (id serial); INSERT INTO t DEFAULT VALUES")
    task = database.task(poll_interval_ms="1")
    assert len(rows(drain(task))) == 1
    database.execute("INSERT INTO t DEFAULT VALUES")
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'tidegate'"
    )
    with pytest.raises(RetriableConnectError):
        task.poll()
    assert rows(drain(task)) == [{"id": 2}]
    task.stop()


def test_a_running_statement_is_cut_off_when_the_task_is_to_stop(database: SourceDatabase) -> None:
    import threading

    task = database.task(query="SELECT pg_sleep(600)::text AS slept", mode="bulk", topic_prefix="q")
    polled: list[object] = []
    polling = threading.Thread(target=lambda: polled.append(task.poll()))
    polling.start()
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(600)::text%slept%' AND pid <> pg_backend_pid()"
    while database.execute(running).fetchone()[0] == 0:
        pass
    task.context.stopping.set()
    polling.join(60)
    assert polled == [[]]
    task.stop()


def test_rows_that_are_being_read_ahead_are_given_up_by_stop(database: SourceDatabase) -> None:
    # The driver delivers a row of this size once the two behind it are there.
    wide = "repeat('x', 8000000) AS wide, CASE WHEN n > 3 THEN pg_sleep(600)::text END AS slept"
    task = database.task(query=f"SELECT n, {wide} FROM generate_series(1, 5) AS n", mode="bulk", topic_prefix="q")
    assert [len(batch) for batch in task.poll()] == [1]
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE 'COPY%AS slept%'"
    while database.execute(sleeping).fetchone()[0] == 0:
        pass
    task.stop()
    while database.execute(sleeping).fetchone()[0]:
        pass


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"connection_url": "jdbc:postgresql://127.0.0.1:1/x"},
            "127.0.0.1:1/x: Connection refused; is the server running there? Check host and port in connection.url",
        ),
        ({"connection_user": "nobody-here"}, ': role "nobody-here" does not exist; check connection.user'),
    ],
)
def test_check_says_why_it_cannot_connect(database: SourceDatabase, change: dict[str, str], message: str) -> None:
    config = parse(JdbcSourceConnector.config_class, database.properties(**change) | {"connection.password": "s3cret"})
    (problem,) = JdbcSourceConnector.check(config)
    assert problem.key == "connection.url"
    assert problem.message.startswith("cannot connect to ") and problem.message.endswith(message)
    assert "s3cret" not in problem.message


def test_check_continues_a_query_as_the_mode_does(database: SourceDatabase) -> None:
    inner = "SELECT n FROM generate_series(1, 3) AS n WHERE n > 1"
    for query, wrong in ((inner, ["query"]), (f"SELECT * FROM ({inner}) AS t", [])):
        more = {"query": query, "mode": "incrementing", "incrementing_column_name": "n", "topic_prefix": "q"}
        config = parse(JdbcSourceConnector.config_class, database.properties(**more))
        assert [problem.key for problem in JdbcSourceConnector.check(config)] == wrong


def test_check_passes_where_all_is_right(database: SourceDatabase) -> None:
    assert list(JdbcSourceConnector.check(parse(JdbcSourceConnector.config_class, database.properties()))) == []


@pytest.mark.parametrize(("delay_s", "seen"), [(0, [[2], []]), (60, [[], [1, 2]])])
def test_a_delay_waits_for_transactions_that_commit_late(
    database: SourceDatabase, monkeypatch: pytest.MonkeyPatch, delay_s: int, seen: list[list[int]]
) -> None:
    """Row 1 is written before row 2 and committed after it was read: without a delay it is missed."""

    def clock(time: str) -> None:
        monkeypatch.setattr(
            PostgresDialect, "now", f"SELECT (extract(epoch FROM timestamptz '2024-05-05 {time}+00') * 1000000)::bigint"
        )

    database.execute("CREATE TABLE t (id int PRIMARY KEY, made timestamptz NOT NULL)")
    more = {"mode": "timestamp", "timestamp_column_name": "made", "poll_interval_ms": "1"}
    task = database.task(timestamp_delay_interval_ms=str(delay_s * 1000), **more)
    with database.server.connect() as late:
        with late.transaction():
            late.execute(f"INSERT INTO {database.schema}.t VALUES (1, '2024-05-05 12:00:30+00')")
            database.execute("INSERT INTO t VALUES (2, '2024-05-05 12:00:40+00')")
            clock("12:01:00")
            ids = [[row["id"] for row in rows(drain(task))]]
        clock("12:02:00")
        ids.append([row["id"] for row in rows(drain(task))])
    task.stop()
    assert ids == seen


@pytest.mark.parametrize(
    ("columns", "mode"),
    [
        ({}, "bulk"),
        ({"timestamp.column.name": "at"}, "timestamp"),
        ({"incrementing.column.name": "id"}, "incrementing"),
        ({"timestamp.column.name": "at", "incrementing.column.name": "id"}, "timestamp+incrementing"),
    ],
)
def test_the_columns_say_the_mode_with_the_keys_of_confluent_cloud(columns: dict[str, str], mode: str) -> None:
    cloud = {
        "connection.host": "h",
        "connection.user": "u",
        "connection.password": "p",
        "db.name": "d",
        "topic.prefix": "t",
    }
    assert parse(JdbcSourceConfig, cloud | columns).effective_mode == mode
    judged = validate(JdbcSourceConfig, {"connection.url": "jdbc:sqlite:x", "topic.prefix": "t", **columns})
    assert [each.key.name for each in judged if each.errors] == ["mode"]


@pytest.mark.parametrize("mode", ["incrementing", "bulk"])
def test_columns_may_come_and_go_while_it_runs(database: SourceDatabase, mode: str) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, word text, spare int); INSERT INTO t VALUES (1, 'a', 1)")
    task = database.task(mode=mode, incrementing_column_name="id", poll_interval_ms="10")
    seen = {tuple(row) for row in rows(drain(task))}
    for statement, value in (
        ("ALTER TABLE t DROP COLUMN spare", "(2, 'b')"),
        ("ALTER TABLE t ADD COLUMN more int", "(3, 'c', 3)"),
        ("ALTER TABLE t ALTER COLUMN word TYPE varchar(9)", "(4, 'd', 4)"),
    ):
        database.execute(f"{statement}; INSERT INTO t VALUES {value}")
        found: list[Any] = []
        wait_until(lambda found=found: bool(found.extend(rows(task.poll())) or found), statement)  # type: ignore[misc]
        seen |= {tuple(row) for row in found}
    task.stop()
    assert {("id", "word", "spare"), ("id", "word"), ("id", "word", "more")} <= seen


def test_a_column_that_goes_between_description_and_reading_is_no_failure(
    database: SourceDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, word text, spare int); INSERT INTO t VALUES (1, 'a', 1)")
    described = reader.plan

    def plan_and_drop(*arguments: Any) -> Any:
        made = described(*arguments)
        database.execute("ALTER TABLE t DROP COLUMN IF EXISTS spare")
        return made

    monkeypatch.setattr(reader, "plan", plan_and_drop)
    task = database.task(incrementing_column_name="id")
    with pytest.raises(RetriableConnectError, match="was altered just now.*spare"):
        task.poll()
    assert [tuple(row.values()) for row in rows(drain(task))] == [(1, "a")]
    task.stop()
