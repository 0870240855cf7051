"""The sink runner's rules, with a consumer that the test controls."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future

import pyarrow as pa
import pytest

from broker.client import FetchedBatches
from broker.client.columns import encode_batches
from connect.api import ConverterContext, RetriableConnectError, SinkTask, TopicPartition
from connect.config.connector import SinkConfig
from connect.converters.string import StringConfig, StringConverter
from connect.task.context import RunningSinkContext
from connect.task.control import TaskControl
from connect.task.error_policy import ErrorPolicy
from connect.task.lifecycle import Lifecycle
from connect.task.sinks.pipeline import SinkPipeline
from connect.task.sinks.runner import SinkRunner
from connect.transforms.chain import TransformChain
from tidegate.kit.config import parse

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def fetched(partition, start, *values):
    from broker.client.batches import split

    (encoded,) = encode_batches(None, pa.array([v.encode() for v in values], pa.binary()))
    data = bytearray(encoded.stamp(-1, -1, -1, transactional=False))
    data[:8] = start.to_bytes(8, "big")
    stop = start + len(values)
    batches = tuple(split(memoryview(bytes(data)), check_crc=False, where="t"))
    return FetchedBatches(partition.topic, partition.partition, start, stop, stop, batches)


class Script:
    """A consumer that plays a list of events; at its end it has the task stopped."""

    def __init__(self, control, *events):
        self.events = queue.Queue()
        self._control, self._script = control, list(events)
        self.committed_offsets, self.sought, self.is_paused = [], [], set()

    missing_topics: frozenset[str] = frozenset()

    def start_fetch(self, max_wait_ms, max_bytes):
        done = Future()
        while self._script:
            event = self._script.pop(0)
            if isinstance(event, tuple):
                self.events.put((*event, Future()))
                continue
            break
        else:
            event = []
            self._control.stop()
        done.set_result(event)
        self.events.put(("fetched", done, None))
        return done

    def seek(self, partition, offset):
        self.sought.append((partition, offset))

    def pause(self, *partitions):
        self.is_paused.update(partitions)

    def resume(self, *partitions):
        self.is_paused.difference_update(partitions)

    def commit(self, offsets):
        self.committed_offsets.append(dict(offsets))

    def stop(self):
        pass


class Task(SinkTask):
    """Notes what it is called with; ``do`` may interfere with a put."""

    def __init__(self, context, do=lambda task, values: None):
        super().__init__(None, context)
        self.do, self.log, self.threads, self.shut, self.unsafe = do, [], set(), 0, 0
        self.stored = {}

    def open(self, partitions):
        if self.shut:
            self.shut -= 1
            raise RetriableConnectError("not yet")
        self.log.append(("open", list(partitions)))
        self.context.rewind(self.stored)

    def close(self, partitions):
        self.log.append(("close", list(partitions)))

    def put(self, batches):
        self.threads.add(threading.get_ident())
        values = [(b.origin.partition, v) for b in batches for v in b.values.to_pylist()]
        self.do(self, values)
        if values:
            self.log.append(("put", values))

    def flush(self):
        if self.unsafe:
            self.unsafe -= 1
            raise RetriableConnectError("not safe yet")

    def stop(self):
        self.log.append("stop")


@pytest.fixture
def run():
    def play(*events, do=lambda task, values: None, shut=0, unsafe=0, stored=None):
        control = TaskControl()
        config = parse(SinkConfig, {"name": "c", "connector.class": "x", "topics": "t"})
        policy = ErrorPolicy(config, "c", 0, control.stopping)
        string = StringConverter(parse(StringConfig, {}), ConverterContext(is_key=False))
        context = RunningSinkContext("c", 0, {}, stopping=control.stopping, kafka=None, errant_records=None)
        consumer = Script(control, *events)
        task = Task(context, do)
        task.shut, task.unsafe, task.control, task.stored = shut, unsafe, control, stored or {}
        runner = SinkRunner(
            task, context, control, pipeline=SinkPipeline(TransformChain(), string, string, policy), policy=policy,
            consumer=consumer, dead_letters=None, flush_interval_ms=10**9,
            on_topic=lambda topic: None, close=lambda: None,
        )  # fmt: skip
        Lifecycle(task, runner, control, lambda state, error: None).run()
        return task, consumer

    return play


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr("connect.task.sinks.runner._RETRY_S", 0.001)
    monkeypatch.setattr("connect.task.sinks.runner._REOPEN_S", 0.0)


def busy_for(count):
    """The values of each rejected put, and the function that rejects this many puts."""
    tries = []

    def busy(task, values):
        if values and len(tries) < count:
            tries.append(values)
            raise RetriableConnectError("busy")

    return tries, busy


def puts(task):
    return [value for entry in task.log if entry[0] == "put" for value in entry[1]]


def test_put_records_are_committed_when_partitions_are_revoked(run):
    task, consumer = run(
        ("assigned", frozenset({A, B})), [fetched(A, 0, "a0", "a1"), fetched(B, 5, "b5")],
        ("revoked", frozenset({A, B})), ("assigned", frozenset({B})), [fetched(B, 6, "b6")],
    )  # fmt: skip
    assert task.log == [
        ("open", [A, B]), ("put", [(0, "a0"), (0, "a1"), (1, "b5")]), ("close", [A, B]),
        ("open", [B]), ("put", [(1, "b6")]), ("close", [B]), "stop",
    ]  # fmt: skip
    assert consumer.committed_offsets == [{A: 2, B: 6}, {B: 7}]
    assert len(task.threads) == 1


def test_fetched_records_of_a_lost_partition_are_left_to_its_new_owner(run):
    task, _ = run(
        ("assigned", frozenset({A})), ("revoked", frozenset({A})), ("assigned", frozenset({B})), [fetched(A, 0, "x")]
    )
    assert puts(task) == []


def test_a_put_is_repeated_and_what_came_meanwhile_waits_its_turn(run):
    tries, busy = busy_for(2)
    task, consumer = run(("assigned", frozenset({A})), [fetched(A, 0, "a0")], [fetched(A, 1, "a1")], [], do=busy)
    assert tries == [[(0, "a0")], [(0, "a0")]]
    assert puts(task) == [(0, "a0"), (0, "a1")]
    assert consumer.is_paused == set() and consumer.committed_offsets == [{A: 2}]


def test_records_fetched_before_a_partition_is_open_wait_until_it_is(run):
    """Under load a fetch may have begun before the consumer hears that the partition is to be paused."""
    task, consumer = run(("assigned", frozenset({A})), [fetched(A, 0, "a0")], [fetched(A, 1, "a1")], [], [], shut=2)
    assert puts(task) == [(0, "a0"), (0, "a1")]
    assert consumer.committed_offsets == [{A: 2}]


def test_records_fetched_before_a_task_says_on_opening_where_it_continues_are_not_delivered(run):
    task, consumer = run(
        ("assigned", frozenset({A})), [fetched(A, 4, "a4")], [], [fetched(A, 3, "a3", "a4")], shut=2, stored={A: 3}
    )
    assert consumer.sought == [(A, 3)]
    assert puts(task) == [(0, "a3"), (0, "a4")]


def test_waiting_records_of_a_partition_lost_during_a_repeated_put_are_left_to_its_new_owner(run):
    _, busy = busy_for(3)
    task, _ = run(
        ("assigned", frozenset({A, B})), [fetched(A, 0, "a0")], [fetched(B, 0, "b0")], ("revoked", frozenset({B})), [],
        [], do=busy,
    )  # fmt: skip
    assert puts(task) == [(0, "a0")]


@pytest.mark.parametrize("how", ["stops", "pauses"])
def test_what_a_task_no_longer_has_since_a_commit_failed_is_not_committed_when_it(run, how):
    def ending(task, values):
        if values:
            task.context.request_commit()
            task.context.stopping.set() if how == "stops" else task.control.set_paused(True)

    task, consumer = run(("assigned", frozenset({A})), [fetched(A, 5, "a5", "a6")], do=ending, unsafe=1)
    assert puts(task) == [(0, "a5"), (0, "a6")]
    if how == "stops":
        assert consumer.committed_offsets == [{A: 5}] and consumer.sought == []
    else:  # in the pause, and at the end once more since the task went back there
        assert consumer.committed_offsets == [{A: 5}, {A: 5}] and consumer.sought == [(A, 5)]


def test_records_a_task_wants_again_are_not_committed_when_it_stops(run):
    def again(task, values):
        if values:
            task.context.rewind({A: 6})
            task.context.stopping.set()

    _, consumer = run(("assigned", frozenset({A})), [fetched(A, 5, "a5", "a6")], do=again)
    assert consumer.committed_offsets == [{A: 6}]


def test_a_rewind_leaves_the_other_partitions_alone(run):
    def rewinding(task, values):
        if values and task.log[-1:] != ["rewound"]:
            task.context.rewind({A: 0})
            task.log.append("rewound")
            raise RetriableConnectError("busy")

    both = [fetched(A, 0, "a0"), fetched(B, 0, "b0")]
    task, consumer = run(("assigned", frozenset({A, B})), both, [], do=rewinding)
    assert consumer.sought == [(A, 0)]
    assert puts(task) == [(1, "b0")]
    assert consumer.committed_offsets == [{A: 0, B: 1}] and consumer.is_paused == set()


def test_a_failed_put_fails_the_task_which_is_stopped_and_commits_nothing(run):
    def fail(task, values):
        if values:
            task_log.append(task)
            raise ValueError("no")

    task_log = []
    with pytest.raises(ValueError, match="no"):
        run(("assigned", frozenset({A})), [fetched(A, 0, "a0")], do=fail)
    assert task_log[0].log[-1] == "stop"
