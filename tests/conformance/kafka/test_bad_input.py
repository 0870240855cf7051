"""Errors in one connection or one request do not affect any other."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker.protocol.compression import Codec
from broker.protocol.records import HEADER_SIZE, Record, encode_batch
from tests.servers.process import wait_until
from tests.support.hostile import batch_of
from tests.support.wire import exchange, produce_frame, produced, receive_frame

API_VERSIONS, METADATA, PRODUCE = 18, 3, 0


@pytest.fixture
def connect(bootstrap_servers: str) -> Iterator[Callable[[], socket.socket]]:
    opened: list[socket.socket] = []

    def connect() -> socket.socket:
        host, _, port = bootstrap_servers.rpartition(":")
        opened.append(socket.create_connection((host, int(port)), 10))
        return opened[-1]

    yield connect
    for sock in opened:
        sock.close()


def header(key: int, version: int, correlation_id: int = 7) -> bytes:
    return struct.pack(">hhih1s", key, version, correlation_id, 1, b"c")


def assert_works(connect: Callable[[], socket.socket]) -> None:
    answer = exchange(connect(), header(API_VERSIONS, 0))
    assert struct.unpack_from(">ih", answer) == (7, 0)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0",
        header(999, 0),
        header(-1, 0),
        header(METADATA, 99),
        header(METADATA, -1),
        header(PRODUCE, 2),
        header(METADATA, 1) + b"\x7f\xff\xff\xff",
        header(METADATA, 9) + b"\xff" * 20,
        header(PRODUCE, 9) + b"\0",
        struct.pack(">hhih", METADATA, 1, 7, 3000) + b"short",
    ],
    ids=[
        "empty",
        "one byte",
        "unknown API",
        "negative API",
        "version too new",
        "negative version",
        "version too old",
        "huge array",
        "endless varint",
        "cut off",
        "client id too long",
    ],
)
def test_a_malformed_request_ends_its_connection_only(connect: Callable[[], socket.socket], frame: bytes) -> None:
    bystander = connect()
    assert exchange(connect(), frame) == b""
    answer = exchange(bystander, header(API_VERSIONS, 0))
    assert struct.unpack_from(">ih", answer) == (7, 0)


@pytest.mark.parametrize("size", [-1, -(1 << 31), (1 << 31) - 1, 104_857_601])
def test_an_impossible_length_ends_its_connection(connect: Callable[[], socket.socket], size: int) -> None:
    sock = connect()
    sock.sendall(struct.pack(">i", size) + b"x" * 100)
    assert receive_frame(sock) == b""
    assert_works(connect)


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(connect: Callable[[], socket.socket]) -> None:
    answer = exchange(connect(), struct.pack(">hhih", API_VERSIONS, 99, 7, -1) + b"\0\0\0\0")
    correlation, error, count, key, lowest, highest = struct.unpack_from(">ihihhh", answer)
    assert (correlation, error, count, key) == (7, 35, 1, API_VERSIONS)
    assert lowest == 0
    assert highest >= 4


def batch(*values: bytes) -> bytes:
    return encode_batch([Record(None, value, timestamp_ms=1_700_000_000_000) for value in values])


def broken(at: int, change: bytes) -> bytes:
    whole = bytearray(batch(b"one", b"two"))
    whole[at : at + len(change)] = change
    return bytes(whole)


CORRUPT_MESSAGE, INVALID_RECORD, UNSUPPORTED_FORMAT = 2, 87, 43


@pytest.mark.parametrize(
    ("records", "codes"),
    [
        (broken(17, b"\0\0\0\0"), {CORRUPT_MESSAGE}),
        (broken(70, b"\xff"), {CORRUPT_MESSAGE}),
        (batch(b"one", b"two")[:-1], {INVALID_RECORD}),
        (broken(8, struct.pack(">i", 1 << 30)), {INVALID_RECORD}),
        (b"\0" * 61, {CORRUPT_MESSAGE, INVALID_RECORD, UNSUPPORTED_FORMAT}),
    ],
    ids=["wrong CRC", "flipped bits", "truncated", "length beyond the end", "zeros"],
)
def test_a_corrupt_batch_is_refused_and_the_connection_goes_on(
    connect: Callable[[], socket.socket], topic: str, records: bytes, codes: set[int]
) -> None:
    sock = connect()
    answer = exchange(sock, produce_frame(topic, 0, records))
    if answer:
        assert produced(answer)[0] in codes
    else:
        # Apache Kafka closes the connection where the batch is not even as long as it says.
        sock = connect()
    assert produced(exchange(sock, produce_frame(topic, 0, batch(b"good")))) == (0, 0)


def keyed(count: int, *, claimed: int | None = None, codec: Codec = Codec.NONE, data: bytes | None = None) -> bytes:
    """A batch of this many records with keys; its header may claim another number."""
    records = [Record(b"k", b"%d" % number, (), 1_700_000_000_000) for number in range(count)]
    body = encode_batch(records)[HEADER_SIZE:] if data is None else data
    return batch_of(body, count if claimed is None else claimed, codec)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("config", [{"cleanup.policy": "compact"}, {"compression.type": "lz4"}], ids=["keys", "codec"])
def test_records_that_are_looked_into_have_to_be_what_their_batch_says(
    connect: Callable[[], socket.socket],
    bootstrap_servers: str,
    name: Callable[[], str],
    config: dict[str, str],
    codec: Codec,
) -> None:
    topic = name()
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(60)
    sock = connect()

    def sent(records: bytes) -> int:
        return produced(exchange(sock, produce_frame(topic, 0, records)))[0]

    good = keyed(3, codec=codec)
    wait_until(lambda: sent(good) == 0, f"the leader of {topic}")
    assert sent(keyed(3, claimed=4, codec=codec)) == INVALID_RECORD
    assert sent(keyed(3, claimed=2, codec=codec)) == INVALID_RECORD
    assert sent(keyed(3, claimed=2**31 - 1, codec=codec)) == INVALID_RECORD
    if "compression.type" in config:  # where they are packed anew every field is looked at
        assert sent(keyed(1, codec=codec, data=bytes([14, 0, 0, 0, 2]) + b"k" + bytes([8, 0]))) == INVALID_RECORD
        assert sent(keyed(1, codec=codec, data=bytes([16, 0, 0, 0, 2]) + b"k" + bytes([1, 0]))) == INVALID_RECORD
        several = keyed(2, codec=codec, data=(bytes([14, 0, 0, 0, 2]) + b"k" + bytes([1, 0])) * 2)
        assert sent(several) == 0, "records that claim the same offset are numbered anew"
    assert sent(good) == 0


def test_good_records_beside_a_corrupt_batch_are_kept(connect: Callable[[], socket.socket], topic: str) -> None:
    sock = connect()
    assert produced(exchange(sock, produce_frame(topic, 0, batch(b"1"))))[1] == 0
    assert produced(exchange(sock, produce_frame(topic, 0, broken(70, b"\xff"))))[0] == CORRUPT_MESSAGE
    assert produced(exchange(sock, produce_frame(topic, 0, batch(b"2"))))[1] == 1


def test_requests_sent_together_are_answered_in_their_order(connect: Callable[[], socket.socket]) -> None:
    sock = connect()
    frames = [header(API_VERSIONS, 0, number) for number in range(50)]
    sock.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
    assert [struct.unpack_from(">i", receive_frame(sock))[0] for _ in range(50)] == list(range(50))


def test_a_request_that_comes_byte_by_byte_is_answered(connect: Callable[[], socket.socket]) -> None:
    sock = connect()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    frame = header(API_VERSIONS, 0)
    for byte in struct.pack(">i", len(frame)) + frame:
        sock.sendall(bytes([byte]))
    assert struct.unpack_from(">ih", receive_frame(sock)) == (7, 0)


def test_a_client_that_leaves_in_the_middle_of_a_request_harms_nobody(
    connect: Callable[[], socket.socket], bootstrap_servers: str, topic: str
) -> None:
    for cut in (1, 4, 10, 500):
        sock = connect()
        frame = produce_frame(topic, 0, batch(b"x" * 1000))
        sock.sendall((struct.pack(">i", len(frame)) + frame)[:cut])
        sock.close()
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, "whole", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": uuid.uuid4().hex})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(20)
    assert message is not None
    assert (message.offset(), message.value()) == (0, b"whole")
    consumer.close()
