"""Shared by the HTTP fronts: the session of a request, its JSON object, the API version in its path."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from starlette.requests import Request

from events.access import Access, Session
from events.access.scopes import API_SCOPES
from events.errors import BadRequest, InvalidSession, MalformedBody, UnknownVersion, WrongMediaType
from tidegate.kit.http import InvalidBody, json_body

__all__ = [
    "FIRST_VERSION",
    "LATEST_VERSION",
    "authorized",
    "base_url",
    "check_version",
    "instant_ms",
    "json_object",
    "session_of",
]

FIRST_VERSION: Final = 31
LATEST_VERSION: Final = 66


def base_url(request: Request) -> str:
    """Scheme, host and port that the client used, for its instance URL."""
    return str(request.base_url).rstrip("/")


def session_of(request: Request, access: Access, scopes: frozenset[str] = API_SCOPES) -> Session:
    """The session of a request, which needs one of the scopes. Raises InvalidSession."""
    return authorized(request.headers.get("authorization", ""), access, scopes)


def authorized(header: str, access: Access, scopes: frozenset[str] = API_SCOPES) -> Session:
    """The session of an Authorization header, ``Bearer`` or Salesforce's older ``OAuth``. Raises InvalidSession."""
    scheme, _, session_id = header.partition(" ")
    if scheme.lower() not in ("bearer", "oauth"):
        raise InvalidSession
    return access.session(session_id.strip(), scopes)


@lru_cache(200)
def check_version(text: str) -> str:
    """The version in a path, such as ``59.0``. Raises UnknownVersion for an unsupported one."""
    if not re.fullmatch(r"[0-9]{1,3}\.0", text) or not FIRST_VERSION <= int(text[:-2]) <= LATEST_VERSION:
        raise UnknownVersion(text[:20])
    return text


def instant_ms(value: object) -> int:
    """Milliseconds since 1970 from a whole number or ISO 8601 text (UTC without a zone). Raises BadRequest."""
    text = str(value).strip()
    if re.fullmatch(r"[0-9]{1,15}", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadRequest(
            f"The time {text[:50]!r} cannot be read; send ISO 8601 (2026-01-31T12:00:00Z) or milliseconds since 1970"
        ) from None


async def json_object(request: Request) -> dict[str, Any]:
    """The JSON object in the body; raises MalformedBody or WrongMediaType."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise WrongMediaType(f"Content type {kind[:100]!r} is not read here; send application/json")
    try:
        value = await json_body(request)
    except InvalidBody as error:
        raise MalformedBody(str(error)) from error
    if not isinstance(value, dict):
        raise MalformedBody(f"Unexpected {type(value).__name__} where a JSON object belongs at [line:1, column:1]")
    return value
