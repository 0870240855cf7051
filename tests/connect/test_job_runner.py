from hypothesis import given
from hypothesis import strategies as st

from connect.api import OffsetRange, TopicPartition
from connect.sinks.job_runner import planned_ranges

BOUNDS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3)),
    st.tuples(st.integers(0, 50), st.integers(0, 100)),
)


@given(BOUNDS, st.integers(0, 200))
def test_ranges_begin_where_the_group_is_and_stay_within_the_limit(bounds, limit):
    ranges = planned_ranges(bounds, limit)
    for one in ranges:
        start, stop = bounds[one.partition]
        assert one.start == start and start < one.stop <= stop
    total = sum(one.stop - one.start for one in ranges)
    there = sum(max(0, stop - start) for start, stop in bounds.values())
    assert total == (min(there, limit) if limit else there)


def test_small_partitions_leave_their_share_to_the_others():
    bounds = {TopicPartition("t", 0): (0, 10), TopicPartition("t", 1): (5, 1000)}
    assert planned_ranges(bounds, 100) == [
        OffsetRange(TopicPartition("t", 0), 0, 10),
        OffsetRange(TopicPartition("t", 1), 5, 95),
    ]
