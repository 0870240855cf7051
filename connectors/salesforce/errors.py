"""Converts Salesforce's errors to those of the runtime."""

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

__all__ = ["RETRIABLE_CODES", "ReplayIdGone", "SessionExpired", "is_passing", "translating"]

RETRIABLE_CODES: Final = frozenset(
    {
        "LIMIT_EXCEEDED",
        "LOGIN_RATE_EXCEEDED",
        "PLATFORM_EVENT_PUBLISHING_UNAVAILABLE",
        "QUERY_TIMEOUT",
        "REQUEST_LIMIT_EXCEEDED",
        "SERVER_UNAVAILABLE",
        "UNABLE_TO_LOCK_ROW",
    }
)
"""Error codes of single results, whole requests and logins after which the same request may succeed later."""
_TOO_MANY: Final = 429
_NEVER_SENT: Final = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.exceptions.InvalidHeader,
    requests.exceptions.TooManyRedirects,
)
"""Errors in the request itself.

All other errors of requests mean that the response is missing or incomplete, including a connection that was cut off
within a body (ChunkedEncodingError) and a body that is not JSON.
"""


class SessionExpired(RetriableConnectError):
    """The session has expired: log in again and repeat."""


class ReplayIdGone(ConnectError):
    """The org no longer keeps the event with a replay id, or never had it."""


@contextlib.contextmanager
def translating(doing: str) -> Iterator[None]:
    """Convert the errors of simple-salesforce and requests; ``doing`` begins the message."""
    try:
        yield
    except SalesforceExpiredSession as error:
        raise SessionExpired(f"{doing}: the session has expired") from error
    except SalesforceAuthenticationFailed as error:
        message = f"{doing}: Salesforce refused the login: {str(error)[:500]}"
        # the code of a response that is not SOAP is its HTTP status
        if error.code in RETRIABLE_CODES or (isinstance(error.code, int) and is_passing(error.code)):
            raise RetriableConnectError(message) from error
        raise ConnectError(message) from error
    except SalesforceError as error:
        code, words = _content(error)
        message = f"{doing}: Salesforce answered {error.status}: {words}"
        if code in RETRIABLE_CODES or (isinstance(error, SalesforceGeneralError) and is_passing(error.status)):
            raise RetriableConnectError(message) from error
        raise ConnectError(message) from error
    except _NEVER_SENT as error:
        raise ConnectError(f"{doing}: {error}") from error
    except requests.RequestException as error:
        raise RetriableConnectError(f"{doing}: Salesforce did not answer: {error}") from error


def is_passing(status: int) -> bool:
    """Whether a retry may succeed later, according to the HTTP status."""
    return status >= 500 or status == _TOO_MANY


def _content(error: SalesforceError) -> tuple[str, str]:
    content = error.content
    if isinstance(content, list) and content and isinstance(content[0], dict):
        code = str(content[0].get("errorCode", ""))
        return code, f"{code}: {content[0].get('message', '')}"
    return "", str(content)[:500]
