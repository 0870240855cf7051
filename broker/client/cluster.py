"""A connection to a cluster for single requests: to any broker, a leader, the controller or a group's coordinator, with retries."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import aiokafka.errors as library
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.api import Request

from broker.client.config import ClientConfig
from broker.client.errors import IllegalUse, NotReachable, translated
from broker.client.network import ClientKind, measured
from broker.client.reach import first_connection
from broker.errors import NONE, UnknownTopicOrPartition, error_for
from tidegate.kit.errors import TidegateError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Cluster", "check"]

T = TypeVar("T")


def check(code: int, about: str, message: str | None = None) -> None:
    """Raise the error of a wire code, with ``about`` and the broker's message. Does nothing for success."""
    if code != NONE:
        error = error_for(code)
        raise error_for(code, f"{about}: {message or error.message}")


class Cluster:
    """Sends single requests. As a context manager it starts and stops itself. Use it from one event loop."""

    def __init__(self, config: ClientConfig, *, kind: ClientKind = "admin") -> None:
        self._config, self._kind = config, kind
        self._settings = config.connection()
        self._client: AIOKafkaClient | None = None

    @property
    def bootstrap_servers(self) -> str:
        return self._config.bootstrap_servers

    @property
    def request_timeout_ms(self) -> int:
        return self._settings.request_timeout_ms

    async def start(self) -> Self:
        """Connect. Raises NotReachable."""
        arguments = self._config.library_arguments(self._settings)
        client = AIOKafkaClient(**arguments)
        measured(client, self._kind)
        try:
            await first_connection(client.bootstrap(), arguments["bootstrap_servers"])
        except BaseException:
            await client.close()
            raise
        self._client = client
        return self

    async def stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def _running(self) -> AIOKafkaClient:
        if self._client is None:
            raise IllegalUse(f"not connected to {self.bootstrap_servers}: call start() first")
        return self._client

    async def ask(self, request: Request[Any], *, node: int | None = None, about: str = "") -> Any:
        """Send one request to one broker (any broker without ``node``), without retries.

        Raises our errors, retriable or not.
        """
        client = self._running
        try:
            return await client.send(client.get_random_node() if node is None else node, request)
        except NotImplementedError as error:
            raise IllegalUse(f"{about}: no version of this request is known to both sides: {error}") from error
        except (library.KafkaError, TimeoutError) as error:
            raise translated(error, about) from error

    async def ask_coordinator(
        self, name: str, request: Request[Any], *, about: str = "", kind: int = CoordinationType.GROUP
    ) -> Any:
        """Send one request to the coordinator of a group, or of a transactional id if ``kind`` says so.

        It uses a separate connection, so that fetches do not delay it.
        """
        client = self._running
        if client.get_random_node() is None:
            raise NotReachable(f"{about}: no broker is in the metadata")
        try:
            node = await client.coordinator_lookup(kind, name)
            return await client.send(node, request, group=ConnectionGroup.COORDINATION)
        except (library.KafkaError, TimeoutError) as error:
            raise translated(error, about) from error

    async def controller(self) -> int:
        """The node that accepts changes of topics and configs. Our broker and KRaft forward them from any broker."""
        known_controller = self._running.cluster.controller
        if known_controller is None:
            await self._running.force_metadata_update()
            known_controller = self._running.cluster.controller
        node = known_controller.nodeId if known_controller is not None else self._running.get_random_node()
        if node is None:
            raise NotReachable(f"no broker of {self.bootstrap_servers} is in the metadata")
        return int(node)

    def brokers(self) -> list[int]:
        return [int(broker.nodeId) for broker in self._running.cluster.brokers()]

    async def retried(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Retry ``attempt`` for request.timeout.ms while its error is retriable; then raise that error."""
        deadline = time.monotonic() + self.request_timeout_ms / 1000
        pause = self._settings.retry_backoff_ms / 1000
        while True:
            try:
                return await attempt()
            except UnknownTopicOrPartition:
                raise  # Kafka calls it retriable, for topics that are being created; Admin is not asked about those
            except TidegateError as error:
                if not error.retriable or time.monotonic() + pause > deadline:
                    raise
            await self._running.force_metadata_update()
            await asyncio.sleep(pause)
            pause = min(2 * pause, 1.0)
