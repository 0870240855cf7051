"""Salesforce's errors, as the runtime has to treat them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import requests
from simple_salesforce.exceptions import (
    SalesforceAuthenticationFailed,
    SalesforceError,
    SalesforceExpiredSession,
    SalesforceGeneralError,
)

from connect.api import ConnectError, RetriableConnectError

__all__ = ["RETRIABLE_CODES", "ReplayIdGone", "SessionExpired", "border"]

RETRIABLE_CODES: Final = frozenset(
    {
        "LIMIT_EXCEEDED",
        "PLATFORM_EVENT_PUBLISHING_UNAVAILABLE",
        "QUERY_TIMEOUT",
        "REQUEST_LIMIT_EXCEEDED",
        "SERVER_UNAVAILABLE",
        "UNABLE_TO_LOCK_ROW",
    }
)
"""Error codes of single results and of whole requests after which the same request may succeed later."""


class SessionExpired(RetriableConnectError):
    """The login is over: log in again and repeat."""


class ReplayIdGone(ConnectError):
    """The org does not keep the event of a replay id any more, or never had it."""


@contextlib.contextmanager
def border(doing: str) -> Iterator[None]:
    """Turn what simple-salesforce and requests raise into what the runtime understands; ``doing`` begins the message."""
    try:
        yield
    except SalesforceExpiredSession as error:
        raise SessionExpired(f"{doing}: the session has expired") from error
    except SalesforceAuthenticationFailed as error:
        raise ConnectError(f"{doing}: Salesforce refused the login: {error.message}") from error
    except SalesforceError as error:
        code, words = _content(error)
        message = f"{doing}: Salesforce answered {error.status}: {words}"
        server_side = isinstance(error, SalesforceGeneralError) and error.status >= 500
        if code in RETRIABLE_CODES or server_side:
            raise RetriableConnectError(message) from error
        raise ConnectError(message) from error
    except (requests.ConnectionError, requests.Timeout) as error:
        raise RetriableConnectError(f"{doing}: Salesforce did not answer: {error}") from error


def _content(error: SalesforceError) -> tuple[str, str]:
    content = error.content
    if isinstance(content, list) and content and isinstance(content[0], dict):
        code = str(content[0].get("errorCode", ""))
        return code, f"{code}: {content[0].get('message', '')}"
    return "", str(content)[:500]
