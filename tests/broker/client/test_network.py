"""The clients' own metrics, and the contract with the private parts of aiokafka that broker.client.network uses."""

from __future__ import annotations

import inspect
import io
import random
import struct
from typing import Any
from uuid import uuid4

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection, AIOKafkaProtocol
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchResponse_v11
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, NewTopic, network
from broker.client.errors import NotReachable
from broker.client.network import ClientMeasures, _Frames, _Parts, client_measures
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = pytest.mark.anyio


def test_the_private_names_are_there() -> None:
    """Private names that an upgrade of aiokafka may remove; network.py has to be adapted then."""
    assert list(inspect.signature(AIOKafkaClient._get_conn).parameters) == ["self", "node_id", "group", "no_hint"]
    assert list(inspect.signature(AIOKafkaClient._on_connection_closed).parameters) == ["self", "conn", "reason"]
    assert list(inspect.signature(AIOKafkaConnection._handle_frame).parameters) == ["self", "resp"]
    assert "await self.send(" in inspect.getsource(AIOKafkaConnection._do_version_lookup)
    assert "protocol = AIOKafkaProtocol(self._closed_fut" in inspect.getsource(AIOKafkaConnection.connect)
    sends = inspect.getsource(AIOKafkaConnection.send)
    assert (
        sends.index("self._writer.write(") < sends.index("self._writer.drain()") < sends.index("self._requests.append(")
    )
    assert "reader = asyncio.StreamReader(" in inspect.getsource(AIOKafkaConnection.connect)
    assert "self._handle_frame(resp)" in inspect.getsource(AIOKafkaConnection._read)
    assert "self._requests[0]" in inspect.getsource(AIOKafkaConnection._handle_frame)


def of(client_id: str) -> list[ClientMeasures]:
    return [measures for measures in client_measures() if measures.client_id == client_id]


async def test_a_producer_and_a_consumer_tell_what_they_did(tidegate_broker: TidegateBroker) -> None:
    name = f"n-{uuid4().hex[:8]}"
    config = ClientConfig(tidegate_broker.bootstrap_servers, {"client.id": name, "auto.offset.reset": "earliest"})
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic(name, 1, 1)])
        async with BatchProducer(config) as producer:
            for n in range(3):
                await producer.send(name, None, b"%d" % n, partition=0)
            (sent,) = [measures for measures in of(name) if measures.kind == "producer"]
            assert sent.sending()["record-send-total"] == 3 and sent.sending()["request-latency-max"] > 0
            network = sent.network()
            assert network["connection-count"] == network["connection-creation-total"] == 1
            assert network["request-total"] == network["response-total"] >= 3
            assert network["outgoing-byte-total"] > 3 * 70 and network["incoming-byte-total"] > 3 * 30
            assert network["network-io-rate"] == pytest.approx(
                network["request-rate"] + network["response-rate"], abs=0.01
            )
            assert 0 < network["io-ratio"] < 1 and network["successful-authentication-total"] == 0
            ((node, by_node),) = sent.nodes().items()
            assert node == "node-1" and by_node["outgoing-byte-total"] == network["outgoing-byte-total"]
        async with BatchConsumer(config.with_properties({"group.id": name})) as consumer:
            await consumer.subscribe([name])
            while not await consumer.fetch(1000):
                pass
            await consumer.commit()
            (read,) = [measures for measures in of(name) if measures.kind == "consumer"]
            fetching, coordinating = read.fetching(), read.coordinating()
            assert fetching["records-consumed-total"] == 3 and fetching["fetch-total"] >= 1
            assert fetching["fetch-size-max"] > fetching["bytes-consumed-total"] > 3 * 60
            assert all(coordinating[f"{what}-total"] >= 1 for what in ("join", "sync", "commit"))
        assert [measures.kind for measures in of(name)] == ["admin"]
    assert of(name) == []


async def test_a_client_that_cannot_connect_is_not_listed() -> None:
    name = f"n-{uuid4().hex[:8]}"
    with pytest.raises(NotReachable):
        await Admin(ClientConfig("127.0.0.1:1", {"client.id": name})).start()
    assert of(name) == []


SMALL = 65_536


