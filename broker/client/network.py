"""Kafka's client metrics, measured where aiokafka writes and reads, and answers read without copies.

aiokafka creates its clients and connections itself and has no hook: ``measured`` changes their classes afterwards.
tests/broker/client/test_network.py tests the private names. If an upgrade of aiokafka breaks it, change this file.
"""

from __future__ import annotations

import asyncio
import struct
import threading
import time
import weakref
from collections import deque
from typing import Any, Final, Literal

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, AIOKafkaProtocol, CloseReason
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from broker.client.reach import closed, first_answer
from tidegate.kit.windowed import Windowed

__all__ = ["ClientKind", "ClientMeasures", "client_measures", "measured"]

ClientKind = Literal["admin", "consumer", "member", "producer"]
"""The client's purpose. A member only stays in a group (``GroupMember``)."""

Attributes = dict[str, float]

_PRODUCE, _FETCH, _COMMIT, _JOIN, _HEARTBEAT, _SYNC = 0, 1, 8, 11, 12, 14
_FRAME: Final = struct.Struct(">i")
"""The length prefix of each answer."""
_SMALL_BYTES: Final = 65_536
_SHARE: Final = 8
"""A part of a fetch answer that is less than this share of it is copied."""
_RESERVED_BYTES: Final = 16 << 20
"""Memory that is made for an answer by its length prefix alone. A server of another protocol sends letters there, which are 1 GiB."""
_DIGITS: Final = 3

_living: weakref.WeakSet[ClientMeasures] = weakref.WeakSet()
_living_lock = threading.Lock()


class _Requests:
    """Requests of one kind: the latencies and the sizes of their answers."""

    __slots__ = ("latency_ms", "size")

    def __init__(self) -> None:
        self.latency_ms, self.size = Windowed(), Windowed()


