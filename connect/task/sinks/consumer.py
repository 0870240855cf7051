"""The consumer of a sink task: an async client on the clients' loop, its news told to the task's thread through a queue."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, Final

from connect.api import TopicPartition
from connect.task.clients import ClientLoop
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client import ClientConfig, FetchedBatches

__all__ = ["KafkaSinkConsumer"]

logger = get_logger(__name__)

_SHORTEST_LEAVE_S: Final = 0.5
"""Leaving the group is worth this in any case: without, it waits for the member's session to expire."""
_REMOVAL_S: Final = 5.0


class KafkaSinkConsumer:
    """A SinkConsumer over any Kafka. Made and used by the task's thread.

    ``client_id`` is the ``client.id`` that only this task has: a member of the group with it is what the task was before.
    """

    def __init__(
        self,
        loop: ClientLoop,
        config: ClientConfig,
        topics: Sequence[str],
        pattern: str | None,
        client_id: str | None = None,
    ) -> None:
        from broker.client import BatchConsumer

        self.events: queue.Queue[tuple[str, Any, Future[None] | None]] = queue.Queue()
        self._loop, self._consumer = loop, BatchConsumer(config)
        self._config, self._topics, self._pattern = config, topics, pattern
        self._client_id = client_id if config.properties.get("client.id") == client_id else None
        self._listener = _Listener(self.events)

    def start(self) -> None:
        """Connect and join the group; waits for a cluster that is away. Raises Stopped."""
        self._loop.patiently(self._consumer.start, "starting a sink's consumer")
        self._loop.run(self._subscribed())

    async def _subscribed(self) -> None:
        if self._client_id is not None:
            await self._remove_predecessor(self._client_id)
        await self._consumer.subscribe(self._topics, pattern=self._pattern, listener=self._listener)

    async def _remove_predecessor(self, client_id: str) -> None:
        """Remove the member that the task was before its process died: the group would wait for its session to expire."""
        from broker.client import Admin

        group = self._config.properties["group.id"]
        try:
            async with asyncio.timeout(_REMOVAL_S), Admin(self._config) as admin:
                described = await admin.describe_group(group)
                for member in described.members if described.type == "classic" else ():
                    if member.client_id == client_id:
                        await admin.remove_member(group, member.member_id)
                        logger.info("removed what this task was before from its group", member=member.member_id)
        except (TidegateError, TimeoutError) as error:
            logger.info("cannot look at the group before joining it", group=group, error=str(error))

    @property
    def missing_topics(self) -> frozenset[str]:
        return self._consumer.missing_topics

    def start_fetch(self, max_wait_ms: int, max_bytes: int) -> Future[list[FetchedBatches]]:
        fetching = self._loop.submit(self._consumer.fetch(max_wait_ms, max_bytes))
        fetching.add_done_callback(lambda done: self.events.put(("fetched", done, None)))
        return fetching

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._loop.run(self._consumer.seek(partition, offset))

    def pause(self, *partitions: TopicPartition) -> None:
        if partitions:
            self._loop.run(self._consumer.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        if partitions:
            self._loop.run(self._consumer.resume(*partitions))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        from broker.client import TopicPartition as ClientPartition

        self._loop.run(self._consumer.commit({ClientPartition(*partition): at for partition, at in offsets.items()}))

    def stop(self) -> None:
        """Leave the group. Revocations that are still announced, and one that the task did not get over, are confirmed without it."""
        self._listener.confirm()
        stopping = self._loop.submit(self._consumer.stop())
        stopping.add_done_callback(lambda _: self.events.put(("stopped", None, None)))
        deadline = time.monotonic() + max(self._loop.last_wait_s(), _SHORTEST_LEAVE_S)
        while not stopping.done():
            try:
                _, _, done = self.events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                logger.warning("the group could not be left in time; it will notice")
                stopping.cancel()
                return
            _confirm(done)
        stopping.result()


def _confirm(done: Future[None] | None) -> None:
    if done is not None:
        with contextlib.suppress(InvalidStateError):  # it is over, or nobody waits for it
            done.set_result(None)


class _Listener:
    """Hands a rebalance to the task's thread and waits until that has dealt with it."""

    def __init__(self, events: queue.Queue[tuple[str, Any, Future[None] | None]]) -> None:
        self._events = events
        self._told: Future[None] | None = None
        """The end of what the task was told last."""

    def confirm(self) -> None:
        """For the task's thread: what it was told last counts as done."""
        _confirm(self._told)

    async def on_revoked(self, partitions: set[Any]) -> None:
        await self._tell("revoked", partitions)

    async def on_assigned(self, partitions: set[Any]) -> None:
        await self._tell("assigned", partitions)

    async def _tell(self, what: str, partitions: set[Any]) -> None:
        done: Future[None] = Future()
        self._told = done
        self._events.put((what, frozenset(TopicPartition(*partition) for partition in partitions), done))
        await asyncio.wrap_future(done)
