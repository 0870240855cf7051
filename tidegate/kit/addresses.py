"""Addresses as people write them: HOST:PORT."""

from __future__ import annotations

import errno
import ipaddress
import random
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Protocol

from tidegate.kit.errors import UsageError
from tidegate.kit.logs import get_logger

__all__ = ["InvalidAddress", "free_ports", "host_port", "is_loopback", "open_urls", "valid_address", "warn_of_open"]

logger = get_logger(__name__)


class InvalidAddress(UsageError, ValueError):
    """The text is not HOST:PORT."""


def host_port(text: str) -> tuple[str, int]:
    """Split ``host:port`` or ``[v6]:port``. Raises InvalidAddress."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidAddress(f"{text!r} is not an address: give HOST:PORT, for example 127.0.0.1:0")
    return host, int(port)


def warn_of_open(component: str, addresses: Iterable[str], remedy: str) -> None:
    """Log the addresses that other machines can reach without a login. ``remedy`` names the keys that fix it."""
    for address in addresses:
        logger.warning(
            "anybody who reaches this address may do everything", component=component, address=address, give=remedy
        )


class HttpListener(Protocol):
    """The attributes of a listener that ``open_urls`` reads."""

    @property
    def scheme(self) -> str: ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


def open_urls(listeners: Iterable[HttpListener], *, client_auth: str) -> list[str]:
    """The URLs that other machines can reach and where TLS requires no certificate.

    ``client_auth`` is that of the https listeners.
    """
    return [
        f"{listener.scheme}://{listener.host}:{listener.port}"
        for listener in listeners
        if not is_loopback(listener.host) and not (listener.scheme == "https" and client_auth.lower() == "required")
    ]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host, by its name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def valid_address(value: Any) -> str | None:
    """A check for configuration keys."""
    try:
        host_port(value)
    except InvalidAddress as error:
        return str(error)
    return None


valid_address.valid = "HOST:PORT"  # type: ignore[attr-defined]


_RANGE_FILE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST: Final = 16384
_TRIES: Final = 100


def free_ports(hosts: list[str]) -> list[int]:
    """A free TCP port for each host, all different, outside the range that the system assigns for port 0 and outgoing
    connections.

    So a port is still free when a server binds it, and after a restart, unless a process asks for that very number.
    """
    with ExitStack() as sockets:
        ports: list[int] = []
        for host in hosts:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            sock = sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
            _bind_outside(sock, host, ports)
            ports.append(sock.getsockname()[1])
        return ports


def _bind_outside(sock: socket.socket, host: str, taken: list[int]) -> None:
    """Bind to any free port outside the system's own range, or inside it if too few are left."""
    try:
        first_given = int(_RANGE_FILE.read_text().split()[0])
    except OSError:  # not Linux; macOS and Windows begin at 49152
        first_given = 32768
    for _ in range(_TRIES if first_given - _LOWEST > 10 * _TRIES else 0):
        port = random.randrange(_LOWEST, first_given)
        if port in taken:
            continue
        try:
            sock.bind((host, port))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
        else:
            return
    sock.bind((host, 0))
