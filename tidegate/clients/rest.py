"""Calls REST APIs; errors become one line."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import requests

from tidegate.clients.credentials import Credentials
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError
from tidegate.kit.requests_tls import advice

__all__ = ["LoginRefused", "NotAllowed", "NotThere", "Rest"]

_REPEATABLE: Final = frozenset({"GET", "PUT"})
"""Methods that may be sent again without doing anything twice."""
_NO_CLASS: Final = re.compile(r"which name matches (.*), available connectors are: (.*)", re.DOTALL)


class NotThere(TidegateError):
    """The component knows nothing by this name (404)."""

    http_status = 404


class LoginRefused(TidegateError):
    """The component wants a login, or refuses this one (401)."""

    http_status = 401


class NotAllowed(TidegateError):
    """The user lacks the right for this (403)."""

    http_status = 403


_ERRORS: Final = {401: LoginRefused, 403: NotAllowed, 404: NotThere}
"""The error by the status of an answer; TidegateError for any other."""


class Rest:
    """JSON over HTTP to one component; raises TidegateError with the component's own words."""

    def __init__(self, url: str, what: str, credentials: Credentials | None = None, *, timeout_s: float = 95) -> None:
        self._url, self._what, self._session = url.rstrip("/"), what, requests.Session()
        self._timeout_s, self._credentials = timeout_s, credentials
        if credentials is not None:
            credentials.enter(self._session)

    @property
    def url(self) -> str:
        return self._url

    @property
    def what(self) -> str:
        """The component's name in messages."""
        return self._what

    def at(self, address: str, *, timeout_s: float) -> Rest:
        """The same component on another machine, ``host:port``, with the same credentials."""
        scheme = self._url.partition("://")[0]
        return Rest(f"{scheme}://{address}", self._what, self._credentials, timeout_s=timeout_s)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        content = self.content(method, path, body, **query)
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise TidegateError(
                f"what answers at {self._url} is no {self._what}: {method} {path} is no JSON"
            ) from error

    def content(self, method: str, path: str, body: Any = None, **query: Any) -> bytes:
        """The answer as it came."""
        try:
            answer = self._sent(method, path, body, query)
        except requests.exceptions.SSLError as error:
            raise TidegateError(
                f"no TLS connection to {self._what} at {self._url}: {error}; TIDEGATE_CA names the authority to trust"
            ) from error
        except requests.ConnectionError as error:
            if hint := advice(self._url, error):
                raise TidegateError(f"no {self._what} answers at {self._url}{hint}") from error
            raise TidegateError(f"no {self._what} answers at {self._url}: is it up? (tidegate status)") from error
        except requests.Timeout as error:
            raise TidegateError(
                f"{self._what} at {self._url} did not answer {method} {path} within {self._timeout_s:g} s"
            ) from error
        if not answer.ok:
            raise _ERRORS.get(answer.status_code, TidegateError)(_message(answer))
        return answer.content

    def _sent(self, method: str, path: str, body: Any, query: dict[str, Any]) -> requests.Response:
        """Send a request, again if the server closed a kept connection just when it came (RFC 9110 9.2.2)."""
        for attempt in (1, 2):
            try:
                return self._session.request(
                    method, self._url + path, json=body, params=query or None, timeout=self._timeout_s
                )
            except requests.ConnectionError as error:
                hung_up = "RemoteDisconnected" in repr(error) or "ConnectionResetError" in repr(error)
                if attempt == 2 or method not in _REPEATABLE or not hung_up:
                    raise
        raise AssertionError("unreachable")


def _message(answer: requests.Response) -> str:
    try:
        said = answer.json()
    except requests.JSONDecodeError:
        return f"{answer.status_code} {answer.reason}"
    if isinstance(said, list):
        return "; ".join(str(entry.get("message", entry) if isinstance(entry, dict) else entry) for entry in said)
    message = str(said.get("message", said) if isinstance(said, dict) else said)
    if (matched := _NO_CLASS.search(message)) is None:
        return message
    name, listed = matched.groups()
    known = {cls.rpartition(".")[2]: cls for cls in re.findall(r"PluginDesc\{class=([^,]+),", listed)}  # Java's format
    near = nearest_name(name.rpartition(".")[2], known)
    hint = f"; did you mean {known[near]}?" if near else ""
    return f"the worker has no connector class {name}{hint} (`tidegate connectors plugins` lists all)"
