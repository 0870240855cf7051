"""When a source's rows count as delivered and its positions as committed: at least once, or exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, Protocol

from connect.api import RecordBatch
from connect.stores.offsets import canonical
from connect.task.control import Stopped, TaskControl
from connect.task.exactly_once import TransactionBoundary
from connect.task.measures import TaskMeasures
from connect.task.sources.offsets import OffsetKeys, SourcePosition, SubmittedBatches, checked
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger
from tidegate.kit.windowed import Windowed

__all__ = ["AtLeastOnce", "Delivery", "ExactlyOnce", "OffsetWriter", "Transactions"]

logger = get_logger(__name__)

OnCommitted = Callable[[Sequence[SourcePosition]], None]


class Delivery(Protocol):
    """Used from the task's thread."""

    @property
    def settled(self) -> bool:
        """Whether what the log has acknowledged so far stays."""
        ...

    def attributes(self) -> dict[str, float]:
        """Its statistics by Kafka Connect's names; may be called on any thread."""
        ...

    def begin(self) -> None:
        """The task begins to poll, or goes on after a pause."""
        ...

    def sent(self, batch: RecordBatch, futures: Sequence[Future[Any]]) -> None:
        """A batch was given to the log, with its acknowledgements to come."""
        ...

    def torn(self) -> None:
        """The task is told to stop in the middle of a batch, of which a part was given to the log."""
        ...

    def polled(self) -> None:
        """Called when the rows of a poll have been sent to the log."""
        ...

    def finish(self) -> None:
        """Commit what is there; the task pauses or stops."""
        ...

    def abandon(self) -> None:
        """The task has failed. Raises nothing."""
        ...


class OffsetWriter(Protocol):
    def write(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        """Write positions by record key; returns when the log has them."""
        ...


class AtLeastOnce:
    """Positions are written from time to time, each once all rows up to it are acknowledged."""

    def __init__(
        self,
        connector: str,
        submitted: SubmittedBatches,
        offsets: OffsetWriter,
        on_committed: OnCommitted,
        control: TaskControl,
        *,
        interval_ms: int,
        timeout_ms: int,
        measures: TaskMeasures | None = None,
    ) -> None:
        self._connector, self._submitted, self._offsets = connector, submitted, offsets
        self._on_committed, self._control = on_committed, control
        self._interval_s, self._timeout_s = interval_ms / 1000, timeout_ms / 1000
        self._uncommitted: dict[str, SourcePosition] = {}
        self._next_commit = time.monotonic() + self._interval_s
        self._measures = measures or TaskMeasures()

    @property
    def settled(self) -> bool:
        return True

    def attributes(self) -> dict[str, float]:
        return {}

    def begin(self) -> None:
        self._next_commit = time.monotonic() + self._interval_s

    def sent(self, batch: RecordBatch, futures: Sequence[Future[Any]]) -> None:
        self._submitted.add(batch.source_partition, batch.source_offset, futures)

    def torn(self) -> None:
        pass

    def polled(self) -> None:
        if time.monotonic() >= self._next_commit:
            self.commit()

    def commit(self) -> None:
        """Write the positions that are safe, then tell the task."""
        self._next_commit = time.monotonic() + self._interval_s
        self._uncommitted |= {
            canonical(partition): (partition, offset) for partition, offset in self._submitted.take_safe()
        }
        if not self._uncommitted:
            return
        safe = list(self._uncommitted.values())
        with self._measures.committing() as outcome:
            try:
                with self._control.gate.passing():
                    self._offsets.write({self._submitted.keys.key(partition): offset for partition, offset in safe})
            except TidegateError as error:
                if not error.retriable:
                    raise
                logger.warning("offsets will be committed later", connector=self._connector, error=str(error))
                return
            outcome.failed = False
        self._uncommitted.clear()
        self._on_committed(safe)

    def finish(self) -> None:
        """Wait for what was sent, within the time, and commit it."""
        # Of the time that a task has to stop, a half is left for the commit.
        wait(self._submitted.pending, timeout=min(self._timeout_s, self._control.time_left_s(2 * self._timeout_s) / 2))
        self.commit()

    def abandon(self) -> None:
        # Rows that were sent before still count, unless the task was cancelled; but the first failure is the one to show.
        if not self._control.cancelled:
            with suppress(TidegateError, Stopped):
                self.finish()


class Transactions(Protocol):
    """A transactional producer, from the task's thread. Transactions begin by themselves with what is sent first."""

    @property
    def is_open(self) -> bool: ...

    def commit(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        """Write positions into the transaction and commit it. Raises what fails the task."""
        ...

    def abort(self) -> None: ...


class ExactlyOnce:
    """Rows and the positions behind them are committed in one transaction, whose end ``boundary`` sets (KIP-618)."""

    def __init__(
        self,
        keys: OffsetKeys,
        transactions: Transactions,
        boundary: TransactionBoundary,
        on_committed: OnCommitted,
        control: TaskControl,
        measures: TaskMeasures | None = None,
    ) -> None:
        self._measures, self._control = measures or TaskMeasures(), control
        self._sizes, self._rows = Windowed(), 0
        self._keys, self._transactions, self._boundary = keys, transactions, boundary
        self._on_committed = on_committed
        self._positions: dict[str, SourcePosition] = {}
        self._torn = False

    @property
    def settled(self) -> bool:
        return not self._transactions.is_open

    def attributes(self) -> dict[str, float]:
        return {
            "transaction-size-min": self._sizes.least,
            "transaction-size-max": self._sizes.most,
            "transaction-size-avg": self._sizes.average,
        }

    def begin(self) -> None:
        self._boundary.begin()

    def sent(self, batch: RecordBatch, futures: Sequence[Future[Any]]) -> None:
        self._rows += len(batch)
        if batch.source_partition is not None and batch.source_offset is not None:
            position = (dict(checked(batch.source_partition)), dict(checked(batch.source_offset)))
            self._positions[canonical(position[0])] = position
        self._end(self._boundary.after_batch(batch))

    def torn(self) -> None:
        """A part of a batch has no position that could be committed with it, so none of the transaction counts."""
        self._torn = True

    def polled(self) -> None:
        self._end(self._boundary.after_poll())

    def finish(self) -> None:
        if self._torn:
            self.abandon()
            return
        self._end(self._boundary.at_the_end())

    def abandon(self) -> None:
        self._positions.clear()
        if self._transactions.is_open:
            with suppress(TidegateError, Stopped):
                self._transactions.abort()

    def _end(self, how: str | None) -> None:
        if how is None or not (self._transactions.is_open or self._positions):
            return
        if how == "abort":
            logger.info("a transaction is aborted as its source asked", partitions=len(self._positions))
            if self._transactions.is_open:
                self._transactions.abort()
        positions = list(self._positions.values())
        with self._measures.committing() as outcome, self._control.gate.passing():
            self._transactions.commit({self._keys.key(partition): offset for partition, offset in positions})
            outcome.failed = False
        self._positions.clear()
        self._sizes.record(self._rows)
        self._rows = 0
        self._on_committed(positions)
