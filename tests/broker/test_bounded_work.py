"""Hostile but well-formed requests: a second client is answered all the while, and memory stays limited.

The limits are generous, for machines under load. The errors that they detect took tens of seconds and gigabytes.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import psutil
import pytest

from broker.protocol.compression import Codec, compress
from broker.protocol.primitives import write_uvarint
from tests.conformance.differential.exchange import frame_of
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.hostile import MANY, NOW_MS, batch_of, many_records, one_large_record
from tests.support.wire import exchange, produce_frame, produced, receive_frame

pytestmark = pytest.mark.timeout(300)

LIST_OFFSETS, CREATE_TOPICS, GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY = 2, 19, 71, 72
NONE, REQUEST_TIMED_OUT, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD = 0, 7, 10, 32, 87
SLOWEST_S: Final = 2.0
MOST_BYTES: Final = 600 * 1024 * 1024
"""The limit for the broker and its processes together, above their size before: 128 MiB of decompressed data may exist
twice for a moment.
"""
TOPICS: Final = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "lz4": {"compression.type": "lz4"},
    "uncompressed": {"compression.type": "uncompressed"},
    "stamped": {"message.timestamp.type": "LogAppendTime", "compression.type": "gzip"},
    "strict": {"message.timestamp.after.max.ms": "1000"},
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidegateBroker]:
    started = TidegateBroker(
        tmp_path_factory.mktemp("broker"), {"log.cleaner.enable": "false", "client.telemetry.enable": "true"}
    )
    started.start()
    with contextlib.closing(Connected(started)) as client:
        for name, configs in TOPICS.items():
            client.create(name, configs)
    yield started
    started.process.stop()  # alone: Kafka's dump tool has no memory for what lies here


class Connected:
    """A client with one connection and much patience."""

    def __init__(self, broker: TidegateBroker) -> None:
        self._socket = socket.create_connection(("127.0.0.1", broker.port), 240)

    def send(self, frame: bytes) -> None:
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes:
        return receive_frame(self._socket)

    def ask(self, frame: bytes) -> bytes:
        self.send(frame)
        return self.receive()

    def create(self, topic: str, configs: Mapping[str, str] = MappingProxyType({})) -> None:
        configs_asked = [{"name": key, "value": value} for key, value in configs.items()]
        topics = [{"name": topic, "num_partitions": 1, "replication_factor": 1, "configs": configs_asked}]
        self.ask(frame_of(CREATE_TOPICS, 5, {"topics": topics, "timeout": 9000}))

    def offset_for(self, topic: str, timestamp: int) -> tuple[int, int]:
        """(error code, offset) by ListOffsets v7."""
        partitions = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}]
        request = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": topic, "partitions": partitions}]}
        answer = self.ask(frame_of(LIST_OFFSETS, 7, request))
        answered: tuple[int, int] = struct.unpack_from(">h8xq", answer, len(answer) - 1 - 1 - 1 - 4 - 8 - 8 - 2)
        return answered

    def close(self) -> None:
        self._socket.close()


class Witness(threading.Thread):
    """A client that produces one record after the other and keeps the longest time until an answer."""

    def __init__(self, broker: TidegateBroker) -> None:
        super().__init__(daemon=True)
        self._broker = broker
        self._over = threading.Event()
        self._process = psutil.Process(broker.process.pid)
        self._before = self._bytes()
        self.slowest_s = 0.0
        self.most_bytes = 0
        self.answers = 0

    def run(self) -> None:
        frame = produce_frame("plain", 0, many_records(Codec.NONE, 1), acks=1)
        with socket.create_connection(("127.0.0.1", self._broker.port)) as connection:
            while not self._over.is_set():
                began = time.monotonic()
                code, _ = produced(exchange(connection, frame))
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                assert code == NONE
                self.answers += 1
                if self.answers % 10 == 0:
                    self.most_bytes = max(self.most_bytes, self._bytes() - self._before)
                time.sleep(0.001)

    def _bytes(self) -> int:
        total = 0
        for process in (self._process, *self._process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total

    def end(self) -> None:
        self._over.set()
        self.join()


@contextlib.contextmanager
def witnessed(broker: TidegateBroker) -> Iterator[Witness]:
    witness = Witness(broker)
    witness.start()
    wait_until(lambda: witness.answers > 20, "answers for the witness")
    witness.slowest_s = 0.0
    try:
        yield witness
    finally:
        witness.end()
    print(f"slowest {witness.slowest_s * 1000:.1f} ms, {witness.most_bytes / 1e6:.0f} MB, {witness.answers} answers")
    assert witness.slowest_s < SLOWEST_S
    assert witness.most_bytes < MOST_BYTES


def sent(broker: TidegateBroker, topic: str, batch: bytes) -> tuple[int, int]:
    with socket.create_connection(("127.0.0.1", broker.port), 120) as connection:
        return produced(exchange(connection, produce_frame(topic, 0, batch)))


def judged(broker: TidegateBroker, topic: str, batch: bytes) -> int:
    """The broker's response to a batch.

    On a busy machine its process may not get to the records within 30 s: clients then send the batch again, as
    REQUEST_TIMED_OUT asks them to.
    """
    codes: list[int] = []

    def is_judged() -> bool:
        codes.append(sent(broker, topic, batch)[0])
        return codes[-1] != REQUEST_TIMED_OUT

    wait_until(is_judged, f"a verdict on a batch for {topic}", timeout_s=300)
    return codes[-1]


def cases(some: Sequence[tuple[Any, ...]], more: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The first in every run, the rest among the long proofs: each takes half a minute."""
    rest = [case for case in more if case not in some]
    return [
        *some,
        *(pytest.param(*case, marks=[pytest.mark.proof, pytest.mark.long, pytest.mark.timeout(600)]) for case in rest),
    ]


