"""Produce requests that are written to the socket in pieces. aiokafka would copy each batch eight times to join it with
its surroundings.

Like ``sender`` this file uses private names of aiokafka; tests/broker/client/test_produce_requests.py tests them.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import IncompatibleBrokerVersion, KafkaConnectionError, NodeNotReadyError, RequestTimedOutError
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.util import wait_for

from broker.client.batches import Piece

__all__ = ["PiecewiseClient", "PiecewiseRequest"]

_FIRST_VERSION: Final = 3
"""For record batches v2. All versions up to 7 have the same layout."""
_WHOLE_BYTES: Final = 64 * 1024
"""Smaller pieces are joined: a write to the socket costs about as much as copying this many bytes."""

Batches = Sequence[tuple[str, Sequence[tuple[int, Sequence[Piece]]]]]
"""Topics with their partitions, and the pieces of each partition's batch."""


class PiecewiseRequest(ProduceRequest):  # type: ignore[misc]
    """A produce request whose batches are not encoded by aiokafka."""

    def __init__(self, transactional_id: str | None, acks: int, timeout_ms: int, batches: Batches) -> None:
        super().__init__(transactional_id, acks, timeout_ms, [])
        self._transactional, self._acks, self._wait_ms, self._batches = transactional_id, acks, timeout_ms, batches

    def body(self) -> Iterator[Piece]:
        """The request after its header. Source: Kafka's ProduceRequest.json, versions 3 to 7."""
        name = b"\xff\xff" if self._transactional is None else _text(self._transactional)
        yield name + struct.pack(">hii", self._acks, self._wait_ms, len(self._batches))
        for topic, partitions in self._batches:
            yield _text(topic) + struct.pack(">i", len(partitions))
            for partition, pieces in partitions:
                yield struct.pack(">ii", partition, sum(map(len, pieces)))
                yield from pieces


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


class PiecewiseClient:
    """The client as aiokafka's produce handler sees it. ``send`` raises as the client does.

    ``written`` is done when a request has been written and its answer is awaited.
    """

    def __init__(self, client: AIOKafkaClient, written: asyncio.Future[None]) -> None:
        self._client, self._written = client, written
        self.force_metadata_update = client.force_metadata_update
        self._maybe_wait_metadata = client._maybe_wait_metadata

    async def send(self, node_id: int, request: PiecewiseRequest) -> Any:
        """The broker's response; None without acknowledgements, once there is room for more."""
        if not await self._client.ready(node_id):
            raise NodeNotReadyError(f"node {node_id} is not ready for a produce request")
        connection = self._client._conns[node_id, ConnectionGroup.DEFAULT]
        try:
            answer = _sent(connection, request)
            if not self._written.done():
                self._written.set_result(None)
            return await answer
        except TimeoutError as error:
            connection.close(reason=CloseReason.CONNECTION_TIMEOUT)  # the next request opens a new connection
            raise RequestTimedOutError from error


def _sent(connection: AIOKafkaConnection, request: PiecewiseRequest) -> Awaitable[Any]:
    """The future response, as ``AIOKafkaConnection.send`` returns it."""
    writer, address = connection._writer, f"{connection.host}:{connection.port}"
    if writer is None:
        raise KafkaConnectionError(f"No connection to broker at {address}")
    form = request.prepare(connection._versions)
    if form.API_VERSION < _FIRST_VERSION:
        raise IncompatibleBrokerVersion(
            f"the broker at {address} takes no record batches v2: it is older than Kafka 0.11"
        )
    number = connection._next_correlation_id()
    header = form.build_request_header(number, connection._client_id).encode()
    pieces = [header, *request.body()]
    try:
        for piece in _gathered([struct.pack(">i", sum(map(len, pieces))), *pieces]):
            writer.write(piece)
    except OSError as error:
        connection.close(reason=CloseReason.CONNECTION_BROKEN)
        raise KafkaConnectionError(f"Connection at {address} broken: {error}") from error
    answer: Awaitable[Any]
    if request.required_acks == 0:
        answer = writer.drain()
    else:
        response = connection._loop.create_future()
        connection._requests.append((number, form, response))
        answer = wait_for(response, connection._request_timeout)
    return answer


def _gathered(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The same bytes, with small adjacent pieces joined."""
    small: list[Piece] = []
    for piece in pieces:
        if len(piece) < _WHOLE_BYTES:
            small.append(piece)
            continue
        yield b"".join(small)
        small = []
        yield piece
    if small:
        yield b"".join(small)
