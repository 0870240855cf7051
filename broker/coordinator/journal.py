"""Writing the records of groups to ``__consumer_offsets``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from broker.coordinator.clock import Clock
from broker.coordinator.futures import fail
from broker.coordinator.state_log import Entry, StateLog, partition_for
from broker.errors import BrokerError

__all__ = ["OFFSETS_TOPIC", "GroupJournal"]

OFFSETS_TOPIC: Final = "__consumer_offsets"


class GroupJournal:
    """Appends records of groups, each to its group's partition."""

    def __init__(self, log: StateLog, clock: Clock) -> None:
        self.log = log
        self._clock = clock

    def partition(self, group_id: str) -> int:
        """The partition that has a group's records."""
        return partition_for(group_id, self.log.partitions)

    def append(
        self, group_id: str, entries: Sequence[Entry], producer: tuple[int, int] | None = None
    ) -> asyncio.Future[None]:
        """A failed write gives a failed future, as a failed flush does. Without entries the future is done at once."""
        if not entries:
            return self._done(None)
        try:
            return self.log.append(self.partition(group_id), entries, producer)
        except BrokerError as error:
            return self._done(error)

    def _done(self, error: BrokerError | None) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._clock.create_future()
        if error is None:
            future.set_result(None)
        else:
            fail(future, error)
        return future
