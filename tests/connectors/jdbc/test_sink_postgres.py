"""The JDBC sink with PostgreSQL's own types, and when the server goes away."""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect.api import Record, Schema, SchemaType
from connectors.jdbc.sink import JdbcSinkConnector, _connected
from connectors.jdbc.sink_offsets import StoredOffsets
from connectors.jdbc.writers.writer import Conflict
from tests.connectors.jdbc.sink_databases import PLACE, PostgresDatabase, batch, put, row
from tests.servers.postgres import PostgresServer
from tidegate.kit.config import parse

pytestmark = pytest.mark.servers
TEXT = Schema(SchemaType.STRING, optional=True)
MOMENT = dt.datetime(2024, 7, 1, 12, 0, 0, 123000, tzinfo=dt.UTC)


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[PostgresDatabase]:
    made = PostgresDatabase(postgres_server)
    yield made
    made.close()


@pytest.mark.parametrize("mode", ["insert", "upsert", "update"])
def test_values_reach_columns_of_any_type(database: PostgresDatabase, mode: str) -> None:
    database.run("CREATE TYPE mood AS ENUM ('fine', 'bad')")
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, j json, jb jsonb, u uuid, m mood, tz timestamptz, ts timestamp, v varchar(20), "
        "n numeric(30,4), big numeric, x xml, ip inet, ai int[], at text[], al bigint[], f8 float8, i8 bigint, b bytea, ti time)"
    )
    if mode == "update":
        database.run("INSERT INTO t (id) VALUES (1)")
    number = uuid.UUID(int=7)
    schema = Schema.struct(
        {
            "id": Schema(SchemaType.INT32),
            **dict.fromkeys(("j", "jb", "u", "m", "v", "x", "ip"), TEXT),
            "tz": Schema.timestamp(),
            "ts": Schema.timestamp(),
            "n": Schema.decimal(4),
            "big": Schema.decimal(10, 50),
            "ai": Schema.array(Schema(SchemaType.INT32, optional=True)),
            "at": Schema.array(TEXT),
            "al": Schema.array(Schema(SchemaType.INT16)),
            "f8": Schema(SchemaType.FLOAT32),
            "i8": Schema(SchemaType.INT8),
            "b": Schema(SchemaType.BYTES),
            "ti": Schema.time(),
        }
    )
    value = {
        "id": 1,
        "j": '{"a":1}',
        "jb": '{"b": [1, null]}',
        "u": str(number),
        "m": "bad",
        "v": "é",
        "x": "<a/>",
        "ip": "10.0.0.1",
        "tz": MOMENT,
        "ts": MOMENT,
        "n": Decimal("12345678901234567890123456.7891"),
        "big": Decimal("1234567890123456789012345678901234567890.0000000001"),
        "ai": [1, None, 3],
        "at": ["a", None],
        "al": [1, 2],
        "f8": 1.5,
        "i8": -7,
        "b": b"\0\xff",
        "ti": dt.time(23, 59, 59, 999000),
    }
    properties = {"insert.mode": mode, "pk.mode": "record_value", "pk.fields": "id", "db.timezone": "Europe/Berlin"}
    with database.bench(properties=properties).sink(PLACE) as running:
        put(running, [batch(0, [Record("t", value, schema)])])
        assert running.context.errant == []
    row = dict(zip(schema.field_names, database.ask(f"SELECT {', '.join(schema.field_names)} FROM t")[0], strict=True))
    expected = value | {
        "j": {"a": 1},
        "jb": {"b": [1, None]},
        "u": number,
        "ts": dt.datetime(2024, 7, 1, 14, 0, 0, 123000),
    }
    assert {name: str(v) if name == "ip" else v for name, v in row.items()} == expected


def test_a_text_that_is_no_json_is_the_rows_fault(database: PostgresDatabase) -> None:
    database.run("CREATE TABLE t (id int8, j jsonb)")
    schema = Schema.struct({"id": Schema(SchemaType.INT64), "j": TEXT})
    records = [Record("t", {"id": n, "j": "{" if n == 3 else "{}"}, schema) for n in range(8)]
    with database.bench().sink(PLACE) as running:
        put(running, [batch(0, records)])
        assert [record.value["id"] for record, _ in running.context.errant] == [3]
        assert "invalid input syntax for type json" in str(running.context.errant[0][1])
    assert len(database.ask("SELECT * FROM t")) == 7


def test_a_connection_that_the_server_ends_is_made_again(database: PostgresDatabase) -> None:
    bench = database.bench(properties={"auto.create": "true", "tidegate.offsets.table": "offsets"})
    with bench.sink(PLACE) as running:
        put(running, [batch(0, [row(1)])])
        ended = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ 'COMMIT' AND pid <> pg_backend_pid()"
        )
        database.run(ended)
        put(running, [batch(1, [row(2)])])
    assert database.ask("SELECT id FROM t ORDER BY 1") == [(1,), (2,)]
    assert database.ask("SELECT next_offset FROM offsets") == [(2,)]


