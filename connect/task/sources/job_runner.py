"""The work of a source job's task: runs the job from the committed position, commits what it wrote, and waits for the next time."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from connect.api import ConnectError, RecordBatch, SourceJobTask, Written
from connect.config.connector import ScheduleConfig
from connect.task.context import RunningSourceContext
from connect.task.control import Stopped, TaskControl
from connect.task.job_history import JobHistory
from connect.task.job_times import RETRY_S, JobTimes
from connect.task.sources.deliveries import Delivery
from tidegate.kit.errors import RetriableError
from tidegate.kit.logs import get_logger

__all__ = ["PENDING", "SourceJobRunner"]

logger = get_logger(__name__)

PENDING: Final = "tidegate.pending"
"""The member of a position that has the receipt of a run whose records are not published yet, as JSON; empty: there is none."""
_COMMIT_PAUSE_S: Final = 1.0


class _Pending(NamedTuple):
    run_id: str
    receipt: str
    position: Mapping[str, Any]
    records: int


class SourceJobRunner:
    """The Runner of a source job's task (``connect.task.lifecycle``)."""

    def __init__(
        self,
        task: SourceJobTask[Any],
        context: RunningSourceContext,
        control: TaskControl,
        *,
        schedule: ScheduleConfig,
        delivery: Delivery,
        on_topic: Callable[[str], None],
        close: Callable[[], None],
    ) -> None:
        self._task, self._context, self._control = task, context, control
        self._delivery, self._on_topic, self.close = delivery, on_topic, close
        self._history = JobHistory()
        self._times = JobTimes(schedule, control, self._history)
        self._runs = self._records = 0
        self._topics: set[str] = set()

    def begin(self) -> None:
        self._delivery.begin()
        self._times.begin()

    def pause(self) -> None:
        """Nothing is under way between two steps."""

    def rest(self) -> None:
        self._control.wait_while_paused(1)

    def finish(self) -> None:
        """A run is whole or does not count; its commits are part of it."""

    def abandon(self) -> None:
        self._delivery.abandon()

    def step(self) -> None:
        if self._times.wait() is not None:
            self._times.set_due(self._run_once())

    def _run_once(self) -> float:
        """Publish what is pending, else run the job; returns when it is due again."""
        stored = dict(self._context.offset(self._task.source_partition()) or {})
        pending, position = _split(stored)
        run_id = pending.run_id if pending is not None else uuid.uuid4().hex[:16]
        self._control.job_cancelled.clear()  # an order that came too late for the run before
        self._history.begins(run_id, records=0, partitions=1, repeated=pending is not None)
        try:
            if pending is not None:
                return self._published(pending, position)
            written = self._task.write(position or None, run_id)
            if written is None:
                self._history.had_nothing()
                return self._times.next_due()
            return self._committed(run_id, written, position)
        except Stopped:
            self._history.ends("cancelled")
            raise
        except BaseException as error:
            if self._control.job_cancelled.is_set() and not self._control.stopping.is_set():
                self._history.ends("cancelled")
                logger.info("job cancelled", connector=self._context.connector, run=run_id)
                return self._times.next_due()
            if not isinstance(error, RetriableError):
                self._history.ends("failed", error)
                raise
            self._history.ends("retried", error)
            logger.warning("job will be run again", connector=self._context.connector, error=str(error))
            return time.time() + RETRY_S
        finally:
            self._control.job_cancelled.clear()

    def _committed(self, run_id: str, written: Written, before: Mapping[str, Any]) -> float:
        for topic in sorted(set(written.topics) - self._topics):
            self._topics.add(topic)
            self._on_topic(topic)
        if not written.receipt:
            self._commit(written.position)
            return self._ended(run_id, written.records, more=written.more)
        pending = _Pending(run_id, written.receipt, written.position, written.records)
        self._commit({**before, PENDING: json.dumps(pending._asdict())})
        return self._published(pending, before, more=written.more)

    def _published(self, pending: _Pending, before: Mapping[str, Any], *, more: bool = True) -> float:
        if not self._task.publish(pending.receipt):
            logger.warning(
                "records of a run were dropped before they were published, all or a part of them: the run is repeated",
                connector=self._context.connector,
                run=pending.run_id,
            )
            self._commit({**before, PENDING: ""})
            self._history.ends("retried", ConnectError("its transactions were aborted before they were committed"))
            return time.time()
        self._commit(pending.position)
        return self._ended(pending.run_id, pending.records, more=more)

    def _ended(self, run_id: str, records: int, *, more: bool) -> float:
        self._history.reads(records=records, partitions=1)
        self._history.ends("done")
        self._runs += 1
        self._records += records
        logger.info("job done", connector=self._context.connector, run=run_id, records=records)
        return time.time() if more else self._times.next_due()

    def _commit(self, position: Mapping[str, Any]) -> None:
        """Returns when the position is committed; tries again while the log is away. Raises Stopped."""
        partition = self._task.source_partition()
        no_rows = pa.nulls(0, pa.string())
        self._delivery.sent(RecordBatch("", no_rows, None, source_partition=partition, source_offset=position), ())
        while True:
            self._delivery.finish()
            if self._context.offset(partition) == position:
                return
            if self._control.stopping.wait(_COMMIT_PAUSE_S):
                raise Stopped("the task is to stop, and the position is not committed")

    def statistics(self) -> dict[str, Any]:
        return {
            "source-task-metrics": {"source-record-write-total": self._records},
            "job-task-metrics": {"job-run-total": self._runs},
            "job": self._history.as_json(),
        }


def _split(stored: Mapping[str, Any]) -> tuple[_Pending | None, dict[str, Any]]:
    """The run that is not published yet, and the position before it."""
    position = {name: value for name, value in stored.items() if name != PENDING}
    text = stored.get(PENDING)
    return (_Pending(**json.loads(text)) if text else None), position
