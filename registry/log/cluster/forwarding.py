"""Forwards a request to another registry, over HTTP or HTTPS."""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import requests
from requests.adapters import HTTPAdapter
from starlette.types import Scope

from tidegate.kit.errors import TidegateError
from tidegate.kit.requests_tls import TlsAdapter

__all__ = ["Answer", "Forwarder", "NotAnswered", "NotSent"]

_OWN: Final = frozenset(
    {b"host", b"connection", b"content-length", b"transfer-encoding", b"keep-alive", b"expect", b"te"}
)
"""Headers that belong to one connection, not to the request."""
_RELAYED: Final = frozenset({"content-type", "www-authenticate", "location"})
_THREADS: Final = 32


class NotSent(TidegateError):
    """The other registry is unreachable and has not seen the request."""


class NotAnswered(TidegateError):
    """The other registry may or may not have carried out the request."""


class Answer(NamedTuple):
    """A complete HTTP answer."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Forwarder:
    """Sends requests to other registries. Uses threads, so that a hanging registry delays only its own requests."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="forward")
        self._session = requests.Session()
        self._session.trust_env = False  # no proxies, no .netrc: the request is forwarded unchanged
        connections: dict[str, Any] = {"pool_connections": 4, "pool_maxsize": _THREADS}  # as many as there are threads
        self._session.mount("http://", HTTPAdapter(**connections))
        self._session.mount("https://", HTTPAdapter(**connections) if tls is None else TlsAdapter(tls, **connections))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._session.close()

    async def ask(self, url: str, scope: Scope, body: bytes, timeout_s: float) -> Answer:
        """The answer of the registry at ``url`` to the request of an ASGI scope. Raises NotSent or NotAnswered."""
        path = scope.get("raw_path") or scope["path"].encode()
        query = scope.get("query_string", b"")
        target = url + path.partition(b"?")[0].decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"] if name not in _OWN
        }
        headers["X-Forward"] = "true"
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, self._ask, scope["method"], target, headers, body, max(timeout_s, 0.1)
        )

    def _ask(self, method: str, target: str, headers: dict[str, str], body: bytes, timeout_s: float) -> Answer:
        try:
            response = self._session.request(
                method, target, headers=headers, data=body or None, timeout=timeout_s, allow_redirects=False
            )
        except requests.exceptions.ConnectTimeout as error:
            raise NotSent(f"{target}: no connection in time") from error
        except requests.exceptions.ConnectionError as error:
            kind = NotSent if "NewConnectionError" in repr(error) or "SSLError" in repr(error) else NotAnswered
            raise kind(f"{target}: {error}") from error
        except requests.exceptions.RequestException as error:
            raise NotAnswered(f"{target}: {error}") from error
        content = response.content
        relayed = [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in response.headers.items()
            if name.lower() in _RELAYED
        ]
        return Answer(response.status_code, [*relayed, (b"content-length", b"%d" % len(content))], content)