@pytest.mark.parametrize("reserved", [16 << 20, SMALL])
@pytest.mark.parametrize("piece", [1, 3, 1000, SMALL, 1 << 20])
def test_answers_of_all_sizes_arrive_whole_however_they_are_cut(
    piece: int, reserved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_RESERVED_BYTES", reserved)
    sizes = [0, 1, 5, SMALL - 5, SMALL - 4, SMALL - 3, 7, 3 * SMALL, 2, 0, SMALL] if piece > 1 else [0, 1, 70_000, 3]
    answers = [random.Random(size).randbytes(size) for size in sizes]
    stream = b"".join(struct.pack(">i", len(answer)) + answer for answer in answers)
    connection = Connection()
    frames = connection.frames()
    at = 0
    while at < len(stream):
        buffer = frames.get_buffer(-1)
        count = min(piece, len(buffer), len(stream) - at)
        buffer[:count] = stream[at : at + count]
        frames.buffer_updated(count)
        at += count
    assert connection.got == answers


def test_what_follows_an_answer_that_closed_the_connection_is_left_out() -> None:
    connection = Connection(answers=2)
    frames = connection.frames()
    stream = struct.pack(">i", 1) + b"a" + struct.pack(">i", 1) + b"b" + struct.pack(">i", 1) + b"c"
    frames.get_buffer(-1)[: len(stream)] = stream
    frames.buffer_updated(len(stream))
    assert connection.got == [b"a", b"b"]


PARTS = st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 3), st.integers(0, 200_000)), max_size=4)


@given(topics=st.lists(PARTS, max_size=3), cut=st.none() | st.floats(0, 1))
@settings(deadline=None, max_examples=50)
def test_a_large_fetch_answer_is_decoded_as_aiokafka_does_and_its_records_are_views(
    topics: list[list[tuple[int, int | None, int]]], cut: float | None
) -> None:
    def partition(number: int, aborted: int | None, size: int) -> tuple[Any, ...]:
        transactions = None if aborted is None else [(n, n) for n in range(aborted)]
        return number, 0, 10, 10, 0, transactions, -1, bytes([number]) * size

    told = FetchResponse_v11(
        0, 0, 0, [(f"t{n}", [partition(*part) for part in parts]) for n, parts in enumerate(topics)]
    )
    encoded = told.encode()
    if cut is not None:
        encoded = encoded[: int(len(encoded) * cut)]

    def decoded(file: Any) -> Any:
        try:
            return FetchResponse_v11.decode(file)
        except (ValueError, struct.error) as error:
            return type(error)

    theirs, ours = decoded(io.BytesIO(encoded)), decoded(_Parts(bytearray(encoded)))
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert [topic for topic, _ in ours.topics] == [topic for topic, _ in theirs.topics]
    for (_, parts), (_, expected) in zip(ours.topics, theirs.topics, strict=True):
        assert [part[:-1] for part in parts] == [part[:-1] for part in expected]
        assert [bytes(part[-1] or b"") for part in parts] == [part[-1] or b"" for part in expected]
        large = max(65_536, len(encoded) // 8)  # a view of a smaller part would keep the answer in memory
        for part in parts:
            assert isinstance(part[-1], memoryview) == (len(part[-1] or b"") > large)


def test_an_answer_of_a_negative_size_is_an_error() -> None:
    frames = Connection().frames()
    frames.get_buffer(-1)[:4] = struct.pack(">i", -1)
    with pytest.raises(KafkaConnectionError, match="-1 bytes"):
        frames.buffer_updated(4)


def test_the_answer_of_another_protocol_takes_little_memory() -> None:
    frames = Connection().frames()
    answer = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    frames.get_buffer(-1)[: len(answer)] = answer
    frames.buffer_updated(len(answer))
    assert frames.size > 1 << 30 and len(frames.get_buffer(-1)) < 16 << 20


class Connection:
    """The parts of aiokafka's connection that ``_Frames`` uses; it closes after so many answers."""

    def __init__(self, answers: int = 100) -> None:
        self.got: list[bytes] = []
        self._answers = answers
        self._writer = self.transport = self

    def frames(self) -> _Frames:
        self._protocol = _Plain()
        _Frames.read(self)
        assert isinstance(self._protocol, _Frames)
        return self._protocol

    def get_protocol(self) -> object:
        return self._protocol

    def set_protocol(self, protocol: object) -> None:
        assert protocol is self._protocol

    def connected(self) -> bool:
        return len(self.got) < self._answers

    def _handle_frame(self, answer: bytes | bytearray) -> None:
        self.got.append(bytes(answer))


class _Plain(AIOKafkaProtocol):
    def __init__(self) -> None:
        """Without a stream: nothing here reads one."""

    def __del__(self, *_: object) -> None:
        pass
