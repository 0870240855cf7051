"""The admin clients of kafka-python and aiokafka read and change the same as on Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, OffsetSpec
from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NoError,
    NotCoordinatorError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from tests.servers.process import wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def admin(bootstrap_servers: str) -> Iterator[Any]:
    client = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    yield client
    client.close()


def commits(admin: Any, group: str, offsets: dict[TopicPartition, OffsetAndMetadata]) -> bool:
    """Whether the offsets were accepted: Apache Kafka creates the coordinators' topic at the first request."""
    try:
        errors = admin.alter_group_offsets(group, offsets)
        return all(error is NoError for error in errors.values()) and bool(admin.list_groups())
    except (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError):
        return False


def test_kafka_python_manages_topics_and_configs(admin: Any, bootstrap_servers: str, name: Callable[[], str]) -> None:
    topic = name()
    requested = {topic: {"num_partitions": 2, "replication_factor": 1, "configs": {"retention.ms": "5000"}}}
    admin.create_topics(requested, wait_for_metadata=True)
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics(requested)
    assert topic in admin.list_topics()
    admin.create_partitions({topic: 3})

    def partitions() -> list[int]:
        (described,) = admin.describe_topics([topic])
        return sorted(partition["partition_index"] for partition in described["partitions"])

    wait_until(lambda: partitions() == [0, 1, 2], f"the third partition of {topic}")
    (paged,) = admin.describe_topic_partitions([topic])["topics"]
    assert [partition["leader_id"] for partition in paged["partitions"]] == [1, 1, 1]
    admin.alter_configs([ConfigResource("TOPIC", topic, {"segment.ms": "60000"})])

    def shown() -> dict[str, str]:
        entries = admin.describe_configs([ConfigResource("TOPIC", topic, None)])["topic"][topic]
        return {key: entry["value"] for key, entry in entries.items() if key in ("retention.ms", "segment.ms")}

    wait_until(lambda: shown() == {"retention.ms": "5000", "segment.ms": "60000"}, f"the settings of {topic}")
    assert topic in admin.list_config_resources(["TOPIC"])["topic"]
    (log_dirs,) = admin.describe_log_dirs({topic: [0, 1, 2]})
    assert sum(len(partition["partitions"]) for partition in log_dirs["log_dirs"][0]["topics"]) == 3
    admin.delete_topics([topic])
    wait_until(lambda: topic not in admin.list_topics(), f"the end of {topic}")
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_kafka_python_manages_records_groups_and_the_cluster(admin: Any, bootstrap_servers: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers)
    for _ in range(5):
        producer.send(topic, b"value", partition=0).get(60)
    producer.close()
    where = TopicPartition(topic, 0)
    admin.delete_records({where: 2})
    ends = {
        spec: admin.list_partition_offsets({where: spec})[where].offset
        for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    }
    assert list(ends.values()) == [2, 5]
    group = f"{topic}-g"
    wait_until(lambda: commits(admin, group, {where: OffsetAndMetadata(4, "", -1)}), "the group coordinator")
    assert group in [listed_group["group_id"] for listed_group in admin.list_groups()]
    assert admin.list_group_offsets(group)[group][where].offset == 4
    admin.reset_group_offsets(group, {where: OffsetSpec.EARLIEST})
    assert admin.list_group_offsets(group)[group][where].offset == 2
    admin.delete_group_offsets(group, [where])
    assert not admin.list_group_offsets(group)[group]
    admin.delete_groups([group])
    assert group not in [listed_group["group_id"] for listed_group in admin.list_groups()]
    assert admin.describe_cluster()["cluster_id"]
    assert admin.describe_features()["metadata.version"]["finalized"]
    assert admin.describe_metadata_quorum()["topics"][0]["partitions"][0]["leader_id"] == 1


def test_aiokafka_manages_topics_configs_and_records(bootstrap_servers: str, name: Callable[[], str]) -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka import TopicPartition as Partition
    from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
    from aiokafka.admin.config_resource import ConfigResource as Resource
    from aiokafka.admin.config_resource import ConfigResourceType

    topic = name()

    async def test() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
        await client.start()
        try:
            made = await client.create_topics([NewTopic(topic, 1, 1, topic_configs={"retention.ms": "5000"})])
            assert [error[1] for error in made.topic_errors] == [0]
            await client.create_partitions({topic: NewPartitions(2)})
            resource = Resource(ConfigResourceType.TOPIC, topic, {"retention.ms": "6000"})
            await client.alter_configs([resource])

            async def value() -> str:
                (shown,) = await client.describe_configs([resource])
                ((_, value, *_),) = shown.resources[0][4]
                return str(value)

            # Apache Kafka answers before its broker applies a change.
            async with asyncio.timeout(60):
                while topic not in await client.list_topics() or await value() != "6000":
                    await asyncio.sleep(0.05)
            async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
                for _ in range(3):
                    await producer.send_and_wait(topic, b"value", partition=0)
            where = Partition(topic, 0)
            assert await client.delete_records({where: RecordsToDelete(2)}) == {where: 2}
            assert isinstance(await client.list_consumer_groups(), list)
            await client.delete_topics([topic])
            assert (await client.describe_cluster())["brokers"]
        finally:
            await client.close()

    asyncio.run(test())
