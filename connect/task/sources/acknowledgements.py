"""Tells a source's task where the log has put its rows."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from connect.api import Acknowledged, RecordBatch, SourceTask
from connect.task.control import TaskControl

if TYPE_CHECKING:
    from broker.client import Ack

__all__ = ["Acknowledgements"]


class Acknowledgements:
    """Answers come from the clients' thread; the task is told in its own."""

    def __init__(self, task: SourceTask[Any], control: TaskControl) -> None:
        self._task, self._control = task, control
        self._answered: deque[Acknowledged] = deque()

    def await_answer(self, sent: Future[Ack], rows: RecordBatch) -> None:
        """``rows`` came with offsets and were sent as one batch; what the log refuses is not told."""
        source_partition, offsets = rows.source_partition, rows.offsets

        def answered(done: Future[Ack]) -> None:
            if done.cancelled() or done.exception() is not None:
                return
            ack = done.result()
            if ack.offset >= 0:  # it is not known with acks=0
                self._answered.append(Acknowledged(source_partition, offsets, ack.topic, ack.partition, ack.offset))

        sent.add_done_callback(answered)

    def tell(self) -> None:
        """Tell what has been answered since the last time; from the task's thread."""
        count = len(self._answered)
        if count:
            told = [self._answered.popleft() for _ in range(count)]
            with self._control.calling("acknowledged"):
                self._task.acknowledged(told)
