import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api import ConnectError, OffsetRange, TopicPartition
from connect.config.connector import JobConfig, SinkConfig
from connect.task.control import TaskControl
from connect.task.error_policy import ErrorPolicy
from connect.task.sinks.job_log import Intent, PartitionState
from connect.task.sinks.job_runner import JobRunner, planned_ranges
from tidegate.kit.config import parse
from tidegate.kit.errors import RetriableError

BOUNDS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 3)),
    st.tuples(st.integers(0, 50), st.integers(0, 100)),
)


@given(BOUNDS, st.integers(0, 200))
def test_ranges_begin_where_the_group_is_and_stay_within_the_limit(bounds, limit):
    ranges = planned_ranges(bounds, limit)
    for part in ranges:
        start, stop = bounds[part.partition]
        assert part.start == start and start < part.stop <= stop
    total = sum(part.stop - part.start for part in ranges)
    there = sum(max(0, stop - start) for start, stop in bounds.values())
    assert total == (min(there, limit) if limit else there)


def test_small_partitions_leave_their_share_to_the_others():
    bounds = {TopicPartition("t", 0): (0, 10), TopicPartition("t", 1): (5, 1000)}
    assert planned_ranges(bounds, 100) == [
        OffsetRange(TopicPartition("t", 0), 0, 10),
        OffsetRange(TopicPartition("t", 1), 5, 95),
    ]


class Log:
    """A log as a job's runner sees it; made with one partition."""

    def __init__(self, committed, first, end):
        self.states = {PARTITION: PartitionState(committed, first, end)}

    def partitions(self, config):
        return dict(self.states)

    def commit(self, offsets, intents=None):
        for partition, offset in offsets.items():
            intent = (intents or {}).get(partition)
            self.states[partition] = self.states[partition]._replace(committed=offset, intent=intent)

    def grow(self, partition, end):
        state = self.states.get(partition, PartitionState(None, 0, 0))
        self.states[partition] = state._replace(end=end)

    @property
    def committed(self):
        return self.states[PARTITION].committed


class RecordingTask:
    follows = endless = False

    def __init__(self, dies=False):
        self.dies, self.runs = dies, []

    @property
    def ranges(self):
        return [part for _, ranges in self.runs for part in ranges]

    def run(self, ranges, run_id):
        self.runs.append((run_id, list(ranges)))
        if self.dies:
            raise OSError("killed in the middle of the run")


PARTITION, IDLE = TopicPartition("t", 0), TopicPartition("t", 1)


def made(log, task, control, dead_letters=None, **properties):
    sink = parse(SinkConfig, {"name": "job", "connector.class": "Job", "topics": "t"})
    return JobRunner(
        task,
        control,
        connector="job",
        sink=sink,
        job=parse(JobConfig, properties),
        offsets=log,
        policy=ErrorPolicy(sink, "job", 0, control.stopping),
        dead_letters=dead_letters,
        on_topic=lambda topic: None,
        close=lambda: None,
    )


def stepped(log, steps=1, task=None, dead_letters=None, **properties):
    """The ranges that a job ran over in this many checks of the log."""
    task = task or RecordingTask()
    runner = made(log, task, TaskControl(), dead_letters=dead_letters, **{"job.interval.ms": "0", **properties})
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
    log.grow(PARTITION, 25)
    assert stepped(log, **{"job.offset.reset": "latest"}) == [OffsetRange(PARTITION, 20, 25)]


def test_a_job_that_never_committed_begins_at_the_first_record():
    assert stepped(Log(None, 10, 20)) == [OffsetRange(PARTITION, 10, 20)]


def killed(log, **properties):
    """A job that is killed in the middle of a run: the id of the run and its ranges."""
    task = RecordingTask(dies=True)
    with pytest.raises(OSError, match="killed"):
        stepped(log, task=task, **properties)
    ((run_id, ranges),) = task.runs
    return run_id, ranges


@pytest.mark.parametrize("later", [{}, {"job.max.records": "1"}, {"job.min.records": "1000"}])
def test_a_run_that_was_killed_is_repeated_as_it_was_though_more_records_came(later):
    log = Log(0, 0, 20)
    run_id, ranges = killed(log)
    assert ranges == [OffsetRange(PARTITION, 0, 20)]
    log.grow(PARTITION, 30)
    log.grow(IDLE, 1)
    task = RecordingTask()
    stepped(log, task=task, **later)
    assert task.runs == [(run_id, ranges)]
    assert log.committed == 20
    stepped(log, task=task)
    other, rest = task.runs[1]
    assert other != run_id
    assert rest == [OffsetRange(PARTITION, 20, 30), OffsetRange(IDLE, 0, 1)]
    assert all(state.intent is None for state in log.states.values())


