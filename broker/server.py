"""The broker as a service: listens, recovers, keeps house, and stops clean."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from broker.broker import Broker
from broker.cleaner import Cleaner
from broker.config import BrokerConfig, Listener
from broker.connection import Connection
from broker.dispatch import Dispatcher
from broker.errors import BrokerError, KafkaStorageError
from broker.handlers import ROUTES, advertised
from broker.log_keeper import KEEP_LOGS_S
from broker.metrics import Gauges, render
from broker.metrics_server import MetricsServer
from tidegate.kit.config import parse
from tidegate.kit.logs import logger

__all__ = ["BrokerServer", "serve"]

log = logger(__name__)

_BACKLOG: Final = 1024
_ACCEPTS_AT_ONCE: Final = 64
_ACCEPT_AGAIN_S: Final = 0.2
_IDLE_CHECK_S: Final = 10
_FINISH_S: Final = 5
"""How long a stop waits for requests that are being answered."""


def serve(properties: Mapping[str, str]) -> BrokerServer:
    """A broker from ``server.properties``. Raises ConfigError with every problem."""
    return BrokerServer(parse(BrokerConfig, properties))


class BrokerServer:
    """A ``tidegate.kit.service.Service``: one broker on one event loop."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self._broker: Broker | None = None
        self._dispatcher: Dispatcher | None = None
        self._listening: list[socket.socket] = []
        self._connections: set[Connection] = set()
        self._housekeeping: list[asyncio.Task[None]] = []
        self._metrics: MetricsServer | None = None
        self._cleaner: Cleaner | None = None
        self._accepted = self._refused = 0
        self._bytes_in = self._bytes_out = 0

    @property
    def broker(self) -> Broker:
        """The broker while it runs."""
        if self._broker is None:
            raise RuntimeError("the broker has not been started")
        return self._broker

    async def start(self) -> Mapping[str, str]:
        """Recover the logs, listen. Raises KafkaStorageError for a directory that cannot be used or an address taken."""
        self._broker = broker = Broker(self.config)
        self._dispatcher = Dispatcher(broker, ROUTES)
        broker.api_versions = advertised()
        bound = [self._listen(Listener.parse(text)) for text in self.config.listeners]
        chosen = {listener.name: listener for listener in map(Listener.parse, self.config.advertised_listeners)}
        broker.advertised = {listener.name: chosen.get(listener.name, _reachable(listener)) for listener in bound}
        addresses = {
            "broker": f"{_bracketed(broker.advertised[bound[0].name].host)}:{broker.advertised[bound[0].name].port}"
        }
        if self.config.metrics_listen:
            self._metrics = MetricsServer(self.config.metrics_listen, self.render_metrics)
            try:
                addresses["broker-metrics"] = await self._metrics.start()
            except OSError as error:
                raise KafkaStorageError(
                    f"metrics.listen={self.config.metrics_listen}: {error.strerror or error}"
                ) from error
        self._keep_house(broker)
        for sock in self._listening:
            asyncio.get_running_loop().add_reader(
                sock.fileno(), self._accept, sock, bound[self._listening.index(sock)].name
            )
        return addresses

    def _listen(self, listener: Listener) -> Listener:
        """Bind, without accepting yet; the listener with the port it got."""
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
        self._listening.append(sock)
        return listener._replace(port=sock.getsockname()[1])

    def _accept(self, sock: socket.socket, listener: str) -> None:
        for _ in range(_ACCEPTS_AT_ONCE):
            try:
                client, _address = sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # Most likely there are no descriptors left: wait, instead of being told at once of the same client.
                log.warning("cannot accept a connection", error=str(error))
                loop = asyncio.get_running_loop()
                loop.remove_reader(sock.fileno())
                loop.call_later(_ACCEPT_AGAIN_S, self._resume_accepting, sock, listener)
                return
            if len(self._connections) >= self.config.max_connections:
                self._refused += 1
                client.close()
                continue
            self._accepted += 1
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            assert self._dispatcher is not None
            self._connections.add(
                Connection(
                    client,
                    handle=self._dispatcher,
                    closed=self._closed,
                    max_frame_bytes=self.config.socket_request_max_bytes,
                    listener=listener,
                )
            )

    def _resume_accepting(self, sock: socket.socket, listener: str) -> None:
        if sock in self._listening:
            asyncio.get_running_loop().add_reader(sock.fileno(), self._accept, sock, listener)

    def _closed(self, connection: Connection, reason: str | None) -> None:
        self._connections.discard(connection)
        self._bytes_in += connection.bytes_in
        self._bytes_out += connection.bytes_out
        if reason is not None:
            log.warning("connection closed", client=connection.peer, reason=reason)

    # Housekeeping

    def _keep_house(self, broker: Broker) -> None:
        config = self.config
        keeper = broker.log_keeper
        self._every(config.retention_check_ms / 1000, keeper.enforce_retention, "retention")
        self._every(config.checkpoint_interval_ms / 1000, keeper.checkpoint, "checkpoint")
        self._every(KEEP_LOGS_S, keeper.keep, "logs")
        if config.cleaner_enable:
            self._cleaner = cleaner = Cleaner(broker.logs)
            self._every(config.cleaner_backoff_ms / 1000, cleaner.clean, "compaction")
        if config.connections_max_idle_ms >= 0:
            self._every(_IDLE_CHECK_S, self._close_idle, "idle connections")

    def _every(self, seconds: float, do: Callable[[], object], name: str) -> None:
        async def repeat() -> None:
            while True:
                await asyncio.sleep(seconds)
                try:
                    outcome = do()
                    if isinstance(outcome, Awaitable):
                        await outcome
                except BrokerError as error:
                    log.warning("housekeeping failed", what=name, error=error.message)
                except Exception:
                    # The next round may well succeed; without this one the broker would never clean up again.
                    log.exception("housekeeping failed", what=name)

        self._housekeeping.append(asyncio.create_task(repeat(), name=f"broker {name}"))

    def _close_idle(self) -> None:
        oldest = asyncio.get_running_loop().time() - self.config.connections_max_idle_ms / 1000
        for connection in list(self._connections):
            if connection.is_idle and connection.active_at < oldest:
                connection.close(None)

    # Stopping

    async def stop(self) -> None:
        """Take no more requests, answer those taken, bring everything to the disk."""
        loop = asyncio.get_running_loop()
        for sock in self._listening:
            loop.remove_reader(sock.fileno())
            sock.close()
        self._listening.clear()
        for task in self._housekeeping:
            task.cancel()
        await asyncio.gather(*self._housekeeping, return_exceptions=True)
        if self._broker is not None:
            await self._finish_requests(self._broker)
            await self._broker.close()
            self._broker = None
        if self._metrics is not None:
            await self._metrics.stop()

    async def _finish_requests(self, broker: Broker) -> None:
        broker.groups.stop()
        for connection in list(self._connections):
            connection.stop_reading()
        broker.arrivals.wake_all()
        deadline = time.monotonic() + _FINISH_S
        # Polled: a stop is rare, and connections would have to count for it on every answer.
        while any(not connection.is_idle for connection in self._connections) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.close(None)

    # Metrics

    def render_metrics(self) -> bytes:
        """The Prometheus text."""
        assert self._dispatcher is not None
        broker, connections = self.broker, self._connections
        counters: Gauges = {
            "connections": ("Connections accepted.", lambda: self._accepted),
            "connections_refused": ("Connections closed because of max.connections.", lambda: self._refused),
            "received_bytes": ("Bytes received.", lambda: self._bytes_in + sum(c.bytes_in for c in connections)),
            "sent_bytes": ("Bytes sent.", lambda: self._bytes_out + sum(c.bytes_out for c in connections)),
            "flush_rounds": ("Group commits for acks=all.", lambda: broker.durability.rounds),
            "compactions": ("Logs compacted.", lambda: self._cleaner.runs if self._cleaner else 0),
            "flush_seconds": ("Seconds spent in group commits.", lambda: broker.durability.seconds),
        }
        gauges: Gauges = {
            "connections_open": ("Connections open now.", lambda: len(connections)),
            "fetches_waiting": ("Fetches that wait for records.", lambda: len(broker.arrivals)),
            "topics": ("Topics.", lambda: len(broker.metadata.topics)),
            "partitions": ("Partitions.", lambda: sum(1 for _ in broker.logs.all())),
            "log_bytes": ("Bytes of records on disk.", lambda: sum(one.size for one in broker.logs.all())),
        }
        return render({key.title: counts for key, counts in self._dispatcher.counts.items()}, counters, gauges)


def _reachable(listener: Listener) -> Listener:
    """What to tell clients where the broker listens on every interface: this machine's name, as Kafka does."""
    if listener.host not in ("", "0.0.0.0", "::"):
        return listener
    return listener._replace(host=socket.getfqdn())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
