"""Tables follow the records' schemas as far as Iceberg can, and say why where it cannot."""

from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.schema import Schema as TableSchema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from connect.api import ConnectError, Schema, SchemaType
from tests.connectors.iceberg.records import commit, rows, sink
from tests.support.iceberg import duckdb_rows, iceberg_catalog, iceberg_rows, iceberg_table, local_catalog

I32, I64, TEXT = Schema(SchemaType.INT32), Schema(SchemaType.INT64), Schema(SchemaType.STRING)
F32, F64 = Schema(SchemaType.FLOAT32), Schema(SchemaType.FLOAT64)
FOLLOW = {"tables__evolve_schema_enabled": "true"}


def columns(folder: Path) -> dict[str, str]:
    fields = iceberg_table(local_catalog(folder), "shop.orders").schema().fields
    return {field.name: f"{field.field_type}{'' if field.optional else ' not null'}" for field in fields}


@pytest.mark.parametrize("spill_bytes", [1, 1 << 30])
def test_types_are_widened_columns_added_and_made_optional(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spill_bytes: int
) -> None:
    monkeypatch.setattr("connectors.tables.sink._SPILL_BYTES", spill_bytes)
    old = {"id": I32, "n": F32, "price": Schema.decimal(2, 5), "name": TEXT}
    new = {"id": I64, "n": F64, "price": Schema.decimal(2, 12), "name": TEXT.as_optional(), "late": Schema.date()}
    with sink(tmp_path, control__commit__interval_ms="3600000", **FOLLOW) as running:
        first = {"id": 1, "n": 0.5, "price": decimal.Decimal("1.25"), "name": "a"}
        second = {
            "id": 1 << 40,
            "n": 0.1,
            "price": decimal.Decimal("12345678.25"),
            "name": None,
            "late": datetime.date(2024, 5, 6),
        }
        running.task.put([rows([first], Schema.struct(old)), rows([second], Schema.struct(new), first=1)])
        running.task.put([rows([{**first, "id": 3}], Schema.struct(old), first=2)])
        running.task.put([rows([{**second, "id": 4, "more": 1}], Schema.struct({**new, "more": I32}), first=3)])
        running.task.flush()
        assert running.context.errant == []
    assert columns(tmp_path) == {
        "id": "long not null",
        "n": "double not null",
        "price": "decimal(12, 2) not null",
        "name": "string",
        "late": "date",
        "more": "int",
    }
    found = {row["id"]: row for row in iceberg_rows(local_catalog(tmp_path), "shop.orders").to_pylist()}
    assert found == {
        1: {**first, "late": None, "more": None},
        1 << 40: {**second, "more": None},
        3: {**first, "id": 3, "late": None, "more": None},
        4: {**second, "id": 4, "more": 1},
    }
    assert len(duckdb_rows(local_catalog(tmp_path), "shop.orders", "SELECT * FROM rows WHERE late IS NULL")) == 2


def test_nested_schemas_follow_too(tmp_path: Path) -> None:
    old = Schema.struct(
        {
            "id": I32,
            "s": Schema.struct({"a": I32}, optional=True),
            "l": Schema.array(Schema.struct({"x": I32}, optional=True), optional=True),
        }
    )
    grown = Schema.struct(
        {"a": I64, "b": TEXT.as_optional(), "deep": Schema.struct({"z": I32}, optional=True)}, optional=True
    )
    items = Schema.struct({"x": I64, "y": Schema.map(TEXT, F64, optional=True)}, optional=True)
    new = Schema.struct({"id": I32, "s": grown, "l": Schema.array(items, optional=True)})
    first = {"id": 1, "s": {"a": 1}, "l": [{"x": 1}, None]}
    second = {"id": 2, "s": {"a": 1 << 40, "b": "b", "deep": {"z": 1}}, "l": [{"x": 1 << 40, "y": {"k": 0.5}}]}
    with sink(tmp_path, **FOLLOW) as running:
        commit(running, rows([first], old))
        commit(running, rows([second, {"id": 3, "s": None, "l": None}], new, first=1))
        assert running.context.errant == []
    found = duckdb_rows(local_catalog(tmp_path), "shop.orders", "SELECT * FROM rows ORDER BY id")
    assert found[0] == {"id": 1, "s": {"a": 1, "b": None, "deep": None}, "l": [{"x": 1, "y": None}, None]}
    assert found[1:] == [second, {"id": 3, "s": None, "l": None}]


def test_two_tasks_that_meet_a_new_schema_both_write(tmp_path: Path) -> None:
    old, new = Schema.struct({"id": I32}), Schema.struct({"id": I64, "b": TEXT.as_optional()})
    with sink(tmp_path, 0, **FOLLOW) as first, sink(tmp_path, 1, **FOLLOW) as second:
        for part, running in enumerate((first, second)):
            commit(running, rows([{"id": part}], old, part=part))
        for part, running in enumerate((first, second)):
            running.task.put([rows([{"id": 10 + part, "b": "b"}], new, first=1, part=part)])
        first.task.flush()
        second.task.flush()
    assert columns(tmp_path) == {"id": "long not null", "b": "string"}
    assert sorted(iceberg_rows(local_catalog(tmp_path), "shop.orders", "id").column("id").to_pylist()) == [0, 1, 10, 11]


