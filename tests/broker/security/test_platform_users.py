"""Users in the platform's file log in with SCRAM, and their rights apply alongside ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from broker.client import ClientConfig
from broker.client.blocking import BatchConsumer
from broker.client.errors import TopicAuthorizationFailed
from broker.security.access import ResourceType as Group
from broker.security.acls import Permission
from broker.security.platform_users import entries_of
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread, settings
from tidegate.kit.users import PlatformUser, Right, Users, read_users, with_password, write_users

PASSWORDS = {"root": "r00t", "orders": "0rders", "reader": "r3ader", "sinks": "s1nks"}
RIGHTS = {
    "root": ("admin",),
    "orders": ("manage topic orders*", "read group orders", "write transaction orders*"),
    "reader": ("read topic orders-read", "read group *"),
    "sinks": ("manage connector orders*", "read topic orders-read"),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users.json"
    users = [
        with_password(PlatformUser(name, rights=tuple(map(Right.parse, RIGHTS[name]))), password, now_ms=1)
        for name, password in PASSWORDS.items()
    ]
    write_users(path, Users(users).with_delegation_key())
    return path


@pytest.fixture
def broker(tmp_path: Path, file: Path) -> Iterator[BrokerThread]:
    properties = settings(
        tmp_path / "data",
        listeners="SASL_PLAINTEXT://127.0.0.1:0",
        sasl_enabled_mechanisms="SCRAM-SHA-256,SCRAM-SHA-512",
        connection_failed_authentication_delay_ms="10",
        users_file=str(file),
        auto_create_topics_enable="false",
    )
    with BrokerThread(properties) as started:
        yield started


def config(broker: BrokerThread, user: str, password: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password or PASSWORDS[user],
        "log_level": 0,
        **more,
    }


def code_of(error: KafkaError | None) -> int | None:
    return None if error is None else error.code()


def create(broker: BrokerThread, user: str, topic: str, password: str | None = None) -> KafkaError | None:
    admin = AdminClient(config(broker, user, password))
    try:
        admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    except KafkaException as error:
        return error.args[0].code()
    return None


def produce(broker: BrokerThread, user: str, topic: str) -> int | None:
    outcome: list[Any] = []
    producer = Producer(config(broker, user, **{"message.timeout.ms": 20_000}))
    producer.produce(topic, b"x", on_delivery=lambda error, _: outcome.append(code_of(error)))
    producer.flush(30)
    return outcome[0]


def seen(broker: BrokerThread, user: str, topic: str) -> int | None:
    return code_of(AdminClient(config(broker, user)).list_topics(topic, timeout=30).topics[topic].error)


def consume(broker: BrokerThread, user: str, topic: str) -> int | bytes | None:
    consumer = Consumer(config(broker, user, **{"group.id": "g", "auto.offset.reset": "earliest"}))
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        message = consumer.poll(20)
        return None if message is None else code_of(message.error()) or message.value()
    finally:
        consumer.close()


def test_rights_decide_what_a_user_may_do(broker: BrokerThread) -> None:
    denied = KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert [create(broker, user, "orders-read") for user in ("reader", "orders")] == [denied, None]
    assert create(broker, "orders", "other") == denied and create(broker, "root", "other") is None
    assert [produce(broker, user, "orders-read") for user in ("reader", "orders", "root")] == [denied, None, None]
    assert consume(broker, "reader", "orders-read") == b"x"
    assert produce(broker, "orders", "other") == denied
    assert [seen(broker, user, "other") for user in ("reader", "orders", "root")] == [denied, denied, None]


def test_a_wrong_password_and_an_unknown_user_stay_out(broker: BrokerThread) -> None:
    for user, password in (("root", "wrong"), ("nobody", "wrong")):
        errors: list[KafkaError] = []
        producer = Producer(config(broker, user, password, error_cb=errors.append))
        wait_until(lambda: bool(producer.poll(0.1) or errors), "the error")
        assert errors[0].code() == KafkaError._AUTHENTICATION


def test_changes_in_the_users_file_count_without_a_restart(broker: BrokerThread, file: Path) -> None:
    assert create(broker, "root", "orders-read") is None and create(broker, "root", "more") is None
    assert produce(broker, "reader", "more") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    users = read_users(file)
    reader = users.named("reader")
    assert reader is not None
    changed = with_password(PlatformUser("reader", rights=(Right.parse("write topic more"),)), "another", now_ms=2)
    write_users(file, users.having(changed).without("orders"))

    def allowed() -> bool:
        outcome: list[Any] = []
        producer = Producer(config(broker, "reader", "another", **{"message.timeout.ms": 5_000}))
        producer.produce("more", b"x", on_delivery=lambda error, _: outcome.append(code_of(error)))
        producer.flush(10)
        return outcome == [None]

    wait_until(allowed, "the right to write")
    errors: list[KafkaError] = []
    producer = Producer(config(broker, "orders", error_cb=errors.append))
    wait_until(lambda: bool(producer.poll(0.1) or errors), "the error")
    assert errors[0].code() == KafkaError._AUTHENTICATION


def test_a_new_user_has_its_rights_from_the_first_login(broker: BrokerThread, file: Path) -> None:
    for name in ("first", "second", "third"):
        new = with_password(PlatformUser(name, rights=(Right.parse("admin"),)), "n3w", now_ms=3)
        write_users(file, read_users(file).having(new))
        assert create(broker, name, f"topic-{name}", password="n3w") is None


def test_access_control_entries_hold_beside_rights(broker: BrokerThread) -> None:
    assert create(broker, "root", "third") is None
    assert produce(broker, "reader", "third") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    entry = AclBinding(
        ResourceType.TOPIC,
        "third",
        ResourcePatternType.LITERAL,
        "User:reader",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient(config(broker, "root"))
    admin.create_acls([entry])[entry].result(30)
    wait_until(lambda: produce(broker, "reader", "third") is None, "the right to write")


def test_a_task_logs_in_for_the_owner_of_its_connector_with_the_owners_rights(broker: BrokerThread, file: Path) -> None:
    users = read_users(file)
    assert create(broker, "root", "orders-read") is None and create(broker, "root", "other") is None
    login, password = users.delegate_name("orders"), users.delegate_password("orders")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        outcomes: list[Any] = []
        producer = Producer(
            config(broker, login, password, **{"sasl.mechanism": mechanism, "message.timeout.ms": 20_000})
        )
        for topic in ("orders-read", "other"):
            producer.produce(topic, b"x", on_delivery=lambda error, _: outcomes.append(code_of(error)))
        producer.flush(30)
        assert sorted(outcomes, key=str) == [KafkaError.TOPIC_AUTHORIZATION_FAILED, None]
    write_users(file, users.without("orders"))
    errors: list[KafkaError] = []
    producer = Producer(config(broker, login, password, error_cb=errors.append))
    wait_until(lambda: bool(producer.poll(0.1) or errors), "the error")
    assert errors[0].code() == KafkaError._AUTHENTICATION


def test_a_task_that_is_connected_loses_the_rights_that_its_owner_loses(broker: BrokerThread, file: Path) -> None:
    users = read_users(file)
    assert create(broker, "root", "orders-read") is None
    login, password = users.delegate_name("orders"), users.delegate_password("orders")
    producer = Producer(config(broker, login, password, **{"message.timeout.ms": 20_000}))
    outcomes: list[Any] = []

    def outcome() -> Any:
        producer.produce("orders-read", b"x", on_delivery=lambda error, _: outcomes.append(code_of(error)))
        producer.flush(30)
        return outcomes[-1]

    assert outcome() is None
    write_users(file, users.without("orders"))
    wait_until(lambda: outcome() == KafkaError.TOPIC_AUTHORIZATION_FAILED, "the refusal")


def test_who_manages_a_sink_connector_may_join_its_group(broker: BrokerThread) -> None:
    assert create(broker, "root", "orders-read") is None and produce(broker, "root", "orders-read") is None

    def first(group: str) -> int | bytes | None:
        consumer = Consumer(config(broker, "sinks", **{"group.id": group, "auto.offset.reset": "earliest"}))
        consumer.subscribe(["orders-read"])
        try:
            message = consumer.poll(30)
            return None if message is None else code_of(message.error()) or message.value()
        finally:
            consumer.close()

    assert first("connect-orders-sink") == b"x"
    assert first("connect-other") == first("orders") == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_no_right_to_connectors_reaches_the_group_of_the_workers() -> None:
    for right in ("manage connector *", "manage connector cl*", "manage connector cluster"):
        denied = [
            e for e in entries_of(PlatformUser("u", rights=(Right.parse(right),))) if e.permission == Permission.DENY
        ]
        assert [(e.resource_type, e.resource_name) for e in denied] == [(Group.GROUP, "connect-cluster")]
    assert all(
        e.permission == Permission.ALLOW
        for e in entries_of(PlatformUser("u", rights=(Right.parse("manage connector o*"),)))
    )


def test_our_consumer_tells_of_a_topic_that_it_may_not_read(broker: BrokerThread) -> None:
    assert create(broker, "root", "other") is None
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{scram} required username="reader" password="{PASSWORDS["reader"]}";',
        "group.id": "g",
    }
    with BatchConsumer(ClientConfig(broker.bootstrap_servers, settings)) as consumer:
        consumer.subscribe(["other"])
        with pytest.raises(TopicAuthorizationFailed, match="Not authorized to access topics: other"):
            wait_until(lambda: bool(consumer.fetch(max_wait_ms=100)), "the refusal")
