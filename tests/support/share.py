"""A share-partition over a log that is a list of batches; its state is a list too, and the test advances the clock."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from broker.share_coordinator.config import ShareCoordinatorConfig
from broker.share_coordinator.coordinator import ShareCoordinator
from broker.share_coordinator.values import ShareKey
from broker.share_delivery.acknowledging import acknowledge, release
from broker.share_delivery.acquiring import acquire, give_up
from broker.share_delivery.partition import SharePartition
from broker.share_delivery.values import (
    AcknowledgeBatch,
    Acquired,
    BatchSpan,
    ShareSettings,
)
from tests.support.groups import ListLog, ManualClock
from tidegate.kit.config import parse

__all__ = ["KEY", "ShareBench", "StateList"]

KEY = ShareKey("g", uuid.UUID(int=7), 0)


class StateList(ListLog):
    """``__share_group_state`` as lists."""

    def end_offset(self, partition: int) -> int:
        return len(self.entries[partition])

    def delete_before(self, partition: int, offset: int) -> None:
        self.deleted = {**getattr(self, "deleted", {}), partition: offset}

    def read(self, partition: int, *_: Any) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        begin = getattr(self, "deleted", {}).get(partition, 0)
        for offset, (key, value) in enumerate(self.entries[partition]):
            if offset >= begin:
                yield offset, key, value


class ShareBench:
    """One share-partition; ``restart`` starts again with the stored state."""

    def __init__(self, settings: ShareSettings | None = None, *, log_start: int = 0, **config: str) -> None:
        self.clock = ManualClock()
        self.log = StateList(self.clock)
        self.settings = settings or ShareSettings(auto_offset_reset="earliest")
        self.config = parse(
            ShareCoordinatorConfig,
            {f"share.coordinator.{name.replace('_', '.')}": value for name, value in config.items()},
        )
        self.batches: list[BatchSpan] = []
        self.end = log_start
        self.log_start = log_start
        self.changes = 0
        self.restart(initialize=True)

    def restart(self, *, initialize: bool = False) -> None:
        self.coordinator = ShareCoordinator(self.log, self.config, self.clock, lambda topic, partition: True)
        self.coordinator.start()
        if initialize:
            self.coordinator.initialize(KEY, 1, -1)
        else:
            self.share.fence()  # A broker that is gone releases nothing.
        self.share = SharePartition(
            KEY,
            leader_epoch=0,
            settings=lambda: self.settings,
            persister=self.coordinator,
            clock=self.clock,
            changed=self._changed,
        )
        self.share.open(lambda reset: self.log_start if reset == "earliest" else self.end)

    def close(self) -> None:
        self.clock.close()

    def _changed(self) -> None:
        self.changes += 1

    def append(self, *sizes: int) -> None:
        """Batches of so many records."""
        for size in sizes:
            self.batches.append(BatchSpan(self.end, self.end + size - 1))
            self.end += size

    def compact(self, offset: int) -> None:
        """The batch that holds this offset is gone."""
        self.batches = [batch for batch in self.batches if not batch.first <= offset <= batch.last]

    def fetch(
        self,
        member: str,
        most: int = 500,
        *,
        batch_size: int = 500,
        exactly: bool = False,
        read: int = 100,
        aborted: Sequence[BatchSpan] = (),
    ) -> list[Acquired]:
        """The records acquired by a member that reads this many batches."""
        if not self.share.can_acquire:
            return []
        offset = self.share.next_fetch_offset()
        if offset < self.log_start:
            self.share.log_starts_at(self.log_start)
            offset = self.share.next_fetch_offset()
        batches = [batch for batch in self.batches if batch.last >= offset][:read]
        acquired = acquire(
            self.share, member, fetch_offset=offset, batches=batches, most=most, batch_size=batch_size, exactly=exactly
        )
        return give_up(self.share, acquired, [span for span in aborted if span in batches])

    def acknowledge(self, member: str, first: int, last: int, *types: int) -> asyncio.Future[None]:
        return acknowledge(self.share, member, [AcknowledgeBatch(first, last, types or (1,))])

    def release(self, member: str) -> asyncio.Future[None]:
        return release(self.share, member)
