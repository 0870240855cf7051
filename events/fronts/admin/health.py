"""``GET /health``, for probes, which have no session: whether the service has read its state and the log answers."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.errors import BusUnavailable
from events.store.state import EventState
from tidegate.kit.http import json_response

__all__ = ["HealthFront"]

_ANSWER_S: Final = 5.0


class HealthFront:
    """Concurrent requests share one query of the log, because anyone may send them."""

    def __init__(self, state: EventState) -> None:
        self._state = state
        self._checking: asyncio.Task[str] | None = None

    def routes(self) -> list[Route]:
        return [Route("/health", self.health, methods=["GET"])]

    async def health(self, _: Request) -> Response:
        """200 ``healthy``, or 503 ``unhealthy`` with the reason."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._failure(), name="events health")
        failure = await asyncio.shield(self._checking)
        if failure:
            return json_response({"status": "unhealthy", "message": failure}, 503)
        message = "The events service has read its state, and the log answers."
        return json_response({"status": "healthy", "message": message})

    async def _failure(self) -> str:
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._state.check()
        except (BusUnavailable, TimeoutError):  # the details are in the log, because anyone can read this answer
            return "The events service has not read its state, or its log does not answer."
        return ""
