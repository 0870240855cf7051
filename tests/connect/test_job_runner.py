import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api import ConnectError, OffsetRange, TopicPartition
from connect.connector_config import JobConfig, SinkConfig
from connect.control import TaskControl
from connect.sinks.job_runner import JobRunner, PartitionState, planned_ranges
from tidegate.kit.config import parse

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


class Log:
    """A log of one partition, as a job's runner sees it."""

    def __init__(self, committed, first, end):
        self.committed, self.first, self.end = committed, first, end

    def partitions(self, config):
        return {PARTITION: PartitionState(self.committed, self.first, self.end)}

    def commit(self, offsets):
        self.committed = offsets[PARTITION]


class RecordingTask:
    def __init__(self):
        self.ranges = []

    def run(self, ranges):
        self.ranges += ranges


PARTITION = TopicPartition("t", 0)


def stepped(log, steps=1, **properties):
    """The ranges that a job ran over in so many looks at the log."""
    task = RecordingTask()
    runner = JobRunner(
        task,
        TaskControl(),
        connector="job",
        sink=parse(SinkConfig, {"name": "job", "connector.class": "Job", "topics": "t"}),
        job=parse(JobConfig, {"job.interval.ms": "0", **properties}),
        offsets=log,
        on_topic=lambda topic: None,
        close=lambda: None,
    )
    runner.begin()
    for _ in range(steps):
        runner.step()
    return task.ranges


LOST = pytest.mark.parametrize("log", [Log(3, 10, 20), Log(30, 10, 20)], ids=["retention", "topic made anew"])


@LOST
def test_a_job_whose_records_are_gone_fails_and_says_so(log):
    with pytest.raises(ConnectError, match="t-0 has offsets 10 to 20, committed is (3|30).*job.offset.reset"):
        stepped(log)
    assert log.committed in {3, 30}


@pytest.mark.parametrize("committed", [3, 30], ids=["retention", "topic made anew"])
def test_a_job_may_go_on_at_the_first_record_that_is_there(committed):
    log = Log(committed, 10, 20)
    assert stepped(log, **{"job.offset.reset": "earliest"}) == [OffsetRange(PARTITION, 10, 20)]
    assert log.committed == 20


def test_a_job_that_goes_on_behind_the_last_record_reads_what_comes_next():
    log = Log(3, 10, 20)
    assert stepped(log, **{"job.offset.reset": "latest"}) == []
    assert log.committed == 20
    log.end = 25
    assert stepped(log, **{"job.offset.reset": "latest"}) == [OffsetRange(PARTITION, 20, 25)]


def test_a_job_that_never_committed_begins_at_the_first_record():
    assert stepped(Log(None, 10, 20)) == [OffsetRange(PARTITION, 10, 20)]
