"""Rows of every type pass from a table through a topic into another table of the same definition unchanged."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import ConverterContext, Origin, RecordBatch
from connect.converters.json import JsonConfig, JsonConverter
from connectors.jdbc.source import JdbcSourceConnector
from tests.connectors.jdbc.sink_databases import (
    PLACE,
    DuckDbDatabase,
    MariaDbDatabase,
    PostgresDatabase,
    SinkDatabase,
    SqliteDatabase,
    put,
)
from tests.proofs import effort
from tests.support.connect import source_task
from tidegate.kit.config import parse

pytestmark = pytest.mark.proof
Types = dict[str, tuple[str, st.SearchStrategy[Any]]]
"""For each column: its SQL type, and values in the form of the database's own client."""

_DAYS = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
_MILLIS = st.integers(0, 86_399_999)
_TIMES = _MILLIS.map(lambda n: (dt.datetime(2000, 1, 1) + dt.timedelta(milliseconds=n)).time())
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
_SMALL_FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False)
_FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
_JSON = st.dictionaries(st.text("abc", max_size=3), st.integers(-9, 9) | st.none(), max_size=3).map(json.dumps)
_MOODS = st.sampled_from(["fine", "bad"])


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda n: Decimal(f"{n}e-{scale}"))


def _moments(first: int, last: int) -> st.SearchStrategy[dt.datetime]:
    """Whole milliseconds, the resolution of Connect's Timestamp."""
    start, stop = dt.datetime(first, 1, 1), dt.datetime(last, 12, 31)
    return st.integers(0, (stop - start) // dt.timedelta(milliseconds=1)).map(
        lambda n: start + dt.timedelta(milliseconds=n)
    )


_POSTGRES: Types = {
    "i2": ("smallint", _integers(16)),
    "i4": ("integer", _integers(32)),
    "i8": ("bigint", _integers(64)),
    "f4": ("real", _SMALL_FLOATS),
    "f8": ("double precision", _FLOATS),
    "n": ("numeric(30,4)", _decimals(30, 4)),
    "b": ("boolean", st.booleans()),
    "v": ("varchar(20)", _TEXTS),
    "t": ("text", _TEXTS),
    "c": ("char(3)", st.text("ab", max_size=3)),
    "by": ("bytea", st.binary(max_size=20)),
    "d": ("date", _DAYS),
    "ti": ("time", _TIMES),
    "ts": ("timestamp", _moments(1, 9999)),
    "tz": ("timestamptz", _moments(2, 9998).map(lambda moment: moment.replace(tzinfo=dt.UTC))),
    "u": ("uuid", st.uuids()),
    "j": ("jsonb", _JSON),
    "m": ("mood", _MOODS),
    "ai": ("int[]", st.lists(st.none() | _integers(32), max_size=3)),
    "at": ("text[]", st.lists(st.none() | _TEXTS, max_size=3)),
}
_MARIADB: Types = {
    "i1": ("tinyint", _integers(8)),
    "u2": ("smallint unsigned", st.integers(0, 65535)),
    "i3": ("mediumint", _integers(24)),
    "i4": ("int", _integers(32)),
    "u4": ("int unsigned", st.integers(0, (1 << 32) - 1)),
    "i8": ("bigint", _integers(64)),
    "f8": ("double", _FLOATS),
    "n": ("decimal(30,4)", _decimals(30, 4)),
    "v": ("varchar(20)", _TEXTS),
    "t": ("text", _TEXTS),
    "vb": ("varbinary(20)", st.binary(max_size=20)),
    "bl": ("blob", st.binary(max_size=20)),
    "d": ("date", _DAYS),
    "ti": ("time(3)", _TIMES),
    "dt": ("datetime(3)", _moments(1000, 9999)),
    "ts": ("timestamp(3) null", _moments(1971, 2036)),
    "j": ("json", _JSON),
    "m": ("enum('fine','bad')", _MOODS),
}
_SQLITE: Types = {
    "i": ("BIGINT", _integers(64)),
    "b": ("BOOLEAN", st.integers(0, 1)),
    "r": ("REAL", _FLOATS),
    "n": ("DECIMAL(10,2)", st.integers(-399_999_996, 399_999_996).map(lambda n: n / 4)),
    "t": ("TEXT", _TEXTS),
    "bl": ("BLOB", st.binary(max_size=20)),
    "d": ("DATE", st.integers(-100_000, 100_000).map(lambda n: n * 86_400_000)),
    "ti": ("TIME", _MILLIS),
    "ts": ("TIMESTAMP", st.integers(-(10**13), 10**13)),
}
"""Dates and times are milliseconds there, as sqlite-jdbc and the sink store them."""
_DUCKDB: Types = {
    "b": ("BOOLEAN", st.booleans()),
    "i1": ("TINYINT", _integers(8)),
    "u1": ("UTINYINT", st.integers(0, 255)),
    "i2": ("SMALLINT", _integers(16)),
    "i4": ("INTEGER", _integers(32)),
    "u4": ("UINTEGER", st.integers(0, (1 << 32) - 1)),
    "i8": ("BIGINT", _integers(64)),
    "f4": ("FLOAT", _SMALL_FLOATS),
    "f8": ("DOUBLE", _FLOATS),
    "n": ("DECIMAL(30,4)", _decimals(30, 4)),
    "v": ("VARCHAR", _TEXTS),
    "bl": ("BLOB", st.binary(max_size=20)),
    "d": ("DATE", _DAYS),
    "ti": ("TIME", _TIMES),
    "ts": ("TIMESTAMP", _moments(1, 9999)),
    "u": ("UUID", st.uuids()),
    "j": ("JSON", _JSON),
    "l": ("INTEGER[]", st.lists(st.none() | _integers(32), max_size=3)),
}


