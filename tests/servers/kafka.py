"""Apache Kafka: a single-node KRaft broker, a Connect worker, and its command line tools."""

from __future__ import annotations

import base64
import os
import socket
import struct
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tests.servers.fetch import require
from tests.servers.java import QUICK, java
from tests.servers.process import ServerProcess, free_ports

__all__ = [
    "FOR_SPEED",
    "TOOLS",
    "KafkaBroker",
    "KafkaConnect",
    "KafkaConnectStandalone",
    "KafkaNode",
    "kafka_tool",
    "metadata_answers",
]

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
FOR_SPEED: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-Djava.awt.headless=true",
)
"""The JVM options of Kafka's own start scripts, for benchmarks; tests take ``_JVM``, which starts faster."""
_JVM: Final = ("-server", *QUICK, "-Djava.awt.headless=true")

TOOLS: Final = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}
"""The tools by their usual names; anything else given to ``kafka_tool`` is taken for a class name."""


def _command(main: str, *, heap: str = "256M", log_level: str = "WARN", jvm: Sequence[str] = _JVM) -> list[str]:
    libraries = require("kafka") / "libs"
    logging = (f"-Dlog4j2.configurationFile={_LOGGING}", f"-Dlevel={log_level}")
    return [java(), f"-Xmx{heap}", *jvm, *logging, "-cp", f"{libraries}/*", main]


def kafka_tool(
    name: str, *arguments: str, stdin: str | None = None, timeout_s: float = 300, jvm: Sequence[str] = _JVM
) -> str:
    """Run one of Kafka's tools; returns its standard output, raises AssertionError with everything it said if it fails."""
    command = [*_command(TOOLS.get(name, name), heap="512M", jvm=jvm), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, f"{name} {' '.join(arguments)}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


class KafkaBroker:
    """One broker that is its own controller, with everything under ``directory``.

    ``settings`` are server.properties; with None a key has Kafka's default.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str | None] | None = None,
        *,
        heap: str = "512M",
        jvm: Sequence[str] = _JVM,
    ) -> None:
        self.directory = directory
        self.port, controller = free_ports(2)
        self._properties = directory / "server.properties"
        directory.mkdir(parents=True, exist_ok=True)
        given = {**_broker_settings(directory, self.port, controller), **(settings or {})}
        _write_properties(self._properties, {key: value for key, value in given.items() if value is not None})
        self.process = ServerProcess(
            "Apache Kafka",
            [*_command("kafka.Kafka", heap=heap, log_level="INFO", jvm=jvm), str(self._properties)],
            log=directory / "server.log",
            ready=lambda: metadata_answers(self.port),
        )

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        _format(self.directory / "log", _some_id())
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()


class KafkaNode:
    """One of the brokers of a cluster, each of which is a controller too. Their ids are 1, 2...; they listen at ``addresses``.

    ``inside`` puts a command on the node's host. Topics have three replicas, of which two have to have a record.
    """

    port: Final = 19092

    def __init__(
        self,
        directory: Path,
        number: int,
        addresses: Sequence[str],
        cluster: str,
        inside: Callable[[Sequence[str]], list[str]],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory, self.address = directory, addresses[number - 1]
        self._number, self._cluster = number, cluster
        directory.mkdir(parents=True, exist_ok=True)
        voters = ",".join(f"{n}@{address}:{self.port + 1}" for n, address in enumerate(addresses, 1))
        copies = {
            f"{topic}.{key}": count
            for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
            for key, count in (("replication.factor", "3"), ("min.isr", "2"))
            if (topic, key) != ("offsets.topic", "min.isr")
        }
        properties = {
            **_broker_settings(directory, self.port, self.port + 1),
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{self.address}:{self.port},CONTROLLER://{self.address}:{self.port + 1}",
            "advertised.listeners": f"PLAINTEXT://{self.address}:{self.port}",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            **copies,
            **(settings or {}),
        }
        file = directory / "server.properties"
        _write_properties(file, properties)
        self.process = ServerProcess(
            f"Apache Kafka {number}",
            inside([*_command("kafka.Kafka", heap="384M", log_level="INFO"), str(file)]),
            log=directory / "server.log",
            ready=lambda: metadata_answers(self.port, self.address),
        )

    @staticmethod
    def cluster_id() -> str:
        return _some_id().decode()

    def format(self) -> None:
        _format(self.directory / "log", self._cluster.encode(), node=self._number)


def _some_id() -> bytes:
    return base64.urlsafe_b64encode(b"T" + os.urandom(15)).rstrip(b"=")


def _format(log: Path, cluster: bytes, node: int = 1) -> None:
    if (log / "meta.properties").exists():
        return
    log.mkdir(exist_ok=True)
    for name, content in _formatted().items():
        content = content.replace(_FORMATTED_FOR.encode(), cluster)
        if name == "meta.properties" and node != 1:
            lines = [
                line for line in content.decode().splitlines() if not line.startswith(("node.id=", "directory.id="))
            ]
            content = "\n".join([*lines, f"node.id={node}", f"directory.id={_some_id().decode()}", ""]).encode()
        (log / name).write_bytes(content)


_FORMATTED_FOR: Final = base64.urlsafe_b64encode(b"Formatted before").decode().rstrip("=")


@cache
def _formatted() -> dict[str, bytes]:
    """The files of a log directory that Kafka's tool has formatted, for the cluster ``_FORMATTED_FOR``. It runs once in this
    process, as it takes half as long as a broker's start."""
    with tempfile.TemporaryDirectory(prefix="tidegate-format-") as folder:
        properties = Path(folder, "server.properties")
        _write_properties(properties, _broker_settings(Path(folder), 1, 2))
        kafka_tool("kafka-storage", "format", "-t", _FORMATTED_FOR, "-c", str(properties))
        return {file.name: file.read_bytes() for file in Path(folder, "log").iterdir()}


def _broker_settings(directory: Path, port: int, controller: int) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(directory / "log"),
        "num.partitions": "1",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.share.assignment.interval.ms": "0",
        "group.share.heartbeat.interval.ms": "500",
        "group.share.min.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.streams.min.heartbeat.interval.ms": "100",
        "group.streams.min.session.timeout.ms": "1000",
        "log.cleaner.backoff.ms": "500",
        # Records with times of long ago stay while a test reads them: the first look is 30 s after the start otherwise.
        "log.retention.check.interval.ms": "86400000",
        "log.initial.task.delay.ms": "86400000",
    }


