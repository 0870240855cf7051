"""Columns are converted exactly, or an error names them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from connect.api import DataError, Schema, SchemaType
from connectors.sql.columns import to_connect

UTC = dt.UTC


@pytest.mark.parametrize(
    "column, schema, expected",
    [
        (pa.array(["10.25", None]), Schema.decimal(2, 10), [Decimal("10.25"), None]),
        (pa.array([0.1, 3.0]), Schema.decimal(2, 10), [Decimal("0.10"), Decimal("3.00")]),
        (pa.array([7]), Schema.decimal(2, 10), [Decimal("7.00")]),
        (pa.array([1, 0, None]), Schema(SchemaType.BOOLEAN), [True, False, None]),
        (pa.array(["2024-02-29", "2024-02-29 10:00:00"]), Schema.date(), [dt.date(2024, 2, 29)] * 2),
        (
            pa.array(["03:04:05.678901", "1000", None]),
            Schema.time(),
            [dt.time(3, 4, 5, 678000), dt.time(0, 0, 1), None],
        ),
        (
            pa.array(["2024-01-02 03:04:05.678", "2024-01-02T03:04:05", "0", "2024-01-02 03:04:05+02:00", None]),
            Schema.timestamp(),
            [
                dt.datetime(2024, 1, 2, 3, 4, 5, 678000, UTC),
                dt.datetime(2024, 1, 2, 3, 4, 5, 0, UTC),
                dt.datetime(1970, 1, 1, tzinfo=UTC),
                dt.datetime(2024, 1, 2, 1, 4, 5, 0, UTC),
                None,
            ],
        ),
        (
            pa.array([-1], pa.timestamp("us")),
            Schema.timestamp(),
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)],
        ),
    ],
)
def test_a_column_takes_the_form_of_its_schema(column: pa.Array, schema: Schema, expected: list[object]) -> None:
    made = to_connect(column, schema, name="c")
    assert made.type == schema.arrow_type
    assert made.to_pylist() == expected


def test_a_timestamp_without_zone_is_of_the_databases() -> None:
    column = pa.array([dt.datetime(2024, 7, 1, 12)], pa.timestamp("us"))
    made = to_connect(column, Schema.timestamp(), name="c", timezone="Europe/Berlin")
    assert made.to_pylist() == [dt.datetime(2024, 7, 1, 10, tzinfo=UTC)]


@pytest.mark.parametrize(
    "granularity, kind, expected",
    [
        ("micros_long", SchemaType.INT64, 1_000_001),
        ("nanos_long", SchemaType.INT64, 1_000_001_000),
        ("micros_string", SchemaType.STRING, "1000001"),
        ("nanos_string", SchemaType.STRING, "1000001000"),
        ("micros_iso_datetime_string", SchemaType.STRING, "1970-01-01T00:00:01.000001"),
        ("nanos_iso_datetime_string", SchemaType.STRING, "1970-01-01T00:00:01.000001000"),
    ],
)
def test_granularity(granularity: str, kind: SchemaType, expected: object) -> None:
    column = pa.array([1_000_001], pa.timestamp("us"))
    assert to_connect(column, Schema(kind), name="c", granularity=granularity).to_pylist() == [expected]


@pytest.mark.parametrize(
    "column, schema",
    [
        (pa.array(["nan"]), Schema.decimal(2, 10)),
        (pa.array(["1.234"]), Schema.decimal(2, 10)),
        (pa.array([2.0**60]), Schema.decimal(2, 30)),
        (pa.array([1.5, 1.239]), Schema.decimal(2, 30)),
        (pa.array([70000]), Schema(SchemaType.INT16)),
        (pa.array(["soon"]), Schema.timestamp()),
        (pa.array([2**62], pa.int64()).cast(pa.timestamp("us")), Schema.date()),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_the_columns_name(column: pa.Array, schema: Schema) -> None:
    with pytest.raises(DataError, match="column 'amount' holds a value that does not fit its type"):
        to_connect(column, schema, name="amount")
