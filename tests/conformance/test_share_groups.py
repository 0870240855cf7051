"""Share groups with clients by other authors: the same on Apache Kafka and on our broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.groups.modern.records import decode_entry, encode_entry
from broker.groups.share.records import RECORDS
from broker.protocol.records import batches, decode_batch
from broker.share_coordinator.records import (
    Snapshot,
    Update,
    decode_key,
    decode_snapshot,
    decode_update,
    encode_snapshot,
    encode_update,
)
from tests.servers.group_configs import set_group_configs
from tests.servers.kafka import kafka_tool
from tests.servers.tidegate_broker import TidegateBroker

SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
RELEASE, REJECT = 2, 3


@pytest.fixture(params=["tidegate_broker", "apache_kafka"])
def bootstrap_servers(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param).bootstrap_servers)


@pytest.fixture
def group(bootstrap_servers: str) -> str:
    return new_group(bootstrap_servers)


def new_group(bootstrap_servers: str, **settings: str) -> str:
    """The id of a group that begins at the start of its topics."""
    name = f"share-{uuid.uuid4().hex[:8]}"
    configs = {key.replace("_", "."): value for key, value in settings.items()} | {
        "share.auto.offset.reset": "earliest"
    }
    set_group_configs(AdminClient({"bootstrap.servers": bootstrap_servers}), name, configs)
    return name


@pytest.fixture
def topic(bootstrap_servers: str) -> str:
    return new_topic(bootstrap_servers)


def new_topic(bootstrap_servers: str) -> str:
    name = f"share-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(name, 1)])[name].result(60)
    return name


def produce(bootstrap_servers: str, topic: str, numbers: range, **settings: str) -> Producer:
    """Records whose values are these numbers, in small batches."""
    configs = {key.replace("_", "."): value for key, value in settings.items()}
    producer = Producer({"bootstrap.servers": bootstrap_servers, "batch.num.messages": 10, **configs})
    if "transactional_id" in settings:
        producer.init_transactions(30)
        producer.begin_transaction()
    for number in numbers:
        producer.produce(topic, str(number).encode())
    assert producer.flush(60) == 0
    return producer


@pytest.fixture
def consume(bootstrap_servers: str, group: str) -> Iterator[Callable[..., ShareConsumer]]:
    """Makes members of the group that are closed at the end."""
    members: list[ShareConsumer] = []

    def member(topic: str, **settings: str) -> ShareConsumer:
        members.append(share_consumer(bootstrap_servers, group, topic, **settings))
        return members[-1]

    yield member
    for each in members:
        each.close()


def share_consumer(bootstrap_servers: str, group: str, topic: str, **settings: str) -> ShareConsumer:
    configs = {key.replace("_", "."): value for key, value in settings.items()}
    consumer = ShareConsumer({"bootstrap.servers": bootstrap_servers, "group.id": group, **configs})
    consumer.subscribe([topic])
    return consumer


def poll(consumer: ShareConsumer, timeout_s: float = 0.2) -> list[Message]:
    messages = list(consumer.poll(timeout_s))
    assert not any(message.error() for message in messages)
    return messages


def values(messages: list[Message]) -> list[int]:
    return [int(message.value() or b"") for message in messages]


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "it did not come to that"


def test_members_share_the_records_of_one_partition(
    bootstrap_servers: str, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    produce(bootstrap_servers, topic, range(100))
    first, other = consume(topic, max_poll_records="10"), consume(topic, max_poll_records="10")
    got: tuple[list[int], list[int]] = ([], [])

    def take() -> bool:
        got[0].extend(values(poll(first)))
        got[1].extend(values(poll(other)))
        return len(got[0]) + len(got[1]) >= 100

    until(take)
    assert sorted(got[0] + got[1]) == list(range(100)), "each once"


def test_records_are_released_and_rejected(
    bootstrap_servers: str, topic: str, consume: Callable[..., ShareConsumer]
) -> None:
    produce(bootstrap_servers, topic, range(6))
    member = consume(topic, share_acknowledgement_mode="explicit")
    first: list[Message] = []
    again: list[Message] = []

    def take() -> bool:
        messages = poll(member)
        for message in messages:
            number = int(message.value() or b"")
            seen = number in values(first)
            (again if seen else first).append(message)
            member.acknowledge(message, REJECT if number % 3 == 1 else RELEASE if number % 3 == 2 and not seen else 1)
        member.commit_sync(10.0)
        return len(again) >= 2

    until(take)
    assert sorted(values(first)) == list(range(6))
    assert sorted(values(again)) == [2, 5]
    assert not values(poll(member, 1.0))


def test_readers_of_committed_records_do_not_see_aborted_ones(bootstrap_servers: str, topic: str) -> None:
    group = new_group(bootstrap_servers, share_isolation_level="read_committed")
    produce(bootstrap_servers, topic, range(3))
    produce(bootstrap_servers, topic, range(3, 6), transactional_id=f"{topic}-a").abort_transaction(30)
    produce(bootstrap_servers, topic, range(6, 9), transactional_id=f"{topic}-b").commit_transaction(30)
    got: list[int] = []
    with share_consumer(bootstrap_servers, group, topic) as member:

        def take() -> bool:
            got.extend(values(poll(member)))
            return len(got) >= 6

        until(take)
    assert sorted(got) == [0, 1, 2, 6, 7, 8]


def test_the_tools_show_and_set_offsets(
    bootstrap_servers: str, topic: str, group: str, consume: Callable[..., ShareConsumer]
) -> None:
    produce(bootstrap_servers, topic, range(10))
    got: list[int] = []

    def take() -> bool:
        got.extend(values(poll(member)))
        return len(got) >= 10

    with share_consumer(bootstrap_servers, group, topic) as member:
        until(take)
    server = ("--bootstrap-server", bootstrap_servers, "--group", group)
    reset = kafka_tool(SHARE_GROUPS, *server, "--reset-offsets", "--topic", topic, "--to-earliest", "--execute")
    assert [group, topic, "0", "0"] in [line.split() for line in reset.splitlines()]
    shown = kafka_tool(SHARE_GROUPS, *server, "--describe")
    assert [group, topic, "0", "0", "10"] in [line.split() for line in shown.splitlines()]
    with share_consumer(bootstrap_servers, group, topic) as member:
        until(lambda: take() and len(got) >= 20)
    assert sorted(got) == sorted([*range(10)] * 2)


@pytest.mark.parametrize("which", ["tidegate_broker", "apache_kafka"])
def test_the_records_are_kafkas(request: pytest.FixtureRequest, which: str) -> None:
    """Both brokers write the same records for the same group: the same types and values, except ids and times."""
    broker = request.getfixturevalue(which)
    topic, group = new_topic(broker.bootstrap_servers), new_group(broker.bootstrap_servers)
    with share_consumer(broker.bootstrap_servers, group, topic) as member:
        got: list[int] = []

        def take() -> bool:
            got.extend(values(poll(member)))
            return len(got) >= 5

        poll(member, 2.0)
        produce(broker.bootstrap_servers, topic, range(5))
        until(take)
        member.commit_sync(10.0)
    state = [decoded(key, value) for key, value in records(broker.directory, "__share_group_state", group)]
    assert [record._replace(created_ms=0, written_ms=0) for record in state if isinstance(record, Snapshot)] == [
        Snapshot(0, 2, 0, -1, 0, 0, -1, [])
    ]
    updates = [record for record in state if isinstance(record, Update)]
    assert updates
    for record in updates:
        assert record.snapshot_epoch == record.leader_epoch == 0
        assert all(batch[2:] == (1, 2) for batch in record.batches), "delivered once, acknowledged"
    changes = [
        decode_entry(RECORDS, key, value) for key, value in records(broker.directory, "__consumer_offsets", group)
    ]
    assert [encode_entry(change) for change in changes] == list(records(broker.directory, "__consumer_offsets", group))
    assert [(type(key).__name__.removesuffix("Key"), value is None) for key, value in changes] == [
        ("ShareGroupMemberMetadata", False),
        ("ShareGroupMetadata", False),
        ("ShareGroupTargetAssignmentMember", False),
        ("ShareGroupTargetAssignmentMetadata", False),
        ("ShareGroupCurrentMemberAssignment", False),
        ("ShareGroupStatePartitionMetadata", False),
        ("ShareGroupStatePartitionMetadata", False),
        ("ShareGroupMetadata", False),
        ("ShareGroupTargetAssignmentMember", False),
        ("ShareGroupTargetAssignmentMetadata", False),
        ("ShareGroupCurrentMemberAssignment", False),
        ("ShareGroupCurrentMemberAssignment", True),
        ("ShareGroupTargetAssignmentMember", True),
        ("ShareGroupMemberMetadata", True),
        ("ShareGroupMetadata", False),
    ]


def records(directory: Path, topic: str, group: str) -> Iterator[tuple[bytes, bytes | None]]:
    """The records of a group in a topic of the broker's own, as they lie on disk."""
    for path in sorted((directory / "log").glob(f"{topic}-*/*.log")):
        view = memoryview(path.read_bytes())
        for position, header in batches(view):
            for record in decode_batch(view[position : position + header.size]):
                if not header.is_control and group.encode() in (record.key or b""):
                    yield record.key or b"", record.value


