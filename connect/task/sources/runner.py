"""The work of a source task: poll, send, commit what is safe."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from connect.api import RecordBatch, RetriableConnectError, SourceTask
from connect.task.context import RunningSourceContext
from connect.task.control import Stopped, TaskControl
from connect.task.error_policy import ErrorPolicy
from connect.task.measures import SentRows, TaskMeasures
from connect.task.merging import merged
from connect.task.sources.acknowledgements import Acknowledgements
from connect.task.sources.deliveries import Delivery
from connect.task.sources.pipeline import SourcePipeline
from tidegate.kit.logs import get_logger
from tidegate.kit.windowed import Windowed

__all__ = ["SourceRunner"]

logger = get_logger(__name__)

_IDLE_S: Final = 0.05
"""A pause after a poll that found nothing, for sources that do not wait themselves."""
_RETRY_S: Final = 1.0


class SourceRunner:
    """The Runner of a source's task (``connect.task.lifecycle``)."""

    def __init__(
        self,
        task: SourceTask[Any],
        context: RunningSourceContext,
        control: TaskControl,
        *,
        pipeline: SourcePipeline,
        policy: ErrorPolicy,
        delivery: Delivery,
        acknowledgements: Acknowledgements | None = None,
        measures: TaskMeasures,
        merge: bool = True,
        close: Callable[[], None],
    ) -> None:
        """``merge`` says whether small batches of a poll may travel as one."""
        self._task, self._context, self._control = task, context, control
        self._pipeline, self._policy = pipeline, policy
        self._delivery, self._merge, self._acknowledgements = delivery, merge, acknowledgements
        self._measures, self._rows, self._poll_ms = measures, SentRows(), Windowed()
        self.close = close

    def begin(self) -> None:
        self._measures.state(paused=False)
        self._delivery.begin()

    def pause(self) -> None:
        self._delivery.finish()
        self._measures.state(paused=True)

    def rest(self) -> None:
        self._control.wait_while_paused(1)

    def finish(self) -> None:
        self._delivery.finish()

    def abandon(self) -> None:
        self._delivery.abandon()

    def step(self) -> None:
        try:
            self._deliver_polled()
        except Stopped:
            self._delivery.torn()
            return
        self._delivery.polled()
        if self._acknowledgements is not None and self._delivery.settled:
            self._acknowledgements.tell()

    def _deliver_polled(self) -> None:
        began = time.monotonic()
        try:
            batches = self._policy.retried(self._poll)
        except RetriableConnectError as error:
            logger.warning("poll will be repeated", connector=self._context.connector, error=str(error))
            self._control.stopping.wait(_RETRY_S)
            return
        if not batches:
            self._pipeline.resend_refused()
            self._control.stopping.wait(_IDLE_S)
            return
        self._poll_ms.record((time.monotonic() - began) * 1000)
        self._measures.batch(sum(len(batch) for batch in batches))
        for batch in merged(batches) if self._merge else batches:
            before = self._pipeline.given_records
            futures = self._pipeline.send(batch)
            self._rows.add(len(batch), self._pipeline.given_records - before, futures)
            self._delivery.sent(batch, futures)

    def _poll(self) -> Sequence[RecordBatch]:
        with self._control.calling("poll"):
            return self._task.poll()

    def statistics(self) -> dict[str, Any]:
        return {
            "connector-task-metrics": self._measures.attributes(),
            "source-task-metrics": {
                **self._rows.attributes(),
                "poll-batch-max-time-ms": self._poll_ms.most,
                "poll-batch-avg-time-ms": self._poll_ms.average,
                **self._delivery.attributes(),
            },
            "task-error-metrics": self._policy.attributes(),
        }
