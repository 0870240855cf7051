"""Records that cannot be handled are retried, left out and reported, or end the task (``errors.*``)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from connect.api import ConnectError, DataError, RecordBatch, RetriableConnectError
from connect.config.connector import CommonConfig
from tidegate.kit.logs import get_logger

__all__ = ["ErrorPolicy", "Failure", "ToleranceExceeded"]

logger = get_logger(__name__)
T = TypeVar("T")

_FIRST_DELAY_S: Final = 0.3


class ToleranceExceeded(ConnectError):
    """A record could not be handled and ``errors.tolerance`` does not allow to leave it out."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One record that could not be handled, and where. ``batch`` holds it alone; offsets and such only in a sink."""

    stage: str
    component: str
    error: Exception
    batch: RecordBatch

    @property
    def position(self) -> dict[str, Any]:
        """Topic, partition, offset and timestamp as far as they are known."""
        origin, batch = self.batch.origin, self.batch
        origin_: dict[str, Any] = {"topic": origin.topic if origin else batch.topic}
        if origin is not None:
            origin_["partition"] = origin.partition
        for name, column in (("offset", batch.offsets), ("timestamp_ms", batch.timestamps_ms)):
            if column is not None and len(column):
                origin_[name] = column[0].as_py()
        return origin_


class ErrorPolicy:
    """The ``errors.*`` keys of one task. ``on_tolerated`` gets each failure that is left out (a dead letter queue)."""

    def __init__(
        self,
        config: CommonConfig,
        connector: str,
        task: int,
        stopping: threading.Event,
        *,
        on_tolerated: Callable[[Failure], None] | None = None,
    ) -> None:
        self._config, self._connector, self._task, self._stopping = config, connector, task, stopping
        self._on_tolerated = on_tolerated
        self.failures = self.skipped = self.retries = self.logged = self.errors = self.dead_letters = 0
        self.last_error_ms = 0

    def guarded(
        self, stage: str, component: str, batch: RecordBatch, operation: Callable[[RecordBatch], Sequence[T]]
    ) -> list[T]:
        """Apply ``operation`` to a batch, leave out the records that it cannot handle, and keep the order.

        A DataError that names rows takes those out; one that does not has the batch bisected.
        """
        try:
            return list(self.retried(lambda: operation(batch)))
        except RetriableConnectError as error:
            if self._stopping.is_set():
                raise
            # As in Kafka Connect: what could not be done within errors.retry.timeout is a failure like any other.
            for row in range(len(batch)):
                self.tolerate(Failure(stage, component, error, batch.slice(row, 1)))
            return []
        except DataError as error:
            rows = sorted({row for row in error.rows if 0 <= row < len(batch)})
            if len(batch) <= 1:
                self.tolerate(Failure(stage, component, error, batch))
                return []
            if not rows:
                middle = len(batch) // 2
                parts = [batch.slice(0, middle), batch.slice(middle)]
                return [made for part in parts for made in self.guarded(stage, component, part, operation)]
        made: list[T] = []
        start = 0
        for row in rows:
            if row > start:
                made.extend(self.guarded(stage, component, batch.slice(start, row - start), operation))
            made.extend(self.guarded(stage, component, batch.slice(row, 1), operation))
            start = row + 1
        if start < len(batch):
            made.extend(self.guarded(stage, component, batch.slice(start), operation))
        return made

    def retried(self, call: Callable[[], T]) -> T:
        """``call`` repeated while it raises RetriableConnectError, as long as ``errors.retry.timeout`` allows."""
        limit_ms = self._config.errors_retry_timeout_ms
        began, delay_s = time.monotonic(), _FIRST_DELAY_S
        while True:
            try:
                return call()
            except RetriableConnectError:
                self.failures += 1
                spent_ms = (time.monotonic() - began) * 1000
                if limit_ms == 0 or (limit_ms > 0 and spent_ms >= limit_ms):
                    raise
                self.retries += 1
                longest_s = self._config.errors_retry_delay_max_ms / 1000
                if delay_s > longest_s:
                    delay_s = longest_s * random.uniform(0.5, 1)
                if self._stopping.wait(min(delay_s, longest_s)):
                    raise
                delay_s *= 2

    def tolerate(self, failure: Failure) -> None:
        """Leave one record out, or raise ToleranceExceeded that names it."""
        self.failures += 1
        self.last_error_ms = time.time_ns() // 1_000_000
        failed_at = failure.position
        if self._config.errors_tolerance != "all":
            self.errors += 1
            where = ", ".join(f"{name} {value}" for name, value in failed_at.items())
            raise ToleranceExceeded(
                f"Tolerance exceeded in error handler: connector {self._connector}, task {self._task}, {where}, "
                f"stage {failure.stage} ({failure.component}): {failure.error}"
            ) from failure.error
        self.skipped += 1
        if self._config.errors_log:
            self.logged += 1
            shown = failed_at if self._config.errors_log_messages else {}
            logger.error(
                "record left out",
                connector=self._connector,
                task=self._task,
                stage=failure.stage,
                component=failure.component,
                error=str(failure.error),
                **shown,
            )
        if self._on_tolerated is not None:
            self._on_tolerated(failure)

    def count_skipped(self, rows: int, *, dead_letters: int = 0) -> None:
        """Count rows that a source has left out and reported itself."""
        self.failures += rows
        self.skipped += rows
        self.dead_letters += dead_letters
        self.last_error_ms = time.time_ns() // 1_000_000

    def attributes(self) -> dict[str, float]:
        """``task-error-metrics`` by Kafka Connect's names; from any thread. The dead letter queue adds its own."""
        return {
            "total-record-failures": self.failures,
            "total-record-errors": self.errors,
            "total-records-skipped": self.skipped,
            "total-retries": self.retries,
            "total-errors-logged": self.logged,
            "deadletterqueue-produce-requests": self.dead_letters,
            "deadletterqueue-produce-failures": 0,
            "last-error-timestamp": self.last_error_ms,
        }
