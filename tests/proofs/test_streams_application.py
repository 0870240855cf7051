"""A Kafka Streams application on the streams protocol (KIP-1071) counts words correctly while instances start and are
killed.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from broker.groups.modern.records import decode_entry, encode_entry
from broker.groups.streams.records import RECORDS, StreamsGroupMetadataValue
from tests.conformance.test_consumer_offsets_format import stored
from tests.proofs import effort
from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.servers.java import QUICK, java
from tests.servers.kafka import KafkaBroker
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(1200)]

PARTITIONS = 4
SETTINGS = {
    "group.streams.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.streams.num.standby.replicas": "1",
}


@pytest.fixture(params=[TidegateBroker, KafkaBroker][: effort(1, 2)], ids=lambda server: server.__name__)
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    made = or_skip(lambda: request.param(tmp_path / "broker", SETTINGS))
    made.start()
    try:
        yield made
    finally:
        made.stop()


class Application:
    """Instances of the application, and what they have counted."""

    def __init__(self, bootstrap_servers: str, directory: Path) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._directory = directory
        self._libraries = or_skip(lambda: require("kafka-streams")) / "libs"
        self._instances: list[subprocess.Popen[bytes]] = []
        self.expected: Counter[str] = Counter()
        self._counts: dict[str, int] = {}
        quiet = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        self.admin = AdminClient(quiet)
        for made in self.admin.create_topics([NewTopic("lines", PARTITIONS), NewTopic("counts", 1)]).values():
            made.result(60)
        self._producer = Producer(quiet)
        self._consumer = Consumer({**quiet, "group.id": "reader", "auto.offset.reset": "earliest"})
        self._consumer.subscribe(["counts"])

    def start(self) -> subprocess.Popen[bytes]:
        number = len(self._instances)
        source = Path(__file__).parent / "streams" / "WordCount.java"
        command = [java(), "-Xmx256M", *QUICK, "-cp", f"{self._libraries}/*"]
        arguments = [self._bootstrap_servers, "words", str(self._directory / f"state-{number}"), "lines", "counts"]
        with (self._directory / f"application-{number}.log").open("wb") as log:
            made = subprocess.Popen([*command, str(source), *arguments], stdout=log, stderr=log)
        self._instances.append(made)
        return made

    def say(self, lines: int) -> None:
        for number in range(lines):
            line = f"word{number % 7} common"
            self._producer.produce("lines", line.encode(), key=str(number).encode())
            self.expected.update(line.split())
        assert self._producer.flush(60) == 0

    def counted(self) -> None:
        """Wait until all words are."""

        def turn() -> bool:
            for message in self._consumer.consume(500, 0.2):
                assert message.error() is None, message.error()
                self._counts[(message.key() or b"").decode()] = int(message.value() or b"")
            return self._counts == self.expected

        wait_until(turn, "all words are counted", pause_s=0)

    def stop(self) -> None:
        for instance in self._instances:
            instance.kill()
            instance.wait()
        self._consumer.close()


def test_words_are_counted_while_instances_come_and_go(
    server: Any, kafka_tools: Callable[..., str], tmp_path: Path
) -> None:
    application = Application(server.bootstrap_servers, tmp_path)

    def tool(*arguments: str) -> str:
        return kafka_tools("kafka-streams-groups", "--bootstrap-server", server.bootstrap_servers, *arguments)

    def members() -> list[str]:
        shown = tool("--describe", "--group", "words", "--members")
        return [line for line in shown.splitlines() if line.startswith("words ")]

    try:
        application.start()
        application.say(200)
        application.counted()
        second = application.start()
        wait_until(lambda: len(members()) == 2, "two instances")
        wait_until(lambda: all("ACTIVE" in line and "STANDBY" in line for line in members()), "both have tasks")
        application.say(100)
        application.counted()
        assert "Stable" in tool("--list", "--state")
        second.kill()
        application.say(100)
        application.counted()
        wait_until(lambda: len(members()) == 1, "one instance is left")
        topics = set(application.admin.list_topics(timeout=60).topics)
        store = "words-KSTREAM-AGGREGATE-STATE-STORE-0000000003"
        assert topics >= {f"{store}-changelog", f"{store}-repartition"}
    finally:
        application.stop()
    entries = [
        entry
        for partition in stored(server.directory / "log")
        for entry in partition
        if int.from_bytes(entry[0][:2], signed=True) in RECORDS
    ]
    assert {int.from_bytes(key[:2]) for key, _ in entries} == set(RECORDS)
    for key, value in entries:
        # Every record that either broker wrote, ours would write in the very bytes.
        record = decode_entry(RECORDS, key, value)
        assert encode_entry(record) == (key, value)
        if isinstance(record[1], StreamsGroupMetadataValue):
            assert record[1].validated_topology_epoch in (-1, 0)
