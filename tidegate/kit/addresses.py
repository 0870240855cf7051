"""Addresses as people write them: HOST:PORT."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

from tidegate.kit.errors import UsageError

__all__ = ["InvalidAddress", "free_ports", "host_port", "valid_address"]


class InvalidAddress(UsageError, ValueError):
    """Text that should be HOST:PORT and is not."""


def host_port(text: str) -> tuple[str, int]:
    """``host:port`` or ``[v6]:port`` taken apart; raises InvalidAddress."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidAddress(f"{text!r} is not an address: give HOST:PORT, for example 127.0.0.1:0")
    return host, int(port)


def valid_address(value: Any) -> str | None:
    """A check for configuration keys."""
    try:
        host_port(value)
    except InvalidAddress as error:
        return str(error)
    return None


valid_address.valid = "HOST:PORT"  # type: ignore[attr-defined]


def free_ports(hosts: list[str]) -> list[int]:
    """A free TCP port for each host, all different; another process may take one before it is used."""
    with ExitStack() as held:
        sockets = []
        for host in hosts:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            sock = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
            sock.bind((host, 0))
            sockets.append(sock)
        return [sock.getsockname()[1] for sock in sockets]
