"""The changes that a table needs before it takes rows of another schema; without a JVM."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from connectors.spark.tables.evolution import SchemaConflict, changes_of


def table(**columns):
    return StructType([StructField(name, type_) for name, type_ in columns.items()])


def actions(there, rows, allowed="widen"):
    return [change.action for change in changes_of(there, rows, allowed=allowed)]


@pytest.mark.parametrize(
    ("there", "rows", "wider"),
    [
        (IntegerType(), LongType(), "BIGINT"),
        (ByteType(), IntegerType(), "INT"),
        (FloatType(), DoubleType(), "DOUBLE"),
        (DecimalType(10, 2), DecimalType(12, 2), "DECIMAL(12,2)"),
    ],
)
def test_a_number_becomes_wider_and_a_narrower_one_fits(there, rows, wider):
    assert actions(table(n=there), table(n=rows)) == [f"ALTER COLUMN `n` TYPE {wider}"]
    assert actions(table(n=rows), table(n=there)) == []


@pytest.mark.parametrize(
    ("there", "rows"),
    [
        (StringType(), LongType()),
        (LongType(), StringType()),
        (DateType(), StringType()),
        (LongType(), DoubleType()),
        (DecimalType(10, 2), DecimalType(10, 3)),
        (MapType(IntegerType(), StringType()), MapType(LongType(), StringType())),
        (ArrayType(StringType()), StringType()),
    ],
)
def test_what_loses_values_is_refused_with_both_types(there, rows):
    with pytest.raises(
        SchemaConflict, match=r"the column n(\.key)? is .* in the table and .* in the rows.*stay in their topic"
    ):
        changes_of(table(n=there), table(n=rows), allowed="widen")


def test_columns_are_added_at_any_depth_and_compared_without_case():
    there = table(Id=LongType(), s=table(a=IntegerType()), list=ArrayType(table(a=IntegerType())))
    inner = table(a=LongType(), b=StringType())
    rows = table(id=LongType(), s=inner, list=ArrayType(inner), m=MapType(StringType(), inner))
    assert actions(there, rows) == [
        "ALTER COLUMN `s`.`a` TYPE BIGINT",
        "ADD COLUMNS (`s`.`b` STRING)",
        "ALTER COLUMN `list`.`element`.`a` TYPE BIGINT",
        "ADD COLUMNS (`list`.`element`.`b` STRING)",
        "ADD COLUMNS (`m` MAP<STRING, STRUCT<`a`: BIGINT, `b`: STRING>>)",
    ]


def test_a_column_that_is_gone_stays_unless_it_may_not_be_null():
    there = StructType([StructField("id", LongType()), StructField("must", LongType(), nullable=False)])
    assert actions(table(id=LongType(), gone=StringType()), table(id=LongType())) == []
    with pytest.raises(SchemaConflict, match="must is NOT NULL in the table, and the rows lack it"):
        changes_of(there, table(id=LongType()), allowed="widen")


@pytest.mark.parametrize(("allowed", "refused"), [("none", ["more", "n"]), ("add", ["n"])])
def test_changes_that_are_not_allowed_are_refused(allowed, refused):
    with pytest.raises(SchemaConflict) as error:
        changes_of(table(n=IntegerType()), table(n=LongType(), more=StringType()), allowed=allowed)
    assert [name for name in ("more", "n") if f"the column {name} would" in str(error.value)] == refused
