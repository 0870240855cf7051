"""The daily allowance of REST and SOAP requests: counted, reported in ``Sforce-Limit-Info``, refused when it is used
up.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from events.limits.allowance import Allowance
from events.limits.errors import RequestLimitExceeded

__all__ = ["ApiUsage"]

_REST = "/services/data/v"
_SOAP = "/services/Soap/"


class ApiUsage:
    """``check`` is a guard and ``around`` a middleware of ``tidegate.kit.http``.

    Requests without a session are not counted.
    """

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance

    async def check(self, request: Request) -> None:
        """Raises RequestLimitExceeded."""
        if request.scope["path"].startswith((_REST, _SOAP)) and not self._allowance.left:
            raise RequestLimitExceeded

    def around(self, app: ASGIApp) -> ASGIApp:
        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            path = scope.get("path", "")
            if scope["type"] != "http" or not path.startswith((_REST, _SOAP)):
                await app(scope, receive, send)
                return

            async def counted_send(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] != 401:
                    if self._allowance.left:
                        self._allowance.add(1)
                    if path.startswith(_REST):
                        usage = f"api-usage={self._allowance.used}/{self._allowance.shown_most}"
                        message["headers"] = [*message.get("headers", ()), (b"sforce-limit-info", usage.encode())]
                await send(message)

            await app(scope, receive, counted_send)

        return counted
