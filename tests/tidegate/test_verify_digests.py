"""Sums of rows for `tidegate verify sink`: they are equal where the rows are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.registry.serde.drawn import Table, arrow_column, tables
from tidegate.verify.digests import RowDigests, in_buckets, row_hashes


def as_rows(column: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(column)


def texts(column: pa.Array) -> list[str]:
    return [repr({name: cell for name, cell in row.items() if cell is not None}) for row in column.to_pylist()]


@settings(max_examples=150, deadline=None)
@given(table=tables(), data=st.data())
def test_rows_have_equal_hashes_where_their_values_are_equal(table: Table, data: st.DataObject) -> None:
    """Wherever a batch is cut, and whatever the columns' order."""
    column = arrow_column(*table)
    if not len(column):
        return
    chosen = data.draw(st.lists(st.integers(0, len(column) - 1), min_size=1, max_size=8))
    column = pa.concat_arrays([column, column.take(pa.array(chosen))])
    start = data.draw(st.integers(0, len(column) - 1))
    rows = as_rows(column.slice(start))
    hashes = row_hashes(rows).tolist()
    shown = texts(column.slice(start))
    assert len(set(hashes)) == len(set(zip(hashes, shown, strict=True))) == len(set(shown))
    order = data.draw(st.permutations(rows.schema.names))
    assert row_hashes(rows.select(order)).tolist() == hashes


LOOKALIKES: Sequence[pa.Array] = [
    pa.array([1], pa.int64()),
    pa.array([1.0], pa.float64()),
    pa.array([True]),
    pa.array(["1"]),
    pa.array([b"1"]),
    pa.array([[1]], pa.list_(pa.int64())),
    pa.array([{"x": 1}]),
    pa.array([{"y": 1}]),
    pa.array([{"x": None}], pa.struct([("x", pa.int64())])),
    pa.array([[]], pa.list_(pa.int64())),
    pa.array([[None]], pa.list_(pa.int64())),
    pa.array([[1, 2]]),
    pa.array([[2, 1]]),
    pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    pa.array([-0.0]),
    pa.array([0.0]),
    pa.array([0], pa.int64()),
    pa.array([False]),
    pa.array([""]),
    pa.array([b""]),
    pa.array([0], pa.date32()),
    pa.array([0], pa.timestamp("ms")),
    pa.array([0], pa.timestamp("ms", "UTC")),
    pa.array([(1 << 64) - 1], pa.uint64()),
    pa.array([-1], pa.int64()),
    pa.array([None], pa.int64()),
]


def test_values_that_look_alike_have_different_hashes() -> None:
    hashes = [row_hashes(pa.RecordBatch.from_arrays([column], ["x"])).item() for column in LOOKALIKES]
    assert len(set(hashes)) == len(LOOKALIKES)
    other = row_hashes(pa.RecordBatch.from_arrays([LOOKALIKES[0]], ["y"])).item()
    assert other != hashes[0]
    narrow = [pa.array([1], kind) for kind in (pa.int8(), pa.int16(), pa.int32())]
    assert {row_hashes(pa.RecordBatch.from_arrays([column], ["x"])).item() for column in narrow} == {hashes[0]}


@settings(max_examples=60, deadline=None)
@given(sides=st.tuples(*[st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), max_size=9)] * 2))
def test_only_rows_that_one_side_has_more_often_are_in_buckets_that_differ(sides: tuple[list[Any], list[Any]]) -> None:
    digests = RowDigests()
    batches = []
    for side, rows in enumerate(sides):
        batch = pa.RecordBatch.from_pydict({"n": pa.array([n for n, _ in rows], pa.int64()), "t": [t for _, t in rows]})
        batches.append(batch.cast(pa.schema([("n", pa.int64()), ("t", pa.string())])))
        for start in range(0, len(rows), 2):
            digests.add(side, "t", batches[-1].slice(start, 2))
    counts = [Counter(rows) for rows in sides]
    for rows, batch in zip(sides, batches, strict=True):
        chosen = in_buckets("t", batch, digests.differing()).to_pylist()
        assert chosen == [counts[0][row] != counts[1][row] for row in rows]
    assert [digests.count(side) for side in (0, 1)] == [len(rows) for rows in sides]


@pytest.mark.parametrize("other", ["t", "u"])
def test_rows_belong_to_their_table(other: str) -> None:
    digests = RowDigests()
    rows = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})
    digests.add(0, "t", rows)
    digests.add(1, other, rows)
    assert digests.differing().any() == (other != "t")