@pytest.mark.parametrize(("options", "idle"), [("", "10"), ("-ctcp_keepalives_idle=77", "77")])
def test_the_server_looks_whether_a_sink_is_there_as_the_url_says_or_soon(
    postgres_server: PostgresServer, options: str, idle: str
) -> None:
    url = postgres_server.jdbc_url + (f"&options={options}" if options else "")
    properties = {"topics": "t", "connection.url": url}
    with contextlib.closing(_connected(parse(JdbcSinkConnector.config_class, properties))) as writer:
        assert writer.ask("SELECT current_setting('tcp_keepalives_idle')") == [(idle,)]
        assert writer.ask("SELECT current_setting('tcp_user_timeout')") == [("30000",)]


def test_tasks_that_start_together_make_the_table_of_their_offsets_together(database: PostgresDatabase) -> None:
    """PostgreSQL refuses ``CREATE TABLE IF NOT EXISTS`` in two ways where another one ends while it runs."""
    tasks, config = 6, parse(JdbcSinkConnector.config_class, database.properties())
    writers = [_connected(config) for _ in range(tasks)]
    together = threading.Barrier(tasks)

    def prepare(number: int, table: str) -> None:
        together.wait(30)
        with contextlib.suppress(Conflict):  # which the sink retries
            StoredOffsets(table, "c").prepare(writers[number])

    with ThreadPoolExecutor(tasks) as threads:
        for n in range(40):
            list(threads.map(prepare, range(tasks), [f"offsets_{n}"] * tasks))
    for writer in writers:
        writer.close()


def test_names_without_quotes_are_the_servers(database: PostgresDatabase) -> None:
    database.run("CREATE TABLE t (ID int8, Name text, HAPPENED timestamp)")
    schema = Schema.struct({"Id": Schema(SchemaType.INT64), "NAME": TEXT})
    with database.bench(quote_sql_identifiers="NEVER", table_name_format="T").sink(PLACE) as running:
        put(running, [batch(0, [Record("t", {"Id": 1, "NAME": "x"}, schema)])])
    assert database.ask("SELECT id, name FROM t") == [(1, "x")]


def test_a_wrong_password_and_a_missing_database_are_told_before(database: PostgresDatabase) -> None:
    wrong = database.properties() | {"connection.url": database.url.replace("/tidegate?", "/nowhere?")}
    (problem,) = JdbcSinkConnector.check(parse(JdbcSinkConnector.config_class, wrong))
    assert 'database "nowhere" does not exist' in problem.message
    right = parse(JdbcSinkConnector.config_class, database.properties(auto_create="true"))
    assert list(JdbcSinkConnector.check(right)) == []


_FIELDS: dict[str, tuple[Schema, Any]] = {
    "i8": (Schema(SchemaType.INT8, optional=True), st.integers(-128, 127)),
    "i16": (Schema(SchemaType.INT16, optional=True), st.integers(-(2**15), 2**15 - 1)),
    "i32": (Schema(SchemaType.INT32, optional=True), st.integers(-(2**31), 2**31 - 1)),
    "i64": (Schema(SchemaType.INT64, optional=True), st.integers(-(2**63), 2**63 - 1)),
    "f32": (Schema(SchemaType.FLOAT32, optional=True), st.floats(allow_nan=False, width=32)),
    "f64": (Schema(SchemaType.FLOAT64, optional=True), st.floats(allow_nan=False)),
    "b": (Schema(SchemaType.BOOLEAN, optional=True), st.booleans()),
    "s": (TEXT, st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
    "by": (Schema(SchemaType.BYTES, optional=True), st.binary()),
    "dec": (Schema.decimal(5, optional=True), st.decimals(-(10**30), 10**30, places=5)),
    "da": (Schema.date(optional=True), st.dates()),
    "ti": (
        Schema.time(optional=True),
        st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000, fold=0)),
    ),
    "ts": (Schema.timestamp(optional=True), st.integers(-62_135_596_800_000, 253_402_300_799_999)),
    "ai": (
        Schema.array(Schema(SchemaType.INT32, optional=True), optional=True),
        st.lists(st.none() | st.integers(0, 9)),
    ),
}
_EPOCH = dt.datetime(1970, 1, 1)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in _FIELDS.items()}), max_size=20)
)
def test_every_type_comes_back_as_it_was_written(database: PostgresDatabase, rows: list[dict[str, Any]]) -> None:
    database.run("DROP TABLE IF EXISTS t")
    schema = Schema.struct({"id": Schema(SchemaType.INT32), **{name: schema for name, (schema, _) in _FIELDS.items()}})
    moments = [None if r["ts"] is None else _EPOCH + dt.timedelta(milliseconds=r["ts"]) for r in rows]
    written = [
        r | {"id": n, "ts": None if moment is None else moment.replace(tzinfo=dt.UTC)}
        for n, (r, moment) in enumerate(zip(rows, moments, strict=True))
    ]
    if not written:
        return
    mode = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id", "auto.create": "true"}
    with database.bench(properties=mode).sink(PLACE) as running:
        put(running, [batch(0, [Record("t", each, schema) for each in written])])
        assert running.context.errant == []
    result = database.ask(f"SELECT {', '.join(_FIELDS)} FROM t ORDER BY id".replace("f32", "f32::float8"))
    assert result == [
        tuple((r | {"ts": moment})[name] for name in _FIELDS) for r, moment in zip(rows, moments, strict=True)
    ]
