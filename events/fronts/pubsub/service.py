"""Salesforce's Pub/Sub API, ``eventbus.v1.PubSub`` over gRPC: topics, schemas, publish, subscribe with flow control.

A replay id is eight bytes, big-endian, followed by two zero bytes, as real organizations send it. Clients may send it
with or without those two.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Final

import grpc

from events.access import Access, Session
from events.access.errors import CannotRead
from events.bus.bus import EARLIEST, LATEST, EventBus, Stale, Start
from events.bus.outcomes import Published, Refused
from events.bus.publishing import AvroEvent, Publisher
from events.channels.channels import Channels, Subscribable
from events.errors import InvalidReplayId, UnknownEvent, UnknownSchema
from events.fronts.pubsub.delivery import Flow, add_events, decode_replay_id, deliver, encode_replay_id, requested
from events.fronts.pubsub.errors import NOT_AUTHENTICATED, CallRefused, Context, reading, stream, unary
from events.fronts.pubsub.managed import ManagedStream
from events.fronts.requests import instant_ms
from events.limits.limits import Limits
from events.metrics import EventMetrics
from events.proto import pubsub_api_pb2 as pb
from events.store.catalog import Catalog
from events.subscriptions.managed import ManagedSubscriptions
from events.subscriptions.shared import SharedSubscriptions

__all__ = ["PubSubFront", "decode_replay_id", "encode_replay_id"]

MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
STALE_REPLAY: Final = "tidegate-stale-replay"
"""Metadata of a Subscribe call: how to handle a stale or corrupt replay id."""
REPLAY_FROM: Final = "tidegate-replay-from"
"""Metadata of a Subscribe call: the time from which events are replayed."""
_PUBLISHED_AT_ONCE: Final = 500
"""The most events in one request, because 4 MiB could have a million: each refused one takes 90 us and, as an
exception, some KiB.
"""
_NEVER: Final = 1 << 62
"""A replay id that no event has."""


class PubSubFront:
    """The service's methods. ``stale`` applies to subscribers that do not say how to handle a stale replay id."""

    def __init__(
        self,
        catalog: Catalog,
        bus: EventBus,
        publisher: Publisher,
        access: Access,
        metrics: EventMetrics,
        limits: Limits,
        *,
        channels: Channels,
        managed: ManagedSubscriptions,
        keepalive_s: float,
        stale: Stale = Stale.ERROR,
    ) -> None:
        self._catalog, self._bus, self._publisher, self._access = catalog, bus, publisher, access
        self._channels, self._limits = channels, limits
        self._streams = 0
        self._shared = SharedSubscriptions(managed, bus)
        self._metrics, self._managed, self._keepalive_s, self._stale = metrics, managed, keepalive_s, stale

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """The handler to register with a gRPC server."""
        table = {
            "GetTopic": grpc.unary_unary_rpc_method_handler(
                unary(self.get_topic), reading(pb.TopicRequest), pb.TopicInfo.SerializeToString
            ),
            "GetSchema": grpc.unary_unary_rpc_method_handler(
                unary(self.get_schema), reading(pb.SchemaRequest), pb.SchemaInfo.SerializeToString
            ),
            "Publish": grpc.unary_unary_rpc_method_handler(
                unary(self.publish), reading(pb.PublishRequest), pb.PublishResponse.SerializeToString
            ),
            "PublishStream": grpc.stream_stream_rpc_method_handler(
                stream(self.publish_stream), reading(pb.PublishRequest), pb.PublishResponse.SerializeToString
            ),
            "Subscribe": grpc.stream_stream_rpc_method_handler(
                stream(self.subscribe), reading(pb.FetchRequest), pb.FetchResponse.SerializeToString
            ),
            "ManagedSubscribe": grpc.stream_stream_rpc_method_handler(
                stream(self.managed_subscribe),
                reading(pb.ManagedFetchRequest),
                pb.ManagedFetchResponse.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler("eventbus.v1.PubSub", table)

    async def get_topic(self, request: pb.TopicRequest, context: Context) -> pb.TopicInfo:
        user = self._enter(context).user
        topic = await self._topic(request.topic_name)
        if not user.may_see(topic.topic):
            raise CallRefused(
                "topic.meta.permission",
                f"An error occurred while getting the metadata for org CORE/prod/{self._access.org_id} and topic {topic.path}. "
                "Ensure the credentials and topic name are correct",
                grpc.StatusCode.PERMISSION_DENIED,
            )
        is_event = topic.kind == "event" and topic.schema is not None
        return pb.TopicInfo(
            topic_name=topic.path,
            tenant_guid=self._access.org_id,
            can_publish=is_event and user.may_create(topic.topic),
            can_subscribe=user.may_read(topic.topic),
            schema_id="" if topic.schema is None else str(topic.schema.id),
            rpc_id=str(uuid.uuid4()),
        )

    async def get_schema(self, request: pb.SchemaRequest, context: Context) -> pb.SchemaInfo:
        user = self._enter(context).user
        said = request.schema_id
        if not said.strip():
            raise CallRefused("schema.validation.failed", "Schema validation failed. The schema ID can't be blank.")
        if not (said.isascii() and said.isdigit() and len(said) < 11):
            raise UnknownSchema(said[:50])
        schema = await self._catalog.any_schema(int(said))
        if not user.may_see(schema.name):
            raise UnknownSchema(said)
        return pb.SchemaInfo(schema_json=schema.text, schema_id=str(schema.id), rpc_id=str(uuid.uuid4()))

    async def publish(self, request: pb.PublishRequest, context: Context) -> pb.PublishResponse:
        session = self._enter(context)
        return await self._publish(session, _event_name(request.topic_name), request)

    async def publish_stream(
        self, requests: AsyncIterator[pb.PublishRequest], context: Context
    ) -> AsyncGenerator[pb.PublishResponse, None]:
        """Answer each request when its events are acknowledged, in the order of the requests."""
        name = ""
        with self._counted():
            async for request in requests:
                session = self._enter(context)
                topic = _same_topic(f"/event/{name}" if name else "", request.topic_name, "publish.topic.mismatch")
                name = _event_name(topic)
                yield await self._publish(session, name, request)

    async def _publish(self, session: Session, name: str, request: pb.PublishRequest) -> pb.PublishResponse:
        if not request.events:
            raise CallRefused("publish.event.count.invalid", "The publish request has no events; send at least one")
        response = pb.PublishResponse(schema_id=request.events[-1].schema_id, rpc_id=str(uuid.uuid4()))
        for first in range(0, len(request.events), _PUBLISHED_AT_ONCE):
            part = request.events[first : first + _PUBLISHED_AT_ONCE]
            events = [AvroEvent(event.id, event.schema_id, event.payload) for event in part]
            outcomes = await self._publisher.publish_avro(name, events, user=session.user)
            response.results.extend(map(_publish_result, events, outcomes))
            await asyncio.sleep(0)  # yield to other requests, even if all events were refused
        return response

    async def subscribe(
        self, requests: AsyncIterator[pb.FetchRequest], context: Context
    ) -> AsyncGenerator[pb.FetchResponse, None]:
        """Deliver the requested number of events; without events, send the latest replay id at intervals."""
        self._enter(context)
        first = await anext(requests, None)
        if first is None:
            return
        topic = await self._topic(first.topic_name)
        check = self._reader(context, topic.topic)
        check()
        name, start = topic.topic, _start(first, _metadata(context), topic.stale_replay or self._stale)
        flow = Flow(requested(first.num_requested))
        subscription = await self._bus.subscribe(name, start, flow.wake)

        async def take(request: pb.FetchRequest) -> None:
            check()
            _same_topic(topic.path, request.topic_name, "subscription.fetch.topic.mismatch")
            flow.ask(requested(request.num_requested))

        reading = asyncio.create_task(flow.read(requests, take))
        rpc_id = str(uuid.uuid4())
        try:
            with self._counted():
                portions = deliver(
                    subscription,
                    flow,
                    keepalive_s=self._keepalive_s,
                    check=check,
                    allowance=self._limits.delivered,
                )
                async with contextlib.aclosing(portions):
                    async for portion in portions:
                        self._metrics.delivered.labels(name, "pubsub").inc(len(portion.events))
                        response = pb.FetchResponse(
                            latest_replay_id=encode_replay_id(portion.latest),
                            rpc_id=rpc_id,
                            pending_num_requested=flow.pending,
                        )
                        add_events(response, portion.events)
                        yield response
        finally:
            subscription.close()
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def managed_subscribe(
        self, requests: AsyncIterator[pb.ManagedFetchRequest], context: Context
    ) -> AsyncGenerator[pb.ManagedFetchResponse, None]:
        """Deliver after the position that the subscription's last holder committed."""
        user = self._enter(context).user
        first = await anext(requests, None)
        if first is None:
            return
        _check_identifier(first)
        subscription = await self._managed.find(subscription_id=first.subscription_id, name=first.developer_name)
        topic = (await self._topic(subscription.topic_name)).topic
        check = self._reader(context, topic)
        check()
        call = ManagedStream(
            self._managed,
            self._shared,
            subscription,
            topic,
            self._bus,
            self._metrics,
            check,
            user,
            self._limits.delivered,
        )
        with self._counted():
            responses = call.run(first, requests, self._keepalive_s)
            async with contextlib.aclosing(responses):
                async for response in responses:
                    yield response

    async def _topic(self, name: str) -> Subscribable:
        """Resolve a topic's name. Raises UnknownEvent that names it as the client did."""
        if not name:
            raise CallRefused("topic.validation.empty", "Topic validation failed. The topic name can't be blank.")
        try:
            return await self._channels.subscribable(name)
        except UnknownEvent:
            raise UnknownEvent(name) from None

    def _enter(self, context: Context) -> Session:
        """The session of the call's metadata.

        Raises InvalidSession, and a refusal for another organization's session.
        """
        headers = _metadata(context)
        tenant = headers.get("tenantid", "")
        if not headers.get("accesstoken") or (tenant and tenant[:15] != self._access.org_id[:15]):
            raise CallRefused("service.auth.headers.invalid", NOT_AUTHENTICATED, grpc.StatusCode.UNAUTHENTICATED)
        return self._access.session(headers["accesstoken"])

    def _reader(self, context: Context, topic: str) -> Callable[[], float]:
        """A check that raises if the call's session has ended or may no longer read the topic; otherwise it returns the
        seconds left.
        """

        def check() -> float:
            session = self._enter(context)
            try:
                session.user.require_read(topic)
            except CannotRead as error:
                raise CallRefused(
                    "subscription.topic.cannot.subscribe", str(error), grpc.StatusCode.PERMISSION_DENIED
                ) from error
            return (session.expires_ms - self._access.clock_ms()) / 1000

        return check

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Count a stream towards the limit. Raises TooManyClients."""
        self._limits.check_streams(self._streams)
        self._streams += 1
        try:
            with self._metrics.streams.track_inprogress():
                yield
        finally:
            self._streams -= 1


def _metadata(context: Context) -> dict[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def _event_name(topic: str) -> str:
    if not topic:
        raise CallRefused("publish.topic.validation.empty", "Topic validation failed. The topic name can't be blank.")
    if not topic.startswith("/event/"):
        raise UnknownEvent(topic)
    return topic.removeprefix("/event/")


def _same_topic(current: str, topic: str, refusal: str) -> str:
    """The topic of a stream. The first request names it; later ones may not change it."""
    if not topic and current:
        return current
    if current and topic.lower() != current.lower():
        raise CallRefused(refusal, f"The stream is for {current}, and a request names {topic}; open another stream")
    return topic


def _check_identifier(request: pb.ManagedFetchRequest) -> None:
    """A managed subscription is identified by its id or by its developer name."""
    if bool(request.subscription_id) == bool(request.developer_name):
        raise CallRefused(
            "managed.subscription.id.or.developer.name.empty",
            "The first request names the subscription by subscription_id or by developer_name, and by one of them only",
        )
    if request.subscription_id and len(request.subscription_id) not in (15, 18):
        raise CallRefused(
            "managed.subscription.subscription.id.invalid",
            f"The subscription ID {request.subscription_id[:50]!r} has {len(request.subscription_id)} characters; 15 or 18 are right",
        )


def _start(request: pb.FetchRequest, metadata: Mapping[str, str], stale: Stale) -> Start:
    """The start of a subscription. Bytes that decode to a negative number are a position, never an instruction."""
    try:
        stale = Stale(metadata.get(STALE_REPLAY, stale.value).lower())
    except ValueError:
        raise CallRefused(
            "subscription.fetch.stale.replay.invalid",
            f"{STALE_REPLAY} is {metadata[STALE_REPLAY][:50]!r}; it must be error, earliest or latest",
        ) from None
    if REPLAY_FROM in metadata:
        return Start(since_ms=instant_ms(metadata[REPLAY_FROM]), stale=stale)
    if request.replay_preset == pb.ReplayPreset.LATEST:
        return Start(LATEST)
    if request.replay_preset == pb.ReplayPreset.EARLIEST:
        return Start(EARLIEST)
    if request.replay_preset != pb.ReplayPreset.CUSTOM:
        raise CallRefused(
            "subscription.fetch.replay.preset.invalid", f"Replay preset {request.replay_preset} is not known"
        )
    if not request.replay_id and stale is Stale.ERROR:
        raise CallRefused(
            "subscription.fetch.replayid.validation.failed",
            "The replay_preset field in FetchRequest is set to ReplayPreset.CUSTOM, but no Replay ID value is set.",
        )
    try:
        replay_id = decode_replay_id(request.replay_id)
    except CallRefused:
        if stale is Stale.ERROR:
            raise
        return Start(EARLIEST if stale is Stale.EARLIEST else LATEST)
    if replay_id == -1:
        return Start(EARLIEST)
    if replay_id < 0 and stale is Stale.ERROR:
        raise InvalidReplayId(replay_id)
    return Start(replay_id if replay_id >= 0 else _NEVER, stale=stale)


def _publish_result(event: AvroEvent, outcome: Published | Refused) -> pb.PublishResult:
    if isinstance(outcome, Published):
        return pb.PublishResult(replay_id=encode_replay_id(outcome.replay_id), correlation_key=outcome.uuid)
    error = pb.Error(code=pb.ErrorCode.PUBLISH, msg=outcome.error.message)
    return pb.PublishResult(error=error, correlation_key=event.uuid)
