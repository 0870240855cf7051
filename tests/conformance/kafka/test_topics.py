"""Topics, partitions, offsets and configuration from the view of administrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.servers.process import wait_until


@pytest.fixture
def admin(bootstrap_servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_servers})


def done(futures: dict[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(60)


def refused(futures: dict[Any, Any]) -> int:
    with pytest.raises(KafkaException) as caught:
        done(futures)
    return int(caught.value.args[0].code())


def configs(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    entries: dict[str, ConfigEntry] = done(admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]))
    return entries


def shows(admin: AdminClient, topic: str, key: str, value: str) -> None:
    """The broker shows the value soon: Apache Kafka's hears of changes some time after its controller."""

    def shown() -> bool:
        try:
            return configs(admin, topic)[key].value == value
        except KafkaException:
            return False

    wait_until(shown, f"{key}={value}")


def fill(bootstrap_servers: str, topic: str, count: int = 10) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number), partition=0, timestamp=1_700_000_000_000 + number * 1000)
        producer.flush(60)


def test_a_topic_is_created_described_and_deleted(admin: AdminClient, name: Callable[[], str]) -> None:
    topic = name()
    done(admin.create_topics([NewTopic(topic, 5, 1)]))
    # Apache Kafka answers before the brokers' image of the metadata has it.
    wait_until(lambda: topic in admin.list_topics(timeout=60).topics, "the topic")
    described = done(admin.describe_topics(TopicCollection([topic])))
    assert len(described.partitions) == 5
    assert [len(partition.replicas) for partition in described.partitions] == [1] * 5
    assert described.topic_id.get_least_significant_bits() != 0
    done(admin.delete_topics([topic]))
    wait_until(lambda: topic not in admin.list_topics(timeout=60).topics, "the topic's end")
    assert refused(admin.describe_topics(TopicCollection([topic]))) == KafkaError.UNKNOWN_TOPIC_OR_PART


