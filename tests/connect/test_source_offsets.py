import tracemalloc
from concurrent.futures import Future

import pytest

from connect.api import ConnectError
from connect.task.sources.offsets import OffsetKeys, SubmittedBatches


def sent(count=1):
    return [Future() for _ in range(count)]


def test_a_position_is_safe_when_all_before_it_is():
    submitted = SubmittedBatches(OffsetKeys("c", {}))
    first, second, third = sent(2), sent(), sent()
    for n, futures in enumerate((first, second, third)):
        submitted.add({"p": 1}, {"n": n}, futures)
    second[0].set_result(None)
    first[0].set_result(None)
    assert submitted.take_safe() == []
    first[1].set_result(None)
    assert submitted.take_safe() == [({"p": 1}, {"n": 1})]
    assert submitted.take_safe() == [] and submitted.pending == third


def test_partitions_do_not_wait_for_each_other():
    submitted = SubmittedBatches(OffsetKeys("c", {}))
    submitted.add({"p": 1}, {"n": 1}, sent())
    submitted.add({"p": 2}, {"n": 2}, [])
    assert submitted.take_safe() == [({"p": 2}, {"n": 2})]


def test_the_offset_of_a_failed_record_is_never_safe():
    submitted = SubmittedBatches(OffsetKeys("c", {}))
    (future,) = sent()
    submitted.add({"p": 1}, {"n": 1}, [future])
    submitted.add({"p": 1}, {"n": 2}, [])
    future.set_exception(OSError("gone"))
    assert submitted.take_safe() == []


def test_a_key_that_is_in_the_topic_is_written_again_byte_for_byte():
    keys = OffsetKeys("c", {'{"a":1,"b":2}': '["c",{"b":2,"a":1}]'})
    assert keys.key({"a": 1, "b": 2}) == b'["c",{"b":2,"a":1}]'
    assert keys.key({"x": "é"}) == '["c",{"x":"é"}]'.encode()


def test_positions_hold_scalars_only():
    with pytest.raises(ConnectError, match="'n'"):
        SubmittedBatches(OffsetKeys("c", {})).add({"p": 1}, {"n": [1]}, [])


def test_rows_without_a_partition_hold_the_next_position_of_any():
    submitted = SubmittedBatches(OffsetKeys("c", {}))
    (first,), (second,) = sent(), sent()
    submitted.add(None, None, [first])
    submitted.add({"p": 1}, {"n": 1}, [second])
    second.set_result(None)
    assert submitted.take_safe() == [] and submitted.pending == [first]
    first.set_exception(OSError("refused"))
    assert submitted.take_safe() == []


def test_rows_without_any_position_are_waited_for_and_then_forgotten():
    submitted = SubmittedBatches(OffsetKeys("c", {}))
    (last,) = sent()
    submitted.add(None, None, [last])
    assert submitted.pending == [last]
    last.set_result(None)
    assert submitted.pending == []


def test_memory_is_that_of_what_is_in_flight_however_many_partitions_there_were():
    keys = OffsetKeys("c", {})
    submitted = SubmittedBatches(keys)

    def deliver(objects):
        for n in objects:
            submitted.add({"object": f"folder/{n}"}, {"row": 1}, [])
            ((partition, _),) = submitted.take_safe()
            keys.key(partition)

    deliver(range(100))
    tracemalloc.start()
    try:
        deliver(range(100, 10_000))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
