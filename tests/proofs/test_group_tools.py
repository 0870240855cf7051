"""Kafka's own consumers and tools on groups of the classic, consumer and streams protocols: our broker compared with
Apache Kafka.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.proofs import effort
from tests.servers.process import wait_until

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(1200)]

Tool = Callable[..., str]


@pytest.fixture(params=["tidegate_broker", "apache_kafka"][: effort(1, 2)])
def bootstrap_servers(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param).bootstrap_servers)


@pytest.fixture
def topic(bootstrap_servers: str) -> str:
    name = f"tools-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(name, 2)])[name].result(60)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(10):
        producer.produce(name, str(number).encode(), partition=number % 2)
    assert producer.flush(60) == 0
    return name


def table(printed: str) -> list[dict[str, str]]:
    """The rows of a tool's table, by its headings."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    heading = next(index for index, line in enumerate(lines) if "GROUP" in line)
    return [dict(zip(lines[heading], line, strict=False)) for line in lines[heading + 1 :]]


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=pytest.mark.long), "consumer"])
def test_javas_consumer_reads_and_the_tools_show_reset_and_delete(
    bootstrap_servers: str, topic: str, kafka_tools: Tool, protocol: str
) -> None:
    group = f"tools-{uuid.uuid4().hex[:8]}"

    def groups(*arguments: str) -> str:
        return kafka_tools("kafka-consumer-groups", "--bootstrap-server", bootstrap_servers, *arguments)

    read = kafka_tools(
        "kafka-console-consumer", "--bootstrap-server", bootstrap_servers, "--topic", topic, "--group", group,
        "--from-beginning", "--max-messages", "10", "--timeout-ms", "60000",
        "--command-property", f"group.protocol={protocol}",
    )  # fmt: skip
    assert sorted(read.split()) == sorted(map(str, range(10)))
    (listed,) = (row for row in table(groups("--list", "--state", "--type")) if row["GROUP"] == group)
    assert listed == {"GROUP": group, "TYPE": protocol.capitalize(), "STATE": "Empty"}
    member = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "looked-at",
            "enable.auto.commit": False,
        }
    )
    member.subscribe([topic])

    def has_all() -> bool:
        member.poll(0.1)
        return len(member.assignment()) == 2

    wait_until(has_all, "the member has its partitions", pause_s=0)
    (shown,) = table(groups("--describe", "--group", group, "--members", "--verbose"))
    assert shown["CLIENT-ID"] == "looked-at"
    assert shown["#PARTITIONS"] == "2"
    (state,) = table(groups("--describe", "--group", group, "--state"))
    assert "Stable" in state.values()
    member.close()
    offsets = table(groups("--describe", "--group", group, "--offsets"))
    assert {(row["PARTITION"], row["CURRENT-OFFSET"], row["LAG"]) for row in offsets} == {
        ("0", "5", "0"),
        ("1", "5", "0"),
    }
    reset = groups("--reset-offsets", "--group", group, "--topic", topic, "--shift-by", "-2", "--execute")
    assert {row["NEW-OFFSET"] for row in table(reset)} == {"3"}
    assert "Successful" in groups("--delete-offsets", "--group", group, "--topic", f"{topic}")
    assert "successful" in groups("--delete", "--group", group)
    assert group not in kafka_tools("kafka-groups", "--bootstrap-server", bootstrap_servers, "--list")


def test_a_groups_configuration_is_set_and_shown(bootstrap_servers: str, kafka_tools: Tool) -> None:
    group = f"tools-{uuid.uuid4().hex[:8]}"

    def configs(*arguments: str) -> str:
        where = ("--bootstrap-server", bootstrap_servers, "--entity-type", "groups", "--entity-name", group)
        return kafka_tools("kafka-configs", *where, *arguments)

    configs("--alter", "--add-config", "consumer.session.timeout.ms=50000")
    shown = configs("--describe")
    assert "consumer.session.timeout.ms=50000 sensitive=false synonyms={DYNAMIC_GROUP_CONFIG" in shown
