"""The JDBC source on DuckDB files, through its task."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connect.api import MAX_BATCH_BYTES, RetriableConnectError, Schema, SchemaType
from connectors.jdbc.source import JdbcSourceConnector
from tests.support.connect import drain, rows, source_task
from tidegate.kit.config import parse


def run(path: Path, *statements: str) -> None:
    """Run statements as another process would: afterwards the file is closed."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def properties(path: Path, **more: str) -> dict[str, str]:
    config = {
        "connection.url": f"jdbc:duckdb:{path}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": "duck-",
        "poll.linger.ms": "1",
        "poll.interval.ms": "1",
    }
    return config | {key.replace("_", "."): value for key, value in more.items()}


def test_new_rows_are_followed_and_the_file_is_free_between(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    run(path, "CREATE TABLE t (id BIGINT NOT NULL, word VARCHAR)", "INSERT INTO t VALUES (1, 'a'), (2, NULL)")
    task = source_task(JdbcSourceConnector, properties(path))
    batches = drain(task)
    assert rows(batches) == [{"id": 1, "word": "a"}, {"id": 2, "word": None}]
    assert dict(batches[0].source_partition or {}) == {"protocol": "1", "table": "shop.main.t"}
    code = f"import duckdb; duckdb.connect({str(path)!r}).execute(\"INSERT INTO t VALUES (3, 'c')\")"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert rows(drain(task)) == [{"id": 3, "word": "c"}]
    task.stop()


_TYPES: dict[str, tuple[str, str, Schema, Any]] = {
    "id": ("BIGINT NOT NULL", "1", Schema(SchemaType.INT64), 1),
    "b": ("BOOLEAN", "true", Schema(SchemaType.BOOLEAN), True),
    "t1": ("TINYINT", "-128", Schema(SchemaType.INT8), -128),
    "tu": ("UTINYINT", "255", Schema(SchemaType.INT16), 255),
    "su": ("USMALLINT", "65535", Schema(SchemaType.INT32), 65535),
    "i": ("INTEGER", "-5", Schema(SchemaType.INT32), -5),
    "iu": ("UINTEGER", "4294967295", Schema(SchemaType.INT64), 4294967295),
    "h": ("HUGEINT", "12345678901234567890123", Schema.decimal(0, 38), Decimal("12345678901234567890123")),
    "f4": ("FLOAT", "1.5", Schema(SchemaType.FLOAT32), 1.5),
    "f8": ("DOUBLE", "0.1", Schema(SchemaType.FLOAT64), 0.1),
    "n": ("DECIMAL(30,4)", "'-12345678901234567890123456.7891'", Schema.decimal(4, 30), Decimal("-12345678901234567890123456.7891")),
    "v": ("VARCHAR", "'ä'", Schema(SchemaType.STRING), "ä"),
    "bl": ("BLOB", "'\\x00\\xFF'::BLOB", Schema(SchemaType.BYTES), b"\x00\xff"),
    "d": ("DATE", "'0044-03-15'", Schema.date(), dt.date(44, 3, 15)),
    "ti": ("TIME", "'23:59:59.999999'", Schema.time(), dt.time(23, 59, 59, 999000)),
    "ts": ("TIMESTAMP", "'2024-01-02 03:04:05.678901'", Schema.timestamp(), dt.datetime(2024, 1, 2, 3, 4, 5, 678000, dt.UTC)),
    "tn": ("TIMESTAMP_NS", "'2024-01-02 03:04:05.678901234'", Schema.timestamp(), dt.datetime(2024, 1, 2, 3, 4, 5, 678000, dt.UTC)),
    "tz": ("TIMESTAMPTZ", "'2024-01-02 03:04:05.678901+02'", Schema.timestamp(), dt.datetime(2024, 1, 2, 1, 4, 5, 678000, dt.UTC)),
    "u": ("UUID", "'10349801-5e5b-4006-a542-fe9a9a6d0b24'", Schema(SchemaType.STRING), "10349801-5e5b-4006-a542-fe9a9a6d0b24"),
    "j": ("JSON", """'{"a": 1}'""", Schema(SchemaType.STRING), '{"a": 1}'),
    "e": ("ENUM('a', 'b')", "'b'", Schema(SchemaType.STRING), "b"),
    "l": ("INTEGER[]", "[1, NULL]", Schema.array(Schema(SchemaType.INT32, optional=True)), [1, None]),
}  # fmt: skip


@pytest.mark.parametrize("query", [False, True])
def test_every_type_has_its_schema_and_arrives_exactly(tmp_path: Path, query: bool) -> None:
    path = tmp_path / "types.duckdb"
    columns = ", ".join(f'"{name}" {kind}' for name, (kind, *_) in _TYPES.items())
    run(path, f"CREATE TABLE t ({columns}, iv INTERVAL, st STRUCT(a INT))")
    run(
        path,
        f"INSERT INTO t VALUES ({', '.join(v[1] for v in _TYPES.values())}, NULL, NULL)",
        "INSERT INTO t (id) VALUES (2)",
    )
    more = {"query": "SELECT * FROM t", "topic_prefix": "q"} if query else {}
    task = source_task(JdbcSourceConnector, properties(path, **more))
    batches = drain(task)
    task.stop()
    made = {field.name: field.schema for field in batches[0].value_schema.fields}
    assert made == {name: schema.as_optional(query or name != "id") for name, (_, _, schema, _) in _TYPES.items()}
    full, empty = rows(batches)
    assert full == {name: value for name, (_, _, _, value) in _TYPES.items()}
    assert {name for name, value in empty.items() if value is not None} == {"id"}


def test_timestamps_and_numbers_together(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    run(path, "CREATE TABLE t (id INT NOT NULL, made TIMESTAMPTZ NOT NULL)")
    run(
        path,
        "INSERT INTO t SELECT i, TIMESTAMPTZ '2024-01-01 00:00:00+00' + interval (i // 10) microsecond FROM range(3000) r(i)",
    )
    more = {"mode": "timestamp+incrementing", "timestamp_column_name": "made", "batch_max_rows": "7"}
    task = source_task(JdbcSourceConnector, properties(path, **more))
    first = task.poll()[:3]
    task.stop()
    assert first[-1].source_offset == {"incrementing": 20, "timestamp": 1704067200000, "timestamp_nanos": 2000}
    context = task.context
    context.offsets.clear()
    context.commit(first)
    again = source_task(JdbcSourceConnector, properties(path, **more), context)
    assert [row["id"] for row in rows(drain(again))] == list(range(21, 3000))
    again.stop()


def test_a_file_that_another_process_writes_to_is_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    run(path, "CREATE TABLE t (id INT NOT NULL)", "INSERT INTO t VALUES (1)")
    task = source_task(JdbcSourceConnector, properties(path))
    assert len(rows(drain(task))) == 1
    code = f"import duckdb; c = duckdb.connect({str(path)!r}); c.execute('INSERT INTO t VALUES (2)'); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"\n"
        with pytest.raises(RetriableConnectError, match="another process holds the file open"):
            task.poll()
        other.communicate(b"\n")
    assert rows(drain(task)) == [{"id": 2}]
    task.stop()


def test_check_names_the_column(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    run(path, "CREATE TABLE t (id INT NOT NULL)")
    config = properties(path, incrementing_column_name="nr", table_whitelist="t,u")
    wrong = {p.key: p.message for p in JdbcSourceConnector.check(parse(JdbcSourceConnector.config_class, config))}
    assert "there is no such table" in wrong["table.whitelist"]
    assert "shop.main.t has no column 'nr'; it has: id" in wrong["incrementing.column.name"]


def test_batches_of_wide_rows_are_bounded_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    columns = ", ".join(f"i AS c{number}" for number in range(200))
    wide = "CASE WHEN i % 3 = 0 THEN repeat('x', 1000000) ELSE 'y' END AS big"
    run(path, f"CREATE TABLE t AS SELECT i::BIGINT AS id, {columns}, {wide} FROM range(36) r(i)")
    task = source_task(JdbcSourceConnector, properties(path, validate_non_null="false", batch_max_rows="10000"))
    batches = drain(task)
    task.stop()
    assert len(batches) > 1 and all(batch.nbytes <= MAX_BATCH_BYTES for batch in batches)
    assert [(row["id"], row["c99"], len(row["big"])) for row in rows(batches)] == [
        (i, i, 1 if i % 3 else 1_000_000) for i in range(36)
    ]
