"""Records from time to time which offset in the target a mirrored record got: the topic of offset syncs (KIP-382,
KIP-545).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from connect.api import Acknowledged, TidegateError, TopicPartition, get_logger
from connectors.mirror.records import OffsetSync

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from broker.client import BatchProducer, ClientConfig

__all__ = ["OffsetSyncWriter", "PartitionState"]

logger = get_logger(__name__)

_MOST_OUTSTANDING: Final = 10
_LAST_WORDS_S: Final = 2.0
_PAUSE_S: Final = 5.0
"""The pause before another sync may be sent after one could not be written."""


class PartitionState:
    """Decides which records of a partition need a sync: the first one, one that does not directly follow the previous
    record on either side, and one whose translated offset would otherwise be more than ``max_lag`` too low.
    """

    def __init__(self, max_lag: int) -> None:
        self._max_lag = max_lag
        self._upstream = self._downstream = self._synced = -1

    def rows_to_sync(self, upstream: NDArray[np.int64], downstream: int, room: int) -> Iterator[int]:
        """Rows to write a sync for: the first ``room`` rows that need one, and the last of them.

        ``upstream`` are the rows' offsets in the source; their offsets in the target are consecutive from
        ``downstream`` on.
        """
        import numpy as np

        rows = len(upstream)
        breaks = (np.flatnonzero(np.diff(upstream) != 1) + 1).tolist()
        if self._synced < 0 or int(upstream[0]) - self._upstream != 1 or downstream < self._downstream:
            breaks.insert(0, 0)
        self._upstream, self._downstream = int(upstream[-1]), downstream + rows - 1
        position = used = 0
        while True:
            late = self._synced + 1 + self._max_lag - downstream if self._synced >= 0 else position
            row = max(late, position)
            if used < len(breaks) and breaks[used] <= row:
                row, used = breaks[used], used + 1
            if row >= rows:
                return
            self._synced, position = downstream + row, row + 1
            yield row
            room -= 1
            if room == 0:
                break
        yield from self._last(breaks[used:], position, rows, downstream)

    def _last(self, breaks: Sequence[int], position: int, rows: int, downstream: int) -> Iterator[int]:
        """The last row that needs a sync from ``position`` on, found without examining those in between."""
        start = breaks[-1] if breaks else max(self._synced + 1 + self._max_lag - downstream, position)
        if start < rows:
            step = max(self._max_lag + 1, 1)
            row = start + (rows - 1 - start) // step * step
            self._synced = downstream + row
            yield row


class OffsetSyncWriter:
    """``acknowledged`` and the other methods are called from the task's thread; the producer's responses arrive in the
    clients' thread.

    Several syncs are sent at a time; of those waiting, the newest of each partition is kept. A sync that could not be
    written is sent again unless there is a newer one.
    """

    def __init__(self, producer: ClientConfig, topic: str, max_lag: int) -> None:
        self._config, self._topic, self._max_lag = producer, topic, max_lag
        self._producer: BatchProducer | None = None
        self._states: dict[TopicPartition, PartitionState] = {}
        self._newest: dict[TopicPartition, OffsetSync] = {}
        self._pending: dict[TopicPartition, OffsetSync] = {}
        self._delayed: dict[TopicPartition, OffsetSync] = {}
        self._outstanding: list[Future[None]] = []
        self._failed: deque[OffsetSync] = deque()
        self._turn = asyncio.Lock()

    def acknowledged(self, rows: Acknowledged) -> None:
        """Note rows that are now in the target."""
        source = rows.source_partition or {}
        partition = TopicPartition(source["topic"], source["partition"])
        upstream = rows.offsets.to_numpy()
        state = self._states.setdefault(partition, PartitionState(self._max_lag))
        room = max(1, self._room())
        last = len(upstream) - 1
        row = -1
        for row in state.rows_to_sync(upstream, rows.first_offset, room):
            self._pending[partition] = self._newest[partition] = OffsetSync(
                partition, int(upstream[row]), rows.first_offset + row
            )
            self._delayed.pop(partition, None)
            self.send()
        if row < last:
            self._delayed[partition] = OffsetSync(partition, int(upstream[last]), rows.first_offset + last)

    def promote(self) -> None:
        """Offsets were committed: send the syncs that were not needed before, so that a quiet topic shows no lag."""
        self._pending |= self._delayed
        self._newest |= self._delayed
        self._delayed.clear()
        self.send()

    def send(self) -> None:
        """Send waiting syncs, as far as the limit allows."""
        from broker.client.blocking import submit

        while self._failed:
            sync = self._failed.popleft()
            if self._newest.get(sync.partition) is sync:
                self._pending[sync.partition] = sync
        while self._pending and self._room() > 0:
            self._outstanding.append(submit(self._sent(self._pending.pop(next(iter(self._pending))))))

    def _room(self) -> int:
        self._outstanding = [future for future in self._outstanding if not future.done()]
        return _MOST_OUTSTANDING - len(self._outstanding)

    async def _sent(self, sync: OffsetSync) -> None:
        from broker.client import BatchProducer

        try:
            async with self._turn:
                if self._producer is None:
                    producer = BatchProducer(self._config)
                    await producer.start()
                    self._producer = producer
                answer = await self._producer.enqueue(self._topic, sync.key, sync.value, partition=0)
            await answer
        except TidegateError as error:
            logger.warning(
                "an offset sync could not be written",
                topic=self._topic,
                partition=str(sync.partition),
                error=str(error),
            )
            self._failed.append(sync)
            await asyncio.sleep(_PAUSE_S)  # it keeps its slot meanwhile

    def close(self) -> None:
        """Wait briefly for syncs that are being sent."""
        from broker.client.blocking import call

        with suppress(TidegateError, TimeoutError):
            call(self._closed(), timeout_s=2 * _LAST_WORDS_S)

    async def _closed(self) -> None:
        async with self._turn:
            if self._producer is not None:
                await self._producer.stop(_LAST_WORDS_S)
