"""A guard against web pages that send requests to servers on their visitor's machine.

It prevents two attacks. A page of another site may send a POST that needs no permission (Fetch standard,
"CORS-safelisted"): the browser sends the site in ``Origin``. And a site may resolve its own name to 127.0.0.1 (DNS
rebinding): the browser sends that name as ``Host``. Clients other than browsers send no ``Origin``, and the address
they connect to as ``Host``.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from tidegate.kit.addresses import is_loopback
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["ForeignSite", "SiteGuard"]

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing, and whose answers browsers hide from other sites' pages."""
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")


class ForeignSite(UsageError):
    """A page of another web site made its visitor's browser send the request."""

    http_status = 403


class WrongHost(UsageError):
    """The request is for a server with another name (RFC 9110 15.5.20)."""

    http_status = 421


class SiteGuard:
    """A guard (``tidegate.kit.http.Guard``).

    Pages of ``origins`` may send requests (CORS); ``*`` matches any characters. ``hosts`` are valid names of this
    server on a loopback address without TLS, in addition to ``localhost``, addresses, this machine's name and names
    without dots.
    """

    def __init__(self, *, origins: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        patterns = [re.escape(origin).replace(r"\*", ".*") for origin in origins]
        self._origins = re.compile("|".join(patterns)) if patterns else None
        self._hosts = frozenset(host.lower() for host in hosts)
        self._accepts = lru_cache(1000)(self._check)

    async def __call__(self, request: Request) -> None:
        """Raises ForeignSite, WrongHost, UsageError."""
        scope = request.scope
        server = scope.get("server")
        sent = next((value for name, value in scope["headers"] if name == b"host"), b"")
        self._accepts(sent, scope["scheme"], None if server is None else server[0])
        if scope["method"] in _SAFE:
            return
        origin = request.headers.get("origin")
        if origin is None:
            return
        host = sent.decode("latin-1")
        if urlsplit(origin).netloc != host and not (self._origins and self._origins.fullmatch(origin)):
            raise ForeignSite(
                f"A page of {origin} may not send {scope['method']} requests here: access.control.allow.origin names those that may"
            )

    def _check(self, sent: bytes, scheme: str, address: str | None) -> None:
        """Accept a Host header for a server of this scheme at this address. Only accepted ones are cached."""
        host = sent.decode("latin-1")
        if host and not _HOST.fullmatch(host):
            raise UsageError(f"Host {host!r} is not a name or an address with an optional port")
        # With TLS the certificate proves that the name is the server's.
        if scheme != "https" and address is not None and is_loopback(address) and not self._knows(host):
            raise WrongHost(
                f"Host {host!r} is not this server: use localhost or an address, or name the host in http.allowed.hosts"
            )

    def _knows(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if "." not in name or name.endswith(".localhost") or name in self._hosts or name in _machine_names():
            return True
        return _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@lru_cache(1)
def _machine_names() -> frozenset[str]:
    return frozenset({socket.gethostname().lower()})
