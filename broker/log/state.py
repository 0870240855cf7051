"""The state of one partition's log, which its appender, flusher and reader share."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from broker.log.config import LogConfig
from broker.log.producer_state import ProducerState
from broker.log.segment import Segment
from broker.log.segments import Segments
from broker.log.transaction_index import AbortedTransaction
from broker.log.upkeep import Upkeep

__all__ = ["LogState"]


class LogState:
    """Used on the log's thread; a flush in another thread reads it. ``config`` may be replaced at any time."""

    def __init__(
        self,
        directory: Path,
        topic: str,
        partition: int,
        topic_id: uuid.UUID,
        config: LogConfig,
        upkeep: Upkeep[Any] | None = None,
    ) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.log_start_offset = 0
        self.log_end_offset = 0
        """The offset of the next record. It is also the high watermark, because there is one replica."""
        self.flushed_offset = 0
        self.first_dirty_offset = 0
        self.checkpointed_offset = 0
        self.leader_epoch = 0
        self.producers = ProducerState(f"{topic}-{partition}")
        self.segments = Segments()
        self.aborted: list[AbortedTransaction] = []
        self.written_bytes = 0
        """Bytes of records appended since the log was opened."""
        self.upkeep: Upkeep[Any] = upkeep or Upkeep()
        self.is_new = False
        self.is_damaged = False
        self.is_retired = False
        self.failure: str | None = None
        """Why the log refuses records; None if it accepts them."""

    @property
    def last_stable_offset(self) -> int:
        """The first offset of the oldest open transaction, or the end of the log. Readers of committed data stop here.

        It is never before the start of the log, even if the beginning of the transaction was deleted.
        """
        first_open = self.producers.first_open_transaction
        return self.log_end_offset if first_open is None else max(first_open, self.log_start_offset)

    @property
    def size(self) -> int:
        """Bytes of records on disk."""
        return sum(segment.size for segment in self.segments)

    @property
    def active(self) -> Segment:
        return self.segments[-1]
