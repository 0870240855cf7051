"""Admin against real brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from broker.client import (
    Admin,
    BatchConsumer,
    BatchProducer,
    ClientConfig,
    NewTopic,
    OffsetAndTimestamp,
    TopicPartition,
)
from broker.client.errors import (
    GroupIdNotFound,
    InvalidConfiguration,
    InvalidReplicationFactor,
    NotReachable,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)

pytestmark = pytest.mark.anyio


async def test_a_topic_is_created_described_and_deleted(config: ClientConfig, name: Callable[[], str]) -> None:
    topic = name()
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic(topic, partitions=3, configs={"cleanup.policy": "compact"})])
        assert topic in await admin.list_topics()
        assert await admin.existing_topics([topic, "nothing-here", topic]) == {topic}
        assert await admin.existing_topics([]) == set() and "nothing-here" not in await admin.list_topics()
        described = (await admin.describe_topics([topic]))[topic]
        assert [partition.partition for partition in described.partitions] == [0, 1, 2]
        assert described.topic_id.int != 0
        configs = await admin.describe_configs(topic)
        assert (configs["cleanup.policy"].value, configs["cleanup.policy"].source) == (
            "compact",
            "DYNAMIC_TOPIC_CONFIG",
        )
        await admin.delete_topics([topic])
        assert topic not in await admin.list_topics()
        with pytest.raises(UnknownTopicOrPartition, match=topic):
            await admin.describe_topics([topic])


async def test_a_recreated_topic_has_another_id(config: ClientConfig, name: Callable[[], str]) -> None:
    topic = name()
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic(topic)])
        first = (await admin.describe_topics([topic]))[topic].topic_id
        await admin.delete_topics([topic])
        await admin.create_topics([NewTopic(topic)])
        assert (await admin.describe_topics([topic]))[topic].topic_id != first


async def test_refusals_name_the_topic(config: ClientConfig, topic: str, name: Callable[[], str]) -> None:
    async with Admin(config) as admin:
        with pytest.raises(TopicAlreadyExists, match=topic):
            await admin.create_topics([NewTopic(topic)])
        await admin.create_topics([NewTopic(topic)], exist_ok=True)
        with pytest.raises(InvalidReplicationFactor):
            await admin.create_topics([NewTopic(name(), replication_factor=5)])
        with pytest.raises(InvalidConfiguration):
            await admin.create_topics([NewTopic(name(), configs={"retention.ms": "soon"})])
        with pytest.raises(UnknownTopicOrPartition):
            await admin.delete_topics([name()])
        await admin.delete_topics([name()], missing_ok=True)


async def test_configs_are_set_and_taken_back(config: ClientConfig, topic: str) -> None:
    async with Admin(config) as admin:
        await admin.alter_configs(topic, {"retention.ms": "12345", "max.message.bytes": "2000000"})
        # Apache Kafka's controller answers before its broker has heard of a change.
        async with asyncio.timeout(60):
            while (configs := await admin.describe_configs(topic))["retention.ms"].value != "12345":
                await asyncio.sleep(0.05)
        assert configs["max.message.bytes"].value == "2000000"
        await admin.alter_configs(topic, {"retention.ms": None})
        async with asyncio.timeout(60):
            while (configs := await admin.describe_configs(topic))["retention.ms"].source == "DYNAMIC_TOPIC_CONFIG":
                await asyncio.sleep(0.05)
        assert configs["max.message.bytes"].value == "2000000"


async def test_sizes_are_those_of_the_partitions(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        await (await producer.enqueue(topic, b"k", b"x" * 5000, partition=0))
    async with Admin(config) as admin:
        sizes = await admin.sizes(topic)
    assert sizes[0] > 5000 and set(sizes) == set(range(len(sizes)))
    assert all(size == 0 for number, size in sizes.items() if number)


async def test_producers_are_those_that_a_partition_remembers(config: ClientConfig, topic: str) -> None:
    producer = Producer({"bootstrap.servers": config.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    assert producer.flush(60) == 0
    async with Admin(config) as admin:
        (told,) = await admin.producers(topic)
        assert (told.partition, told.last_sequence, told.transaction_start) == (0, 0, 0) and told.last_ms > 0
        producer.commit_transaction(60)
        async with asyncio.timeout(60):  # the marker is written after the answer
            while (await admin.producers(topic))[0].transaction_start is not None:
                await asyncio.sleep(0.05)


async def test_partitions_are_added(config: ClientConfig, topic: str) -> None:
    async with Admin(config) as admin:
        await admin.create_partitions(topic, 4)
        async with asyncio.timeout(60):
            while len((await admin.describe_topics([topic]))[topic].partitions) != 4:
                await asyncio.sleep(0.05)


async def test_offsets_by_end_beginning_and_time(config: ClientConfig, topic: str) -> None:
    tp, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with BatchProducer(config) as producer:
        for number in range(3):
            await producer.send(topic, None, b"v", partition=0, timestamp_ms=1000 + number)
    async with Admin(config) as admin:
        assert await admin.beginning_offsets([tp, other]) == {tp: 0, other: 0}
        assert await admin.end_offsets([tp, other]) == {tp: 3, other: 0}
        offsets = await admin.offsets_for_times({tp: 1001, other: 1001})
        assert offsets == {tp: OffsetAndTimestamp(1, 1001), other: None}
        with pytest.raises(UnknownTopicOrPartition, match="no partition 7"):
            await admin.end_offsets([TopicPartition(topic, 7)])


async def test_records_are_deleted_before_an_offset(config: ClientConfig, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with BatchProducer(config) as producer:
        for _ in range(3):
            await producer.send(topic, None, b"v", partition=0)
    async with Admin(config) as admin:
        assert await admin.delete_records({tp: 2}) == {tp: 2}
        assert await admin.beginning_offsets([tp]) == {tp: 2}


async def test_group_offsets_are_altered_listed_and_deleted(
    config: ClientConfig, topic: str, name: Callable[[], str]
) -> None:
    group, tp = name(), TopicPartition(topic, 1)
    async with Admin(config) as admin:
        assert await admin.group_offsets(group) == {}
        await admin.alter_group_offsets(group, {tp: 11})
        assert await admin.group_offsets(group) == {tp: 11}
        assert group in {listed.group_id for listed in await admin.list_groups()}
        assert (await admin.describe_group(group)).state == "Empty"
        async with BatchConsumer(config.with_properties({"group.id": group})) as consumer:
            await consumer.assign([tp])
            assert await consumer.committed(tp) == 11
        await admin.delete_groups([group])
        assert await admin.group_offsets(group) == {}
        with pytest.raises(GroupIdNotFound, match=group):
            await admin.delete_groups([group])
        await admin.delete_groups([group], missing_ok=True)


async def test_the_cluster_has_an_id(config: ClientConfig) -> None:
    async with Admin(config) as admin:
        assert len(await admin.cluster_id()) == 22


async def test_an_address_without_a_broker_is_named() -> None:
    with pytest.raises(NotReachable, match=r"no broker can be reached at 127\.0\.0\.1:1: .*Connect call failed"):
        await Admin(ClientConfig("127.0.0.1:1")).start()
