"""Security of an HTTP server: basic authentication, CORS and headers of answers.

The keys are those shared by Confluent's registry (rest-utils) and Kafka Connect.
"""

from __future__ import annotations

import base64
import binascii
import csv
import re
import time
from collections.abc import Collection, Iterator, Mapping
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, Protocol

from tidegate.kit.config import config, key
from tidegate.kit.errors import Problem, UsageError

if TYPE_CHECKING:  # processes that only read these keys, such as a task host, don't load the server
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tidegate.kit.http import Middleware
    from tidegate.kit.http_sites import SiteGuard
    from tidegate.kit.passwords import LoggedIn

__all__ = ["BasicAuth", "BrowserKeys", "Passwords", "Unauthorized", "basic_credentials", "user_of"]

_JETTY_METHODS: Final = ("GET", "POST", "HEAD")
_JETTY_HEADERS: Final = ("X-Requested-With", "Content-Type", "Accept", "Origin")
_ACTIONS: Final = ("set", "add", "setDate", "addDate")
_USER: Final = "tidegate.user"


class Unauthorized(UsageError):
    """The request has no user, or a wrong password."""

    http_status = 401

    def __init__(self, message: str, realm: str | None) -> None:
        super().__init__(message)
        self.http_headers: Mapping[str, str] = (
            {} if realm is None else {"WWW-Authenticate": f'Basic realm="{realm}"' if realm else "Basic"}
        )


class Passwords(Protocol):
    """Verifies users. Called for every request, so slow work is cached or done in a thread."""

    async def login(self, name: str, password: str) -> LoggedIn | None:
        """The user and its roles; None where there is no such user or the password is another."""
        ...


class BasicAuth:
    """A guard (``tidegate.kit.http.Guard``) that admits users with their passwords (RFC 7617); ``user_of`` returns the
    user.

    A user needs one of ``roles``; ``*`` admits any user. ``skip`` has paths, or patterns that end in ``*``, that need
    no login; OPTIONS needs none unless ``skip_options`` is False. Without ``realm`` answers do not request a password,
    as in Kafka Connect.
    """

    def __init__(
        self,
        users: Passwords,
        *,
        realm: str | None = "",
        roles: Collection[str] = ("*",),
        skip: Collection[str] = (),
        skip_options: bool = True,
        message: str = "Unauthorized",
    ) -> None:
        self._users, self._realm, self._message = users, realm, message
        self._roles = None if "*" in roles else frozenset(roles)
        self._skip = frozenset(path for path in skip if not path.endswith("*"))
        self._skip_below = tuple(path.removesuffix("*") for path in skip if path.endswith("*"))
        self._skip_options = skip_options

    async def __call__(self, request: Request) -> None:
        path = request.scope["path"]
        if request.method == "OPTIONS" and self._skip_options:
            return
        if path in self._skip or (self._skip_below and path.startswith(self._skip_below)):
            return
        credentials = basic_credentials(request.headers.get("authorization", ""))
        user = None if credentials is None else await self._users.login(*credentials)
        if user is None or (self._roles is not None and not user.roles & self._roles):
            raise Unauthorized(self._message, self._realm)
        request.scope[_USER] = user.name


def user_of(request: Request) -> str | None:
    """The user admitted by BasicAuth; None without authentication."""
    user: str | None = request.scope.get(_USER)
    return user