def test_a_run_that_was_killed_and_whose_records_are_gone_fails_or_is_repeated_without_them():
    log = Log(0, 0, 20)
    run_id, _ = killed(log)
    log.states[PARTITION] = log.states[PARTITION]._replace(first=5)
    with pytest.raises(ConnectError, match="committed is 0 and a run to 20 is not done"):
        stepped(log)
    task = RecordingTask()
    stepped(log, task=task, **{"job.offset.reset": "earliest"})
    assert task.runs == [(run_id, [OffsetRange(PARTITION, 5, 20)])]


def test_a_run_over_a_topic_that_was_made_anew_is_not_repeated():
    log = Log(10, 0, 20)
    run_id, _ = killed(log)
    log.grow(PARTITION, 15)
    with pytest.raises(ConnectError, match="a run to 20 is not done"):
        stepped(log)
    task = RecordingTask()
    stepped(log, task=task, **{"job.offset.reset": "earliest"})
    ((other, ranges),) = task.runs
    assert other != run_id and ranges == [OffsetRange(PARTITION, 0, 15)]


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("which", ["intention", "end"])
def test_a_commit_whose_answer_is_lost_neither_loses_nor_doubles_a_run(which, applied):
    log, task = Log(0, 0, 20), RecordingTask()
    commit = log.commit

    def broken(offsets, intents=None):
        if bool(intents) is (which == "intention"):
            if applied:
                commit(offsets, intents)
            raise OSError("the connection is lost")
        commit(offsets, intents)

    log.commit = broken
    with pytest.raises(OSError, match="lost"):
        stepped(log, task=task)
    log.commit = commit
    log.grow(PARTITION, 30)
    stepped(log, 3, task=task)
    assert log.committed == 30
    # The last run of each id is what its target has.
    results = dict(task.runs)
    assert sorted(n for ranges in results.values() for part in ranges for n in range(part.start, part.stop)) == list(
        range(30)
    )


@given(st.from_regex("[0-9a-f]{16}", fullmatch=True), st.integers(0, 1 << 62), st.text())
def test_offset_metadata_of_others_is_no_run(run_id, stop, text):
    assert Intent.from_metadata(text) is None
    assert Intent.from_metadata(Intent(run_id, stop).to_metadata()) == Intent(run_id, stop)


@pytest.mark.parametrize(
    "text",
    [
        '{"run": "../../../etc/passwd", "stop": 3}',
        '{"run": "0123456789abcdef/", "stop": 3}',
        '{"run": "0123456789abcdef\\n", "stop": 3}',
        '{"run": "0123456789abcdef", "stop": Infinity}',
        '{"run": "0123456789abcdef", "stop": 3.5}',
        '{"run": "0123456789abcdef", "stop": "3"}',
        '{"run": 5, "stop": 3}',
        '["0123456789abcdef", 3]',
        "[" * 4000,
        '{"run": "0123456789abcdef", "stop": ' + "9" * 4000 + "}",
    ],
)
def test_a_hostile_intention_is_none(text):
    """The id is part of the names of folders that a job overwrites and removes."""
    found = Intent.from_metadata(text)
    assert found is None or not PartitionState(0, 0, 10, found).has_position


class Letters:
    """A dead letter queue whose log is away for the first waits."""

    def __init__(self, log, away):
        self.log, self.away, self.committed_at = log, away, []

    def wait_until_written(self):
        self.committed_at.append(self.log.committed)
        if self.away:
            self.away -= 1
            raise RetriableError("the log did not answer")

    def attributes(self):
        return {}


def test_a_run_is_committed_when_its_dead_letters_are_written():
    log = Log(0, 0, 20)
    letters = Letters(log, away=0)
    assert stepped(log, dead_letters=letters) == [OffsetRange(PARTITION, 0, 20)]
    assert (letters.committed_at, log.committed) == ([0], 20)


def test_a_run_whose_dead_letters_are_not_written_is_run_again():
    log = Log(0, 0, 20)
    task = RecordingTask()
    stepped(log, task=task, dead_letters=Letters(log, away=1))
    assert log.committed == 0
    stepped(log, task=task, dead_letters=Letters(log, away=0))
    (first, ranges), (second, again) = task.runs
    assert (first, ranges) == (second, again)
    assert log.committed == 20


