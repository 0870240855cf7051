"""The JDBC source on SQLite files, through its task."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connect.api import (
    MAX_BATCH_BYTES,
    ConnectError,
    ConverterContext,
    DataError,
    RecordBatch,
    RetriableConnectError,
    Schema,
    SchemaType,
)
from connect.converters.string import StringConfig, StringConverter
from connectors.jdbc.config import JdbcSourceConfig
from connectors.jdbc.source import JdbcSourceConnector
from tests.support.connect import FakeContext, drain, rows, source_task
from tidegate.kit.config import parse, validate


class Writer:
    """Python's sqlite3 in a separate process, like a database's users: two copies of SQLite in one process would drop
    each other's locks.
    """

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WRITE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def execute(self, statement: str, *rows: tuple[Any, ...]) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(repr((statement, rows)).encode() + b"\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == b"done\n"

    def close(self) -> None:
        self._process.communicate()


_WRITE = """
import ast, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for line in sys.stdin:
    statement, rows = ast.literal_eval(line)
    connection.executemany(statement, rows) if rows else connection.execute(statement)
    connection.commit()
    print("done", flush=True)
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "shop.db")
    yield writer
    writer.close()


def properties(tmp_path: Path, **more: str) -> dict[str, str]:
    config = {
        "connection.url": f"jdbc:sqlite:{tmp_path / 'shop.db'}",
        "mode": "incrementing",
        "topic.prefix": "shop-",
        "poll.linger.ms": "1",
    }
    return config | {key.replace("_", "."): value for key, value in more.items()}


def started(config: dict[str, str], context: FakeContext | None = None) -> Any:
    return source_task(JdbcSourceConnector, config, context)


def numbers(database: Writer, *values: int) -> None:
    database.execute("CREATE TABLE IF NOT EXISTS numbers (id INTEGER PRIMARY KEY, word TEXT)")
    database.execute("INSERT INTO numbers VALUES (?, ?)", *((value, f"w{value}") for value in values))


def test_incrementing_reads_each_row_once_and_goes_on_after_a_restart(database: Writer, tmp_path: Path) -> None:
    numbers(database, 1, 2, 3)
    task = started(properties(tmp_path, poll_interval_ms="1"))
    first = drain(task)
    assert rows(first) == [{"id": n, "word": f"w{n}"} for n in (1, 2, 3)]
    assert first[-1].topic == "shop-numbers"
    assert dict(first[-1].source_partition or {}) == {"protocol": "1", "table": "numbers"}
    assert dict(first[-1].source_offset or {}) == {"incrementing": 3}
    numbers(database, 4)
    task.stop()
    again = started(properties(tmp_path), task.context)
    assert rows(drain(again)) == [{"id": 4, "word": "w4"}]
    again.stop()


def test_a_position_of_the_old_form_is_found(database: Writer, tmp_path: Path) -> None:
    numbers(database, 1, 2, 3)
    context = FakeContext()
    context.offsets['{"table": "numbers"}'] = {"incrementing": 2}
    task = started(properties(tmp_path), context)
    assert rows(drain(task)) == [{"id": 3, "word": "w3"}]
    task.stop()


@pytest.mark.parametrize(
    ("partition", "offset", "words"),
    [
        ({"protocol": "1", "table": "numbers"}, {"incremental": 3}, "not incremental; is incrementing meant?"),
        ({"protocol": "1", "table": "numbers"}, {}, "should have incrementing, timestamp or both"),
        ({"protocol": "1", "table": "numbers"}, {"incrementing": "3"}, "incrementing should be a whole number"),
        (
            {"protocol": "1", "table": "nmbers"},
            {"incrementing": 3},
            "is of no table of the connector; is numbers meant?",
        ),
        ({"query": "query"}, {"incrementing": 3}, "is of no table of the connector"),
    ],
)
def test_a_position_that_no_task_would_look_up_is_refused(
    database: Writer, tmp_path: Path, partition: dict[str, Any], offset: dict[str, Any], words: str
) -> None:
    numbers(database, 1)
    right = ({"protocol": "1", "table": "numbers"}, {"incrementing": 3})
    assert JdbcSourceConnector.alter_offsets(properties(tmp_path), [right, ({"table": "gone"}, None)])
    with pytest.raises(ConnectError, match=re.escape(words)):
        JdbcSourceConnector.alter_offsets(properties(tmp_path), [right, (partition, offset)])


