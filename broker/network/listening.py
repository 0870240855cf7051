"""The listening sockets: accepts connections within the limits."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Final

from broker.config import BrokerConfig, Listener
from broker.errors import InvalidRequest, KafkaStorageError
from broker.network.connection import Connection
from broker.network.connection_limits import ConnectionLimits
from broker.network.front_door import FrontDoor
from broker.security.config import SecurityProtocol
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError
from tidegate.kit.logs import get_logger

__all__ = ["Listening"]

logger = get_logger(__name__)

_ACCEPTS_AT_ONCE: Final = 64
_ACCEPT_AGAIN_S: Final = 0.2
_CHANGEABLE: Final = ("listener.name.", "ssl.", "sasl.", "max.connection", "connections.max.reauth.ms")
"""Prefixes of keys that may change while clients are connected."""


class Listening:
    """All listeners of a broker and their connections.

    ``make_door`` creates the FrontDoor of a listener for a configuration; it may raise ConfigError. ``turned_away``
    returns how many milliseconds to wait before a new connection from an address is closed; 0 keeps it (quotas of
    addresses).
    """

    def __init__(
        self,
        config: BrokerConfig,
        make_door: Callable[[str, BrokerConfig], FrontDoor],
        turned_away: Callable[[str], int],
    ) -> None:
        self._config = config
        self._make_door = make_door
        self._turned_away = turned_away
        self._sockets: dict[str, socket.socket] = {}
        self._doors: dict[str, FrontDoor] = {}
        self._full: set[str] = set()
        """Listeners that accept again when a connection ends."""
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._limits = _limits(config)
        self.connections: set[Connection] = set()
        self._addresses: dict[Connection, str] = {}
        self.accepted = self.refused = 0
        names = [listener.name for listener in config.opened_listeners]
        asking = [name for name in names if config.protocol_of(name) is not SecurityProtocol.PLAINTEXT]
        self.failed: Counter[str] = Counter(dict.fromkeys(asking, 0))
        """Failed authentications by listener."""
        self._authenticated: Counter[str] = Counter(dict.fromkeys(asking, 0))
        self._bytes_in = self._bytes_out = 0

    @property
    def bytes_in(self) -> int:
        return self._bytes_in + sum(connection.bytes_in for connection in self.connections)

    @property
    def bytes_out(self) -> int:
        return self._bytes_out + sum(connection.bytes_out for connection in self.connections)

    def authenticated(self) -> Counter[str]:
        """Successful authentications by listener, including those of open connections."""
        made = self._authenticated.copy()
        made.update(
            connection.listener
            for connection in self.connections
            if connection.authenticated and connection.listener in made
        )
        return made

    def bind(self, listener: Listener) -> Listener:
        """Bind the address without accepting yet.

        Returns the listener with its actual port. Raises KafkaStorageError.
        """
        family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._config.socket_receive_buffer >= 0:
            # Before ``listen``: a connection's window is negotiated when it is opened.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._config.socket_receive_buffer)
        try:
            sock.bind((listener.host, listener.port))
            sock.listen(self._config.socket_listen_backlog)
        except OSError as error:
            sock.close()
            raise KafkaStorageError(f"cannot listen on {listener}: {error.strerror or error}") from error
        sock.setblocking(False)
        self._sockets[listener.name] = sock
        return listener._replace(port=sock.getsockname()[1])

    async def begin(self) -> None:
        """Accept connections on the bound listeners. Raises ConfigError."""
        for name in self._sockets:
            door = self._make_door(name, self._config)
            await self._furnish(door)
            self._doors[name] = door
        for name in self._sockets:
            self._resume(name)

    async def _furnish(self, door: FrontDoor) -> None:
        works = await door.prepare()
        self._tasks[door.name] = [asyncio.create_task(work, name=f"broker keys of {door.name}") for work in works]

    def reconfigure(self, changed: Collection[str], properties: Mapping[str, str]) -> Callable[[], None]:
        """Prepare new settings. Calling the result applies them to connections accepted from then on.

        Key stores are read again even if only their files changed. Raises InvalidRequest.
        """
        if not any(key.startswith(_CHANGEABLE) for key in changed):
            return lambda: None
        try:
            config = parse(BrokerConfig, properties)
            doors = [self._make_door(name, config) for name in self._sockets]
        except ConfigError as error:
            raise InvalidRequest(error.message) from error
        limits = _limits(config)

        def follow() -> None:
            self._config = config
            limits.take_over(self._limits)
            self._limits = limits
            for door in doors:
                for task in self._tasks.pop(door.name, ()):
                    task.cancel()
                self._doors[door.name] = door
                self._tasks[door.name] = [asyncio.create_task(self._furnish(door))]
            self._let_in()

        return follow

    async def close(self) -> None:
        """Accept no more connections; existing ones stay."""
        for name, sock in self._sockets.items():
            self._pause(name)
            sock.close()
        self._sockets.clear()
        tasks = [task for of_listener in self._tasks.values() for task in of_listener]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

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
                # As in Kafka: new clients wait in the backlog until there is room.
                self._full.add(name)
                self._pause(name)
                return
            try:
                client, address = self._sockets[name].accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # Most likely the process is out of descriptors: wait, because the same client would be reported again
                # at once.
                logger.warning("cannot accept a connection", error=str(error))
                self._pause_for(name, _ACCEPT_AGAIN_S)
                return
            client.setblocking(False)
            waiting = self._limits.count_accepted(name)
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
                logger.warning("connection refused", reason=reason)
            asyncio.get_running_loop().call_later(unwanted_ms / 1000, client.close)
            return
        self.accepted += 1
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._config.socket_send_buffer >= 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._config.socket_send_buffer)
        connection = self._doors[name].receive(client, self._closed)
        self.connections.add(connection)
        self._addresses[connection] = address
        if self._limits.is_over:
            self._make_room(name)

    def _make_room(self, for_listener: str) -> None:
        """Close the connection of another listener that was idle for longest."""
        others = [connection for connection in self.connections if connection.listener != for_listener]
        if others:
            min(others, key=lambda connection: connection.active_at).close(
                "it made room for one of inter.broker.listener.name"
            )

    def _closed(self, connection: Connection, reason: str | None) -> None:
        self.connections.discard(connection)
        self._bytes_in += connection.bytes_in
        self._bytes_out += connection.bytes_out
        self._limits.leave(connection.listener, self._addresses.pop(connection))
        if connection.listener in self.failed:
            if connection.authenticated:
                self._authenticated[connection.listener] += 1
            elif reason is not None:
                self.failed[connection.listener] += 1
        if reason is not None:
            logger.warning("connection closed", client=connection.peer, listener=connection.listener, reason=reason)
        self._let_in()

    def _let_in(self) -> None:
        while self._full:
            self._resume(self._full.pop())

    # Housekeeping

    def close_strangers(self) -> None:
        """Close connections whose clients take too long to authenticate."""
        oldest = asyncio.get_running_loop().time() - self._config.authentication_timeout_ms / 1000
        for connection in list(self.connections):
            if not connection.authenticated and connection.made_at < oldest:
                connection.close("the client did not authenticate within connections.authentication.timeout.ms")


def _limits(config: BrokerConfig) -> ConnectionLimits:
    settings = {listener.name: config.listener(listener.name) for listener in config.opened_listeners}
    return ConnectionLimits(
        most=config.max_connections,
        most_by_listener={name: setting.max_connections for name, setting in settings.items()},
        rate=config.max_connection_creation_rate,
        rate_by_listener={name: setting.max_connection_creation_rate for name, setting in settings.items()},
        most_per_address=config.max_connections_per_ip,
        most_by_address=config.per_ip_overrides(),
        protected=_protected(config),
        windows=config.quota_window_num,
        window_s=config.quota_window_size_seconds,
    )


def _protected(config: BrokerConfig) -> str | None:
    """The listener of ``inter.broker.listener.name``, or the one with the inter-broker protocol."""
    if config.inter_broker_listener is not None:
        return config.inter_broker_listener.upper()
    protocol = (config.inter_broker_protocol or "PLAINTEXT").upper()
    return next((listener.name for listener in config.opened_listeners if listener.name == protocol), None)
