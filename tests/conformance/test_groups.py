"""Consumer groups with clients by other authors: the same on Apache Kafka and on our broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupOffsets
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.servers.process import wait_until

PARTITIONS = 4
RECORDS = 200


@pytest.fixture(params=["tidegate_broker", "apache_kafka"])
def bootstrap_servers(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param).bootstrap_servers)


@pytest.fixture
def admin(bootstrap_servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_servers})


@pytest.fixture
def topic(bootstrap_servers: str, admin: AdminClient) -> str:
    """A topic of four partitions with fifty records in each, whose values are their numbers."""
    name = f"groups-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(60)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(name, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    return name


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


class Reader:
    """A confluent-kafka consumer that notes what it gets."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str, **settings: Any) -> None:
        self.values: list[int] = []
        self.assigned: set[int] = set()
        self.rebalances = 0
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 200,
                "fetch.wait.max.ms": 50,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self.consumer.subscribe([topic], on_assign=self._assign, on_revoke=self._revoke, on_lost=self._revoke)

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        self.assigned = {partition.partition for partition in partitions}

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned = set()

    def poll(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None:
            assert message.error() is None, message.error()
            self.values.append(int(message.value() or b""))

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)


@pytest.fixture
def reader(bootstrap_servers: str, group: str, topic: str) -> Iterator[Callable[..., Reader]]:
    made: list[Reader] = []

    def make(**settings: Any) -> Reader:
        made.append(Reader(bootstrap_servers, group, topic, **settings))
        return made[-1]

    yield make
    for made_reader in made:
        made_reader.consumer.close()


def poll_until(readers: list[Reader], condition: Callable[[], bool], what: str) -> None:
    def turn() -> bool:
        for reader in readers:
            reader.poll()
        return condition()

    wait_until(turn, what, pause_s=0)


def shared(*readers: Reader) -> bool:
    """Whether all partitions are assigned, each to one reader, and every reader has some."""
    assigned = [partition for reader in readers for partition in reader.assigned]
    return sorted(assigned) == list(range(PARTITIONS)) and all(reader.assigned for reader in readers)


def test_members_share_the_partitions_and_take_over_from_who_leaves(reader: Callable[..., Reader]) -> None:
    first = reader()
    poll_until([first], lambda: len(first.values) == RECORDS, "the first has read everything")
    assert sorted(first.values) == list(range(RECORDS))
    first.commit()
    second = reader()
    poll_until([first, second], lambda: shared(first, second), "two share")
    third = reader()
    poll_until([first, second, third], lambda: shared(first, second, third), "three share")
    first.consumer.unsubscribe()
    first.assigned = set()
    poll_until([second, third], lambda: shared(second, third), "two are left")
    assert second.values == third.values == [], "what was committed is not read again"


def test_a_member_that_vanishes_is_missed(reader: Callable[..., Reader]) -> None:
    vanishing, staying = reader(max_poll_interval_ms=6_000), reader()
    poll_until([vanishing, staying], lambda: shared(vanishing, staying), "two share")
    vanishing.assigned = set()
    poll_until([staying], lambda: shared(staying), "one has it all")


def test_a_reader_goes_on_where_its_group_committed(reader: Callable[..., Reader]) -> None:
    first = reader()
    poll_until([first], lambda: len(first.values) >= 80, "some was read")
    first.commit()
    seen = list(first.values)
    first.consumer.close()
    again = reader()
    poll_until([again], lambda: len(again.values) + len(seen) >= RECORDS, "the rest was read")
    assert sorted(seen + again.values) == list(range(RECORDS))


def test_a_static_member_comes_back_without_a_rebalance(reader: Callable[..., Reader]) -> None:
    settings = {"session_timeout_ms": 30_000}
    staying = reader(group_instance_id="a", **settings)
    restarting = reader(group_instance_id="b", **settings)
    poll_until([staying, restarting], lambda: shared(staying, restarting), "two share")
    had, rebalances = restarting.assigned, staying.rebalances
    restarting.consumer.close()
    back = reader(group_instance_id="b", **settings)
    poll_until([staying, back], lambda: shared(staying, back), "the partitions are back")
    assert back.assigned == had
    assert staying.rebalances == rebalances


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_every_assignment_strategy_works(reader: Callable[..., Reader], strategy: str) -> None:
    first = reader(partition_assignment_strategy=strategy)
    poll_until([first], lambda: shared(first) or (strategy == "cooperative-sticky" and first.values != []), "one reads")
    second = reader(partition_assignment_strategy=strategy)
    values = first.values
    poll_until([first, second], lambda: len(set(values) | set(second.values)) == RECORDS, "all was read")


