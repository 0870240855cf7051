"""The broker as a service: recovers, listens, runs housekeeping, and stops cleanly."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from broker.broker import Broker
from broker.config import BrokerConfig, Listener
from broker.errors import BrokerError, KafkaStorageError
from broker.handlers import advertised, routes_of
from broker.metric_families import Network, families
from broker.metrics.text import lines
from broker.network.connection import Connection
from broker.network.dispatch import Dispatcher
from broker.network.front_door import FrontDoor
from broker.network.listening import Listening
from broker.network.metrics_server import MetricsServer
from broker.storage.cleaner import Cleaner
from broker.storage.keeper import KEEP_LOGS_S
from broker.unused_keys import UNUSED
from tidegate.kit.addresses import warn_of_open
from tidegate.kit.config import parse
from tidegate.kit.logs import get_logger
from tidegate.kit.tls import follow_identity, server_context

__all__ = ["BrokerServer", "serve"]

logger = get_logger(__name__)

_METADATA_CHECK_S: Final = 10
_IDLE_CHECK_S: Final = 10
_LEAST_ROUND_S: Final = 0.01
"""The shortest interval, so that a configured 0 does not block the loop."""
_LINES_AT_ONCE: Final = 500
"""Chunk size of metrics: about a millisecond."""
_FINISH_S: Final = 5
"""How long a stop waits for requests in progress."""


def serve(properties: Mapping[str, str]) -> BrokerServer:
    """A broker for ``server.properties``. Raises ConfigError with every problem."""
    return BrokerServer(parse(BrokerConfig, properties))


class BrokerServer:
    """A ``tidegate.kit.service.Service``: one broker on one event loop."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self._broker: Broker | None = None
        self._dispatcher: Dispatcher | None = None
        self._listening: Listening | None = None
        self._housekeeping: list[asyncio.Task[None]] = []
        self._metrics: MetricsServer | None = None
        self._cleaner: Cleaner | None = None

    @property
    def broker(self) -> Broker:
        """The broker while it runs."""
        if self._broker is None:
            raise RuntimeError("the broker has not been started")
        return self._broker

    async def start(self) -> Mapping[str, str]:
        """Recover the logs, then listen. Raises KafkaStorageError for an unusable directory or an address in use."""
        self._broker = broker = Broker(self.config)
        routes = routes_of(telemetry=self.config.client_telemetry_enable)
        self._dispatcher = Dispatcher(broker, routes)
        broker.api_versions = advertised(routes)
        dispatcher = self._dispatcher
        unused = sorted(set(self.config.properties) & UNUSED.keys())
        if unused:
            logger.info("keys that have no effect in one broker of one process", keys=unused)
        self._listening = listening = Listening(
            broker.settings,
            lambda name, config: FrontDoor(name, config, broker, dispatcher),
            broker.quotas.connected,
        )
        bound = [listening.bind(listener) for listener in self.config.opened_listeners]
        chosen = {listener.name: listener for listener in map(Listener.parse, self.config.advertised_listeners)}
        broker.advertised = {listener.name: chosen.get(listener.name, _reachable(listener)) for listener in bound}
        addresses = {
            "broker": f"{_bracketed(broker.advertised[bound[0].name].host)}:{broker.advertised[bound[0].name].port}"
        }
        if self.config.metrics_listen:
            context = server_context(self.config) if self.config.metrics_tls else None
            if context is not None and self.config.ssl_keystore_location is not None:
                following = follow_identity(context, self.config)
                self._housekeeping.append(asyncio.create_task(following, name="broker metrics certificate"))
            self._metrics = MetricsServer(
                self.config.metrics_listen,
                self.render_metrics,
                users=self.broker.users,
                context=context,
            )
            try:
                addresses["broker-metrics"] = await self._metrics.start()
            except OSError as error:
                raise KafkaStorageError(
                    f"metrics.listen={self.config.metrics_listen}: {error.strerror or error}"
                ) from error
        self._keep_house(broker)
        warn_of_open("broker", self.config.open_listeners, "SASL in listeners, or authorizer.class.name")
        await listening.begin()
        broker.resources.watch = listening.reconfigure
        return addresses

    # Housekeeping

    def _keep_house(self, broker: Broker) -> None:
        config = self.config
        keeper = broker.log_keeper
        self._every(config.retention_check_ms / 1000, keeper.enforce_retention, "retention")
        self._every(config.checkpoint_interval_ms / 1000, keeper.checkpoint, "checkpoint")
        self._every(config.start_checkpoint_interval_ms / 1000, keeper.checkpoint_starts, "start offsets")
        self._every(KEEP_LOGS_S, keeper.keep, "logs")
        self._every(_METADATA_CHECK_S, broker.metadata_keeper.keep, "metadata snapshots")
        if config.cleaner_enable:
            self._cleaner = cleaner = Cleaner(broker.logs, limits=lambda: broker.settings)
            self._every(lambda: broker.settings.cleaner_backoff_ms / 1000, cleaner.clean, "compaction")
        assert self._listening is not None
        check_s = min(_IDLE_CHECK_S, config.authentication_timeout_ms / 1000)
        self._every(check_s, self._listening.close_strangers, "unauthenticated connections")
        self._every(config.token_expiry_check_ms / 1000, broker.sweep_tokens, "delegation tokens")
        if config.connections_max_idle_ms >= 0:
            self._every(_IDLE_CHECK_S, self._close_idle, "idle connections")

    def _every(self, seconds: float | Callable[[], float], do: Callable[[], object], name: str) -> None:
        async def repeat() -> None:
            while True:
                await asyncio.sleep(max(seconds() if callable(seconds) else seconds, _LEAST_ROUND_S))
                try:
                    outcome = do()
                    if isinstance(outcome, Awaitable):
                        await outcome
                except BrokerError as error:
                    logger.warning("housekeeping failed", what=name, error=error.message)
                except Exception:
                    # The next run may succeed. Without this handler the broker would never clean up again.
                    logger.exception("housekeeping failed", what=name)

        self._housekeeping.append(asyncio.create_task(repeat(), name=f"broker {name}"))

    def _close_idle(self) -> None:
        oldest = asyncio.get_running_loop().time() - self.config.connections_max_idle_ms / 1000
        for connection in list(self._connections):
            if connection.is_idle and connection.active_at < oldest:
                connection.close(None)

    @property
    def _connections(self) -> set[Connection]:
        return self._listening.connections if self._listening is not None else set()

    # Stopping

    async def stop(self) -> None:
        """Accept no more requests, answer pending ones, flush everything to disk."""
        if self._listening is not None:
            await self._listening.close()
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
        broker.transactions.stop()
        for connection in list(self._connections):
            connection.stop_reading()
        broker.arrivals.wake_all()
        deadline = time.monotonic() + _FINISH_S
        # Polled, because stops are rare; otherwise connections would have to notify on every answer.
        while any(not connection.is_idle for connection in self._connections) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for connection in list(self._connections):
            connection.close(None)

    # Metrics

    async def render_metrics(self) -> bytes:
        """The Prometheus text. Other work runs between its chunks."""
        assert self._dispatcher is not None
        assert self._listening is not None
        listening = self._listening
        network = Network(
            by_listener=Counter(connection.listener for connection in listening.connections),
            authenticated=listening.authenticated(),
            failed=listening.failed,
            accepted=listening.accepted,
            refused=listening.refused,
            bytes_in=listening.bytes_in,
            bytes_out=listening.bytes_out,
            compactions=self._cleaner.runs if self._cleaner else 0,
            slow_requests=self._dispatcher.slow_requests,
        )
        text: list[str] = []
        for family in families(self.broker, self._dispatcher.metrics, network):
            for line in lines(family):
                text.append(line)
                if len(text) % _LINES_AT_ONCE == 0:
                    await asyncio.sleep(0)
        return "".join(text).encode()


def _reachable(listener: Listener) -> Listener:
    """The advertised address of a listener on all interfaces: this machine's name, as in Kafka."""
    if listener.host not in ("", "0.0.0.0", "::"):
        return listener
    return listener._replace(host=socket.getfqdn())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
