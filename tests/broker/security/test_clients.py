"""Clients by other authors log in with every mechanism, with and without TLS, and are refused with wrong credentials."""

from __future__ import annotations

import asyncio
import random
import ssl
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from broker.client import ClientConfig
from broker.client.blocking import BatchConsumer, BatchProducer
from broker.client.columns import encode_batches
from tests.broker.security.conftest import MECHANISMS, PASSWORD, USER, Doors, jaas_text, unsecured
from tests.servers.process import wait_until
from tidegate.cli import tidegate

with warnings.catch_warnings():
    # kafka-python reads its message definitions by a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.net.sasl.oauth import AbstractTokenProvider


def confluent(
    doors: Doors, listener: str, mechanism: str | None, password: str = PASSWORD, **more: Any
) -> dict[str, Any]:
    made: dict[str, Any] = {"bootstrap.servers": doors.address(listener), "log_level": 0}
    made["security.protocol"] = {"MUTUAL": "SSL", "SIGNED": "SASL_PLAINTEXT"}.get(listener, listener)
    if "SSL" in made["security.protocol"]:
        made["ssl.ca.location"] = str(doors.authority.certificate)
    if mechanism == "OAUTHBEARER":
        made |= {"sasl.mechanism": mechanism, "oauth_cb": lambda _: (unsecured(), 2e9)}
    elif mechanism is not None:
        made |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}
    return {**made, **more}


def round_trip(config: dict[str, Any], topic: str) -> None:
    producer = Producer({**config, "message.timeout.ms": 20_000})
    values = [b"x" * size for size in (1, 1000, 200_000)]
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0
    if "oauth_cb" in config:
        return  # librdkafka asks for the token of a consumer once a second
    consumer = Consumer({**config, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[bytes] = []
    while len(read) < len(values):
        messages = consumer.consume(len(values) - len(read), 10)
        assert messages
        read += [message.value() for message in messages]
    assert read == values
    consumer.close()


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka(doors: Doors, topic: Callable[[], str], listener: str, mechanism: str) -> None:
    config = confluent(doors, listener, mechanism)
    round_trip(config, topic())
    admin = AdminClient(config)
    assert admin.list_topics(timeout=60).topics
    wait_until(lambda: doors.seen().get(listener) == f"User:{USER}", "the principal")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told_as_such(doors: Doors, mechanism: str) -> None:
    errors: list[KafkaError] = []
    producer = Producer({**confluent(doors, "SASL_PLAINTEXT", mechanism, "wrong"), "error_cb": errors.append})
    wait_until(lambda: bool(producer.poll(0.1) or errors), "the error")
    assert errors[0].code() == KafkaError._AUTHENTICATION


def test_tls_alone_leaves_clients_anonymous(doors: Doors, topic: Callable[[], str]) -> None:
    round_trip(confluent(doors, "SSL", None), topic())
    admin = AdminClient(confluent(doors, "SSL", None))
    admin.list_topics(timeout=60)
    wait_until(lambda: doors.seen().get("SSL") == "User:ANONYMOUS", "the principal")


def test_a_client_certificate_is_a_principal(doors: Doors, topic: Callable[[], str]) -> None:
    client_settings = {
        "ssl.certificate.location": str(doors.client_certificate),
        "ssl.key.location": str(doors.client_certificate),
    }
    config = {**confluent(doors, "MUTUAL", None), **client_settings}
    round_trip(config, topic())
    admin = AdminClient(config)
    admin.list_topics(timeout=60)
    wait_until(lambda: doors.seen().get("MUTUAL") == "User:carol", "the principal")


def test_without_a_certificate_the_handshake_fails(doors: Doors) -> None:
    admin = AdminClient(confluent(doors, "MUTUAL", None))
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=1)


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(doors: Doors, topic: Callable[[], str], listener: str, mechanism: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.abc import AbstractTokenProvider as Provider

    class Tokens(Provider):
        async def token(self) -> str:
            return unsecured()

    async def run() -> None:
        common: dict[str, Any] = {
            "bootstrap_servers": doors.address(listener),
            "security_protocol": listener,
            "ssl_context": ssl.create_default_context(cafile=str(doors.authority.certificate)),
            "sasl_mechanism": mechanism,
            "sasl_plain_username": USER,
            "sasl_plain_password": PASSWORD,
            "sasl_oauth_token_provider": Tokens() if mechanism == "OAUTHBEARER" else None,
        }
        name = topic()
        async with AIOKafkaProducer(**common) as producer:
            await producer.send_and_wait(name, b"x" * 100_000)
        async with AIOKafkaConsumer(name, auto_offset_reset="earliest", **common) as consumer:
            assert (await consumer.getone()).value == b"x" * 100_000

    asyncio.run(run())


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(doors: Doors, topic: Callable[[], str], listener: str, mechanism: str) -> None:
    class Tokens(AbstractTokenProvider):
        def token(self) -> str:
            return unsecured()

    producer = kafka.KafkaProducer(
        bootstrap_servers=doors.address(listener),
        security_protocol=listener,
        ssl_cafile=str(doors.authority.certificate),
        sasl_mechanism=mechanism,
        sasl_plain_username=USER,
        sasl_plain_password=PASSWORD,
        sasl_oauth_token_provider=Tokens() if mechanism == "OAUTHBEARER" else None,
    )
    try:
        assert producer.send(topic(), b"x").get(20).offset == 0
    finally:
        producer.close()


def test_our_command_line_takes_the_settings_of_a_file(doors: Doors, topic: Callable[[], str], tmp_path: Path) -> None:
    settings = {
        "bootstrap.servers": doors.address("SASL_SSL"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f"a.ScramLoginModule required username={jaas_text(USER)} password={jaas_text(PASSWORD)};",
        "ssl.truststore.location": str(doors.authority.certificate),
    }
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in settings.items()))
    name = topic()
    options = ["--command-config", str(file)]
    runner = CliRunner()
    assert runner.invoke(tidegate, ["topics", "create", name, *options]).exit_code == 0
    listed = runner.invoke(tidegate, ["topics", "list", *options])
    assert name in listed.output, listed.output
    wrong = runner.invoke(tidegate, ["topics", "list", *options, "--property", "sasl.mechanism=GSSAPI"])
    assert wrong.exit_code != 0


@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL"])
def test_our_own_client_reads_answers_of_all_sizes_over_tls(
    doors: Doors, topic: Callable[[], str], listener: str
) -> None:
    settings = {
        "security.protocol": listener,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(doors.authority.certificate),
    }
    if listener == "SASL_SSL":
        login = f"username={jaas_text(USER)} password={jaas_text(PASSWORD)}"
        plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {login};"
        settings |= {"sasl.mechanism": "PLAIN", "sasl.jaas.config": plain}
    config, name = ClientConfig(doors.address(listener), settings), topic()
    values = [random.Random(size).randbytes(size) for size in (1, 70_000, 3, 900_000, 65_536)]
    with BatchProducer(config) as producer:
        for value in values:
            for made in encode_batches(None, pa.array([value])):
                producer.send_batch(name, 0, made).result(60)
    read: list[bytes] = []
    with BatchConsumer(config) as consumer:
        consumer.assign([(name, 0)])
        consumer.seek_to_beginning()
        while len(read) < len(values):
            for fetched in consumer.fetch(5000):
                read += fetched.columns().values.to_pylist()
    assert read == values