def test_bulk_reads_everything_each_time_and_keeps_no_position(database: Writer, tmp_path: Path) -> None:
    numbers(database, 1, 2)
    task = started(properties(tmp_path, mode="bulk", poll_interval_ms="1", poll_linger_ms="10000"))
    reads = [task.poll(), task.poll()]
    assert [rows(read) for read in reads] == [[{"id": 1, "word": "w1"}, {"id": 2, "word": "w2"}]] * 2
    assert reads[0][0].source_partition == {"table": "numbers"} and reads[0][0].source_offset is None
    task.stop()


def test_timestamp_mode_sees_updates_and_never_stops_among_rows_of_one_instant(
    database: Writer, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE t (name TEXT, at TIMESTAMP NOT NULL)")
    stamps = [
        "2024-01-01 00:00:00.001",
        "2024-01-01 00:00:00.002",
        "2024-01-01 00:00:00.002",
        "2024-01-01 00:00:00.003",
    ]
    database.execute("INSERT INTO t VALUES (?, ?)", *((f"r{i}", stamp) for i, stamp in enumerate(stamps)))
    config = properties(tmp_path, mode="timestamp", timestamp_column_name="at", batch_max_rows="2")
    task = started(config)
    batches = task.poll()
    task.stop()
    assert [len(batch) for batch in batches] == [2, 2]
    assert batches[0].source_offset == {"timestamp": 1704067200001, "timestamp_nanos": 1000000}
    assert batches[1].source_offset == {"timestamp": 1704067200003, "timestamp_nanos": 3000000}
    context = FakeContext()
    context.commit(batches[:1])
    again = started(config, context)
    assert [row["name"] for row in rows(drain(again))] == ["r1", "r2", "r3"]
    database.execute("UPDATE t SET at = '2024-01-02 00:00:00' WHERE name = 'r0'")
    again.stop()
    updated = started(config, context)
    assert [row["name"] for row in rows(drain(updated))] == ["r0"]
    updated.stop()


def test_timestamp_and_incrementing_continue_within_an_instant(database: Writer, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME NOT NULL)")
    database.execute("INSERT INTO t VALUES (?, '2024-01-01 00:00:00')", *((n,) for n in range(1, 6)))
    config = properties(tmp_path, mode="timestamp+incrementing", timestamp_column_name="at", batch_max_rows="2")
    task = started(config)
    context = FakeContext()
    context.commit(task.poll()[:2])
    task.stop()
    assert list(context.offsets.values()) == [{"incrementing": 4, "timestamp": 1704067200000, "timestamp_nanos": 0}]
    again = started(config, context)
    assert [row["id"] for row in rows(drain(again))] == [5]
    again.stop()


def test_rows_of_the_future_and_younger_than_the_delay_wait(database: Writer, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (name TEXT, at TIMESTAMP NOT NULL)")
    database.execute(
        "INSERT INTO t VALUES ('old', datetime('now', '-2 hours')), ('young', datetime('now', '-1 minute'))"
    )
    database.execute("INSERT INTO t VALUES ('future', datetime('now', '+1 hour'))")
    config = properties(tmp_path, mode="timestamp", timestamp_column_name="at")
    task = started(config | {"timestamp.delay.interval.ms": "3600000"})
    assert [row["name"] for row in rows(drain(task))] == ["old"]
    task.stop()
    task = started(config | {"timestamp.initial": "-1"})
    assert rows(drain(task)) == []
    task.stop()


def test_a_declared_type_decides_the_schema(database: Writer, tmp_path: Path) -> None:
    database.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, big BIGINT NOT NULL, price DECIMAL(10,2), ratio REAL, ok BOOLEAN, "
        "name VARCHAR(20) NOT NULL, raw BLOB, day DATE, at TIMESTAMP, clock TIME, anything, plain NUMERIC)"
    )
    values = (1, 2**40, 12.5, 0.5, 1, "x", b"\x00\x01", "2024-02-29", "2024-02-29 10:11:12.345", "10:11:12", "text", 3)
    database.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(values))})", values)
    database.execute("INSERT INTO t (id, big, name) VALUES (2, 0, '')")
    task = started(properties(tmp_path))
    (batch,) = drain(task)
    task.stop()
    optional = {"optional": True}
    assert batch.value_schema == Schema.struct(
        {
            "id": Schema(SchemaType.INT64),
            "big": Schema(SchemaType.INT64),
            "price": Schema.decimal(2, 10, **optional),
            "ratio": Schema(SchemaType.FLOAT64, **optional),
            "ok": Schema(SchemaType.BOOLEAN, **optional),
            "name": Schema(SchemaType.STRING),
            "raw": Schema(SchemaType.BYTES, **optional),
            "day": Schema.date(**optional),
            "at": Schema.timestamp(**optional),
            "clock": Schema.time(**optional),
            "anything": Schema(SchemaType.STRING, **optional),
            "plain": Schema(SchemaType.FLOAT64, **optional),
        },
        name="t",
    )
    full, empty = batch.values.to_pylist()
    assert full["price"] == Decimal("12.50") and full["day"] == dt.date(2024, 2, 29) and full["raw"] == b"\x00\x01"
    assert full["at"] == dt.datetime(2024, 2, 29, 10, 11, 12, 345000, dt.UTC) and full["ok"] is True
    assert full["clock"] == dt.time(10, 11, 12) and full["plain"] == 3.0 and full["big"] == 2**40
    assert [name for name, value in empty.items() if value is not None] == ["id", "big", "name"]


