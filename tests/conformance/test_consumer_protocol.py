"""The consumer protocol (KIP-848) with clients by other authors: the same on Apache Kafka and on our broker."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupOffsets
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from broker.client import Admin, ClientConfig
from broker.groups.consumer.records import RECORDS, ConsumerGroupMetadataValue
from broker.groups.modern.records import decode_entry, encode_entry
from broker.groups.modern.topics import GroupTopic, group_hash, topic_hash
from tests.conformance.test_consumer_offsets_format import stored
from tests.servers.group_configs import set_group_configs
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker

PARTITIONS = 4
RECORDS_SENT = 100


@pytest.fixture(params=["tidegate_broker", "apache_kafka"])
def server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture
def bootstrap_servers(server: Any) -> str:
    return str(server.bootstrap_servers)


@pytest.fixture
def admin(bootstrap_servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_servers})


def new_topic(bootstrap_servers: str, admin: AdminClient, prefix: str = "modern") -> str:
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(60)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(RECORDS_SENT):
        producer.produce(name, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    return name


def quick_group(admin: AdminClient) -> str:
    """A group whose members beat often and whose assignments are not held back."""
    name = f"group-{uuid.uuid4().hex[:8]}"
    set_group_configs(admin, name, {"consumer.heartbeat.interval.ms": "200", "consumer.assignment.interval.ms": "0"})
    return name


class Reader:
    """A confluent-kafka consumer that notes what it gets."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str, protocol: str = "consumer", **more: Any) -> None:
        self.values: list[int] = []
        settings = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        if protocol == "classic":
            # Not cooperative-sticky: librdkafka's keeps data of its own in assignments, and brokers refuse to lose that.
            settings |= {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 200}
        self.consumer = Consumer(settings)
        self.consumer.subscribe([topic])

    @property
    def assigned(self) -> set[int]:
        return {where.partition for where in self.consumer.assignment()}

    def poll(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None:
            assert message.error() is None, message.error()
            self.values.append(int(message.value() or b""))


Make = Callable[..., Reader]


@pytest.fixture
def reader(bootstrap_servers: str) -> Iterator[Make]:
    made: list[Reader] = []

    def make(*arguments: Any, **more: Any) -> Reader:
        made.append(Reader(bootstrap_servers, *arguments, **more))
        return made[-1]

    yield make
    for reader in made:
        reader.consumer.close()


def poll_until(readers: list[Reader], condition: Callable[[], bool], what: str) -> None:
    def turn() -> bool:
        for reader in readers:
            reader.poll()
        return condition()

    wait_until(turn, what, pause_s=0)


def shared(*readers: Reader) -> bool:
    assigned = [partition for reader in readers for partition in reader.assigned]
    return sorted(assigned) == list(range(PARTITIONS)) and all(reader.assigned for reader in readers)


def entries_of(server: Any, group: str) -> list[tuple[bytes, bytes | None]]:
    """The group's records of the consumer protocol in a broker's ``__consumer_offsets``."""
    directory: Path = server.directory / "log"
    return [
        (key, value)
        for partition in stored(directory)
        for key, value in partition
        if int.from_bytes(key[:2], signed=True) in RECORDS and decode_entry(RECORDS, key, None)[0].group_id == group
    ]


def uuid_bits(topic_id: Any) -> int:
    """The number that confluent-kafka's id stands for."""
    halves = (topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits())
    return (halves[0] & (1 << 64) - 1) << 64 | halves[1] & (1 << 64) - 1


async def look_with_our_client(bootstrap_servers: str, group: str) -> None:
    async with Admin(ClientConfig(bootstrap_servers)) as admin:
        listed = {listed_group.group_id: listed_group for listed_group in await admin.list_groups()}
        assert (listed[group].type, listed[group].state) == ("consumer", "Stable")
        described = await admin.describe_group(group)
        assert (described.type, described.state, described.protocol) == ("consumer", "Stable", "uniform")
        assert {member.client_id for member in described.members} == {"first", "second"}
        assert (await admin.describe_group("no-such-group")).state == "Dead"


def test_members_share_partitions_and_take_over(
    server: Any, bootstrap_servers: str, admin: AdminClient, reader: Make
) -> None:
    group, topic = quick_group(admin), new_topic(bootstrap_servers, admin)
    first = reader(group, topic, client_id="first")
    poll_until([first], lambda: len(first.values) == RECORDS_SENT, "all was read")
    first.consumer.commit(asynchronous=False)
    second = reader(group, topic, client_id="second")
    poll_until([first, second], lambda: shared(first, second), "two share")

    def stable() -> Any:
        described = admin.describe_consumer_groups([group])[group].result(60)
        return described if described.state.name == "STABLE" else None

    wait_until(lambda: stable() is not None, "the group is stable")
    described = stable()
    assert described.type.name == "CONSUMER"
    assert described.partition_assignor == "uniform"
    members = {member.client_id: member for member in described.members}
    for name, each in (("first", first), ("second", second)):
        assert {where.partition for where in members[name].assignment.topic_partitions} == each.assigned
    listed = {each.group_id: each for each in admin.list_consumer_groups().result(60).valid}
    assert (listed[group].type.name, listed[group].state.name) == ("CONSUMER", "STABLE")
    with pytest.raises(KafkaException, match="(?i)non.?empty|not empty|members"):
        admin.delete_consumer_groups([group])[group].result(60)
    asyncio.run(look_with_our_client(bootstrap_servers, group))
    second.consumer.close()
    poll_until([first], lambda: shared(first), "one is left")
    assert second.values == [], "what was committed is not read again"
    first.consumer.close()
    offsets = admin.list_consumer_group_offsets([GroupOffsets(group)])[group].result(60)
    assert {where.partition: where.offset for where in offsets.topic_partitions} == dict.fromkeys(range(PARTITIONS), 25)
    # Every record that either broker wrote, ours would write in the very bytes.
    entries = entries_of(server, group)
    assert {key[:2] for key, _ in entries} >= {number.to_bytes(2) for number in (3, 5, 6, 7, 8)}
    for key, value in entries:
        assert encode_entry(decode_entry(RECORDS, key, value)) == (key, value)
    topic_id = UUID(int=uuid_bits(admin.describe_topics(TopicCollection([topic]))[topic].result(60).topic_id))
    hashes = {
        value.metadata_hash
        for _, value in (decode_entry(RECORDS, *entry) for entry in entries)
        if isinstance(value, ConsumerGroupMetadataValue)
    }
    assert hashes - {0} == {group_hash([(topic, topic_hash(GroupTopic(topic_id, topic, PARTITIONS)))])}
    admin.delete_consumer_groups([group])[group].result(60)


def test_a_regular_expression_is_resolved_by_the_broker(
    bootstrap_servers: str, admin: AdminClient, reader: Make
) -> None:
    topic = new_topic(bootstrap_servers, admin, "regex")
    only = reader(quick_group(admin), f"^{topic[:-1]}[a-f0-9]$")
    poll_until([only], lambda: len(only.values) == RECORDS_SENT, "all was read")


def test_a_classic_group_is_taken_over_and_given_back(bootstrap_servers: str, admin: AdminClient, reader: Make) -> None:
    group, topic = quick_group(admin), new_topic(bootstrap_servers, admin)

    def kind() -> str:
        listed = {listed_group.group_id: listed_group for listed_group in admin.list_consumer_groups().result(60).valid}
        return str(listed[group].type.name)

    old = reader(group, topic, "classic")
    poll_until([old], lambda: len(old.values) == RECORDS_SENT, "all was read")
    old.consumer.commit(asynchronous=False)
    assert kind() == "CLASSIC"
    new = reader(group, topic)
    poll_until([old, new], lambda: shared(old, new), "members of both protocols share")
    assert kind() == "CONSUMER"
    new.consumer.close()
    poll_until([old], lambda: shared(old), "the classic member has all")
    assert kind() == "CLASSIC"
    again = reader(group, topic)
    poll_until([old, again], lambda: shared(old, again), "they share again")
    old.consumer.close()
    poll_until([again], lambda: shared(again), "the new protocol has all")
    assert new.values == again.values == []


def test_a_static_member_comes_back_to_what_it_had(bootstrap_servers: str, admin: AdminClient, reader: Make) -> None:
    group, topic = quick_group(admin), new_topic(bootstrap_servers, admin)
    staying, leaving = reader(group, topic, group_instance_id="a"), reader(group, topic, group_instance_id="b")
    poll_until([staying, leaving], lambda: shared(staying, leaving), "two share")
    had = leaving.assigned
    leaving.consumer.close()
    back = reader(group, topic, group_instance_id="b")
    poll_until([staying, back], lambda: shared(staying, back), "the partitions are back")
    assert back.assigned == had


def test_a_group_has_the_same_configuration(admin: AdminClient) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    set_group_configs(
        admin, group, {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "by_duration:PT1H"}
    )
    resource = ConfigResource(ResourceType.GROUP, group)
    entries = admin.describe_configs([resource])[resource].result(60)
    values = {name: (entry.value, entry.source) for name, entry in entries.items()}
    group_source, default_source, static_source = 8, 5, 4
    assert values["consumer.session.timeout.ms"] == ("50000", group_source)
    assert values["share.auto.offset.reset"] == ("by_duration:PT1H", group_source)
    rest = {name: value for name, value in values.items() if value[1] != group_source}
    assert rest == {
        "consumer.heartbeat.interval.ms": ("5000", default_source),
        "consumer.assignment.interval.ms": ("1000", default_source),
        "share.session.timeout.ms": ("45000", default_source),
        "share.heartbeat.interval.ms": ("500", static_source),
        "share.assignment.interval.ms": ("0", static_source),
        "share.record.lock.duration.ms": ("30000", default_source),
        "share.delivery.count.limit": ("5", default_source),
        "share.partition.max.record.locks": ("2000", default_source),
        "share.isolation.level": ("read_uncommitted", default_source),
        "share.renew.acknowledge.enable": ("true", default_source),
        "streams.session.timeout.ms": ("45000", default_source),
        "streams.heartbeat.interval.ms": ("5000", default_source),
        "streams.assignment.interval.ms": ("1000", default_source),
        "streams.num.standby.replicas": ("0", default_source),
        "streams.initial.rebalance.delay.ms": ("3000", default_source),
    }
    for wrong in ({"consumer.session.timeout.ms": "70000"}, {"consumer.session.timeout.ms": "1"}, {"no.such.key": "1"}):
        with pytest.raises(KafkaException):
            set_group_configs(admin, group, wrong)


def test_members_go_on_after_the_broker_was_killed(tmp_path: Path) -> None:
    """Without joining again: their epochs and assignments were on the disk before they heard of them."""
    broker = TidegateBroker(tmp_path / "killed")
    broker.start()
    try:
        bootstrap_servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        group, topic = quick_group(admin), new_topic(bootstrap_servers, admin)
        readers = [Reader(bootstrap_servers, group, topic) for _ in range(2)]
        poll_until(readers, lambda: shared(*readers), "two share")
        rebalances: list[str] = []
        before = [reader.assigned for reader in readers]
        for reader in readers:
            reader.consumer.subscribe([topic], on_revoke=lambda *_: rebalances.append("revoked"))
        broker.kill()
        broker.start()
        producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        for number in range(PARTITIONS):
            producer.produce(topic, str(1000 + number).encode(), partition=number)
        assert producer.flush(60) == 0
        poll_until(
            readers, lambda: {1000, 1001, 1002, 1003} <= {v for reader in readers for v in reader.values}, "all goes on"
        )
        assert [reader.assigned for reader in readers] == before
        assert rebalances == []
        members = admin.describe_consumer_groups([group])[group].result(60).members
        assert len(members) == len(readers)
        for reader in readers:
            reader.consumer.commit(offsets=[TopicPartition(topic, p, 1) for p in reader.assigned], asynchronous=False)
            reader.consumer.close()
    finally:
        broker.stop()
