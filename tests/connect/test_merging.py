import pyarrow as pa

from connect.api import RecordBatch, Schema, SchemaType
from connect.task.merging import merged

NUMBER = Schema(SchemaType.INT64)


def batch(*numbers, topic="t", partition="p", keys=False, schema=NUMBER):
    values = pa.array(numbers, pa.int64())
    return RecordBatch(
        topic, values, schema, keys=values if keys else None, key_schema=NUMBER if keys else None,
        source_partition={"of": partition}, source_offset={"n": numbers[-1]},
    )  # fmt: skip


def rows(batches):
    return [batch.values.to_pylist() for batch in batches]


def test_neighbours_become_one_with_the_last_position():
    (joined,) = merged([batch(1, 2), batch(3), batch(4, 5)])
    assert joined.values.to_pylist() == [1, 2, 3, 4, 5] and joined.source_offset == {"n": 5}


def test_batches_that_differ_are_not_merged():
    other = Schema(SchemaType.INT64, optional=True)
    batches = [
        batch(1),
        batch(2, topic="u"),
        batch(3, topic="u", partition="q"),
        batch(4, keys=True),
        batch(5, schema=other),
    ]
    assert rows(merged(batches)) == [[1], [2], [3], [4], [5]]


def test_batches_are_not_merged_beyond_the_bound():
    assert rows(merged([batch(1, 2), batch(3, 4), batch(5)], max_bytes=32)) == [[1, 2, 3, 4], [5]]
    assert rows(merged([batch(*range(100)), batch(1)], max_bytes=8)) == [list(range(100)), [1]]


def test_merging_no_batches_gives_none():
    assert merged([]) == []
