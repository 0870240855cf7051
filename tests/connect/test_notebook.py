"""Connectors in the current process: read a source into a table, write a frame with a sink."""

from __future__ import annotations

import sqlite3

import pandas as pd
import pyarrow.parquet as pq
import pytest

from connect.api import ConnectError
from connect.notebook import batches, read, write


@pytest.fixture
def shop(tmp_path):
    """A SQLite file with a table of three orders, and the keys of a source that reads it."""
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as shop:
        shop.execute("create table orders (id integer primary key, country text, total real)")
        shop.executemany("insert into orders values (?, ?, ?)", [(1, "de", 9.5), (2, "fr", 3.0), (3, "de", None)])
    return {
        "connection.url": f"jdbc:sqlite:{path}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": "shop_",
        "poll.interval.ms": "50",
    }


def test_a_source_becomes_a_table(shop):
    frame = read("JdbcSource", shop).to_pandas()
    assert frame.to_dict("list") == {
        "id": [1, 2, 3],
        "country": ["de", "fr", "de"],
        "total": pytest.approx([9.5, 3.0, float("nan")], nan_ok=True),
    }


def test_transforms_apply_and_rows_are_counted(shop):
    chain = {
        "transforms": "one",
        "transforms.one.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.one.field": "country",
    }
    result = batches("JdbcSource", {**shop, **chain}, rows=2)
    assert [value for batch in result for value in batch.values.to_pylist()] == ["de", "fr"]


def test_a_frame_is_written_by_a_sink(tmp_path):
    frame = pd.DataFrame({"id": range(5), "country": ["de", "fr", "de", "se", "de"]})
    config = {
        "store.url": str(tmp_path / "out"),
        "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
        "flush.size": "1",
        "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
        "partition.field.name": "country",
    }
    assert write("tidegate.local.LocalSinkConnector", config, frame, topic="orders") == 5
    written = sorted((tmp_path / "out").rglob("*.parquet"))
    assert len(written) == 5
    assert sorted(row["id"] for path in written for row in pq.read_table(path, partitioning=None).to_pylist()) == [
        0,
        1,
        2,
        3,
        4,
    ]


def test_a_sink_is_no_source():
    with pytest.raises(ConnectError, match="FileStreamSinkConnector is a sink: use write"):
        read("FileStreamSink", {"topics": "x"})