class _Node:
    """Bytes sent to and received from one broker, per request and answer."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.sent, self.received = Windowed(), Windowed()


class ClientMeasures:
    """The measurements of one client, from its start to its stop. Written on its event loop, read from any thread.

    Handshakes are not counted, and neither is the bootstrap connection.
    """

    def __init__(self, kind: ClientKind, client: AIOKafkaClient) -> None:
        self.kind, self.client_id = kind, str(client._client_id)
        self._client = weakref.ref(client)
        self._checked = client._security_protocol != "PLAINTEXT"
        self._opened, self._closed, self._refused = Windowed(), Windowed(), Windowed()
        self._busy_us = Windowed()
        self._nodes: dict[int | str, _Node] = {}
        self._requests: dict[int, _Requests] = {}
        self._records, self._record_bytes, self._record_errors = Windowed(), Windowed(), Windowed()

    # -- Written by the client --------------------------------------------------------------------------------------

    def opened(self) -> None:
        self._opened.record(1)

    def closed(self) -> None:
        self._closed.record(1)

    def refused(self) -> None:
        """A broker refused the client's authentication."""
        self._refused.record(1)

    def node(self, node_id: int | str) -> _Node:
        result = self._nodes.get(node_id)
        if result is None:
            result = self._nodes[node_id] = _Node()
        return result

    def worked(self, began: float) -> None:
        self._busy_us.record((time.perf_counter() - began) * 1e6)

    def answered(self, api_key: int, latency_s: float, size: int) -> None:
        requests = self._requests.get(api_key)
        if requests is None:
            requests = self._requests[api_key] = _Requests()
        requests.latency_ms.record(latency_s * 1000)
        requests.size.record(size)

    def answered_records(self, count: int, *, refused: bool) -> None:
        """A producer's records were acknowledged, or have failed."""
        (self._record_errors if refused else self._records).record(count)

    def handed_out(self, count: int, size: int) -> None:
        """A fetch was returned to the caller of the consumer."""
        self._records.record(count)
        self._record_bytes.record(size)

    # -- Read ------------------------------------------------------------------------------------------------------

    def network(self) -> Attributes:
        """The attributes common to Kafka's clients of all kinds (``producer-metrics``, ``consumer-metrics``)."""
        nodes = list(self._nodes.values())
        sent, received = [node.sent for node in nodes], [node.received for node in nodes]
        requests = sum(window.count for window in sent)
        answers = sum(window.count for window in received)
        rates = (
            round(sum(window.count_rate for window in sent), _DIGITS),
            round(sum(window.count_rate for window in received), _DIGITS),
        )
        sizes = _joined(sent)
        accepted = self._opened if self._checked else Windowed()
        return {
            "connection-count": self._connection_count,
            "connection-creation-total": self._opened.count,
            "connection-creation-rate": self._opened.rate,
            "connection-close-total": self._closed.count,
            "connection-close-rate": self._closed.rate,
            "successful-authentication-total": accepted.count,
            "successful-authentication-rate": accepted.rate,
            "failed-authentication-total": self._refused.count,
            "failed-authentication-rate": self._refused.rate,
            "request-total": requests,
            "request-rate": rates[0],
            "request-size-avg": sizes[0],
            "request-size-max": sizes[1],
            "response-total": answers,
            "response-rate": rates[1],
            "outgoing-byte-total": sum(window.total for window in sent),
            "outgoing-byte-rate": round(sum(window.rate for window in sent), _DIGITS),
            "incoming-byte-total": sum(window.total for window in received),
            "incoming-byte-rate": round(sum(window.rate for window in received), _DIGITS),
            "network-io-total": requests + answers,
            "network-io-rate": round(sum(rates), _DIGITS),
            "io-ratio": round(self._busy_us.rate / 1e6, 6),
        }

    def nodes(self) -> dict[str, Attributes]:
        """The attributes that are counted per broker (``producer-node-metrics``)."""
        return {
            f"node-{node_id}": {
                "request-total": node.sent.count,
                "request-rate": node.sent.count_rate,
                "response-total": node.received.count,
                "response-rate": node.received.count_rate,
                "outgoing-byte-total": node.sent.total,
                "outgoing-byte-rate": node.sent.rate,
                "incoming-byte-total": node.received.total,
                "incoming-byte-rate": node.received.rate,
            }
            for node_id, node in list(self._nodes.items())
        }

    def sending(self) -> Attributes:
        """The producer-specific attributes of ``producer-metrics``."""
        produced = self._of(_PRODUCE).latency_ms
        return {
            "request-latency-avg": produced.average,
            "request-latency-max": produced.most,
            "record-send-total": self._records.total,
            "record-send-rate": self._records.rate,
            "record-error-total": self._record_errors.total,
            "record-error-rate": self._record_errors.rate,
        }

    def fetching(self) -> Attributes:
        """``consumer-fetch-manager-metrics``."""
        fetched = self._of(_FETCH)
        return {
            "fetch-total": fetched.size.count,
            "fetch-rate": fetched.size.count_rate,
            "fetch-latency-avg": fetched.latency_ms.average,
            "fetch-latency-max": fetched.latency_ms.most,
            "fetch-size-avg": fetched.size.average,
            "fetch-size-max": fetched.size.most,
            "records-consumed-total": self._records.total,
            "records-consumed-rate": self._records.rate,
            "bytes-consumed-total": self._record_bytes.total,
            "bytes-consumed-rate": self._record_bytes.rate,
        }

    def coordinating(self) -> Attributes:
        """``consumer-coordinator-metrics``: the requests between a client and its group coordinator."""
        result: Attributes = {}
        for name, api_key in (("commit", _COMMIT), ("join", _JOIN), ("heartbeat", _HEARTBEAT), ("sync", _SYNC)):
            latency = self._of(api_key).latency_ms
            result |= {f"{name}-total": latency.count, f"{name}-rate": latency.count_rate}
            if name == "heartbeat":
                result["heartbeat-response-time-max"] = latency.most
            else:
                word = "latency" if name == "commit" else "time"
                result |= {f"{name}-{word}-avg": latency.average, f"{name}-{word}-max": latency.most}
        return result

    def _of(self, api_key: int) -> _Requests:
        return self._requests.get(api_key) or _Requests()

    @property
    def _connection_count(self) -> int:
        client = self._client()
        return 0 if client is None else sum(conn.connected() for conn in list(client._conns.values()))


def _joined(seen: list[Windowed]) -> tuple[float, float]:
    """The average and the maximum over several windows."""
    rates = [window.count_rate for window in seen]
    whole = sum(rates)
    average = sum(window.average * rate for window, rate in zip(seen, rates, strict=True)) / whole if whole else 0.0
    return round(average, _DIGITS), max((window.most for window in seen), default=0.0)


