"""The sockets clients come in by: accepting, within the limits of connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

from broker.config import BrokerConfig, Listener
from broker.connection import Connection
from broker.errors import KafkaStorageError
from broker.security.connection_limits import ConnectionLimits
from broker.security.front_door import FrontDoor
from tidegate.kit.logs import logger

__all__ = ["Listening"]

log = logger(__name__)

_BACKLOG: Final = 1024
_ACCEPTS_AT_ONCE: Final = 64
_ACCEPT_AGAIN_S: Final = 0.2


class Listening:
    """All listeners of a broker and their connections.

    ``turned_away`` is asked how many milliseconds a new connection of an address has to wait before it is closed; 0
    keeps it (quotas of addresses).
    """

    def __init__(self, config: BrokerConfig, turned_away: Callable[[str], int]) -> None:
        self._turned_away = turned_away
        self._sockets: dict[str, socket.socket] = {}
        self._doors: dict[str, FrontDoor] = {}
        self._full: set[str] = set()
        """Listeners that accept again when a connection ends."""
        self._tasks: list[asyncio.Task[None]] = []
        self._authentication_timeout_s = config.authentication_timeout_ms / 1000
        names = [listener.name for listener in config.opened_listeners]
        settings = {name: config.listener(name) for name in names}
        self._limits = ConnectionLimits(
            most=config.max_connections,
            most_by_listener={name: one.max_connections for name, one in settings.items()},
            rate=config.max_connection_creation_rate,
            rate_by_listener={name: one.max_connection_creation_rate for name, one in settings.items()},
            most_per_address=config.max_connections_per_ip,
            most_by_address=config.per_ip_overrides(),
            protected=_protected(config),
            windows=config.quota_window_num,
            window_s=config.quota_window_size_seconds,
        )
        self.connections: set[Connection] = set()
        self._addresses: dict[Connection, str] = {}
        self.accepted = self.refused = 0
        self._bytes_in = self._bytes_out = 0

    @property
    def bytes_in(self) -> int:
        return self._bytes_in + sum(one.bytes_in for one in self.connections)

    @property
    def bytes_out(self) -> int:
        return self._bytes_out + sum(one.bytes_out for one in self.connections)

    def bind(self, listener: Listener) -> Listener:
        """Take the address, without accepting yet; the listener with the port it got. Raises KafkaStorageError."""
        family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((listener.host, listener.port))
            sock.listen(_BACKLOG)
        except OSError as error:
            sock.close()
            raise KafkaStorageError(f"cannot listen on {listener}: {error.strerror or error}") from error
        sock.setblocking(False)
        self._sockets[listener.name] = sock
        return listener._replace(port=sock.getsockname()[1])

    async def begin(self, doors: list[FrontDoor]) -> None:
        """Accept connections on the bound listeners."""
        for door in doors:
            self._doors[door.name] = door
            for work in await door.prepare():
                self._run(work, f"broker keys of {door.name}")
        for name in self._sockets:
            self._resume(name)

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def close(self) -> None:
        """Accept no more; connections stay."""
        for name, sock in self._sockets.items():
            self._pause(name)
            sock.close()
        self._sockets.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Accepting

    def _resume(self, name: str) -> None:
        sock = self._sockets.get(name)
        if sock is not None:
            asyncio.get_running_loop().add_reader(sock.fileno(), self._accept, name)

    def _pause(self, name: str) -> None:
        asyncio.get_running_loop().remove_reader(self._sockets[name].fileno())

    def _pause_for(self, name: str, seconds: float) -> None:
        self._pause(name)
        asyncio.get_running_loop().call_later(seconds, self._resume, name)

    def _accept(self, name: str) -> None:
        for _ in range(_ACCEPTS_AT_ONCE):
            if not self._limits.has_room(name):
                # As Kafka: those who come wait in the backlog until there is room.
                self._full.add(name)
                self._pause(name)
                return
            try:
                client, address = self._sockets[name].accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # Most likely there are no descriptors left: wait, instead of being told at once of the same client.
                log.warning("cannot accept a connection", error=str(error))
                self._pause_for(name, _ACCEPT_AGAIN_S)
                return
            client.setblocking(False)
            waiting = self._limits.came(name)
            if waiting > 0:
                self._pause_for(name, waiting)
                asyncio.get_running_loop().call_later(waiting, self._take, name, client, str(address[0]))
                return
            self._take(name, client, str(address[0]))

    def _take(self, name: str, client: socket.socket, address: str) -> None:
        if name not in self._sockets:
            client.close()
            return
        unwanted_ms = self._turned_away(address)
        reason = self._limits.enter(name, address) if not unwanted_ms else None
        if unwanted_ms or reason is not None:
            self.refused += 1
            if reason is not None:
                log.warning("connection refused", reason=reason)
            asyncio.get_running_loop().call_later(unwanted_ms / 1000, client.close)
            return
        self.accepted += 1
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = self._doors[name].receive(client, self._closed)
        self.connections.add(connection)
        self._addresses[connection] = address
        if self._limits.is_over:
            self._make_room(name)

    def _make_room(self, for_listener: str) -> None:
        """Close the connection that was quiet for longest, of another listener."""
        others = [one for one in self.connections if one.listener != for_listener]
        if others:
            min(others, key=lambda one: one.active_at).close("it made room for one of inter.broker.listener.name")

    def _closed(self, connection: Connection, reason: str | None) -> None:
        self.connections.discard(connection)
        self._bytes_in += connection.bytes_in
        self._bytes_out += connection.bytes_out
        self._limits.leave(connection.listener, self._addresses.pop(connection))
        if reason is not None:
            log.warning("connection closed", client=connection.peer, listener=connection.listener, reason=reason)
        while self._full:
            self._resume(self._full.pop())

    # Keeping house

    def close_strangers(self) -> None:
        """Close connections whose clients take too long to say who they are."""
        oldest = asyncio.get_running_loop().time() - self._authentication_timeout_s
        for connection in list(self.connections):
            if not connection.authenticated and connection.made_at < oldest:
                connection.close("the client did not authenticate within connections.authentication.timeout.ms")


def _protected(config: BrokerConfig) -> str | None:
    """The listener of ``inter.broker.listener.name``, or the one of the protocol brokers would use."""
    if config.inter_broker_listener is not None:
        return config.inter_broker_listener.upper()
    protocol = (config.inter_broker_protocol or "PLAINTEXT").upper()
    return next((one.name for one in config.opened_listeners if one.name == protocol), None)