def test_members_of_different_clients_work_together(
    bootstrap_servers: str, group: str, topic: str, reader: Callable[..., Reader]
) -> None:
    kafka = pytest.importorskip("kafka")
    ours = reader(partition_assignment_strategy="range")
    poll_until([ours], lambda: shared(ours), "confluent-kafka has it all")
    other = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        partition_assignment_strategy=[kafka.coordinator.assignors.range.RangePartitionAssignor],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    values: list[int] = []

    def turn() -> bool:
        ours.poll()
        for records in other.poll(50).values():
            values.extend(int(record.value) for record in records)
        return len(ours.assigned) == len(other.assignment()) == PARTITIONS // 2 and len(values) >= RECORDS // 2

    wait_until(turn, "kafka-python has half", pause_s=0)
    other.commit()
    other.close()
    poll_until([ours], lambda: shared(ours), "confluent-kafka has it all again")


def test_groups_can_be_looked_at_and_changed(
    admin: AdminClient, reader: Callable[..., Reader], group: str, topic: str
) -> None:
    only = reader(client_id="looked-at")
    poll_until([only], lambda: len(only.values) == RECORDS, "all was read")
    only.commit()
    described = admin.describe_consumer_groups([group])[group].result(60)
    assert described.state.name == "STABLE"
    assert described.partition_assignor == "range"
    (member,) = described.members
    assert member.client_id == "looked-at"
    assert {where.partition for where in member.assignment.topic_partitions} == set(range(PARTITIONS))
    listed = {only.group_id: only for only in admin.list_consumer_groups().result(60).valid}
    assert listed[group].state.name == "STABLE"
    with pytest.raises(KafkaException, match="(?i)non.?empty|not empty"):
        admin.delete_consumer_groups([group])[group].result(60)
    only.consumer.close()
    changed = GroupOffsets(group, [TopicPartition(topic, 0, 7)])
    admin.alter_consumer_group_offsets([changed])[group].result(60)
    committed_offsets = admin.list_consumer_group_offsets([GroupOffsets(group)])[group].result(60)
    offsets = {where.partition: where.offset for where in committed_offsets.topic_partitions}
    assert offsets == {0: 7, 1: 50, 2: 50, 3: 50}
    admin.delete_consumer_groups([group])[group].result(60)
    assert group not in {only.group_id for only in admin.list_consumer_groups().result(60).valid}


@pytest.mark.servers
@pytest.mark.proof  # every call of the tool starts a JVM
def test_kafkas_own_tool_shows_resets_and_deletes_groups(
    bootstrap_servers: str,
    kafka_tools: Callable[..., str],
    reader: Callable[..., Reader],
    group: str,
    topic: str,
) -> None:
    only = reader()
    poll_until([only], lambda: len(only.values) == RECORDS, "all was read")
    only.commit()
    only.consumer.close()

    def tool(*arguments: str) -> str:
        return kafka_tools("kafka-consumer-groups", "--bootstrap-server", bootstrap_servers, *arguments)

    assert group in tool("--list").split()
    lines = [line.split() for line in tool("--describe", "--group", group).splitlines() if topic in line]
    assert sorted((int(line[2]), line[3:6]) for line in lines) == [(n, ["50", "50", "0"]) for n in range(PARTITIONS)]
    tool("--reset-offsets", "--to-offset", "10", "--topic", topic, "--group", group, "--execute")
    tool("--delete-offsets", "--topic", f"{topic}:3", "--group", group)
    rows = {
        line.split()[2]: line.split()[3] for line in tool("--describe", "--group", group).splitlines() if topic in line
    }
    assert {where: offset for where, offset in rows.items() if offset != "-"} == {"0": "10", "1": "10", "2": "10"}
    tool("--delete", "--group", group)
    assert group not in tool("--list").split()