def test_a_cell_of_another_kind_is_an_error_and_not_a_guess(database: Writer, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL(10,2), seen DATE)")
    database.execute("INSERT INTO t VALUES (1, 'cheap', NULL)")
    task = started(properties(tmp_path))
    with pytest.raises((ConnectError, DataError), match="price|column 1"):
        task.poll()
    task.stop()
    database.execute("UPDATE t SET price = 1, seen = 'yesterday'")
    task = started(properties(tmp_path))
    with pytest.raises(DataError, match="t: column 'seen' holds a value that does not fit its type, Date"):
        task.poll()
    task.stop()


def test_rows_before_a_cell_that_does_not_fit_are_read_and_its_row_is_named(database: Writer, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL(10,2), at TIMESTAMP NOT NULL)")
    prices = [0.1 + 0.2, 12.5, 1234567.89, 1.005, 7.0]
    database.execute("INSERT INTO t VALUES (?, ?, ?)", *((n, price, 1000 * (n // 2)) for n, price in enumerate(prices)))
    for column, row in {"id": r"id = 3\)", "at": r"at = 1000\)"}.items():
        mode = "incrementing" if column == "id" else "timestamp"
        task = started(properties(tmp_path, mode=mode, **{f"{mode}_column_name": column}))
        batches: list[RecordBatch] = []
        with pytest.raises(DataError, match=rf"t: column 'price' .*1\.005 has more than 2 digits .*the row with {row}"):
            for _ in range(3):
                batches += task.poll() or []
        assert [value["id"] for value in rows(batches)] == [0, 1, 2]
        assert rows(batches)[0]["price"] == Decimal("0.30")
        # the row that was refused has the instant of row 2, so the position is still before both
        assert "1000" not in str(batches[-1].source_offset)
        task.stop()


def test_a_query_is_read_with_its_mode(database: Writer, tmp_path: Path) -> None:
    numbers(database, 1, 2, 3)
    database.execute("CREATE TABLE names (n INTEGER, name TEXT)")
    database.execute("INSERT INTO names VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    query = "SELECT a.id, b.name, length(b.name) AS size FROM numbers a JOIN names b ON b.n = a.id"
    config = properties(tmp_path, query=query, incrementing_column_name="a.id", topic_prefix="joined")
    task = started(config)
    (batch,) = drain(task)
    assert batch.topic == "joined" and batch.source_partition == {"query": "query"}
    assert batch.values.to_pylist()[2] == {"id": 3, "name": "three", "size": 5}
    task.stop()
    numbers(database, 4)
    database.execute("INSERT INTO names VALUES (4, 'four')")
    again = started(config, task.context)
    assert rows(drain(again)) == [{"id": 4, "name": "four", "size": 4}]
    again.stop()


def test_a_suffix_limits_each_statement(database: Writer, tmp_path: Path) -> None:
    numbers(database, *range(1, 8))
    task = started(properties(tmp_path, query_suffix="LIMIT 3", poll_linger_ms="60000"))
    assert [len(task.poll()[0]) for _ in range(3)] == [3, 3, 1]
    task.stop()


def test_batches_are_bounded_by_rows_and_by_bytes(database: Writer, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
    database.execute("INSERT INTO t VALUES (?, ?)", *((n, "x" * 1_000_000) for n in range(30)))
    task = started(properties(tmp_path, batch_max_rows="20"))
    batches = drain(task)
    task.stop()
    assert sum(map(len, batches)) == 30
    assert all(len(batch) <= 8 for batch in batches)


def test_python_calls_do_not_grow_with_rows(database: Writer, tmp_path: Path) -> None:
    numbers(database, *range(10_000))

    def calls(count: int) -> int:
        task = started(properties(tmp_path, query_suffix=f"LIMIT {count}", batch_max_rows="10000"))
        made = 0

        def count_call(frame: Any, event: str, argument: Any) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        sys.setprofile(count_call)
        try:
            (batch,) = task.poll()
        finally:
            sys.setprofile(None)
        assert len(batch) == count
        task.stop()
        return made

    calls(1)  # what is imported and compiled once
    assert calls(9_000) <= calls(10) * 1.1


def test_tables_are_chosen_and_spread_over_tasks(database: Writer, tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        database.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")

    def planned(tasks: int, **more: str) -> list[str]:
        config = properties(tmp_path, **more)
        connector = JdbcSourceConnector(parse(JdbcSourceConfig, config), config, FakeContext())
        return [task["tables"] for task in connector.task_properties(tasks)]

    assert planned(3) == ['"a"', '"b"', '"c","d"']
    assert planned(9, table_whitelist="b,d") == ['"b"', '"d"']
    assert planned(1, table_blacklist="b,c,d") == ['"a"']
    assert planned(1, table_include_list="[ab]", table_exclude_list="b") == ['"a"']
    assert planned(2, table_whitelist="none") == []


def test_a_task_reads_its_tables_in_turn(database: Writer, tmp_path: Path) -> None:
    for name in ("a", "b"):
        database.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
        database.execute(f"INSERT INTO {name} VALUES (1), (2)")
    task = started(properties(tmp_path))
    assert [(batch.topic, len(batch)) for batch in drain(task)] == [("shop-a", 2), ("shop-b", 2)]
    task.stop()


def test_a_new_table_asks_for_new_tasks(database: Writer, tmp_path: Path) -> None:
    numbers(database, 1)
    config = properties(tmp_path, table_poll_interval_ms="5")
    context = FakeContext()
    connector = JdbcSourceConnector(parse(JdbcSourceConfig, config), config, context)
    connector.start()
    try:
        assert len(connector.task_properties(4)) == 1
        database.execute("CREATE TABLE more (id INTEGER PRIMARY KEY)")
        assert context.reconfigured.wait(60)
        assert len(connector.task_properties(4)) == 2
    finally:
        connector.stop()


def test_a_column_that_may_be_null_is_refused_unless_allowed(database: Writer, tmp_path: Path) -> None:
    database.execute("CREATE TABLE t (id BIGINT, at TIMESTAMP)")
    database.execute("INSERT INTO t VALUES (1, NULL)")
    task = started(properties(tmp_path, incrementing_column_name="id"))
    with pytest.raises(ConnectError, match="incrementing column 'id' of t may be null: declare it NOT NULL, or set"):
        task.poll()
    task.stop()
    task = started(properties(tmp_path, incrementing_column_name="id", validate_non_null="false"))
    assert len(rows(drain(task))) == 1
    task.stop()


def test_an_unknown_column_is_named_with_those_there_are(database: Writer, tmp_path: Path) -> None:
    numbers(database, 1)
    task = started(properties(tmp_path, incrementing_column_name="nr"))
    with pytest.raises(ConnectError, match="numbers has no column 'nr'; it has: id, word"):
        task.poll()
    task.stop()


def test_check_refuses_a_query_that_the_mode_cannot_go_on_with(database: Writer, tmp_path: Path) -> None:
    numbers(database, 1)
    inner = "SELECT id, word FROM numbers WHERE id > 0"

    def told(query: str, **more: str) -> list[str]:
        given = properties(tmp_path, query=query, topic_prefix="q", incrementing_column_name="id", **more)
        return [
            f"{problem.key}: {problem.message}" for problem in JdbcSourceConnector.check(parse(JdbcSourceConfig, given))
        ]

    (problem,) = told(inner)
    assert problem.startswith("query: mode=incrementing appends WHERE ... ORDER BY ... to the query, and that fails: ")
    assert problem.endswith("wrap a query that has a WHERE: SELECT * FROM (...) AS t")
    assert told(f"SELECT * FROM ({inner}) AS t") == []
    assert told(inner, mode="bulk") == []


def test_check_says_what_is_wrong_with_the_database(tmp_path: Path) -> None:
    config = parse(JdbcSourceConfig, properties(tmp_path))
    (problem,) = JdbcSourceConnector.check(config)
    assert problem.key == "connection.url"
    assert problem.message == f"there is no sqlite file {tmp_path / 'shop.db'}: connection.url names it"


def test_keys_that_exclude_one_another_are_told_together() -> None:
    config = {
        "connection.url": "jdbc:sqlite:x",
        "mode": "timestamp",
        "table.whitelist": "a",
        "table.blacklist": "b",
        "query": "SELECT 1",
    }
    wrong = {judged.key.name for judged in validate(JdbcSourceConfig, config) if judged.errors}
    assert wrong == {"timestamp.column.name", "table.blacklist", "query", "topic.prefix"}


@pytest.mark.parametrize("key", ["timestamp.columns.mapping", "incrementing.column.mapping"])
@pytest.mark.parametrize("mapping", ["nonsense", "[:id", "a.*:", "a.*:[]"])
def test_mappings_that_are_none_are_refused(key: str, mapping: str) -> None:
    config = {"connection.url": "jdbc:sqlite:x", "mode": "bulk", "topic.prefix": "x"}
    (error,) = [e for judged in validate(JdbcSourceConfig, config | {key: mapping}) for e in judged.errors]
    assert repr(mapping) in error


def test_a_file_locked_by_a_writer_is_tried_again(database: Writer, tmp_path: Path) -> None:
    numbers(database, 1, 2)
    task = started(properties(tmp_path))
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    numbers(database, 3)  # takes the lock and keeps it
    with pytest.raises(RetriableConnectError, match="database is locked"):
        task.poll()
    database.execute("PRAGMA locking_mode = NORMAL")
    numbers(database, 4)
    assert [row["id"] for row in rows(drain(task))] == [1, 2, 3, 4]
    task.stop()


@pytest.mark.parametrize("query", [False, True])
def test_wide_rows_are_read_in_pieces_bounded_in_bytes(database: Writer, tmp_path: Path, query: bool) -> None:
    """The driver counts rows only; nobody knows before how wide they are."""
    names = [f"c{number}" for number in range(200)]
    database.execute(f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {', '.join(f'{name} TEXT' for name in names)})")
    series = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {})"
    database.execute(series.format(400) + f" INSERT INTO wide (id, {', '.join(names)}) SELECT n {', n' * 200} FROM s")
    database.execute(series.format(24) + " INSERT INTO wide (id, c7) SELECT 400 + n, hex(zeroblob(500000)) FROM s")
    more = {"query": "SELECT * FROM wide", "topic_prefix": "wide"} if query else {}
    task = started(properties(tmp_path, incrementing_column_name="id", batch_max_rows="10000", **more))
    seen = 0
    while seen < 424:
        batches = task.poll()
        assert sum(batch.nbytes for batch in batches) < 4 * MAX_BATCH_BYTES
        assert all(batch.nbytes <= MAX_BATCH_BYTES for batch in batches)
        for row in rows(batches):
            seen += 1
            assert (row["id"], len(row["c7"])) == (seen, len(str(seen)) if seen <= 400 else 1_000_000)
    task.stop()


def test_string_converter_writes_times_as_java_sql_classes_do(tmp_path: Path, database: Writer) -> None:
    """Confluent's JDBC source delivers java.sql.Date, Time and Timestamp, and StringConverter writes their toString."""
    database.execute("CREATE TABLE stays (id INTEGER PRIMARY KEY, day DATE, at TIME, seen TIMESTAMP)")
    database.execute("INSERT INTO stays VALUES (?, ?, ?, ?)", (1, "2024-01-02", "03:04:05", "2024-01-02 03:04:05.670"))
    task = started(properties(tmp_path, table_whitelist="stays", numeric_mapping="best_fit"))
    (batch,) = drain(task)
    task.stop()
    converter = StringConverter(parse(StringConfig, {}), ConverterContext(is_key=False))
    texts = converter.from_connect(batch.topic, batch.value_schema, batch.values).to_pylist()
    assert texts == [b"Struct{id=1,day=2024-01-02,at=03:04:05,seen=2024-01-02 03:04:05.67}"]
