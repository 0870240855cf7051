"""Drivers that are killed, tasks that run twice, batches that fail: what is lost and what is doubled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pyspark_tidegate.driver import Driver
from tests.pyspark_tidegate.test_reading import FLIGHT, Topic
from tests.pyspark_tidegate.test_writing import decoder, messages
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

# Confluent's registry client leaves its connection to the garbage collector.
pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROWS, BATCH = 400, 100


@pytest.fixture
def topic(broker: BrokerThread, registry: RegistryThread) -> Topic:
    return Topic(broker, registry)


@pytest.fixture
def drivers(folder: Path) -> Iterator[list[Driver]]:
    started: list[Driver] = []
    yield started
    for driver in started:
        if driver.process.poll() is None:
            driver.kill()


def sink_of(topic: Topic, **more: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": topic.broker.bootstrap_servers,
        "schema.registry.url": topic.registry.url,
        "topic": topic.name,
        **more,
    }


def ids(topic: Topic, *, committed: bool = False) -> list[int]:
    decode = decoder(topic)
    return sorted(decode(message.value())["id"] for message in messages(topic, committed=committed))


def source_of(topic: Topic) -> dict[str, str]:
    topic.write(FLIGHT, [{"id": n, "month": n % 12} for n in range(ROWS)], 0)
    topic.write(FLIGHT, [{"id": n, "month": n % 12} for n in range(ROWS, 2 * ROWS)], 1)
    return topic.options(startingOffsets="earliest", maxOffsetsPerTrigger=str(BATCH), groupId=f"copy-{topic.name}")


def kill_twice(drivers: list[Driver], folder: Path, **job: Any) -> None:
    """Run a stream whose driver is killed in the middle of a batch, twice, and then to its end."""
    for batches in (1, 3):
        driver = Driver(folder, "copy", **job)
        drivers.append(driver)

        def reached(driver: Driver = driver, batches: int = batches) -> bool:
            assert driver.process.poll() is None, driver.log[-3000:]
            done = folder / "checkpoint" / "commits"
            return done.exists() and len([path for path in done.iterdir() if path.name.isdigit()]) >= batches

        wait_until(reached, f"{batches} batches", timeout_s=240)
        driver.kill()
    drivers.append(Driver(folder, "copy", **job))
    assert drivers[-1].ended() == 0, drivers[-1].log[-3000:]


@pytest.mark.long
def test_files_have_each_row_once_although_the_driver_is_killed(
    topic: Topic, folder: Path, drivers: list[Driver]
) -> None:
    kill_twice(drivers, folder, source=source_of(topic))
    drivers.append(Driver(folder, "read_files"))
    assert drivers[-1].ended() == 0, drivers[-1].log[-3000:]
    assert sorted(json.loads((folder / "ids.json").read_text())) == list(range(2 * ROWS))


@pytest.mark.long
def test_a_topic_loses_no_row_and_doubles_only_whole_batches_when_the_driver_is_killed(
    topic: Topic, folder: Path, drivers: list[Driver]
) -> None:
    copy = Topic(topic.broker, topic.registry)
    kill_twice(drivers, folder, source=source_of(topic), sink=sink_of(copy, transactions="true"))
    seen = Counter(ids(copy, committed=True))
    assert sorted(seen) == list(range(2 * ROWS))
    doubled = [row for row, times in seen.items() if times > 1]
    assert len(doubled) <= 2 * BATCH  # a batch for each kill


@pytest.mark.long
def test_readers_of_committed_records_see_nothing_of_a_batch_that_failed(
    topic: Topic, folder: Path, drivers: list[Driver]
) -> None:
    copy = Topic(topic.broker, topic.registry)
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(40_000)], 0)
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(40_000, 40_010)], 1)
    job = {"source": topic.options(startingOffsets="earliest"), "sink": sink_of(copy, transactions="true")}
    drivers.append(Driver(folder, "copy", fail=39_999, **job))
    assert drivers[-1].ended() != 0
    assert "row 39999" in drivers[-1].log
    assert ids(copy)  # rows were written, and
    assert ids(copy, committed=True) == []  # the reader came to the end: no transaction is left open
    drivers.append(Driver(folder, "copy", **job))
    assert drivers[-1].ended() == 0, drivers[-1].log[-3000:]
    assert ids(copy, committed=True) == list(range(40_010))


@pytest.mark.long
def test_a_task_that_is_tried_again_doubles_its_rows_without_transactions_only(
    topic: Topic, folder: Path, drivers: list[Driver]
) -> None:
    once = Topic(topic.broker, topic.registry)
    sinks = [sink_of(topic), sink_of(once, transactions="true")]
    drivers.append(Driver(folder, "write_twice", "local[2,3]", sinks=sinks))
    assert drivers[-1].ended() == 0, drivers[-1].log[-3000:]
    seen = Counter(ids(topic))
    assert sorted(seen) == list(range(2000))
    assert {row for row, times in seen.items() if times > 1} <= set(range(500))  # those of the task
    assert ids(once, committed=True) == list(range(2000))
