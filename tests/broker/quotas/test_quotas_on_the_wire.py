"""The effect of quotas on a client that ignores throttle times."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.api import ApiKey
from broker.protocol.messages.create_topics import CreateTopicsResponse
from broker.protocol.records import Record, encode_batch
from broker.protocol.schema import decode
from tests.conformance.differential.exchange import Peer, frame_of
from tests.support.broker import BrokerThread, settings
from tests.support.wire import exchange, produce_frame, produced

API_VERSIONS = struct.pack(">hhih", 18, 0, 7, -1)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread({**settings(tmp_path), "quota.window.num": "2", "controller.quota.window.num": "2"}) as running:
        yield running


def limit(admin: Peer, kind: str, name: str | None, key: str, value: float | None) -> None:
    op = {"key": key, "value": value or 0.0, "remove": value is None}
    entry = {"entity": [{"entity_type": kind, "entity_name": name}], "ops": [op]}
    answer = admin.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [entry], "validate_only": False})
    assert answer["entries"][0]["error_code"] == "none", answer


def test_connections_above_the_rate_of_an_address_are_closed(broker: BrokerThread) -> None:
    admin = Peer(broker.port)
    limit(admin, "ip", "127.0.0.1", "connection_creation_rate", 10)
    sockets = [socket.create_connection(("127.0.0.1", broker.port), 10) for _ in range(40)]
    answered = [exchange(sock, API_VERSIONS) != b"" for sock in sockets]
    assert 10 <= answered.count(True) < 40
    limit(admin, "ip", "127.0.0.1", "connection_creation_rate", None)
    sockets += [socket.create_connection(("127.0.0.1", broker.port), 10) for _ in range(20)]
    assert all(exchange(sock, API_VERSIONS) for sock in sockets[40:])
    for sock in (*sockets, admin):
        sock.close() if isinstance(sock, socket.socket) else sock.hang_up()


def test_a_producer_that_does_not_wait_is_not_read_from(broker: BrokerThread) -> None:
    admin = Peer(broker.port)
    admin.ask(
        ApiKey.CREATE_TOPICS,
        4,
        {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}], "timeout": 9000},
    )
    limit(admin, "client-id", None, "producer_byte_rate", 10_000)
    batch = encode_batch([Record(None, bytes(10_500), timestamp_ms=1)])
    with socket.create_connection(("127.0.0.1", broker.port), 10) as producer:
        answer = exchange(producer, produce_frame("t", 0, batch))
        assert produced(answer) == (0, 0)
        (throttled,) = struct.unpack(">i", answer[-4:])
        assert throttled > 0
        assert produced(exchange(producer, produce_frame("t", 0, batch))) == (0, 1)
        (muted,) = (connection for connection in broker.server._connections if connection._mutes)
        # Nothing more is taken until the time is over, however much is sent.
        producer.sendall(struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS)
        assert not muted._reading
    admin.hang_up()


@pytest.mark.parametrize(("version", "refused"), [(5, False), (6, True)])
def test_changes_of_topics_above_their_rate(broker: BrokerThread, version: int, refused: bool) -> None:
    admin = Peer(broker.port)
    limit(admin, "client-id", "test", "controller_mutation_rate", 1)
    told = []
    for name in ("a", "b"):
        topic = {"name": name, "num_partitions": 4, "replication_factor": 1}
        frame = frame_of(ApiKey.CREATE_TOPICS, version, {"topics": [topic], "timeout": 9000, "validate_only": False})
        answer = admin.raw(frame)
        assert answer is not None
        told.append(decode(CreateTopicsResponse, answer, version, 5))
    assert [response.topics[0].error_code for response in told] == [0, 89 if refused else 0]
    assert told[1].throttle_time_ms > 0
    admin.hang_up()


def test_topics_made_by_asking_for_them_count_too(broker: BrokerThread) -> None:
    admin = Peer(broker.port)
    limit(admin, "client-id", "test", "controller_mutation_rate", 0.5)
    body = {"topics": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "allow_auto_topic_creation": True}
    answer = admin.ask(ApiKey.METADATA, 8, body)
    codes = [topic["error_code"] for topic in answer["topics"]]
    assert codes[0] == "none" and codes[2] == "unknown_topic_or_partition"
    admin.hang_up()