def test_a_job_runs_before_its_time_when_told_to_and_once():
    log, task, control = Log(0, 0, 5), RecordingTask(), TaskControl()
    runner = made(log, task, control, **{"job.schedule": "0 0 1 1 *", "job.min.records": "100"})
    runner.begin()
    runner.step()
    assert task.ranges == [], "it is not due"
    control.job_ordered.set()
    runner.step()
    assert task.ranges == [OffsetRange(PARTITION, 0, 5)], "though it is less than job.min.records"
    log.grow(PARTITION, 9)
    runner.step()
    assert len(task.ranges) == 1


def test_the_last_runs_of_a_job_are_told():
    log, task, control = Log(0, 0, 5), RecordingTask(), TaskControl()
    runner = made(log, task, control, **{"job.interval.ms": "0"})
    runner.begin()
    for end in (5, 9):
        log.grow(PARTITION, end)
        runner.step()
    told = runner.statistics()["job"]
    assert [(run["state"], run["records"], run["partitions"], run["error"]) for run in told["runs"]] == [
        ("done", 4, 1, None),
        ("done", 5, 1, None),
    ]
    assert told["runs"][0]["id"] == task.runs[1][0] and told["next_run_ms"] >= told["runs"][0]["ended_ms"]
    task.dies = True
    log.grow(PARTITION, 10)
    with pytest.raises(OSError, match="killed"):
        runner.step()
    told = runner.statistics()["job"]
    assert (told["runs"][0]["state"], told["runs"][0]["error"]) == ("failed", "killed in the middle of the run")
    task.dies = False
    again = made(log, task, control, **{"job.interval.ms": "0"})
    again.begin()
    again.step()
    assert [(run["state"], run["repeated"]) for run in again.statistics()["job"]["runs"]] == [("done", True)]


class FollowingTask(RecordingTask):
    """Commits all that is there, in two steps, and then does what it is told."""

    follows, endless = True, False

    def __init__(self, log, then=lambda: None):
        super().__init__()
        self.log, self.then, self.commit = log, then, None

    def follow(self, topics):
        end = self.log.states[PARTITION].end
        self.runs.append(("", [(tuple(topics), end)]))
        for at in (end - 1, end):
            self.commit({PARTITION: at})
        self.then()


def followed(log, control, then=lambda: None, **properties):
    task = FollowingTask(log, then)
    runner = made(log, task, control, **{"job.interval.ms": "0", **properties})
    task.commit = runner.commit
    runner.begin()
    return task, runner


def test_a_task_that_follows_commits_by_itself_and_is_called_when_there_are_new_records():
    log = Log(None, 0, 5)
    task, runner = followed(log, TaskControl())
    for end in (5, 5, 9):
        log.grow(PARTITION, end)
        runner.step()
    assert task.ranges == [(("t",), 5), (("t",), 9)]
    assert log.committed == 9
    newest, older = runner.statistics()["job"]["runs"]
    assert [(run["state"], run["records"]) for run in (older, newest)] == [("done", 5), ("done", 4)]
    assert runner.statistics()["sink-task-metrics"] == {"sink-record-send-total": 9}
    task.endless = True
    runner.step()
    assert len(task.ranges) == 3


def test_a_task_that_follows_is_interrupted_by_a_pause_and_is_due_at_once_after_it():
    control = TaskControl()

    def paused():
        control.set_paused(True)
        raise ConnectError("the engine was ended")

    task, runner = followed(Log(None, 0, 5), control, paused, **{"job.interval.ms": "3600000"})
    task.endless = True
    runner.step()
    assert runner.statistics()["job"]["runs"][0]["state"] == "cancelled"
    control.set_paused(False)
    assert not control.interrupted.is_set()
    task.then = lambda: None
    runner.step()
    assert [run["state"] for run in runner.statistics()["job"]["runs"]] == ["done", "cancelled"]
    control.stop()
    assert control.interrupted.is_set()


class LeavingOutTask:
    follows, endless = True, False

    def follow(self, topics):
        self.runner.commit({PARTITION: 20})


def test_a_stream_commits_its_offsets_when_what_it_left_out_is_written():
    log = Log(0, 0, 20)
    for away, committed in ((1, 0), (0, 20)):
        task = LeavingOutTask()
        task.runner = made(log, task, TaskControl(), Letters(log, away), **{"job.interval.ms": "0"})
        task.runner.begin()
        task.runner.step()
        assert log.committed == committed