REFUSED: list[tuple[Any, Any, Any, str]] = [
    (Schema.decimal(2, 9), Schema.decimal(4, 9), decimal.Decimal("1.2345"), "a table never changes a scale"),
    (I32, F64, 1.5, "does not fit its column, which is int"),
    (I32, TEXT, "twelve", "does not fit its column, which is int"),
    (Schema.struct({"a": I32}), TEXT, "x", "which it cannot become: rename the field"),
    (Schema.decimal(2, 9), Schema.decimal(2, 50), decimal.Decimal("1.25"), "a table has up to 38 digits"),
]


@pytest.mark.parametrize(("column", "schema", "value", "words"), REFUSED, ids=[words for *_, words in REFUSED])
def test_a_change_that_iceberg_does_not_have_is_refused_with_the_reason(
    tmp_path: Path, column: Schema, schema: Schema, value: Any, words: str
) -> None:
    with sink(tmp_path, **FOLLOW) as running:
        first = {"a": 1} if column.type is SchemaType.STRUCT else decimal.Decimal(1) if column.name else 1
        commit(running, rows([{"id": 1, "v": first}], Schema.struct({"id": I32, "v": column})))
        try:
            commit(running, rows([{"id": 2, "v": value}], Schema.struct({"id": I32, "v": schema}), first=1))
        except ConnectError as error:
            assert words in str(error)
        else:
            ((_, error),) = running.context.errant
            assert words in str(error)
    assert iceberg_rows(local_catalog(tmp_path), "shop.orders", "id").column("id").to_pylist() == [1]


def test_without_evolution_fields_without_a_column_are_left_out(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, rows([{"id": 1}], Schema.struct({"id": I32})))
        commit(running, rows([{"id": 2, "b": 1}], Schema.struct({"id": I64, "b": I32}), first=1))
    assert columns(tmp_path) == {"id": "int not null"}
    assert len(iceberg_rows(local_catalog(tmp_path), "shop.orders")) == 2


def test_a_required_column_without_a_value_is_an_error_of_the_record(tmp_path: Path) -> None:
    optional = Schema.struct({"id": I32, "name": TEXT.as_optional()})
    with sink(tmp_path) as running:
        commit(running, rows([{"id": 1, "name": "a"}], Schema.struct({"id": I32, "name": TEXT})))
        commit(running, rows([{"id": 2, "name": None}, {"id": 3, "name": "c"}], optional, first=1))
        ((record, error),) = running.context.errant
        assert record.offset == 1 and "no value for name, and the column is required" in str(error)
        commit(running, rows([{"id": 4}], Schema.struct({"id": I32}), first=3))
        assert "the record has no field name, and the column is required" in str(running.context.errant[-1][1])
    assert len(iceberg_rows(local_catalog(tmp_path), "shop.orders")) == 2


def test_all_columns_are_optional_if_that_is_asked_for(tmp_path: Path) -> None:
    with sink(tmp_path, tables__schema_force_optional="true", tables__default_id_columns="id") as running:
        commit(running, rows([{"id": 1, "name": "a"}], Schema.struct({"id": I32, "name": TEXT})))
    assert columns(tmp_path) == {"id": "int not null", "name": "string"}
    assert iceberg_table(local_catalog(tmp_path), "shop.orders").schema().identifier_field_names() == {"id"}


def test_fields_find_their_columns_in_any_case(tmp_path: Path) -> None:
    more = {"tables__schema_case_insensitive": "true", **FOLLOW}
    with sink(tmp_path, **more) as running:
        commit(running, rows([{"id": 1, "Name": "a"}], Schema.struct({"id": I32, "Name": TEXT})))
        commit(running, rows([{"ID": 2, "NAME": "b"}], Schema.struct({"ID": I32, "NAME": TEXT}), first=1))
    assert columns(tmp_path) == {"id": "int not null", "Name": "string not null"}


def test_a_null_becomes_the_fields_default(tmp_path: Path) -> None:
    schema = Schema.struct({"id": I32, "n": Schema(SchemaType.INT32, optional=True, default=7)})
    with sink(tmp_path) as running:
        commit(running, rows([{"id": 1, "n": None}], schema))
    with sink(tmp_path, tables__replace_null_with_default="false") as running:
        commit(running, rows([{"id": 2, "n": None}], schema, first=1))
    found = iceberg_rows(local_catalog(tmp_path), "shop.orders").to_pylist()
    assert {row["id"]: row["n"] for row in found} == {1: 7, 2: None}


def debezium(kind: SchemaType, name: str) -> Schema:
    return Schema(kind, optional=True, name=f"io.debezium.time.{name}")


