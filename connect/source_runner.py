"""Drives a source task: poll, send, commit what is safe."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from contextlib import suppress
from typing import Any, Final, Protocol

from connect.api import RetriableConnectError, SourceTask
from connect.context import RunningSourceContext
from connect.control import Stopped, TaskControl
from connect.error_policy import ErrorPolicy
from connect.merging import merged
from connect.source_offsets import SourcePosition, SubmittedBatches
from connect.source_pipeline import InFlight, SourcePipeline
from connect.stores.offsets import canonical
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import logger

__all__ = ["OffsetWriter", "SourceRunner"]

log = logger(__name__)

_IDLE_S: Final = 0.05
"""A pause after a poll that found nothing, for sources that do not wait themselves."""
_RETRY_S: Final = 1.0


class OffsetWriter(Protocol):
    def write(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        """Write positions by record key; returns when the log has them."""
        ...


class SourceRunner:
    """One task from ``start`` to ``stop``. ``on_state`` hears True when it is paused and False when it runs."""

    def __init__(
        self,
        task: SourceTask[Any],
        context: RunningSourceContext,
        control: TaskControl,
        *,
        pipeline: SourcePipeline,
        in_flight: InFlight,
        policy: ErrorPolicy,
        submitted: SubmittedBatches,
        offsets: OffsetWriter,
        flush_interval_ms: int,
        flush_timeout_ms: int,
        on_paused: Callable[[bool], None],
        close: Callable[[], None],
    ) -> None:
        self._task, self._context, self._control = task, context, control
        self._pipeline, self._in_flight, self._policy = pipeline, in_flight, policy
        self._submitted, self._offsets = submitted, offsets
        self._flush_interval_s, self._flush_timeout_s = flush_interval_ms / 1000, flush_timeout_ms / 1000
        self._on_paused, self._close = on_paused, close
        self._uncommitted: dict[str, SourcePosition] = {}
        self._polled_records = self._polled_batches = self._commits = 0
        self._next_commit = time.monotonic() + self._flush_interval_s

    def run(self) -> None:
        try:
            self._task.start()
            try:
                self._loop()
            except BaseException:
                # What was sent before counts all the same; but the first failure is the one to show.
                with suppress(TidegateError):
                    self._finish()
                raise
            self._finish()
        finally:
            try:
                self._task.stop()
            finally:
                self._close()

    def interrupt(self) -> None:
        self._task.stop()

    def _loop(self) -> None:
        self._on_paused(self._control.paused)
        while not self._control.stopping.is_set():
            if self._control.paused:
                self._finish()
                self._on_paused(True)
                while self._control.paused and not self._control.stopping.is_set():
                    self._control.wait_while_paused(1)
                self._on_paused(False)
                continue
            try:
                self._step()
            except Stopped:
                return
            if time.monotonic() >= self._next_commit:
                self.commit()

    def _step(self) -> None:
        try:
            batches = self._policy.retried(self._task.poll)
        except RetriableConnectError as error:
            log.warning("poll will be repeated", connector=self._context.connector, error=str(error))
            self._control.stopping.wait(_RETRY_S)
            return
        if not batches:
            self._in_flight.check()
            self._control.stopping.wait(_IDLE_S)
            return
        for batch in merged(batches):
            self._polled_batches += 1
            self._polled_records += len(batch)
            self._submitted.add(batch.source_partition, batch.source_offset, self._pipeline.send(batch))

    def commit(self) -> None:
        """Write the positions that are safe, then tell the task."""
        self._next_commit = time.monotonic() + self._flush_interval_s
        self._uncommitted |= {
            canonical(partition): (partition, offset) for partition, offset in self._submitted.take_safe()
        }
        if not self._uncommitted:
            return
        safe = list(self._uncommitted.values())
        try:
            self._offsets.write({self._submitted.key(partition): offset for partition, offset in safe})
        except TidegateError as error:
            if not error.retriable:
                raise
            log.warning("offsets will be committed later", connector=self._context.connector, error=str(error))
            return
        self._uncommitted.clear()
        self._commits += 1
        for partition, offset in safe:
            self._context.remember(partition, offset)
        self._task.committed(safe)

    def _finish(self) -> None:
        """Wait for what was sent, within the time, and commit it."""
        wait(self._submitted.pending, timeout=self._flush_timeout_s)
        self.commit()

    def statistics(self) -> dict[str, Any]:
        return {
            "source-record-poll-total": self._polled_records,
            "source-record-write-total": self._pipeline.written_records,
            "offset-commit-total": self._commits,
            "total-record-failures": self._policy.failures,
            "total-records-skipped": self._policy.skipped,
            "total-retries": self._policy.retries,
            "total-errors-logged": self._policy.logged,
        }
