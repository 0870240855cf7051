"""Records as a Parquet file, read by DuckDB."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.records.parquet import write_parquet


def record(offset: int, value: Any, **more: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "offset": offset, "timestamp": 1_700_000_000_000, "value": value, **more}


def made(records: list[dict[str, Any]]) -> bytes:
    output = io.BytesIO()
    write_parquet(io.BytesIO("".join(json.dumps(each) + "\n" for each in records).encode()), output)
    return output.getvalue()


def rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    return duckdb.sql(f"SELECT {query} FROM '{file}' ORDER BY \"offset\"").fetchall()


def test_values_of_one_shape_are_columns(tmp_path):
    file = tmp_path / "a.parquet"
    file.write_bytes(made([record(0, {"id": 1, "at": {"city": "Oslo"}}, key="a"), record(1, {"id": 2, "at": None})]))
    assert rows(file, "value.id, value.at.city, key, epoch_ms(timestamp)") == [
        (1, "Oslo", "a", 1_700_000_000_000),
        (2, None, None, 1_700_000_000_000),
    ]


@pytest.mark.parametrize("values", [[{"id": 1}, "text", None], [{"id": 1}, {"id": "x"}], [1, [2]], []])
def test_values_of_several_shapes_are_text(tmp_path, values):
    file = tmp_path / "a.parquet"
    file.write_bytes(made([record(n, value) for n, value in enumerate(values)]))
    told = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    assert [row[0] for row in rows(file, "value")] == told


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(_JSON, max_size=4))
@settings(max_examples=100, deadline=None)
def test_any_values_make_a_file(values):
    content = made([record(n, value) for n, value in enumerate(values)])
    assert content[:4] == content[-4:] == b"PAR1"
