"""The broker as a service: addresses, limits, metrics, a clean stop, a second start."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.errors import KafkaStorageError
from broker.server import serve
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.broker import BrokerThread, settings
from tests.support.wire import exchange, receive_frame
from tidegate.kit.config import ConfigError

API_VERSIONS = struct.pack(">hhih", 18, 0, 7, -1)


def write(bootstrap_servers: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for value in values:
        producer.produce("t", value, partition=0)
    assert producer.flush(60) == 0


def read(bootstrap_servers: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("t", 0, 0)])
    values: list[bytes] = []
    while len(values) < count:
        messages = consumer.consume(count - len(values), 60)
        assert messages
        values += [message.value() for message in messages]
    consumer.close()
    return values


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def test_records_outlive_a_clean_stop(tmp_path: Path) -> None:
    for round_ in range(3):
        with BrokerThread(settings(tmp_path)) as broker:
            write(broker.bootstrap_servers, f"round {round_}")
            assert read(broker.bootstrap_servers, round_ + 1)[-1] == f"round {round_}".encode()


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    with BrokerThread(settings(tmp_path)), pytest.raises(KafkaStorageError, match="in use by another broker"):
        asyncio.run(serve(settings(tmp_path)).start())


def test_an_address_in_use_is_refused_by_name(tmp_path: Path) -> None:
    with BrokerThread(settings(tmp_path / "one")) as broker:
        taken = {**settings(tmp_path / "two"), "listeners": f"PLAINTEXT://127.0.0.1:{broker.port}"}

        async def start() -> None:
            server = serve(taken)
            try:
                await server.start()
            finally:
                await server.stop()

        with pytest.raises(KafkaStorageError, match=rf"PLAINTEXT://127.0.0.1:{broker.port}"):
            asyncio.run(start())


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("listeners", "SSL://127.0.0.1:9093", "needs a key store"),
        ("listeners", "127.0.0.1", "not of the form"),
        ("log.dirs", "/a,/a", "each once"),
        ("log.retention.ms", "soon", "retention.ms"),
        ("default.replication.factor", "3", "no more than 1"),
        ("acks.all.durability", "hope", "disk, page-cache"),
    ],
)
def test_wrong_settings_are_named(key: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        serve({"log.dirs": "/nowhere", key: value})


def test_broker_keys_give_topics_their_defaults() -> None:
    config = serve({"log.dirs": "/nowhere", "log.retention.hours": "2", "message.max.bytes": "5000000"}).config
    assert config.log_defaults.retention_ms == 2 * 3_600_000
    assert config.log_defaults.max_message_bytes == 5_000_000


def test_advertised_listeners_are_what_clients_are_told(tmp_path: Path) -> None:
    advertised = {"advertised.listeners": "PLAINTEXT://broker.example:1234"}
    with BrokerThread({**settings(tmp_path), **advertised}) as broker:
        node = broker.server.broker.node("PLAINTEXT")
        assert (node.host, node.port) == ("broker.example", 1234)
        assert broker.bootstrap_servers == "broker.example:1234"


def test_metrics_count_what_happened(tmp_path: Path) -> None:
    with BrokerThread(settings(tmp_path)) as broker:
        write(broker.bootstrap_servers, "one")
        url = broker.addresses["broker-metrics"]
        with urllib.request.urlopen(url, timeout=60) as answer:
            text = answer.read().decode()
        samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert float(samples['kafka_server_brokertopicmetrics_messagesinpersec{topic="t"}']) == 1
        assert float(samples["kafka_controller_kafkacontroller_globaltopiccount"]) == 1
        assert float(samples['kafka_log_log_size{topic="t",partition="0"}']) > 60
        assert float(samples['kafka_network_requestmetrics_totaltimems{request="Produce"}']) >= 1
        assert 'kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"}' in samples
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(url.replace("/metrics", "/other"), timeout=60)


def test_connections_above_the_limit_wait_for_room(tmp_path: Path) -> None:
    with BrokerThread(settings(tmp_path, max_connections="2")) as broker:
        address = ("127.0.0.1", broker.port)
        with socket.create_connection(address) as sock:
            with socket.create_connection(address) as two:
                assert exchange(sock, API_VERSIONS)
                assert exchange(two, API_VERSIONS)
                three = socket.create_connection(address)
                three.sendall(struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS)
                assert exchange(sock, API_VERSIONS)
                assert len(broker.server._connections) == 2
            with three:
                assert receive_frame(three)


def test_announced_frames_cost_no_memory(tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path)
    broker.start()
    sockets: list[socket.socket] = []
    try:
        before = resident_kib(broker.process.pid)
        for _ in range(50):
            sockets.append(socket.create_connection(("127.0.0.1", broker.port)))
            sockets[-1].sendall(struct.pack(">i", 100_000_000) + b"x" * 1000)
        with socket.create_connection(("127.0.0.1", broker.port)) as bystander:
            assert exchange(bystander, API_VERSIONS)
        assert resident_kib(broker.process.pid) - before < 20_000
    finally:
        for sock in sockets:
            sock.close()
        broker.stop()


def test_a_stop_answers_a_fetch_that_waits(tmp_path: Path) -> None:
    with BrokerThread(settings(tmp_path)) as broker:
        write(broker.bootstrap_servers, "one")
        sock = socket.create_connection(("127.0.0.1", broker.port))
        name = struct.pack(">h1s", 1, b"t")
        limits = struct.pack(">iiiibi", -1, 60_000, 1, 1 << 20, 0, 1)
        sock.sendall(_frame(struct.pack(">hhih", 1, 4, 7, -1) + limits + name + struct.pack(">iiqi", 1, 0, 1, 1 << 20)))
        wait_until(lambda: len(broker.server.broker.arrivals) == 1, "the fetch")
    assert struct.unpack_from(">i", receive_frame(sock)) == (7,)
    sock.close()


def _frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def test_the_broker_loads_no_heavy_library() -> None:
    heavy = ("pyarrow", "numpy", "fastavro", "grpc", "sqlalchemy", "kio", "prometheus_client", "uvicorn", "starlette")
    code = f"import sys, broker.server; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"


def test_the_broker_stays_small(tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path)
    broker.start()
    try:
        assert resident_kib(broker.process.pid) < 60_000
    finally:
        broker.stop()
