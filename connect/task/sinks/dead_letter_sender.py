"""The producer of a sink's dead letter queue, used from the task's thread."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from connect.stores.topics import create_topic
from connect.task.clients import LAST_WORDS_S, ClientLoop, TaskClients, follow

if TYPE_CHECKING:
    from broker.client import Ack, NewTopic

__all__ = ["DeadLetterSender"]


class DeadLetterSender:
    """Sends single records to a sink's dead letter queue, which it creates if it is missing."""

    def __init__(self, loop: ClientLoop, clients: TaskClients, topic: NewTopic, *, fit: bool) -> None:
        from broker.client import BatchProducer

        self._loop, self._clients, self._topic, self._fit = loop, clients, topic, fit
        self._producer = BatchProducer(clients.dead_letter_producer())

    def start(self) -> None:
        """Connect and create the topic; waits for a cluster that is away. Raises Stopped."""
        self._loop.patiently(self._create, f"dead letter queue {self._topic.name}")
        self._loop.patiently(self._producer.start, f"starting the producer of dead letter queue {self._topic.name}")

    async def _create(self) -> None:
        from broker.client import Admin

        async with Admin(self._clients.admin()) as admin:
            await create_topic(admin, self._topic, fit=self._fit)

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        timestamp_ms: int | None,
    ) -> Future[Ack]:
        future: Future[Ack] = Future()

        async def enqueued() -> None:
            sent = await self._producer.enqueue(topic, key, value, headers, timestamp_ms=timestamp_ms)
            follow(sent, future)

        self._loop.patiently(enqueued, f"sending to dead letter queue {topic}")
        return future

    def wait_until_written(self, sent: Future[Ack]) -> None:
        """Wait for an acknowledgement. Raises what the log says, and RetriableError where the task has to stop first."""
        self._loop.wait(sent)

    def close(self) -> None:
        self._loop.run(self._producer.stop(LAST_WORDS_S))
