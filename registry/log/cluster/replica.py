"""A registry in a cluster: forwards what it can't decide to the writer, and reads the log before it denies anything."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from registry.errors import RegistryError, StoreTimeout
from registry.log.cluster.election import Outcome
from registry.log.cluster.forwarding import Answer, Forwarder, NotAnswered, NotSent
from registry.log.errors import ForwardingFailed, NotCaughtUp, UnknownLeader
from registry.log.store import Store
from tidegate.kit.logs import get_logger

__all__ = ["Replica"]

logger = get_logger(__name__)

_FORWARDED: Final = b"x-forward"
_READING: Final = frozenset({"GET", "HEAD"})
_REPEATABLE: Final = _READING | {"PUT", "POST"}
"""Requests that can be repeated safely: registering and looking up are POST here."""
_PAUSE_S: Final = 0.1


class Replica:
    """ASGI middleware around the routes. On the writer, requests pass through.

    On any other registry, the routes answer first, from the part of the log that was read. After a 404 the request is
    repeated once the log has been read to its end, so that acknowledged writes of another registry are never denied; if
    that is impossible, the answer is 503. A write (the routes answer 50004) is forwarded to the writer unchanged, with
    Confluent's ``X-Forward: true``. A request with that header is not forwarded again, so that two registries never
    forward a request back and forth. While there is no known or reachable writer, a write waits up to ``timeout_ms``
    for the next one; then it is answered 50004 or 50003. So is a write here that waits for the log, and for others before it, longer
    than that in all (50002): it goes on, and may be in the log later.
    """

    def __init__(self, app: ASGIApp, outcome: Outcome, store: Store, forwarder: Forwarder, *, timeout_ms: int) -> None:
        self._app, self._outcome, self._store, self._forwarder = app, outcome, store, forwarder
        self._timeout_s = timeout_ms / 1000
        self._late: set[asyncio.Task[Answer]] = set()
        """Writes that go on although they were answered."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or (self._store.authoritative and scope["method"] in _READING):
            await self._app(scope, receive, send)
            return
        answer = await self._answer(scope, await _body(receive))
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Scope, body: bytes) -> Answer:
        deadline = time.monotonic() + self._timeout_s
        forwarded = any(name == _FORWARDED for name, _ in scope["headers"])
        caught_up = False
        while True:
            answer = await self._answer_in_time(scope, body, deadline)
            code = _error_code(answer)
            if 40400 < code < 40500 and not caught_up:
                caught_up = True
                try:
                    if not await self._store.catch_up():
                        return answer
                except NotCaughtUp as error:
                    return _refusal(error)
            elif code == UnknownLeader.error_code and not forwarded:
                if time.monotonic() > deadline:
                    return answer
                other_answer = await self._elsewhere(scope, body, deadline)
                if other_answer is not None:
                    return other_answer
            else:
                return answer

    async def _answer_in_time(self, scope: Scope, body: bytes, deadline: float) -> Answer:
        """The answer of the routes. A comparison of schemas may take as long as it takes; it waits for nobody."""
        if scope["method"] in _READING or scope["path"].startswith("/compatibility/"):
            return await self._local_answer(scope, body)
        answering = asyncio.create_task(self._local_answer(scope, body))
        done, _ = await asyncio.wait({answering}, timeout=max(0.0, deadline - time.monotonic()))
        if done:
            return answering.result()
        self._late.add(answering)
        answering.add_done_callback(self._end_late)
        return _refusal(
            StoreTimeout(
                f"No answer within {self._timeout_s * 1000:.0f} ms: the write may be in the schema log later; try again"
            )
        )

    def _end_late(self, answering: asyncio.Task[Answer]) -> None:
        self._late.discard(answering)
        if not answering.cancelled() and (error := answering.exception()) is not None:
            logger.warning("a write that was answered late failed", error=repr(error))

    async def _local_answer(self, scope: Scope, body: bytes) -> Answer:
        """The answer of the routes, which may be asked again."""
        messages: list[Message] = []

        async def replayed() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def kept(message: Message) -> None:
            messages.append(message)

        # Routers modify the scope.
        await self._app({**scope, "state": dict(scope.get("state", {}))}, replayed, kept)
        return Answer(
            messages[0]["status"],
            list(messages[0].get("headers", ())),
            b"".join(message.get("body", b"") for message in messages[1:]),
        )

    async def _elsewhere(self, scope: Scope, body: bytes, deadline: float) -> Answer | None:
        """The answer of the writer; None if this registry has become the writer."""
        method, why = scope["method"], "no registry is known to write"
        while True:
            leader = self._outcome.leader
            if self._outcome.is_me:
                await asyncio.sleep(_PAUSE_S)  # elected, but not yet confirmed, or just replaced
                return None
            if leader is not None:
                try:
                    answer = await self._ask(leader.url, scope, body, deadline)
                except NotSent as error:
                    why = str(error)
                except NotAnswered as error:
                    why = str(error)
                    if method not in _REPEATABLE:
                        break
                else:
                    if answer.status < 400:
                        await self._follow(deadline)
                    if _error_code(answer) != UnknownLeader.error_code:
                        return answer
                    why = f"{leader.url} does not write any more"
            if time.monotonic() + _PAUSE_S > deadline:
                if leader is None:
                    return _refusal(UnknownLeader())
                break
            await self._outcome.wait_changed(_PAUSE_S if leader is not None else deadline - time.monotonic())
        return _refusal(ForwardingFailed(f"Error while forwarding the request to the leader: {why}"))

    async def _ask(self, url: str, scope: Scope, body: bytes, deadline: float) -> Answer:
        """The leader's answer. Given up if another one is elected meanwhile."""
        asking = asyncio.ensure_future(self._forwarder.ask(url, scope, body, deadline - time.monotonic()))
        changed = asyncio.ensure_future(self._outcome.changed.wait())
        try:
            await asyncio.wait({asking, changed}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise NotAnswered(f"{url} did not answer before another registry was elected")
            return asking.result()
        finally:
            changed.cancel()
            asking.cancel()

    async def _follow(self, deadline: float) -> None:
        """Read the leader's last write, so that the client that sent it through this registry can read it here."""
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await self._store.catch_up()
        except (NotCaughtUp, TimeoutError) as error:
            reason = str(error) or "no time is left to read the log"
            logger.warning("a write was acknowledged that cannot be read here yet", reason=reason)


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            break
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    return b"".join(parts)


def _error_code(answer: Answer) -> int:
    if answer.status < 400:
        return 0
    try:
        value: Any = json.loads(answer.body)
        return int(value["error_code"])
    except (ValueError, KeyError, TypeError):
        return 0


def _refusal(error: RegistryError) -> Answer:
    body = json.dumps({"error_code": error.error_code, "message": error.message}, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/vnd.schemaregistry.v1+json"), (b"content-length", b"%d" % len(body))]
    return Answer(error.http_status, headers, body)
