import numpy as np
import pyarrow as pa
from aiokafka.partitioner import murmur2 as one_at_a_time
from hypothesis import given
from hypothesis import strategies as st

from broker.client.partitioning import murmur2, partitions_for

KEYS = st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=30)


@given(KEYS, st.integers(0, 3))
def test_keys_hash_as_one_at_a_time(keys, skipped):
    column = pa.array(keys, pa.binary()).slice(min(skipped, len(keys) - 1))
    for key, hashed in zip(column.to_pylist(), murmur2(column).tolist(), strict=True):
        if key is not None:
            assert hashed == one_at_a_time(key) & 0xFFFFFFFF


def test_java_s_own_examples():
    # From Kafka's UtilsTest: -973932308 for "21", -790332482 for "foobar".
    hashes = murmur2(pa.array([b"21", b"foobar", b"a-little-bit-long-string"])).astype(np.int32).tolist()
    assert hashes == [-973932308, -790332482, -985981536]


def test_a_named_partition_counts_most_then_the_key_then_the_sticky_one():
    keys, partitions = pa.array([b"21", None, b"21"]), pa.array([None, None, 1], pa.int32())
    by_key = (one_at_a_time(b"21") & 0x7FFFFFFF) % 5
    assert partitions_for(keys, partitions, 3, 5, 14).tolist() == [by_key, 4, 1]
    assert partitions_for(None, None, 3, 5, 2).tolist() == [2, 2, 2]