def client_measures() -> list[ClientMeasures]:
    """The measurements of all connected clients of this process, as JMX lists a JVM's. Thread-safe."""
    with _living_lock:
        return sorted(_living, key=lambda item: (item.kind, item.client_id))


def measured(client: AIOKafkaClient, kind: ClientKind, *, creates_topics: bool = True) -> ClientMeasures:
    """Count a client's requests from now on. Call it before the client connects. Without ``creates_topics`` the broker creates no
    topic that the client asks about (allow.auto.create.topics).
    """
    client.__class__ = _Client
    client.creates_topics = creates_topics
    measures: ClientMeasures = ClientMeasures(kind, client)
    client.measures, client.closing = measures, set()
    with _living_lock:
        _living.add(measures)
    return measures


class _Client(AIOKafkaClient):  # type: ignore[misc]
    measures: ClientMeasures
    creates_topics: bool
    closing: set[AIOKafkaConnection]
    """Connections whose sockets may still be open although aiokafka no longer knows them."""
    _sync_task: asyncio.Task[None] | None

    async def bootstrap(self) -> None:
        """Like aiokafka's, but with a clear error if no address answers, and without leaving connections open."""
        connection, answer = await first_answer(self)
        self.cluster.update_metadata(answer)
        if self.cluster.brokers():
            connection.close()
        else:  # the broker is starting: it is asked again over this connection
            self._conns["bootstrap", ConnectionGroup.DEFAULT] = connection
        if self._sync_task is None:
            self._sync_task = asyncio.create_task(self._md_synchronizer())

    async def close(self) -> None:
        with _living_lock:
            _living.discard(self.measures)
        await super().close()
        await closed(*self.closing)

    async def _get_conn(
        self, node_id: int, *, group: int = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> AIOKafkaConnection | None:
        connection = await super()._get_conn(node_id, group=group, no_hint=no_hint)
        if type(connection) is AIOKafkaConnection:
            _count(connection, self.measures, node_id)
            connection.creates_topics = self.creates_topics
        return connection

    def _on_connection_closed(self, connection: AIOKafkaConnection, reason: CloseReason | None) -> None:
        if type(connection) is _Connection:
            self.measures.closed()
        elif reason is CloseReason.AUTH_FAILURE:
            self.measures.refused()
        self.closing = {item for item in self.closing if not item._closed_fut.done()} | {connection}
        super()._on_connection_closed(connection, reason)


def _count(connection: AIOKafkaConnection, measures: ClientMeasures, node_id: int | str) -> None:
    connection.__class__ = _Connection
    connection.measures, connection.node = measures, measures.node(node_id)
    measures.opened()
    if connection._writer is not None:
        connection._writer = _Writer(connection._writer, connection.node.sent, measures)
        connection._requests = _Waiting(connection._writer)
        _Frames.read(connection)


class _Frames(AIOKafkaProtocol, asyncio.BufferedProtocol):  # type: ignore[misc]
    """Reads a large answer straight into its own memory.

    aiokafka's stream copies each byte three times, and stops the socket whenever 128 KiB are there: a consumer of 1,000,000 records
    of 740 bytes took 1.57 s of processor time, and takes 1.02 (medians of six). aiokafka's task that reads the stream waits on,
    and learns of the connection's end.
    """

    connection: weakref.ref[AIOKafkaConnection]
    answer: bytearray | None
    """A large answer that is arriving, or its beginning; small ones arrive in ``small``."""
    size: int
    """Bytes of the large answer."""
    arriving: memoryview
    filled: int
    """Bytes that are in ``arriving``."""
    small: memoryview

    @classmethod
    def read(cls, connection: AIOKafkaConnection) -> None:
        """From now on, when no answer is due: the connection has just been made."""
        transport = connection._writer.transport
        frames = transport.get_protocol()
        frames.__class__ = cls
        frames.connection = weakref.ref(connection)
        frames.small = frames.arriving = memoryview(bytearray(_SMALL_BYTES))
        frames.answer, frames.size, frames.filled = None, 0, 0
        transport.set_protocol(frames)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self.arriving[self.filled :]

    def buffer_updated(self, count: int) -> None:
        self.filled += count
        if self.answer is None:
            self._take_small()
        elif self.filled == self.size:
            answer, self.answer = self.answer, None
            self.arriving, self.filled = self.small, 0
            self._handle(answer)
        elif self.filled == len(self.answer):
            self._begin_large(self.size, self.arriving)

    def _take_small(self) -> None:
        at = 0
        while self.filled - at >= _FRAME.size:
            (size,) = _FRAME.unpack_from(self.small, at)
            if size < 0:
                raise KafkaConnectionError(f"an answer of {size} bytes")
            start = at + _FRAME.size
            if start + size > self.filled:
                if _FRAME.size + size > _SMALL_BYTES:
                    self._begin_large(size, self.small[start : self.filled])
                    return
                break
            at = start + size
            self._handle(bytes(self.small[start:at]))
        left = bytes(self.small[at : self.filled])
        self.small[: len(left)] = left
        self.filled = len(left)

    def _begin_large(self, size: int, beginning: memoryview) -> None:
        self.answer, self.size = bytearray(min(size, max(_RESERVED_BYTES, 2 * len(beginning)))), size
        self.arriving, self.filled = memoryview(self.answer), len(beginning)
        self.arriving[: self.filled] = beginning

    def _handle(self, answer: bytes | bytearray) -> None:
        connection = self.connection()
        if connection is not None and connection.connected():
            connection._handle_frame(answer)


class _Writer:
    """Counts what a stream's writer sends.

    A request is everything written up to ``sent``; a request without an answer is drained.
    """

    __slots__ = ("_measures", "_sent", "_writer", "_written")

    def __init__(self, writer: Any, sent: Windowed, measures: ClientMeasures) -> None:
        self._writer, self._sent, self._measures = writer, sent, measures
        self._written = 0

    def write(self, data: Any) -> None:
        began = time.perf_counter()
        self._writer.write(data)
        self._written += len(data)
        self._measures.worked(began)

    def sent(self) -> None:
        """Everything written since the last call was one request."""
        self._sent.record(self._written)
        self._written = 0

    def drain(self) -> Any:
        self.sent()
        return self._writer.drain()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


class _Waiting(deque[Any]):
    """aiokafka's pending requests with their send times. Answers come in their order."""

    def __init__(self, writer: _Writer) -> None:
        super().__init__()
        self._writer = writer
        self.asked_at: deque[float] = deque()

    def append(self, request: Any) -> None:
        self._writer.sent()
        self.asked_at.append(time.perf_counter())
        super().append(request)


class _Connection(AIOKafkaConnection):  # type: ignore[misc]
    measures: ClientMeasures
    node: _Node
    creates_topics: bool

    def send(self, request: Any, expect_response: bool = True) -> Any:
        if isinstance(request, MetadataRequest) and not self.creates_topics:
            request._allow_auto_topic_creation = False
        return super().send(request, expect_response)

    def _handle_frame(self, answer: bytes | bytearray) -> None:
        began, waiting = time.perf_counter(), self._requests
        size = len(answer) + _FRAME.size
        self.node.received.record(size)
        if isinstance(waiting, _Waiting) and waiting:
            self.measures.answered(waiting[0][1].API_KEY, began - waiting.asked_at.popleft(), size)
        if not (isinstance(answer, bytearray) and self._take_large(answer)):
            super()._handle_frame(answer)
        self.measures.worked(began)

    def _take_large(self, answer: bytearray) -> bool:
        """Handle an answer as aiokafka does, but without two copies of its records: they are views of the answer. Returns False for one
        that is to be handled by aiokafka.
        """
        number, request, waiting = self._requests[0]
        if number is None or request.API_KEY != _FETCH:
            return False
        parts = _Parts(answer)
        if request.parse_response_header(parts).correlation_id != number:
            return False
        if not waiting.done():
            waiting.set_result(request.RESPONSE_TYPE.decode(parts))
        self._last_action = time.monotonic()
        self._requests.popleft()
        return True


class _Parts:
    """A file of bytes for aiokafka's decoders, of which large parts are read as views. Names are shorter, and are bytes.

    A view keeps the whole answer in memory, and the records of a paused partition may wait for long: a part that is small
    beside its answer is copied.
    """

    __slots__ = ("_at", "_data", "_large")

    def __init__(self, data: bytearray) -> None:
        self._data, self._at = memoryview(data), 0
        self._large = max(_SMALL_BYTES, len(data) // _SHARE)

    def read(self, size: int) -> bytes | memoryview:
        part = self._data[self._at : self._at + size]
        self._at += len(part)
        return part if size > self._large else bytes(part)
