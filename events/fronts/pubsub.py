"""Salesforce's Pub/Sub API, ``eventbus.v1.PubSub`` over gRPC: topics, schemas, publish, subscribe with flow control.

A replay id is eight bytes, big-endian, and two zero bytes after them, as real organizations send it; clients may send
it back with or without those two.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any, Final

import grpc

from events.access import Access
from events.bus import EARLIEST, LATEST, Event, EventBus, Subscription
from events.catalog import Catalog
from events.errors import InvalidReplayId, InvalidSession, UnknownEvent, UnknownSchema
from events.fronts.grpc_errors import CallRefused, Context, stream, unary
from events.metrics import EventMetrics
from events.proto import pubsub_api_pb2 as pb
from events.publishing import AvroEvent, Published, Publisher
from tidegate.kit.errors import TidegateError

__all__ = ["PubSubFront", "decode_replay_id", "encode_replay_id"]

MAX_PENDING: Final = 100
"""How many events may be owed to one subscriber: asking for more asks for this many."""
MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
_RESPONSE_BYTES: Final = 3 * 1024 * 1024


def encode_replay_id(replay_id: int) -> bytes:
    return replay_id.to_bytes(8, signed=True) + b"\0\0"


def decode_replay_id(data: bytes) -> int:
    """Raises the refusal that Salesforce gives for bytes which are no replay id."""
    if len(data) == 8 or (len(data) == 10 and data[8:] == b"\0\0"):
        return int.from_bytes(data[:8], signed=True)
    raise CallRefused(
        "subscription.fetch.replayid.corrupted",
        f"The Replay ID is corrupted: it is {len(data)} bytes ({data[:16].hex()}), where the 8 or 10 of a received one belong",
    )


class PubSubFront:
    """The service's methods. ``ManagedSubscribe`` is not offered: gRPC answers UNIMPLEMENTED."""

    def __init__(
        self,
        catalog: Catalog,
        bus: EventBus,
        publisher: Publisher,
        access: Access,
        metrics: EventMetrics,
        *,
        keepalive_s: float,
    ) -> None:
        self._catalog, self._bus, self._publisher, self._access = catalog, bus, publisher, access
        self._metrics, self._keepalive_s = metrics, keepalive_s

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """What a gRPC server registers."""
        table = {
            "GetTopic": grpc.unary_unary_rpc_method_handler(
                unary(self.get_topic), pb.TopicRequest.FromString, pb.TopicInfo.SerializeToString
            ),
            "GetSchema": grpc.unary_unary_rpc_method_handler(
                unary(self.get_schema), pb.SchemaRequest.FromString, pb.SchemaInfo.SerializeToString
            ),
            "Publish": grpc.unary_unary_rpc_method_handler(
                unary(self.publish), pb.PublishRequest.FromString, pb.PublishResponse.SerializeToString
            ),
            "PublishStream": grpc.stream_stream_rpc_method_handler(
                stream(self.publish_stream), pb.PublishRequest.FromString, pb.PublishResponse.SerializeToString
            ),
            "Subscribe": grpc.stream_stream_rpc_method_handler(
                stream(self.subscribe), pb.FetchRequest.FromString, pb.FetchResponse.SerializeToString
            ),
        }
        return grpc.method_handlers_generic_handler("eventbus.v1.PubSub", table)

    async def get_topic(self, request: pb.TopicRequest, context: Context) -> pb.TopicInfo:
        self._enter(context)
        schema = await self._catalog.find(_event_name(request.topic_name))
        return pb.TopicInfo(
            topic_name=schema.definition.channel,
            tenant_guid=self._access.org_id,
            can_publish=True,
            can_subscribe=True,
            schema_id=str(schema.id),
            rpc_id=str(uuid.uuid4()),
        )

    async def get_schema(self, request: pb.SchemaRequest, context: Context) -> pb.SchemaInfo:
        self._enter(context)
        said = request.schema_id
        if not (said.isascii() and said.isdigit() and len(said) < 11):
            raise UnknownSchema(said[:50])
        schema = await self._catalog.schema(int(said))
        return pb.SchemaInfo(schema_json=schema.text, schema_id=str(schema.id), rpc_id=str(uuid.uuid4()))

    async def publish(self, request: pb.PublishRequest, context: Context) -> pb.PublishResponse:
        self._enter(context)
        return await self._publish(_event_name(request.topic_name), request)

    async def publish_stream(
        self, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> AsyncGenerator[pb.PublishResponse, None]:
        """Answer each request when its events are acknowledged, in the order of the requests."""
        name = ""
        with self._counted():
            async for request in requests:
                self._enter(context)
                name = _same_topic(name, request.topic_name)
                yield await self._publish(name, request)

    async def _publish(self, name: str, request: pb.PublishRequest) -> pb.PublishResponse:
        if not request.events:
            raise CallRefused("publish.events.empty", "The publish request has no events; send at least one")
        events = [AvroEvent(event.id, event.schema_id, event.payload) for event in request.events]
        answers = await self._publisher.publish_avro(name, events)
        results = [_publish_result(event, answer) for event, answer in zip(events, answers, strict=True)]
        return pb.PublishResponse(results=results, schema_id=events[-1].schema_id, rpc_id=str(uuid.uuid4()))

    async def subscribe(
        self, requests: AsyncIterator[pb.FetchRequest], context: Context
    ) -> AsyncGenerator[pb.FetchResponse, None]:
        """Deliver as many events as were asked for; with nothing to deliver, say the latest replay id from time to time."""
        self._enter(context)
        first = await anext(requests, None)
        if first is None:
            return
        name = (await self._catalog.find(_event_name(first.topic_name))).definition.name
        flow = _Flow(name, _requested(first))
        subscription = await self._bus.subscribe(name, _replay(first), flow.wake)
        reading = asyncio.create_task(flow.read(requests, lambda: self._enter(context)))
        try:
            with self._counted():
                async for response in self._deliver(subscription, flow, context):
                    yield response
        finally:
            subscription.close()
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    async def _deliver(
        self, subscription: Subscription, flow: _Flow, context: Context
    ) -> AsyncIterator[pb.FetchResponse]:
        rpc_id = str(uuid.uuid4())
        while True:
            flow.wake.clear()
            if flow.failure is not None:
                raise flow.failure
            if flow.pending and subscription.available:
                for events in _by_size(await subscription.take(flow.pending)):
                    flow.pending -= len(events)
                    self._metrics.delivered.labels(subscription.topic, "pubsub").inc(len(events))
                    yield _response(events, events[-1].replay_id, flow, rpc_id)
                continue
            if flow.ended and not flow.pending:
                return
            try:
                async with asyncio.timeout(self._keepalive_s):
                    await flow.wake.wait()
            except TimeoutError:
                self._enter(context)
                yield _response([], subscription.position - 1, flow, rpc_id)

    def _enter(self, context: Context) -> None:
        """Raise InvalidSession unless the call's metadata hold a session of this organization."""
        given = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        self._access.session(given.get("accesstoken", ""))
        tenant = given.get("tenantid", "")
        if tenant and tenant[:15] != self._access.org_id[:15]:
            raise InvalidSession

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        with self._metrics.streams.track_inprogress():
            yield


class _Flow:
    """How many events a subscriber has asked for and not got, and what became of its requests."""

    def __init__(self, name: str, pending: int) -> None:
        self._name, self.pending = name, pending
        self.wake = asyncio.Event()
        self.ended = False
        self.failure: TidegateError | None = None

    async def read(self, requests: AsyncIterator[pb.FetchRequest], enter: Callable[[], None]) -> None:
        """Add up further requests until the client sends no more."""
        try:
            async for request in requests:
                enter()
                _same_topic(self._name, request.topic_name)
                self.pending = min(self.pending + _requested(request), MAX_PENDING)
                self.wake.set()
        except TidegateError as error:
            self.failure = error
        finally:
            self.ended = True
            self.wake.set()


def _event_name(topic: str) -> str:
    if not topic.startswith("/event/"):
        raise UnknownEvent(topic)
    return topic.removeprefix("/event/")


def _same_topic(name: str, topic: str) -> str:
    """The event of a stream: named by its first request, and by none after it otherwise."""
    if not topic and name:
        return name
    said = _event_name(topic)
    if name and said.lower() != name.lower():
        raise CallRefused(
            "topic.changed", f"The stream is for /event/{name}, and a request names {topic}; open another stream"
        )
    return said


def _requested(request: pb.FetchRequest) -> int:
    if request.num_requested <= 0:
        raise CallRefused(
            "subscription.fetch.requested.events.invalid",
            f"The number of requested events is {request.num_requested}; it must be greater than 0",
        )
    return min(request.num_requested, MAX_PENDING)


def _replay(request: pb.FetchRequest) -> int:
    """The replay id to begin after. Bytes that decode to a negative number are never an instruction, only a position."""
    if request.replay_preset == pb.ReplayPreset.LATEST:
        return LATEST
    if request.replay_preset == pb.ReplayPreset.EARLIEST:
        return EARLIEST
    if request.replay_preset != pb.ReplayPreset.CUSTOM:
        raise CallRefused(
            "subscription.fetch.replay.preset.invalid", f"Replay preset {request.replay_preset} is not known"
        )
    replay_id = decode_replay_id(request.replay_id)
    if replay_id < -1:
        raise InvalidReplayId(replay_id)
    return EARLIEST if replay_id == -1 else replay_id


def _by_size(events: list[Event]) -> list[list[Event]]:
    """Cut into responses that any client's message limit lets through."""
    cut: list[list[Event]] = []
    size = _RESPONSE_BYTES
    for event in events:
        size += len(event.payload) + 100
        if size > _RESPONSE_BYTES:
            cut.append([])
            size = len(event.payload) + 100
        cut[-1].append(event)
    return cut


def _response(events: list[Event], latest: int, flow: _Flow, rpc_id: str) -> pb.FetchResponse:
    shown = [
        pb.ConsumerEvent(
            event=pb.ProducerEvent(id=event.uuid, schema_id=str(event.schema_id), payload=event.payload),
            replay_id=encode_replay_id(event.replay_id),
        )
        for event in events
    ]
    return pb.FetchResponse(
        events=shown, latest_replay_id=encode_replay_id(latest), rpc_id=rpc_id, pending_num_requested=flow.pending
    )


def _publish_result(event: AvroEvent, answer: Published | TidegateError) -> pb.PublishResult:
    if isinstance(answer, Published):
        return pb.PublishResult(replay_id=encode_replay_id(answer.replay_id), correlation_key=answer.uuid)
    error = pb.Error(code=pb.ErrorCode.PUBLISH, msg=answer.message)
    return pb.PublishResult(error=error, correlation_key=event.uuid)
