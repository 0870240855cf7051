"""The tasks' own metrics."""

from concurrent.futures import Future

import pytest

from connect.api import TopicPartition
from connect.metrics.families import Families
from connect.task.measures import SentRows, TaskMeasures
from connect.task.sinks.measures import SinkMeasures
from tidegate.kit.windowed import Windowed


@pytest.fixture
def now(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("tidegate.kit.windowed.time.monotonic", lambda: now[0])
    return now


def test_windows_drop_old_values(now):
    seen = Windowed()
    for value in (10, 30):
        seen.record(value)
    assert (seen.average, seen.least, seen.most, seen.rate) == (20, 10, 30, round(40 / 30, 3))
    assert (seen.count, seen.total, seen.count_rate) == (2, 40, round(2 / 30, 3))
    now[0] += 30
    seen.record(50)
    assert (seen.average, seen.least, seen.most, seen.rate) == (30, 10, 50, 3)
    now[0] += 29
    assert seen.most == 50 and seen.least == 10
    now[0] += 2
    assert (seen.least, seen.rate) == (50, round(50 / 31, 3))
    now[0] += 30
    assert (seen.average, seen.most, seen.rate) == (0, 0, 0)
    seen.record(1)
    assert seen.most == 1


def test_time_is_shared_between_running_and_pausing(now):
    task = TaskMeasures()
    task.state(paused=False)
    now[0] += 3
    task.state(paused=True)
    now[0] += 1
    assert (task.attributes()["running-ratio"], task.attributes()["pause-ratio"]) == (0.75, 0.25)


def test_commits_are_counted_as_they_end(now):
    task = TaskMeasures()
    for failed in (False, True, False, False):
        with task.committing() as outcome:
            now[0] += 0.01
            outcome.failed = failed
    with pytest.raises(OSError, match="gone"), task.committing():
        raise OSError("gone")
    shown = task.attributes()
    assert shown["offset-commit-failure-percentage"] == 0.4
    assert shown["offset-commit-success-percentage"] == 0.6
    assert shown["offset-commit-max-time-ms"] == pytest.approx(10)


def test_rows_count_as_written_when_the_log_has_them():
    rows, futures = SentRows(), [Future(), Future(), Future()]
    rows.add(10, 9, futures[:2])
    rows.add(5, 5, futures[2:])
    rows.add(3, 0, [])
    futures[0].set_result(None)
    assert rows.attributes()["source-record-active-count"] == 18
    futures[1].set_result(None)
    futures[2].set_exception(OSError())
    shown = rows.attributes()
    assert (shown["source-record-active-count"], shown["source-record-active-count-max"]) == (0, 18)
    assert (shown["source-record-poll-total"], shown["source-record-write-total"]) == (18, 9)


class Part:
    topic, partition, offset, high_watermark = "t", 0, 100, 150


def test_a_sink_knows_what_is_before_it_and_what_is_not_committed():
    sink, at = SinkMeasures(), TopicPartition("t", 0)
    sink.fetched([Part()], 20)
    assert sink.lags() == [("t", 0, 50)]
    sink.put(20, 7.5)
    sink.delivered({at: 120})
    shown = sink.attributes()
    assert (shown["sink-record-lag-max"], shown["sink-record-active-count"]) == (30, 20)
    assert (shown["sink-record-read-total"], shown["put-batch-max-time-ms"]) == (20, 7.5)
    sink.committed({at: 115})
    assert sink.attributes()["sink-record-active-count"] == 5
    sink.rewound(at, 100)
    assert (sink.attributes()["sink-record-active-count"], sink.lags()) == (0, [("t", 0, 50)])
    sink.forget(at)
    assert sink.lags() == [] and sink.attributes()["offset-commit-seq-no"] == 1


def test_attributes_go_by_both_names():
    families = Families()
    families.attribute("connect-worker-metrics", "task-count", 3, confluent={"connector": "aggregate"})
    families.attribute("sink-task-metrics", "sink-record-read-total", 4, {"connector": "c", "task": "0"})
    samples = [(sample.name, sample.labels, sample.value) for family in families.all() for sample in family.samples]
    task = {"connector": "c", "task": "0"}
    assert samples == [
        ("kafka_connect_worker_task_count", {}, 3),
        ("kafka_connect_connect_worker_metrics_task_count", {"connector": "aggregate"}, 3),
        ("kafka_connect_sink_task_sink_record_read_total", task, 4),
        ("kafka_connect_sink_task_metrics_sink_record_read_total", task, 4),
    ]