def basic_credentials(header: str) -> tuple[str, str] | None:
    """User and password of an Authorization header (RFC 7617); None if it has none."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(token.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return (name, password) if colon else None


@config
class BrowserKeys:
    """Keys for browsers: the pages that may send requests (CORS), and additional headers of every answer."""

    allow_origin: str = key(
        "access.control.allow.origin",
        default="",
        importance="low",
        doc="Origins whose pages may ask, separated by commas; * in a name stands for any characters, alone for every "
        "origin. Without it no page of another origin may.",
    )
    allow_methods: str = key(
        "access.control.allow.methods",
        default="",
        importance="low",
        doc="Methods such pages may use, separated by commas; GET, POST and HEAD without it.",
    )
    allow_headers: str = key(
        "access.control.allow.headers",
        default="",
        importance="low",
        doc="Request headers such pages may send; X-Requested-With, Content-Type, Accept and Origin without it.",
    )
    expose_headers: str = key(
        "access.control.expose.headers",
        default="",
        importance="low",
        doc="Headers of answers that such pages may read.",
    )
    response_headers: str = key(
        "response.http.headers.config",
        default="",
        importance="low",
        doc='Headers for every answer: "add|set|addDate|setDate NAME: VALUE", each in double quotes where its value has '
        "commas, separated by commas.",
    )
    allowed_hosts: list[str] = key(
        "http.allowed.hosts",
        default=[],
        importance="low",
        doc="Host names by which this server is reached through a loopback address, such as those of a proxy on the same machine. "
        "Others than localhost, addresses and names without dots are refused there, so that no web site can let its own name point here.",
    )

    def problems(self) -> Iterator[Problem]:
        try:
            list(_header_rules(self.response_headers))
        except ValueError as error:
            yield Problem(
                "response.http.headers.config",
                f"Invalid value {self.response_headers} for configuration response.http.headers.config: {error}",
            )

    def sites(self) -> SiteGuard:
        """The guard for web pages' requests, for ``tidegate.kit.http.face``."""
        from tidegate.kit.http_sites import SiteGuard

        return SiteGuard(origins=_words(self.allow_origin), hosts=self.allowed_hosts)

    def middleware(self) -> list[Middleware]:
        """For ``tidegate.kit.http.face``; empty without any key."""
        made: list[Middleware] = []
        if rules := list(_header_rules(self.response_headers)):
            made.append(lambda app: _Headers(app, rules))
        if origins := _words(self.allow_origin):
            made.append(lambda app: _cors(app, self, origins))
        return made


def _cors(app: ASGIApp, keys: BrowserKeys, origins: list[str]) -> ASGIApp:
    from starlette.middleware.cors import CORSMiddleware

    patterns = [".*" if origin == "*" else re.escape(origin).replace(r"\*", ".*") for origin in origins]
    return CORSMiddleware(
        app,
        allow_origin_regex="|".join(f"(?:{pattern})" for pattern in patterns),
        allow_methods=_words(keys.allow_methods) or _JETTY_METHODS,
        allow_headers=_words(keys.allow_headers) or _JETTY_HEADERS,
        expose_headers=_words(keys.expose_headers),
        allow_credentials=True,
        max_age=1800,
    )


class _Headers:
    """Adds headers to every answer, like Jetty's ``HeaderFilter``."""

    def __init__(self, app: ASGIApp, rules: list[tuple[str, bytes, str]]) -> None:
        self._app, self._rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                for action, name, value in self._rules:
                    if action.startswith("set"):
                        headers = [header for header in headers if header[0].lower() != name]
                    headers.append((name, _value(action, value)))
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


def _value(action: str, value: str) -> bytes:
    """The value of a header. That of a date is milliseconds from now."""
    if action.endswith("Date"):
        return formatdate(time.time() + int(value) / 1000, usegmt=True).encode()
    return value.encode("latin-1")


def _header_rules(text: str) -> Iterator[tuple[str, bytes, str]]:
    """(action, name in lower case, value) of each rule. Raises ValueError."""
    for rule in next(csv.reader([text.replace("\n", " ")], skipinitialspace=True), []):
        rule = rule.strip()
        action, _, header = rule.partition(" ")
        name, colon, value = header.partition(":")
        name, value = name.strip(), value.strip()
        if action not in _ACTIONS:
            raise ValueError(f"{action!r} is none of {', '.join(_ACTIONS)}")
        if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
            raise ValueError(f"{header!r} is not of the form NAME: VALUE")
        if action.endswith("Date") and not re.fullmatch(r"-?\d{1,15}", value):
            raise ValueError(f"{value!r} is no number of milliseconds")
        if not value.isprintable() or not value.isascii():
            raise ValueError(f"the value of {name} cannot stand in a header")
        yield action, name.lower().encode(), value


def _words(text: str) -> list[str]:
    return [word for word in (part.strip() for part in text.split(",")) if word]
