"""Rights and quotas set with Kafka's tools and clients, and their effects on clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.conformance.access.brokers import Ports, apache, ours
from tests.conformance.access.walk import PASSWORD
from tests.servers.kafka import kafka_tool
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread, settings


class Access:
    """A broker with an authorizer: everyone may do everything on ``admin``, and logs in on ``clients``."""

    def __init__(self, ports: Ports) -> None:
        self.admin = f"127.0.0.1:{ports.admin}"
        self.clients = f"127.0.0.1:{ports.clients}"

    def client(self, user: str, **more: Any) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.clients,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "log_level": 0,
            **more,
        }


@pytest.fixture(scope="module", params=[ours, pytest.param(apache, marks=pytest.mark.proof)])
def access(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with request.param(tmp_path_factory.mktemp("access")) as ports:
        made = Access(ports)
        admin = AdminClient({"bootstrap.servers": made.admin})
        for future in admin.create_topics([NewTopic(name, 1) for name in ("orders", "orders-new", "wages")]).values():
            future.result(60)
        yield made


def produce(settings: dict[str, Any], topic: str, *, count: int = 1, size: int = 10) -> list[KafkaError | None]:
    errors: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": 20_000})

    def delivered(error: KafkaError | None, _message: Message) -> None:
        errors.append(error)

    for _ in range(count):
        producer.produce(topic, bytes(size), on_delivery=delivered)
    assert producer.flush(60) == 0
    return errors


def consume(settings: dict[str, Any], topic: str, count: int) -> list[Any]:
    """Records, or the first error."""
    consumer = Consumer({"auto.offset.reset": "earliest", "enable.auto.commit": False, **settings})
    consumer.subscribe([topic])
    messages: list[Any] = []
    try:
        while len(messages) < count:
            message = consumer.poll(20)
            assert message is not None, f"{len(messages)} of {count} records came"
            error = message.error()
            if error is not None:
                return [error.code()]
            messages.append(message.value())
        return messages
    finally:
        consumer.close()


def test_clients_may_do_what_kafkas_tool_allowed_them(access: Access) -> None:
    assert {error.code() if error else 0 for error in produce(access.client("alice"), "orders")} == {
        KafkaError.TOPIC_AUTHORIZATION_FAILED
    }
    said = kafka_tool(
        "kafka-acls",
        *("--bootstrap-server", access.admin, "--add", "--allow-principal", "User:alice", "--producer", "--consumer"),
        *("--topic", "orders", "--group", "readers", "--resource-pattern-type", "prefixed"),
    )
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in said
    assert produce(access.client("alice"), "orders-new") == [None]
    assert produce(access.client("alice", **{"enable.idempotence": True}), "orders") == [None]
    assert len(consume(access.client("alice", **{"group.id": "readers-1"}), "orders", 1)) == 1
    refused = consume(access.client("alice", **{"group.id": "others"}), "orders", 1)
    assert refused == [KafkaError.GROUP_AUTHORIZATION_FAILED]
    refused = consume(access.client("bob", **{"group.id": "readers-1"}), "wages", 1)
    assert refused in ([KafkaError.GROUP_AUTHORIZATION_FAILED], [KafkaError.TOPIC_AUTHORIZATION_FAILED])


def test_clients_see_the_topics_they_may_describe(access: Access) -> None:
    admin = AdminClient({"bootstrap.servers": access.admin})
    binding = AclBinding(
        ResourceType.TOPIC,
        "wages",
        ResourcePatternType.LITERAL,
        "User:bob",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )
    for future in admin.create_acls([binding]).values():
        future.result(60)

    def seen() -> set[str]:
        return set(AdminClient(access.client("bob")).list_topics(timeout=60).topics)

    # Apache Kafka answers before its broker applies a change.
    wait_until(lambda: seen() == {"wages"}, "the topic that bob may describe")
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:bob", None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert admin.describe_acls(every).result(60) == [binding]
    (removed,) = admin.delete_acls([every]).values()
    assert removed.result(60) == [binding]
    wait_until(lambda: seen() == set(), "the end of bob's right")
    bob = AdminClient(access.client("bob"))
    (created,) = bob.create_acls([binding]).values()
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        created.result(60)


def test_rights_outlive_the_broker(tmp_path: Path) -> None:
    entry = AclBinding(
        ResourceType.GROUP, "g", ResourcePatternType.PREFIXED, "User:x", "10.0.0.1", AclOperation.ALL, AclPermissionType.DENY
    )  # fmt: skip
    configs = {
        **settings(tmp_path),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    for expected in (False, True):
        with BrokerThread(configs) as broker:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            every = AclBindingFilter(
                ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
            )
            assert admin.describe_acls(every).result(60) == ([entry] if expected else [])
            for future in admin.create_acls([entry]).values():
                future.result(60)


_ATTEMPTS = 5
"""A busy machine may send so slowly that nothing is above a quota."""


def test_clients_above_their_quotas_are_held_back(access: Access) -> None:
    # sends slightly more than the quota, so that the throttling is short
    bootstrap = ("--bootstrap-server", access.admin)
    kafka_tool(
        "kafka-configs",
        *(*bootstrap, "--alter", "--add-config", "producer_byte_rate=280000,consumer_byte_rate=380000"),
        *("--entity-type", "clients", "--entity-name", "held"),
    )
    waits: dict[str, list[float]] = {"Produce": [], "Fetch": [], "free": []}

    def noting(kind: str) -> dict[str, Any]:
        return {"bootstrap.servers": access.admin, "throttle_cb": lambda event: waits[kind].append(event.throttle_time)}

    assert produce({**noting("free"), "client.id": "free"}, "wages", count=5, size=20_000) == [None] * 5
    sending = {**noting("Produce"), "client.id": "held", "batch.size": 30_000}
    for attempt in range(_ATTEMPTS):
        assert produce(sending, "wages", count=15, size=20_000) == [None] * 15
        throttled = {**noting("Fetch"), "client.id": "held", "group.id": f"g{attempt}"}
        assert len(consume(throttled, "wages", 20)) == 20
        if any(waits["Produce"]) and any(waits["Fetch"]):
            break
    assert not waits["free"] and any(waits["Produce"]) and any(waits["Fetch"])
    described = kafka_tool("kafka-configs", *bootstrap, "--describe", "--entity-type", "clients")
    assert "consumer_byte_rate=380000.0" in described and "for client-id 'held'" in described
