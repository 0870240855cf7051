"""Salesforce's Streaming API: Bayeux 1.0 over long polling, with the replay extension."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Session
from events.access.errors import CannotRead
from events.bus.bus import EventBus, Stale, Start
from events.channels.channels import Channels
from events.config import EventsConfig
from events.errors import (
    EventsError,
    InvalidReplayId,
    InvalidSession,
    NotThere,
    UnknownVersion,
)
from events.fronts.cometd.bayeux import (
    Message,
    Refusal,
    channels_of,
    messages_of,
    refused,
    reply_to,
    start_of,
    unauthenticated,
)
from events.fronts.cometd.client import CometdClient
from events.fronts.cometd.connect import Connect
from events.fronts.cometd.delivery import Deliveries
from events.fronts.cometd.gathering import Gathering
from events.fronts.requests import FIRST_VERSION, LATEST_VERSION, authorized, check_version
from events.limits.errors import DeliveryLimitExceeded
from events.limits.limits import Limits
from events.metrics import EventMetrics
from events.store.catalog import Catalog
from tidegate.kit.http import connection_lost, json_bytes, json_response
from tidegate.kit.http_direct import DirectRequest

__all__ = ["CometdFront"]


MAX_SUBSCRIPTIONS: Final = 100
_Done = Callable[[list[bytes], Message], None]
_CALLER: Final = "tidegate.cometd_caller"
_TOO_MANY_DELIVERED: Final = "403::Organization total events daily limit exceeded"


class CometdFront:
    """``/cometd/NN.0``. ``start`` begins to remove abandoned sessions; ``stop`` ends all sessions."""

    def __init__(
        self,
        catalog: Catalog,
        channels: Channels,
        bus: EventBus,
        access: Access,
        config: EventsConfig,
        metrics: EventMetrics,
        limits: Limits,
    ) -> None:
        self._channels, self._allowance = channels, limits.delivered
        self._bus, self._access, self._config, self._metrics = bus, access, config, metrics
        self._stale = Stale(config.stale_replay)
        self._clients: dict[str, CometdClient] = {}
        self._users: Counter[str] = Counter()
        """The number of sessions per user."""
        self._gathering = Gathering(lambda: len(self._clients))
        self._deliveries = Deliveries(catalog, metrics, limits.delivered, self._forget)
        self._sweeping: asyncio.Task[None] | None = None

    @property
    def sessions(self) -> int:
        return len(self._clients)

    def routes(self) -> list[Route]:
        return [
            Route(path, self.handle, methods=["POST"])
            for path in ("/cometd", "/cometd/", "/cometd/{version}", "/cometd/{version}/{rest:path}")
        ]

    def start(self) -> None:
        self._sweeping = asyncio.create_task(self._sweep(), name="cometd sweep")

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeping
        for client in list(self._clients.values()):
            self._forget(client)

    async def handle(self, request: Request) -> Response:
        """Answer a body of one or more messages. A connect among them is answered last, when there are events."""
        messages = messages_of(await request.body())
        if messages is None:
            refusal = {"successful": False, "error": "400::The body must be a Bayeux message or a list of up to 100"}
            return json_response([refusal], 400)
        caller = _caller(request.scope)
        replies: list[Message] = []
        connect: Message | None = None
        cookie = ""
        for message in messages:
            if message.get("channel") == "/meta/connect" and connect is None:
                connect = message
                continue
            reply = await self._answer(caller, message)
            cookie = reply["clientId"] if reply.get("channel") == "/meta/handshake" and reply["successful"] else cookie
            replies.append(reply)
        answers: list[bytes] = []
        if connect is not None:
            answer: asyncio.Future[tuple[list[bytes], Message]] = asyncio.get_running_loop().create_future()

            def done(events: list[bytes], reply: Message) -> None:
                if not answer.done():
                    answer.set_result((events, reply))

            self._connect(caller, connect, connection_lost(request), done, alone=len(messages) == 1)
            answers, reply = await answer
            replies.insert(0, reply)
        response = Response(_body_of(answers, replies), media_type="application/json")
        if cookie:
            response.set_cookie("BAYEUX_BROWSER", cookie, httponly=True, secure=request.url.scheme == "https")
        return response

    async def _answer(self, caller: _Caller, message: Message) -> Message:
        reply = reply_to(message)
        try:
            reply |= await self._do(message, self._enter(caller))
        except Refusal as refusal:
            reply |= refused(refusal)
        except InvalidSession:
            reply |= unauthenticated(message, caller.authorization)
        except InvalidReplayId as error:
            reply |= refused(Refusal(f"400::{error}"))
        except CannotRead:
            reply |= refused(Refusal("403::Restricted channel"))
        except EventsError as error:
            reply |= refused(Refusal(f"{error.http_status}::{error}"))
        return reply

    async def _do(self, message: Message, session: Session) -> Message:
        channel = message.get("channel")
        if channel == "/meta/handshake":
            return self._handshake(message, session)
        client = self._client(message, session)
        if channel == "/meta/subscribe":
            return await self._subscribe(client, message, session)
        if channel == "/meta/unsubscribe":
            return client.unsubscribe(message)
        if channel == "/meta/disconnect":
            self._forget(client)
            return {"successful": True}
        if channel == "/meta/connect":
            raise Refusal("400::One request can hold one /meta/connect")
        raise Refusal("403::Publishing over CometD is not offered; publish over REST or the Pub/Sub API")

    def _enter(self, caller: _Caller) -> Session:
        """Raises InvalidSession, or the refusal of an API version."""
        try:
            check_version(caller.version)
        except UnknownVersion as error:
            form = f"URI format: '/cometd/{LATEST_VERSION}.0'"
            said = "API version in the URI is mandatory."
            if caller.version[:1].isdigit():
                said = f"Unsupported API version. Only API versions '{FIRST_VERSION}.0' and later are supported."
            raise Refusal(f"400::{said} {form}", "none") from error
        return authorized(caller.authorization, self._access)

    def _handshake(self, message: Message, session: Session) -> Message:
        offered = message.get("supportedConnectionTypes")
        if not isinstance(offered, list) or "long-polling" not in offered:
            asked = ", ".join(map(str, offered)) if isinstance(offered, list) else ""
            raise Refusal(f"400::Invalid connection type {{{asked[:100]}}}", "none")
        if len(self._clients) >= self._config.max_sessions:
            raise Refusal("403::Organization concurrent user limit exceeded", "none")
        if self._users[session.user_id] >= self._config.max_user_sessions:
            most = self._config.max_user_sessions
            raise Refusal(
                f"403::User concurrent session limit exceeded: {most}, as cometd.max.sessions.per.user says", "none"
            )
        client = CometdClient(_now(), session.user_id, self._gathering)
        self._clients[client.id] = client
        self._users[session.user_id] += 1
        self._metrics.sessions.set(len(self._clients))
        return {
            "successful": True,
            "clientId": client.id,
            "version": "1.0",
            "minimumVersion": "1.0",
            "supportedConnectionTypes": ["long-polling"],
            "ext": {"replay": True, "payload.format": True},
            "advice": self._advice(),
        }

    def _advice(self) -> Message:
        return {
            "reconnect": "retry",
            "interval": 0,
            "timeout": self._config.connect_timeout_ms,
            "maxInterval": self._config.max_interval_ms,
        }

    def _client(self, message: Message, session: Session) -> CometdClient:
        client_id = message.get("clientId")
        client = self._clients.get(client_id) if isinstance(client_id, str) else None
        if client is None:
            raise Refusal("403::Unknown client", "handshake")
        if client.user_id != session.user_id:
            raise Refusal("400::Authenticated user id does not match the session's user id", "handshake")
        client.last_seen = _now()
        return client

    async def _subscribe(self, client: CometdClient, message: Message, session: Session) -> Message:
        asked = channels_of(message)
        if len(client.subscriptions) + len(asked) > MAX_SUBSCRIPTIONS:
            raise Refusal(f"403::A session can subscribe to {MAX_SUBSCRIPTIONS} channels")
        if not self._allowance.left:
            raise Refusal(_TOO_MANY_DELIVERED)
        for channel in asked:
            await self._subscribe_to(client, channel, message, session)
        return {"successful": True}

    async def _subscribe_to(self, client: CometdClient, channel: str, message: Message, session: Session) -> None:
        if not channel.startswith("/"):
            raise Refusal("400::Channel subscriptions must start with a leading '/'")
        try:
            subscribable = await self._channels.subscribable(channel)
        except NotThere as error:
            raise Refusal(
                f"400::The channel you requested to subscribe to does not exist {{{channel[:100]}}}"
            ) from error
        session.user.require_read(subscribable.topic)
        subscription = client.subscriptions.get(channel)
        start = start_of(message, channel, subscribable.stale_replay or self._stale)
        if subscription is not None and start is None:
            return
        made = await self._bus.subscribe(subscribable.topic, start or Start(), client.wake)
        if client.ended:
            made.close()
            raise Refusal("403::Unknown client", "handshake")
        if subscription is not None:
            subscription.close()
        client.subscriptions[channel] = made
        client.wake.now()

    def takes(self, scope: Mapping[str, Any]) -> bool:
        """Implements ``tidegate.kit.http_direct``."""
        path: str = scope["path"]
        return scope["method"] == "POST" and path.startswith("/cometd/")

    def take(self, request: DirectRequest) -> None:
        """Answer a single connect, which is the usual request of a subscribed client; pass on anything else."""
        messages = messages_of(request.body)
        if messages is None or len(messages) != 1 or messages[0].get("channel") != "/meta/connect":
            request.pass_on()
            return

        def done(events: list[bytes], reply: Message) -> None:
            request.answer(_body_of(events, [reply]))

        self._connect(_caller(request.scope), messages[0], request.lost, done, alone=True)

    def _connect(
        self, caller: _Caller, message: Message, lost: asyncio.Future[None], done: _Done, *, alone: bool
    ) -> None:
        """Call ``done`` with available events and the reply. Waits for an event unless the client says otherwise."""
        reply = reply_to(message)
        try:
            session = self._enter(caller)
            client = self._client(message, session)
            if message.get("connectionType") != "long-polling":
                raise Refusal(f"400::Invalid connection type {{{str(message.get('connectionType'))[:100]}}}")
            if client.reader is not session.user:
                if any(not session.user.may_read(subscription.topic) for subscription in client.subscriptions.values()):
                    self._forget(client)  # it will handshake and subscribe again, and then learn what it may not read
                    raise Refusal("403::Unknown client", "handshake")
                client.reader = session.user
            wait_s = min(self._wait_s(client, message, alone), self._left_s(session))
        except InvalidSession:
            done([], reply | unauthenticated(message, caller.authorization))
            return
        except Refusal as refusal:
            done([], reply | refused(refusal))
            return

        def ended(events: list[bytes], refusal: DeliveryLimitExceeded | None) -> None:
            client.last_seen = client.answered_at = _now()
            if refusal is not None:
                done([], reply | refused(Refusal(_TOO_MANY_DELIVERED, "none")))
                return
            if not events:
                try:
                    self._enter(caller)  # the session may have ended meanwhile
                except InvalidSession:
                    done([], reply | unauthenticated(message, caller.authorization))
                    return
            client.connected = True
            advice = {"reconnect": client.reconnect, "interval": 0} if client.ended else self._advice()
            done(events, reply | {"successful": True, "advice": advice})

        connect = Connect(client, self._deliveries, lost, ended)
        connect.start(wait_s, gather=wait_s > 0 and self._comes_too_soon(client))

    def _comes_too_soon(self, client: CometdClient) -> bool:
        """Whether it was answered a moment ago, so that with many clients its available events wait for more."""
        soon = _now() - client.answered_at < self._gathering.pause_s
        return soon and any(subscription.available for subscription in client.subscriptions.values())

    def _wait_s(self, client: CometdClient, message: Message, alone: bool) -> float:
        advice = message.get("advice")
        asked = advice.get("timeout") if isinstance(advice, dict) else None
        if not client.connected or not alone:
            return 0
        if isinstance(asked, int) and not isinstance(asked, bool) and 0 <= asked <= self._config.connect_timeout_ms:
            return asked / 1000
        return self._config.connect_timeout_ms / 1000

    def _left_s(self, session: Session) -> float:
        return max(0.0, (session.expires_ms - self._access.clock_ms()) / 1000)

    def _forget(self, client: CometdClient, reconnect: str = "none") -> None:
        if self._clients.pop(client.id, None) is not None:
            self._users[client.user_id] -= 1
            if not self._users[client.user_id]:
                del self._users[client.user_id]
        client.close(reconnect)
        self._metrics.sessions.set(len(self._clients))

    async def _sweep(self) -> None:
        longest = self._config.max_interval_ms / 1000
        while True:
            await asyncio.sleep(min(longest / 4, 5))
            for client in list(self._clients.values()):
                if client.connect is None and _now() - client.last_seen > longest:
                    self._forget(client)


class _Caller(NamedTuple):
    """The caller, according to the request."""

    version: str
    """The API version from the path."""
    authorization: str


def _caller(scope: Any) -> _Caller:
    """Cached in the scope, which requests with the same head share."""
    caller: _Caller | None = scope.get(_CALLER)
    if caller is None:
        path: str = scope["path"]
        _, _, version, *_ = (*path.split("/", 3), "")
        authorization = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        caller = scope[_CALLER] = _Caller(version, authorization.decode("latin-1"))
    return caller


def _body_of(events: Sequence[bytes], replies: Iterable[Message]) -> bytes:
    return b"[%b]" % b",".join([*events, *map(json_bytes, replies)])


def _now() -> float:
    return asyncio.get_running_loop().time()