class KafkaConnect:
    """A distributed Connect worker over ``bootstrap_servers``; ``settings`` are worker properties."""

    def __init__(
        self,
        directory: Path,
        bootstrap_servers: str,
        settings: Mapping[str, str] | None = None,
        *,
        heap: str = "512M",
        jvm: Sequence[str] = _JVM,
    ) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        directory.mkdir(parents=True, exist_ok=True)
        properties = directory / "worker.properties"
        _write_properties(properties, {**_worker_settings(bootstrap_servers, self.url), **(settings or {})})
        self.process = ServerProcess(
            "Kafka Connect",
            [
                *_command("org.apache.kafka.connect.cli.ConnectDistributed", heap=heap, log_level="INFO", jvm=jvm),
                str(properties),
            ],
            log=directory / "worker.log",
            ready=lambda: _http_ok(f"{self.url}/connectors"),
        )

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()


class KafkaConnectStandalone:
    """A standalone Connect worker with these connector files; ``settings`` are worker properties."""

    def __init__(
        self, directory: Path, bootstrap_servers: str, settings: Mapping[str, str], connector_files: Sequence[Path]
    ) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        directory.mkdir(parents=True, exist_ok=True)
        properties = directory / "worker.properties"
        _write_properties(properties, {**_worker_settings(bootstrap_servers, self.url), **settings})
        self.process = ServerProcess(
            "Kafka Connect, standalone",
            [
                *_command("org.apache.kafka.connect.cli.ConnectStandalone", log_level="INFO"),
                str(properties),
                *map(str, connector_files),
            ],
            log=directory / "worker.log",
            ready=lambda: _http_ok(f"{self.url}/connectors"),
        )

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.stop()


def _worker_settings(bootstrap_servers: str, url: str) -> dict[str, str]:
    group = "kafka-connect"
    converter = "org.apache.kafka.connect.json.JsonConverter"
    storage = {f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")}
    factors = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "listeners": url,
        "rest.advertised.host.name": "127.0.0.1",
        "key.converter": converter,
        "value.converter": converter,
        "plugin.path": str(require("kafka") / "plugins"),
        "plugin.discovery": "service_load",  # all of these say what they have; looking through all classes takes two thirds of the start
        "connector.client.config.override.policy": "All",
        "offset.flush.interval.ms": "1000",
        "offset.storage.partitions": "5",
        "status.storage.partitions": "3",
        **storage,
        **factors,
    }


def _write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def metadata_answers(port: int, address: str = "127.0.0.1") -> bool:
    """Whether a Kafka broker on this port answers a metadata request (v1, all topics) with itself in it."""
    body = struct.pack(">hhih4si", 3, 1, 1, 4, b"test", -1)
    try:
        with socket.create_connection((address, port), 1) as sock:
            sock.settimeout(2)
            sock.sendall(struct.pack(">i", len(body)) + body)
            (size,) = struct.unpack(">i", _receive(sock, 4))
            answer = _receive(sock, size)
    except OSError:
        return False
    correlation, brokers = struct.unpack_from(">ii", answer)
    return correlation == 1 and brokers >= 1


def _receive(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return bytes(data)


def _http_ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError):
        return False
