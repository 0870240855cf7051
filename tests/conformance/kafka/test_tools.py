"""Apache Kafka's own command line tools against our broker and theirs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

Tools = Callable[..., str]
pytestmark = pytest.mark.servers

SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
STREAMS_RESETTER = "org.apache.kafka.tools.StreamsResetter"


def versions(text: str) -> dict[str, tuple[int, int]]:
    """API to (lowest, highest) version of a broker, from what kafka-broker-api-versions prints."""
    matches = re.findall(r"^\s+(\w+)\(\d+\): (\d+)(?: to (\d+))?", text, re.MULTILINE)
    return {name: (int(low), int(high or low)) for name, low, high in matches}


def test_the_apis_and_versions_are_those_of_apache_kafka(kafka_tools: Tools, request: pytest.FixtureRequest) -> None:
    ours, theirs = (
        versions(kafka_tools("kafka-broker-api-versions", "--bootstrap-server", broker.bootstrap_servers))
        for broker in (request.getfixturevalue("tidegate_broker"), request.getfixturevalue("apache_kafka"))
    )
    assert len(ours) > 60
    assert ours == theirs


def test_console_producer_and_consumer(kafka_tools: Tools, bootstrap_servers: str, topic: str) -> None:
    server = ("--bootstrap-server", bootstrap_servers)
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    lines = [f"key{n}:value {n}" for n in range(100)]
    kafka_tools("kafka-console-producer", *server, "--topic", topic, *keyed, stdin="\n".join(lines) + "\n")
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:")
    everything = ("--from-beginning", "--max-messages", "100", "--timeout-ms", "20000")
    text = kafka_tools(
        "kafka-console-consumer", *server, "--topic", topic, "--group", f"{topic}-g", *shown, *everything
    )
    assert sorted(line for line in text.splitlines() if ":" in line) == sorted(lines)
    described = kafka_tools("kafka-consumer-groups", *server, "--describe", "--group", f"{topic}-g")
    assert sum(int(end) for end in re.findall(rf"{topic}\s+\d+\s+(\d+)", described)) == 100


@pytest.mark.proof  # six JVMs
def test_topics_configs_and_offsets(kafka_tools: Tools, bootstrap_servers: str, topic: str) -> None:
    server = ("--bootstrap-server", bootstrap_servers)
    described = kafka_tools("kafka-topics", *server, "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert described.count("Leader: ") == 3
    entity = ("--entity-type", "topics", "--entity-name", topic)
    kafka_tools(
        "kafka-configs",
        *server,
        *entity,
        "--alter",
        "--add-config",
        "retention.ms=4711,cleanup.policy=[delete,compact]",
    )
    assert "retention.ms=4711" in kafka_tools("kafka-configs", *server, *entity, "--describe")
    kafka_tools(
        "kafka-console-producer", *server, "--topic", topic, "--reader-property", "parse.key=true", stdin="k\tv\n"
    )
    offsets = kafka_tools("kafka-get-offsets", *server, "--topic", topic)
    assert sum(int(line.rpartition(":")[2]) for line in offsets.split()) == 1
    assert topic in kafka_tools("kafka-log-dirs", *server, "--describe", "--topic-list", topic)


def test_the_verifiable_producer_sees_every_acknowledgement(
    kafka_tools: Tools, bootstrap_servers: str, topic: str
) -> None:
    text = kafka_tools(
        "kafka-verifiable-producer", "--bootstrap-server", bootstrap_servers, "--topic", topic, "--max-messages", "1000",
        "--acks", "-1",
    )  # fmt: skip
    assert '"acked":1000' in text
    assert "producer_send_error" not in text


@pytest.mark.proof  # three JVMs
def test_the_console_share_consumer(kafka_tools: Tools, bootstrap_servers: str, topic: str) -> None:
    server = ("--bootstrap-server", bootstrap_servers)
    group = f"{topic}-g"
    entity = ("--entity-type", "groups", "--entity-name", group)
    kafka_tools("kafka-configs", *server, *entity, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    lines = [f"value {n}" for n in range(100)]
    kafka_tools("kafka-console-producer", *server, "--topic", topic, stdin="\n".join(lines) + "\n")
    everything = ("--max-messages", "100", "--timeout-ms", "60000")
    text = kafka_tools(SHARE_CONSUMER, *server, "--topic", topic, "--group", group, *everything)
    assert sorted(line for line in text.splitlines() if line.startswith("value")) == sorted(lines)


@pytest.mark.proof  # five JVMs
def test_a_streams_application_is_reset(kafka_tools: Tools, bootstrap_servers: str, topic: str) -> None:
    server = ("--bootstrap-server", bootstrap_servers)
    group, changelog = f"{topic}-app", f"{topic}-app-store-changelog"
    kafka_tools("kafka-topics", *server, "--create", "--topic", changelog)
    kafka_tools("kafka-console-producer", *server, "--topic", topic, stdin="a\nb\nc\n")
    everything = ("--group", group, "--from-beginning", "--max-messages", "3", "--timeout-ms", "60000")
    kafka_tools("kafka-console-consumer", *server, "--topic", topic, *everything)
    kafka_tools(STREAMS_RESETTER, *server, "--application-id", group, "--input-topics", topic)
    described = kafka_tools("kafka-consumer-groups", *server, "--describe", "--group", group)
    assert sum(int(at) for at in re.findall(rf"{topic}\s+\d+\s+(\d+)", described)) == 0
    assert changelog not in kafka_tools("kafka-topics", *server, "--list").split()