COMPRESSED: Final = (Codec.ZSTD, Codec.GZIP, Codec.LZ4)


@pytest.mark.parametrize(
    ("topic", "codec", "count"),
    cases(
        [("compacted", Codec.ZSTD, MANY // 4), ("lz4", Codec.ZSTD, MANY // 16), ("strict", Codec.ZSTD, MANY)],
        itertools.product(TOPICS, COMPRESSED, [MANY]),
    ),
)
def test_a_batch_of_millions_of_records_holds_nobody_up(
    broker: TidegateBroker, topic: str, codec: Codec, count: int
) -> None:
    batch = many_records(codec, count, max_timestamp=NOW_MS + 10**13 if topic == "strict" else NOW_MS)
    with witnessed(broker):
        code, _ = sent(broker, topic, batch)
    if topic == "strict":
        assert code == INVALID_TIMESTAMP
    elif topic == "compacted":
        assert code == NONE
    else:  # where it is packed anew, records that all claim one offset are numbered, which takes long and makes it large
        assert code in (NONE, MESSAGE_TOO_LARGE, REQUEST_TIMED_OUT)


def test_millions_of_records_without_a_key_are_refused_and_some_of_them_named(broker: TidegateBroker) -> None:
    with witnessed(broker):
        assert judged(broker, "compacted", many_records(Codec.ZSTD, MANY // 4, key=False)) == INVALID_RECORD


@pytest.mark.parametrize("codec", COMPRESSED)
def test_decompressing_one_huge_record_blocks_no_other_client(broker: TidegateBroker, codec: Codec) -> None:
    with witnessed(broker):
        assert judged(broker, "compacted", one_large_record(codec, 100 * 1024 * 1024)) == NONE
        assert judged(broker, "uncompressed", one_large_record(codec, 100 * 1024 * 1024)) == MESSAGE_TOO_LARGE
        assert judged(broker, "compacted", one_large_record(codec, 130 * 1024 * 1024)) == INVALID_RECORD


@pytest.mark.parametrize(
    ("timestamp", "count"), cases([(NOW_MS + 1, MANY // 4), (-3, MANY // 4)], [(NOW_MS + 1, MANY), (-3, MANY)])
)
def test_looking_up_a_time_in_batches_of_millions_of_records_holds_nobody_up(
    broker: TidegateBroker, timestamp: int, count: int
) -> None:
    """Their largest timestamp is a lie, so that each is looked into and has nothing."""
    topic = f"lying-{timestamp}-{count}"
    with contextlib.closing(Connected(broker)) as client:
        client.create(topic)
        batch = many_records(Codec.ZSTD, count // 2, max_timestamp=int(time.time() * 1000))
        for _ in range(2):
            assert judged(broker, topic, batch) == NONE
        with witnessed(broker):
            error, offset = client.offset_for(topic, timestamp)
        assert (error, offset) == (NONE, -1) or (count == MANY and error == REQUEST_TIMED_OUT)


def test_a_batch_does_not_overtake_a_long_one_before_it(broker: TidegateBroker) -> None:
    with contextlib.closing(Connected(broker)) as client:
        client.create("ordered", {"cleanup.policy": "compact"})
        for count in (MANY // 16, 1, MANY // 16, 1, 1):
            client.send(produce_frame("ordered", 0, many_records(Codec.ZSTD, count)))
        answers = [produced(client.receive()) for _ in range(5)]
    many = MANY // 16
    assert answers == [(NONE, 0), (NONE, many), (NONE, many + 1), (NONE, 2 * many + 1), (NONE, 2 * many + 2)]


def test_clients_that_leave_meanwhile_hold_nobody_up(broker: TidegateBroker) -> None:
    frame = produce_frame("compacted", 0, many_records(Codec.ZSTD, MANY // 4))
    for _ in range(50):
        with contextlib.closing(Connected(broker)) as client:
            client.send(frame)
    with witnessed(broker):
        assert sent(broker, "compacted", many_records(Codec.ZSTD, MANY // 64))[0] == NONE


def test_records_of_acks_0_are_looked_into_and_a_refusal_ends_the_connection(broker: TidegateBroker) -> None:
    with contextlib.closing(Connected(broker)) as client:
        client.create("silent", {"cleanup.policy": "compact"})
        client.send(produce_frame("silent", 0, many_records(Codec.ZSTD, MANY // 64), acks=0))
        assert produced(client.ask(produce_frame("silent", 0, many_records(Codec.NONE, 1)))) == (NONE, MANY // 64)
        client.send(produce_frame("silent", 0, many_records(Codec.ZSTD, MANY // 64, key=False), acks=0))
        assert client.receive() == b""


def test_metrics_of_many_empty_messages_hold_nobody_up(broker: TidegateBroker) -> None:
    """A push whose ``scope_metrics`` are millions of empty ones, each of two bytes."""
    nothing = b"\x12\x00" * 7_000_000
    message = bytearray(b"\x0a")
    write_uvarint(message, len(nothing))
    message += nothing
    with contextlib.closing(Connected(broker)) as client:
        body = {"client_instance_id": None}
        asked = client.ask(frame_of(GET_TELEMETRY_SUBSCRIPTIONS, 0, body))
        instance, (subscription,) = uuid.UUID(bytes=asked[11:27]), struct.unpack_from(">i", asked, 27)
        push = {
            "client_instance_id": instance,
            "subscription_id": subscription,
            "terminating": False,
            "compression_type": int(Codec.ZSTD),
            "metrics": compress(Codec.ZSTD, bytes(message)),
        }
        with witnessed(broker):
            answer = client.ask(frame_of(PUSH_TELEMETRY, 0, push))
        assert struct.unpack_from(">h", answer, 9) == (INVALID_RECORD,)


@pytest.mark.parametrize(
    "batch",
    [
        batch_of(bytes(700), 101, Codec.NONE),
        batch_of(bytes(700), 2**31 - 1, Codec.NONE),
        batch_of(bytes(100_000), 2**31 - 1, Codec.GZIP),
        batch_of(bytes(100_000), 2**31 - 1, Codec.LZ4),
        batch_of(bytes(100_000), 2**31 - 1, Codec.ZSTD),
    ],
    ids=["none", "none, most", "gzip, most", "lz4, most", "zstd, most"],
)
@pytest.mark.parametrize("topic", ["plain", "compacted", "lz4", "stamped"])
def test_counts_that_cannot_be_are_refused(broker: TidegateBroker, topic: str, batch: bytes) -> None:
    assert judged(broker, topic, batch) == INVALID_RECORD
