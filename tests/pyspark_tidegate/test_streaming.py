"""``spark.readStream.format("tidegate")``: checkpoints, bounded batches, and positions that the group has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.pyspark_tidegate.test_reading import FLIGHT, Topic
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's gateway leaves connections to its JVM to the garbage collector.
pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def run(
    spark: SparkSession, topic: Topic, folder: Path, *, then: Callable[[], None] | None = None, **more: str
) -> list[int]:
    """Run a query until it has read everything, and once more after ``then``; its checkpoint stays. Sizes of its batches."""
    sizes: list[int] = []

    def write(frame: Any, number: int) -> None:
        rows = frame.select("value.id").collect()
        sizes.append(len(rows))
        with (folder / "rows.txt").open("a") as file:
            file.writelines(f"{row['id']}\n" for row in rows)

    stream = (
        spark.readStream.format("tidegate").options(**topic.options(**{"startingOffsets": "earliest"} | more)).load()
    )
    query = stream.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    running = query.trigger(processingTime="0 seconds").start()
    try:
        running.processAllAvailable()
        if then is not None:
            then()
            running.processAllAvailable()
    finally:
        running.stop()
    return [size for size in sizes if size]


def test_a_stream_goes_on_from_its_checkpoint_and_its_group_has_no_lag(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    topic = Topic(broker, registry)
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(10)])
    assert sum(run(spark, topic, folder, groupId="readers")) == 10
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(10, 14)], 1)
    assert sum(run(spark, topic, folder, groupId="readers")) == 4
    assert sorted(map(int, (folder / "rows.txt").read_text().split())) == list(range(14))
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    committed = consumer.committed([TopicPartition(topic.name, n) for n in range(2)], timeout=30)
    consumer.close()
    # Spark commits a batch when the next one is planned: the last one may still be open when the query ends.
    assert committed[0].offset == 10 and committed[1].offset in (-1001, 0, 4)


def test_batches_are_bounded_and_none_goes_back_after_a_restart(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    topic = Topic(broker, registry)
    bounded = {"maxOffsetsPerTrigger": "10", "groupId": f"bounded-{topic.name}"}
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(30)])
    sizes = run(spark, topic, folder, **bounded)
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(30, 50)], 1)
    sizes += run(spark, topic, folder, **bounded)
    # Its group lags by a batch, and yet the query does not take the checkpoint's position for the log's end.
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(50, 80)], 1)
    sizes += run(spark, topic, folder, **bounded)
    assert sorted(map(int, (folder / "rows.txt").read_text().split())) == list(range(80))
    assert max(sizes) <= 10
    with pytest.raises(Exception, match="maxOffsetsPerTrigger needs the option groupId"):
        run(spark, topic, folder, maxOffsetsPerTrigger="10")


def test_a_stream_without_a_group_is_bounded_from_what_its_checkpoint_has_and_ends_where_it_should(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    topic = Topic(broker, registry)
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(30)])
    bounded = {"maxOffsetsPerTrigger": "10", "plannedOffsets": "{}"}
    until = json.dumps({topic.name: {"0": 12, "1": 0}})
    sizes = run(spark, topic, folder, **bounded, untilOffsets=until)
    assert (sum(sizes), max(sizes)) == (12, 5)  # each of two partitions has half of the bound
    planned = (folder / "checkpoint/offsets" / str(len(sizes) - 1)).read_text().splitlines()[2]
    sizes = run(spark, topic, folder, **bounded | {"plannedOffsets": planned})
    assert (sum(sizes), max(sizes)) == (18, 5)


def test_a_group_that_refuses_the_positions_ends_only_a_query_that_counts_from_them(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    topic = Topic(broker, registry)
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(4)])
    member = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"taken-{topic.name}"})
    member.subscribe([topic.name])
    try:
        wait_until(lambda: member.poll(0.1) is None and len(member.assignment()) == 2, "the member's assignment")

        def more() -> None:
            member.poll(0)
            topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(4, 8)])

        assert sum(run(spark, topic, folder, then=more, groupId=f"taken-{topic.name}")) == 8
        bounded = {"maxOffsetsPerTrigger": "2", "groupId": f"taken-{topic.name}"}
        (folder / "bounded").mkdir()
        topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(8, 16)])
        with pytest.raises(Exception, match=f"taken-{topic.name}"):
            run(spark, topic, folder / "bounded", **bounded)
    finally:
        member.close()


def test_a_stream_begins_at_a_time(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    topic = Topic(broker, registry)
    for n in range(6):
        topic.write(FLIGHT, [{"id": n, "month": 1}], n % 2, timestamp=1_700_000_000_000 + n * 1000)

    def more() -> None:
        topic.write(FLIGHT, [{"id": 6, "month": 1}])

    assert sum(run(spark, topic, folder, then=more, startingTimestamp="1700000003000")) == 4
    assert sorted(map(int, (folder / "rows.txt").read_text().split())) == [3, 4, 5, 6]


def test_a_stream_has_no_end_to_give(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    topic = Topic(broker, registry)
    topic.write(FLIGHT, [{"id": 1, "month": 1}])
    with pytest.raises(Exception, match="the option endingoffsets is for a batch read"):
        run(spark, topic, folder, endingOffsets="latest")


def test_records_that_were_deleted_before_they_were_read_are_told(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    topic = Topic(broker, registry)
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(4)])
    run(spark, topic, folder)
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(4, 8)])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    gone = TopicPartition(topic.name, 0, 6)
    admin.delete_records([gone])[gone].result(30)
    with pytest.raises(Exception, match=rf"{topic.name}-0 begins at offset 6 and the stream is at 4"):
        run(spark, topic, folder)
    run(spark, topic, folder, failOnDataLoss="false")
    assert sorted(map(int, (folder / "rows.txt").read_text().split())) == [0, 1, 2, 3, 6, 7]