@pytest.mark.parametrize(
    ("topic_options", "code"),
    [
        ({"num_partitions": 1, "replication_factor": 7}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 0, "replication_factor": 1}, KafkaError.INVALID_PARTITIONS),
        ({"num_partitions": 1, "config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"num_partitions": 1, "config": {"no.such.key": "1"}}, KafkaError.INVALID_CONFIG),
    ],
)
def test_an_impossible_topic_is_refused(
    admin: AdminClient, name: Callable[[], str], topic_options: dict[str, Any], code: int
) -> None:
    assert refused(admin.create_topics([NewTopic(name(), **topic_options)])) == code


def test_names_are_checked_and_taken_once(admin: AdminClient, topic: str) -> None:
    assert refused(admin.create_topics([NewTopic("no/slash", 1)])) == KafkaError.TOPIC_EXCEPTION
    assert refused(admin.create_topics([NewTopic(topic, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS


def test_validating_creates_nothing(admin: AdminClient, name: Callable[[], str]) -> None:
    topic = name()
    done(admin.create_topics([NewTopic(topic, 1)], validate_only=True))
    assert topic not in admin.list_topics(timeout=60).topics


def test_partitions_are_added_but_never_taken(admin: AdminClient, topic: str) -> None:
    done(admin.create_partitions([NewPartitions(topic, 6)]))
    wait_until(lambda: len(done(admin.describe_topics(TopicCollection([topic]))).partitions) == 6, "partitions")
    assert refused(admin.create_partitions([NewPartitions(topic, 2)])) == KafkaError.INVALID_PARTITIONS


def test_one_request_creates_at_most_ten_thousand_partitions(
    admin: AdminClient, name: Callable[[], str], topic: str
) -> None:
    halves = [NewTopic(name(), 5000, 1), NewTopic(name(), 5001, 1)]
    for future in admin.create_topics(halves).values():
        with pytest.raises(KafkaException) as caught:
            future.result(60)
        assert caught.value.args[0].code() == KafkaError.POLICY_VIOLATION
    too_many = NewPartitions(topic, 10_004)
    # Apache Kafka meets the same limit here with an error that it did not foresee.
    assert refused(admin.create_partitions([too_many], validate_only=True)) in (
        KafkaError.POLICY_VIOLATION,
        KafkaError.UNKNOWN,
    )


def test_configuration_has_values_sources_and_defaults(admin: AdminClient, name: Callable[[], str]) -> None:
    topic = name()
    done(admin.create_topics([NewTopic(topic, 1, config={"cleanup.policy": "compact", "retention.ms": "1000"})]))
    shows(admin, topic, "retention.ms", "1000")
    entries = configs(admin, topic)
    assert (entries["cleanup.policy"].value, entries["retention.ms"].value) == ("compact", "1000")
    assert entries["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert entries["segment.bytes"].value == "1073741824"
    assert entries["segment.bytes"].source == ConfigSource.DEFAULT_CONFIG.value
    assert entries["max.message.bytes"].value == "1048588"
    assert entries["min.cleanable.dirty.ratio"].value == "0.5"


def test_single_keys_are_changed_and_removed(admin: AdminClient, topic: str) -> None:
    def change(key: str, operation: AlterConfigOpType, value: str | None = None) -> None:
        entry = ConfigEntry(key, value, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        done(admin.incremental_alter_configs([resource]))

    change("retention.ms", AlterConfigOpType.SET, "12345")
    change("cleanup.policy", AlterConfigOpType.APPEND, "compact")
    shows(admin, topic, "cleanup.policy", "delete,compact")
    change("cleanup.policy", AlterConfigOpType.SUBTRACT, "delete")
    shows(admin, topic, "cleanup.policy", "compact")
    shows(admin, topic, "retention.ms", "12345")
    change("retention.ms", AlterConfigOpType.DELETE)
    shows(admin, topic, "retention.ms", "604800000")


def test_a_wrong_change_is_refused_and_changes_nothing(admin: AdminClient, topic: str) -> None:
    entry = ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    assert refused(admin.incremental_alter_configs([resource])) == KafkaError.INVALID_CONFIG
    assert configs(admin, topic)["retention.ms"].value == "604800000"


def test_the_broker_shows_its_configuration(admin: AdminClient) -> None:
    broker = next(iter(admin.list_topics(timeout=60).brokers))
    entries = done(admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, str(broker))]))
    assert entries["node.id"].value == str(broker)
    assert entries["socket.request.max.bytes"].value == "104857600"
    assert entries["node.id"].is_read_only


def test_a_broker_default_reaches_topics_that_do_not_set_it(
    admin: AdminClient, bootstrap_servers: str, topic: str, kafka_tools: Callable[..., str]
) -> None:
    def alter(*change: str) -> None:
        target = ("--entity-type", "brokers", "--entity-default")
        kafka_tools("kafka-configs", "--bootstrap-server", bootstrap_servers, "--alter", *target, *change)

    key = "log.segment.delete.delay.ms"
    alter("--add-config", f"{key}=12000")
    shows(admin, topic, "file.delete.delay.ms", "12000")
    assert configs(admin, topic)["file.delete.delay.ms"].source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value
    alter("--delete-config", key)
    shows(admin, topic, "file.delete.delay.ms", "60000")


def test_offsets_by_time_and_place(admin: AdminClient, bootstrap_servers: str, topic: str) -> None:
    fill(bootstrap_servers, topic)
    where = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        return int(done(admin.list_offsets({where: spec})).offset)

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 10
    assert offset(OffsetSpec.max_timestamp()) == 9
    assert offset(OffsetSpec.for_timestamp(1_700_000_003_500)) == 4
    assert offset(OffsetSpec.for_timestamp(1_700_000_004_000)) == 4
    assert offset(OffsetSpec.for_timestamp(1_800_000_000_000)) == -1
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": topic})
    (position,) = consumer.offsets_for_times([TopicPartition(topic, 0, 1_700_000_008_001)], 30)
    assert position.offset == 9
    assert consumer.get_watermark_offsets(where, 30) == (0, 10)
    consumer.close()


def test_records_are_deleted_up_to_an_offset(admin: AdminClient, bootstrap_servers: str, topic: str) -> None:
    fill(bootstrap_servers, topic)
    assert done(admin.delete_records([TopicPartition(topic, 0, 4)])).low_watermark == 4
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": topic, "auto.offset.reset": "earliest"})
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 30) == (4, 10)
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(20)
    assert message is not None
    assert (message.offset(), message.value()) == (4, b"4")
    consumer.close()
    assert refused(admin.delete_records([TopicPartition(topic, 0, 99)])) == KafkaError.OFFSET_OUT_OF_RANGE


def test_a_cluster_has_an_id_and_a_controller(admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(60)
    assert len(cluster.cluster_id) == 22
    assert cluster.controller.id == cluster.nodes[0].id