def _through_a_topic(batch: RecordBatch, offset: int) -> RecordBatch:
    """The batch as a consumer reads it: its values are what the bytes of the topic say."""
    converter = JsonConverter(parse(JsonConfig, {}), ConverterContext(is_key=False))
    (read,) = converter.to_connect("t", converter.from_connect("t", batch.value_schema, batch.values))
    return RecordBatch("t", read.values, read.schema, origin=Origin("t", 0), offsets=_count(offset, len(batch)))


def _count(start: int, rows: int) -> Any:
    import pyarrow as pa

    return pa.array(range(start, start + rows), pa.int64())


def _postgres_insert(database: Any, names: str, rows: list[tuple[Any, ...]]) -> None:
    casts = ",".join(["%s", *(f"%s::{kind}" for kind, _ in _POSTGRES.values())])
    with database.connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO a ({names}) VALUES ({casts})", rows)


def _mariadb_insert(database: Any, names: str, rows: list[tuple[Any, ...]]) -> None:
    with database.connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO a ({names}) VALUES ({','.join(['%s'] * len(rows[0]))})", rows)


def _sqlite_insert(database: Any, names: str, rows: list[tuple[Any, ...]]) -> None:
    import adbc_driver_sqlite.dbapi

    with closing(adbc_driver_sqlite.dbapi.connect(str(database.path), autocommit=True)) as connection:
        with closing(connection.cursor()) as cursor:
            for row in rows:
                cursor.execute(f"INSERT INTO a ({names}) VALUES ({','.join('?' * len(row))})", row)


def _duckdb_insert(database: Any, names: str, rows: list[tuple[Any, ...]]) -> None:
    import duckdb

    with closing(duckdb.connect(str(database.path))) as connection:
        connection.executemany(f"INSERT INTO a ({names}) VALUES ({','.join('?' * len(rows[0]))})", rows)


def _checked(database: SinkDatabase, types: Types, insert: Callable[[Any, str, list[tuple[Any, ...]]], None]) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in types.items())
    for table in ("a", "b"):
        database.run(f"CREATE TABLE {table} (id bigint NOT NULL, {columns})")
    names = ", ".join(["id", *types])
    values = st.lists(st.tuples(*(st.none() | strategy for _, strategy in types.values())), min_size=1, max_size=5)
    reading = {
        "connection.url": database.url,
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": "",
        "table.whitelist": "a",
        "poll.linger.ms": "1",
        "poll.interval.ms": "1",
    }
    if isinstance(database, PostgresDatabase):
        reading["schema.pattern"] = database.schema

    @settings(max_examples=effort(5, 400))
    @given(generated=values)
    def holds(generated: list[tuple[Any, ...]]) -> None:
        for table in ("a", "b"):
            database.run(f"DELETE FROM {table}")
        insert(database, names, [(number, *row) for number, row in enumerate(generated)])
        source = source_task(JdbcSourceConnector, reading)
        try:
            batches = source.poll()
        finally:
            source.stop()
        with database.bench(table_name_format="b").sink(PLACE) as sink:
            put(sink, [_through_a_topic(batch, 0) for batch in batches])
            assert sink.context.errant == []
        before, after = (database.ask(f"SELECT {names} FROM {table} ORDER BY id") for table in ("a", "b"))
        assert len(before) == len(generated)
        assert after == before

    holds()


def test_every_type_round_trips_on_sqlite(tmp_path: Path) -> None:
    _checked(SqliteDatabase(tmp_path), _SQLITE, _sqlite_insert)


def test_every_type_round_trips_on_duckdb(tmp_path: Path) -> None:
    _checked(DuckDbDatabase(tmp_path), _DUCKDB, _duckdb_insert)


@pytest.fixture
def postgres(postgres_server: Any) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(postgres_server)
    yield database
    database.close()


@pytest.mark.servers
def test_every_type_round_trips_on_postgres(postgres: PostgresDatabase) -> None:
    postgres.run("CREATE TYPE mood AS ENUM ('fine', 'bad')")
    _checked(postgres, _POSTGRES, _postgres_insert)


@pytest.fixture
def mariadb(mariadb_server: Any) -> Iterator[MariaDbDatabase]:
    database = MariaDbDatabase(mariadb_server)
    yield database
    database.close()


@pytest.mark.servers
def test_every_type_round_trips_on_mariadb(mariadb: MariaDbDatabase) -> None:
    _checked(mariadb, _MARIADB, _mariadb_insert)
