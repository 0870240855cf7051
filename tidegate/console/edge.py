"""Login, token and headers of every request, and errors as pages."""

from __future__ import annotations

import hmac
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidegate.clients.credentials import Credentials
from tidegate.console.console import SESSION, Console, Visit, form_of
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.http_security import Unauthorized, basic_credentials

__all__ = ["Headers", "SessionGuard", "cookie_name", "error_page"]

_PUBLIC: Final = ("/static/", "/login")
_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: Final = {
    b"content-security-policy": b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
_STATIC: Final = b"public, max-age=31536000, immutable"


class LoginNeeded(TidegateError):
    """Nobody has logged in on this browser."""

    http_status = 401


class TokenWrong(UsageError):
    """A change without the token of its page."""

    http_status = 403


def cookie_name(port: int) -> str:
    """Cookies know no ports, and several consoles may run on one host."""
    return f"tidegate-console-{port}"


class SessionGuard:
    """A guard (``tidegate.kit.http.Guard``) that finds the session of a request, asks for a login where users log in, and
    accepts changes only with the session's token.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    async def __call__(self, request: Request) -> None:
        """Raises LoginNeeded, Unauthorized, TokenWrong."""
        console, path = self._console, request.scope["path"]
        session = console.sessions.find(request.cookies.get(_cookie_of(request), ""))
        request.scope[SESSION] = session
        if console.config.asks_login and not path.startswith(_PUBLIC):
            if path == "/metrics":
                await self._scrape(request)
            elif session.credentials is None or not await self.knows(session.credentials):
                console.sessions.log_out(session)
                raise LoginNeeded("Log in first")
        if request.method not in _READS:
            sent = request.headers.get("x-csrf-token") or (await form_of(request)).get("csrf", "")
            if not hmac.compare_digest(sent.encode(), session.token.encode()):
                raise TokenWrong(
                    "This page is older than your login or the console: load it again, then repeat the change"
                )

    async def knows(self, credentials: Credentials) -> bool:
        """Whether a user still has this password. Without a file of users the faces say so themselves."""
        users = self._console.users
        return users is None or await users.login(credentials.user, credentials.password) is not None

    async def _scrape(self, request: Request) -> None:
        """Metrics are for programs, which log in with each request."""
        login = basic_credentials(request.headers.get("authorization", ""))
        if login is None or not await self.knows(Credentials(*login)) or self._console.users is None:
            raise Unauthorized("Unauthorized", "console")


def _cookie_of(request: Request) -> str:
    server = request.scope.get("server") or ("", 0)
    return cookie_name(server[1])


class Headers:
    """Adds the headers by which browsers restrict the pages, and the cookie of a new session."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *_HEADERS.items()]
                is_asset = scope["path"].startswith("/static/") and message["status"] == 200
                headers.append((b"cache-control", _STATIC if is_asset else b"no-store"))
                if not is_asset and (cookie := _cookie(scope)) is not None:
                    headers.append((b"set-cookie", cookie))
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


def _cookie(scope: Scope) -> bytes | None:
    session = scope.get(SESSION)
    if session is None:
        return None
    request = Request(scope)
    if request.cookies.get(_cookie_of(request)) == session.id:
        return None
    secure = "; Secure" if scope["scheme"] == "https" else ""
    return f"{_cookie_of(request)}={session.id}; Path=/; HttpOnly; SameSite=Strict{secure}".encode()


def error_page(console: Console, request: Request, error: TidegateError | HTTPException) -> Response:
    """An error as a page, or as a part of one for htmx. Without a login it leads to the login page."""
    partial = "hx-request" in request.headers
    if isinstance(error, LoginNeeded):
        shown = urlsplit(request.headers.get("hx-current-url", "") if partial else str(request.url))
        target = quote(shown.path + (f"?{shown.query}" if shown.query else ""), safe="")
        login = f"/login?next={target}" if partial or request.method in _READS else "/login"
        return Response(headers={"HX-Redirect": login}) if partial else RedirectResponse(login, 303)
    status, words = _said(request, error)
    session = request.scope.get(SESSION)
    if session is None:  # a request that a guard before ours has refused
        return Response(words, status, media_type="text/plain")
    visit = Visit(console, request, session)
    return visit.page("error_part.html" if partial else "error.html", status, message=words, code=status)


def _said(request: Request, error: TidegateError | HTTPException) -> tuple[int, str]:
    if isinstance(error, HTTPException):
        words: Any = {404: f"There is no page {request.scope['path']}", 405: f"{request.method} is not for this page"}
        return error.status_code, str(words.get(error.status_code, error.detail))
    return error.http_status, error.message
