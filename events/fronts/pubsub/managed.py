"""``ManagedSubscribe`` of the Pub/Sub API: like Subscribe, but the server stores the committed position."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from events.access import User
from events.bus.bus import EventBus, Subscription
from events.errors import BusUnavailable, SubscriptionEnded
from events.fronts.pubsub.delivery import MAX_PENDING, Flow, add_events, decode_replay_id, deliver, encode_replay_id
from events.fronts.pubsub.errors import CallRefused
from events.limits.allowance import Allowance
from events.metrics import EventMetrics
from events.proto import pubsub_api_pb2 as pb
from events.subscriptions.managed import ManagedSubscription, ManagedSubscriptions
from events.subscriptions.shared import SharedSubscriptions, Worker
from tidegate.kit.errors import TidegateError

__all__ = ["ManagedStream"]


class ManagedStream:
    """One running call.

    ``enter`` raises when the call has to end, and returns the seconds until its session expires.
    """

    def __init__(
        self,
        subscriptions: ManagedSubscriptions,
        shared: SharedSubscriptions,
        subscription: ManagedSubscription,
        topic: str,
        bus: EventBus,
        metrics: EventMetrics,
        enter: Callable[[], float],
        user: User,
        allowance: Allowance,
    ) -> None:
        self._user = user
        self._shared = shared
        self._subscriptions, self._subscription, self._topic = subscriptions, subscription, topic
        self._bus, self._metrics, self._enter, self._allowance = bus, metrics, enter, allowance
        self._id = str(uuid.uuid4())
        self._delivered = -1
        self._checking: asyncio.Task[None] | None = None

    async def run(
        self, first: pb.ManagedFetchRequest, requests: AsyncIterator[pb.ManagedFetchRequest], keepalive_s: float
    ) -> AsyncGenerator[pb.ManagedFetchResponse, None]:
        """Hold the subscription and deliver events after its position; commits advance it."""
        if first.HasField("commit_replay_id_request"):
            raise CallRefused(
                "managed.subscription.fetch.request.commit.request.restricted",
                "The first request of a stream commits nothing: nothing was delivered on it yet",
            )
        flow = Flow(_requested(first))
        subscription = await self._open(flow)
        self._delivered = subscription.position - 1

        async def take(request: pb.ManagedFetchRequest) -> None:
            self._enter()
            self._check_name(request)
            number = _requested(request)
            if request.HasField("commit_replay_id_request"):
                await flow.answer(await self._commit(request.commit_replay_id_request, subscription))
            if number:
                flow.ask(number)

        with self._subscriptions.listening(self._subscription.name, lambda: self._changed(flow)):
            reading = asyncio.create_task(flow.read(requests, take))
            try:
                portions = deliver(
                    subscription, flow, keepalive_s=keepalive_s, check=self._enter, allowance=self._allowance
                )
                async with contextlib.aclosing(portions):
                    async for portion in portions:
                        self._delivered = max(self._delivered, portion.latest)
                        self._metrics.delivered.labels(self._topic, "pubsub").inc(len(portion.events))
                        response = pb.ManagedFetchResponse(
                            latest_replay_id=encode_replay_id(portion.latest),
                            rpc_id=self._id,
                            pending_num_requested=flow.pending,
                            commit_response=portion.answer,
                        )
                        add_events(response, portion.events)
                        yield response
            finally:
                reading.cancel()
                if isinstance(subscription, Worker):
                    await asyncio.shield(self._shared.leave(subscription))
                else:
                    subscription.close()
                    await asyncio.shield(self._give_up())
                await asyncio.gather(reading, return_exceptions=True)

    async def _open(self, flow: Flow) -> Subscription | Worker:
        if self._subscription.shared:
            await self._subscriptions.check(self._subscription.name, self._id)
            return await self._shared.join(self._subscription, self._topic, flow.wake, flow.fail)
        start = await self._subscriptions.start(self._subscription)
        try:
            await self._subscriptions.hold(self._subscription.name, self._id, self._user)
            return await self._bus.subscribe(self._topic, start, flow.wake)
        except BaseException:
            await asyncio.shield(self._give_up())
            raise

    async def _give_up(self) -> None:
        with contextlib.suppress(BusUnavailable):  # then only its user, or one with CustomizeApplication, can continue
            await self._subscriptions.give_up(self._subscription.name, self._id)

    def _changed(self, flow: Flow) -> None:
        """Check whether the subscription still belongs to this stream."""

        async def look() -> None:
            try:
                await self._subscriptions.check(self._subscription.name, self._id)
            except BusUnavailable:
                return  # the next commit finds out
            except TidegateError as error:
                flow.fail(error)

        self._checking = asyncio.create_task(look())

    def _check_name(self, request: pb.ManagedFetchRequest) -> None:
        """Requests after the first may omit the name, but may not change it."""
        current = self._subscription
        same_name = not request.developer_name or request.developer_name.lower() == current.name.lower()
        if not same_name or request.subscription_id not in ("", current.id, current.id[:15]):
            raise CallRefused(
                "managed.subscription.changed",
                f"The stream is for managed subscription {current.name}, and a request names another; open another stream",
            )

    async def _commit(
        self, request: pb.CommitReplayRequest, subscription: Subscription | Worker
    ) -> pb.CommitReplayResponse:
        """Store a position.

        An error is part of the answer, and the stream continues unless it has lost the subscription.
        """
        answer = pb.CommitReplayResponse(commit_request_id=request.commit_request_id, replay_id=request.replay_id)
        try:
            replay_id = decode_replay_id(request.replay_id)
            if not -1 <= replay_id <= self._delivered:
                raise CallRefused(
                    "managed.subscription.commit.invalid",
                    f"Replay ID {replay_id} was not delivered on this stream, whose latest is {self._delivered}",
                )
            if isinstance(subscription, Worker):
                await subscription.commit(replay_id)
            else:
                await self._subscriptions.commit(self._subscription.name, self._id, replay_id, subscription.identity)
        except SubscriptionEnded:
            raise
        except TidegateError as error:
            answer.error.CopyFrom(pb.Error(code=pb.ErrorCode.COMMIT, msg=error.message))
        answer.process_time = time.time_ns() // 1_000_000
        return answer


def _requested(request: pb.ManagedFetchRequest) -> int:
    """How many events a request adds. A request that adds none must commit."""
    if request.num_requested < 0:
        raise CallRefused(
            "managed.subscription.fetch.request.events.invalid",
            f"The number of requested events is {request.num_requested}; it must be 0 or greater",
        )
    if not request.num_requested and not request.HasField("commit_replay_id_request"):
        raise CallRefused(
            "managed.subscription.fetch.request.invalid",
            "The request asks for no events and commits none; do one of them",
        )
    return min(request.num_requested, MAX_PENDING)
