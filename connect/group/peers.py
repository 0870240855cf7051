"""The other workers of the group, through their REST APIs."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple
from urllib.parse import quote

from connect.errors import RemoteError

__all__ = ["PeerAnswer", "Peers", "resource"]

_TIMEOUT_S: Final = 90
"""The timeout of Kafka Connect's workers for each other."""
_AT_ONCE: Final = 16
_BAD_REQUEST: Final = 400


class PeerAnswer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Peers:
    """Sends requests to other workers; ``tls`` is for those with https."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._threads = ThreadPoolExecutor(_AT_ONCE, "peers")

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def ask(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        query: str = "",
        timeout_s: float = _TIMEOUT_S,
    ) -> PeerAnswer:
        """Send one request without following redirects. Raises RemoteError if there is no answer."""

        def send() -> PeerAnswer:
            import requests  # a single worker never needs it

            from tidegate.kit.requests_tls import TlsAdapter

            with requests.Session() as session:
                # A proxy of the environment is for the outside world, not for workers of one group.
                session.trust_env = False
                if self._tls is not None:
                    session.mount("https://", TlsAdapter(self._tls))
                answer = session.request(
                    method,
                    f"{url}?{query}" if query else url,
                    data=body,
                    headers=dict(headers or {}),
                    timeout=timeout_s,
                    allow_redirects=False,
                )
                return PeerAnswer(answer.status_code, answer.headers, answer.content)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, send)
        except OSError as error:  # all of requests' own errors are
            raise RemoteError(f"IO Error trying to forward REST request: {method} {url}: {error}") from error

    async def order(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        """Send a request that returns no data. Raises RemoteError with the message of a refusal."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        answer = await self.ask(method, url, body=body, headers=headers, timeout_s=timeout_s)
        if answer.status >= _BAD_REQUEST:
            raise RemoteError(f"{method} {url}: {answer.body.decode('utf-8', 'replace')[:500]}", answer.status)


def resource(url: str, *parts: str) -> str:
    """The address of a resource of another worker."""
    return "/".join([url.rstrip("/"), *(quote(part, safe="") for part in parts)])
