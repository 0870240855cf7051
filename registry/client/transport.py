"""Requests to registries: over several addresses, with retries, and with failures as typed errors."""

from __future__ import annotations

import copy
import random
import ssl
import time
from collections.abc import Mapping
from typing import Any, Final, Self
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

from registry.client.config import RegistryClientConfig
from registry.client.errors import Incompatible, NotFound, Refused, Unavailable
from tidegate.kit.requests_tls import TlsAdapter, advice

__all__ = ["Transport"]

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_RETRIED: Final = frozenset({408, 429, 500, 502, 503, 504})


class Transport:
    """Sends to the address that answered last, and tries the next one on failure. Thread-safe."""

    def __init__(
        self,
        url: str,
        *,
        auth: tuple[str, str] | AuthBase | None = None,
        tls: ssl.SSLContext | None = None,
        verify: bool | str = True,
        headers: Mapping[str, str] | None = None,
        proxies: Mapping[str, str] | None = None,
        timeout_s: float | tuple[float, float] = 30,
        attempts: int = 4,
        wait_s: float = 0.2,
        max_wait_s: float = 2.0,
    ) -> None:
        """``timeout_s`` is the timeout of a request, or a pair for connecting and for the answer.

        Raises Refused for an invalid address.
        """
        self._addresses = [_address(part) for part in url.split(",") if part.strip()]
        if not self._addresses:
            raise Refused(f"'{url}' is no schema registry address: give http://HOST:PORT, several with commas between")
        self._auth, self._timeout_s = auth, timeout_s
        self._attempts, self._wait_s, self._max_wait_s = max(1, attempts), wait_s, max_wait_s
        self._answered = 0
        self._session = requests.Session()
        self._session.headers.update({"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE, **(headers or {})})
        self._session.verify = verify
        self._session.proxies.update(proxies or {})
        self._session.mount("http://", HTTPAdapter(pool_maxsize=16))
        self._session.mount(
            "https://", HTTPAdapter(pool_maxsize=16) if tls is None else TlsAdapter(tls, pool_maxsize=16)
        )

    @classmethod
    def configured(cls, settings: RegistryClientConfig, url: str) -> Self:
        """A transport with these settings. Raises ConfigError and Refused."""
        return cls(
            url,
            auth=settings.bearer() or settings.basic_credentials(),
            tls=settings.tls_context(),
            headers=settings.all_headers(),
            proxies=settings.proxies(),
            timeout_s=(settings.connect_timeout_ms / 1000, settings.timeout_ms / 1000),
            attempts=settings.max_retries + 1,
            wait_s=settings.retry_wait_ms / 1000,
            max_wait_s=settings.retry_max_wait_ms / 1000,
        )

    def impatient(self) -> Self:
        """The same registries, with one attempt for each address."""
        made = copy.copy(self)
        made._attempts = 1
        return made

    def close(self) -> None:
        self._session.close()

    def ask(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        """Send a request until it is answered.

        A DELETE with a lost answer is not repeated, because it may have been carried out.
        """
        failure = Unavailable("no attempt was made")
        count, first = len(self._addresses), self._answered
        for attempt in range(max(self._attempts, count)):
            if attempt >= count:  # every address was tried
                pause_s = self._wait_s * 2.0 ** min(attempt - count, 20)
                time.sleep(min(self._max_wait_s, pause_s) * random.uniform(0.5, 1))
            index = (first + attempt) % count
            base, credentials = self._addresses[index]
            try:
                answer = self._session.request(
                    method,
                    base + path,
                    params=query,
                    json=body,
                    auth=self._auth or credentials,
                    timeout=self._timeout_s,
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                told = f"The schema registry at {base}{path} cannot be reached: {error}"
                failure = Unavailable(told + advice(base, error))
                if method == "DELETE" and not isinstance(error, requests.ConnectionError):
                    break
                continue
            if answer.status_code not in _RETRIED:
                self._answered = index
                return _read(answer)
            failure = Unavailable(*_described(answer))
        raise failure


def _address(text: str) -> tuple[str, tuple[str, str] | None]:
    """An address without user and password, and these separately, so that messages contain no secret."""
    address = text.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    if not fine:
        shown = address.rpartition("@")[2]
        raise Refused(f"'{shown}' is no schema registry address: give http://HOST:PORT, several with commas between")
    user, at, host = parts.netloc.rpartition("@")
    if not at:
        return address, None
    name, _, password = user.partition(":")
    return parts._replace(netloc=host).geturl(), (unquote(name), unquote(password))


def _read(answer: requests.Response) -> Any:
    if not answer.ok:
        message, code = _described(answer)
        kinds = {404: NotFound, 409: Incompatible}
        raise kinds.get(answer.status_code, Refused)(message, code)
    try:
        return answer.json()
    except ValueError as error:
        raise Refused(f"{answer.url} answered with something that is not JSON; is it a schema registry?") from error


def _described(answer: requests.Response) -> tuple[str, int]:
    """Message and error code of a failure, in whatever format."""
    try:
        body = answer.json()
        return str(body["message"]), int(body["error_code"])
    except (ValueError, KeyError, TypeError):
        return f"{answer.url} answered {answer.status_code} {answer.reason}", answer.status_code
