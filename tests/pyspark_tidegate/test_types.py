"""Columns in Spark's types, and in those of them that a job asks for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_tidegate.types import converted, spark_arrow

POINT = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.int32())])


def test_fields_are_matched_by_name_in_structs_lists_and_maps() -> None:
    less = pa.struct([pa.field("y", pa.int64()), pa.field("z", pa.string())])
    points = [{"x": 1, "y": 2}, None, {"x": 3, "y": None}]
    read = [{"y": 2, "z": None}, None, {"y": None, "z": None}]
    assert converted(pa.array(points, POINT), less).to_pylist() == read
    lists = pa.array([points, None, []], pa.list_(POINT)).slice(0)
    assert converted(lists, pa.list_(less)).to_pylist() == [read, None, []]
    maps = pa.array([[("a", points[0])], None, [("b", points[2]), ("c", None)]], pa.map_(pa.string(), POINT))
    expected = [[("a", read[0])], None, [("b", read[2]), ("c", None)]]
    assert converted(maps, pa.map_(pa.string(), less)).to_pylist() == expected
    assert converted(maps.slice(1), pa.map_(pa.string(), less)).to_pylist() == expected[1:]


def test_a_value_that_does_not_fit_is_refused_and_nanoseconds_are_cut() -> None:
    nanos = pa.array([1_999], pa.timestamp("ns", "UTC"))
    assert converted(nanos, spark_arrow(nanos.type)).cast(pa.int64()).to_pylist() == [1]
    with pytest.raises(pa.ArrowInvalid):
        converted(pa.array([1 << 62], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC"))
    with pytest.raises(pa.ArrowInvalid):
        converted(pa.array([1 << 40]), pa.int32())