def decoded(key: bytes, value: bytes | None) -> Snapshot | Update | None:
    kind, share = decode_key(key)
    if value is None:
        return None
    decoded = decode_snapshot(value) if kind == 0 else decode_update(value)
    again = encode_snapshot(share, decoded) if isinstance(decoded, Snapshot) else encode_update(share, decoded)
    assert again == (key, value)
    return decoded


def test_acknowledged_records_survive_a_kill(tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path / "broker")
    broker.start()
    address = broker.bootstrap_servers
    topic, group = new_topic(address), new_group(address)
    produce(address, topic, range(50))
    done: set[int] = set()
    first = share_consumer(address, group, topic, share_acknowledgement_mode="explicit", max_poll_records="10")

    def take_some() -> bool:
        messages = poll(first)
        for message in messages:
            first.acknowledge(message, 1)
        outcomes = first.commit_sync(10.0)
        if outcomes and not any(outcomes.values()):
            done.update(values(messages))
        return len(done) >= 20

    until(take_some)
    broker.kill()
    broker.start()
    first.close()
    got: list[int] = []
    with share_consumer(address, group, topic) as member:

        def take() -> bool:
            got.extend(values(poll(member)))
            return len(got) >= 50 - len(done)

        until(take)
        got += values(poll(member, 1.0))
    broker.stop()
    assert sorted(got) == sorted(set(range(50)) - done)