NOON = datetime.datetime(2024, 5, 6, 12, 30, 15, 250_000)
MICROS = int(NOON.replace(tzinfo=datetime.UTC).timestamp() * 1_000_000)
DAYS = (NOON.date() - datetime.date(1970, 1, 1)).days
CLOCK = MICROS % 86_400_000_000
TIMES: list[tuple[str, SchemaType, Any, str, Any]] = [
    ("Date", SchemaType.INT32, DAYS, "date", NOON.date()),
    ("Time", SchemaType.INT32, CLOCK // 1000, "time", NOON.time()),
    ("MicroTime", SchemaType.INT64, CLOCK, "time", NOON.time()),
    ("NanoTime", SchemaType.INT64, CLOCK * 1000 + 999, "time", NOON.time()),
    ("Timestamp", SchemaType.INT64, MICROS // 1000, "timestamp", NOON),
    ("MicroTimestamp", SchemaType.INT64, MICROS, "timestamp", NOON),
    ("NanoTimestamp", SchemaType.INT64, MICROS * 1000 + 1, "timestamp", NOON),
    (
        "ZonedTimestamp",
        SchemaType.STRING,
        "2024-05-06T14:30:15.25+02:00",
        "timestamptz",
        NOON.replace(tzinfo=datetime.UTC),
    ),
]


@pytest.mark.parametrize(("name", "kind", "value", "column", "read"), TIMES, ids=[each[0] for each in TIMES])
def test_debeziums_times_are_times(
    tmp_path: Path, name: str, kind: SchemaType, value: Any, column: str, read: Any
) -> None:
    schema = Schema.struct({"v": debezium(kind, name)})
    with sink(tmp_path) as running:
        commit(running, rows([{"v": value}, {"v": None}], schema))
        assert running.context.errant == []
    assert columns(tmp_path) == {"v": column}
    assert sorted(iceberg_rows(local_catalog(tmp_path), "shop.orders").column("v").to_pylist(), key=str) == [read, None]


COLUMNS: list[tuple[Any, Any, Any, Any]] = [
    (StringType(), Schema.struct({"a": I32}), {"a": 1}, '{"a":1}'),
    (StringType(), Schema.array(I32), [1, 2], "[1,2]"),
    (StringType(), I32, 12, "12"),
    (StringType(), Schema(SchemaType.BYTES), b"abc", "YWJj"),
    (IntegerType(), TEXT, "12", 12),
    (LongType(), Schema(SchemaType.INT8), 12, 12),
    (DoubleType(), TEXT, "1.5", 1.5),
    (DoubleType(), I32, 3, 3.0),
    (BooleanType(), TEXT, "true", True),
    (DecimalType(9, 2), TEXT, "1.25", decimal.Decimal("1.25")),
    (DecimalType(9, 2), I64, 7, decimal.Decimal("7.00")),
    (DateType(), TEXT, "2024-05-06", NOON.date()),
    (DateType(), I32, DAYS, NOON.date()),
    (
        DateType(),
        Schema.timestamp(),
        NOON.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=datetime.UTC),
        NOON.date(),
    ),
    (TimestampType(), I64, MICROS // 1000, NOON),
    (TimestampType(), Schema.timestamp(), NOON.replace(tzinfo=datetime.UTC), NOON),
    (TimestamptzType(), TEXT, "2024-05-06T12:30:15.25Z", NOON.replace(tzinfo=datetime.UTC)),
    (TimestampType(), TEXT, "2024-05-06T12:30:15.25", NOON),
    (TimeType(), TEXT, "12:30:15.250", NOON.time()),
    (BinaryType(), TEXT, "YWJj", b"abc"),
    (FixedType(3), Schema(SchemaType.BYTES), b"abc", b"abc"),
    (UUIDType(), TEXT, "f79c3e09-677c-4bbd-a479-3f349cb785e7", uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
]


def test_a_column_that_exists_decides_what_a_value_becomes(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(len(COLUMNS))]
    fields = [
        NestedField(n + 1, name, column) for n, (name, (column, *_)) in enumerate(zip(names, COLUMNS, strict=True))
    ]
    with iceberg_catalog(local_catalog(tmp_path)) as catalog:
        catalog.create_namespace("shop")
        catalog.create_table("shop.orders", TableSchema(*fields))
    schema = Schema.struct({name: kind.as_optional() for name, (_, kind, *_) in zip(names, COLUMNS, strict=True)})
    with sink(tmp_path) as running:
        commit(running, rows([{name: value for name, (*_, value, _) in zip(names, COLUMNS, strict=True)}], schema))
        commit(running, rows([dict.fromkeys(names)], schema, first=1))
        assert running.context.errant == []
    found = iceberg_rows(local_catalog(tmp_path), "shop.orders").sort_by([("c4", "ascending")]).to_pylist()
    assert found[0] == {name: read for name, (*_, read) in zip(names, COLUMNS, strict=True)}
    assert found[1] == dict.fromkeys(names)


def test_column_names_that_avro_does_not_have(tmp_path: Path) -> None:
    schema = Schema.struct({"a.b": I32, "1st": Schema.struct({"x-y": I32}, optional=True)})
    with sink(tmp_path) as running:
        commit(running, rows([{"a.b": 1, "1st": {"x-y": 2}}], schema))
        assert running.context.errant == []
    assert iceberg_rows(local_catalog(tmp_path), "shop.orders").to_pylist() == [{"a.b": 1, "1st": {"x-y": 2}}]
