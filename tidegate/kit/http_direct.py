"""Requests answered without a task and an application's layers, for a kind of request of which ten thousand may wait at
once.

It replaces uvicorn's ASGI cycle, after its parser, pipelining and keep-alive. Only requests that the application's
``Direct`` accepts bypass the application; anything unexpected is passed back to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from uvicorn._types import HTTPScope
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

__all__ = ["MOST_BODY", "Direct", "DirectRequest", "WholeBody", "safely"]

logger = get_logger(__name__)

MOST_BODY: Final = 64 * 1024
"""The largest body for a direct answer, in bytes. The application reads or refuses larger ones."""


class Direct(Protocol):
    """Answers requests directly. Guards and middleware of the application do not run."""

    def takes(self, scope: HTTPScope) -> bool:
        """Whether a request is of the direct kind. Called for each request once its head is known."""
        ...

    def take(self, request: DirectRequest) -> None:
        """Answer a request, now or later, or pass it on now.

        If this raises, the error is logged and the request passed on.
        """
        ...


class DirectRequest:
    """A request with its whole body. ``lost`` is done when its connection is lost; an answer is then discarded."""

    __slots__ = ("_cycle", "_pass_on", "_reply", "lost")

    def __init__(
        self,
        cycle: RequestResponseCycle,
        lost: asyncio.Future[None],
        reply: Callable[[RequestResponseCycle, bytes], None],
        pass_on: Callable[[RequestResponseCycle], None],
    ) -> None:
        self._cycle, self.lost, self._reply, self._pass_on = cycle, lost, reply, pass_on

    @property
    def scope(self) -> HTTPScope:
        return self._cycle.scope

    @property
    def body(self) -> bytes:
        return bytes(self._cycle.body)

    @property
    def answered(self) -> bool:
        return self._cycle.response_complete

    def answer(self, body: bytes) -> None:
        """Answer with JSON and status 200; once, on the event loop."""
        if not self._cycle.disconnected:
            self._reply(self._cycle, body)

    def pass_on(self) -> None:
        """Pass it to the application."""
        self._pass_on(self._cycle)


class WholeBody:
    """Replaces the event with which uvicorn notifies a request's task of its body, because there is no task."""

    __slots__ = ("_cycle", "_whole")

    def __init__(self, cycle: RequestResponseCycle, whole: Callable[[RequestResponseCycle], None]) -> None:
        self._cycle: RequestResponseCycle | None = cycle
        self._whole = whole

    def set(self) -> None:
        cycle = self._cycle
        if cycle is None:
            return
        if cycle.disconnected or not cycle.more_body or len(cycle.body) > MOST_BODY:
            self._cycle = None  # which holds this object
            if not cycle.disconnected:
                self._whole(cycle)

    def clear(self) -> None:
        """Does nothing, because no task waits."""


def safely(direct: Direct, request: DirectRequest) -> None:
    """Pass a request to ``direct``, and on to the application if that raises."""
    try:
        direct.take(request)
    except Exception:
        logger.exception("a request could not be answered directly", path=request.scope["path"])
        if not request.answered:
            request.pass_on()
