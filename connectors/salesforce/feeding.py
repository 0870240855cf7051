"""Threads that wait for Salesforce on behalf of a source task, and the queue between them and ``poll``."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from connect.api import RecordBatch, RetriableConnectError, SourceTaskContext, get_logger

__all__ = ["Feed", "Feeder"]

logger = get_logger(__name__)

Feed = Callable[[], Iterable[Sequence[RecordBatch]]]
"""Yields batches as they arrive, and an empty list now and then as a sign of life.

After a RetriableConnectError it is called again to continue; any other exception fails the task.
"""
_LONGEST_S: Final = 30.0
_WAITING: Final = 16
"""The most batches that wait for ``poll`` before the threads block; this limits memory."""


class Feeder:
    """Runs a thread for each feed and returns their batches, in each feed's order."""

    def __init__(self, context: SourceTaskContext) -> None:
        self._context = context
        self._arrived: queue.Queue[Sequence[RecordBatch] | BaseException] = queue.Queue(maxsize=_WAITING)
        self._threads: list[threading.Thread] = []
        self._over = threading.Event()

    def start(self, name: str, feed: Feed) -> None:
        thread = threading.Thread(target=self._run, args=(name, feed), name=f"follow {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def end(self, *aborts: Callable[[], None]) -> None:
        """Wait until the threads have ended; ``aborts`` end the calls that they are blocked in."""
        self._over.set()
        for abort in aborts:
            abort()
        for thread in self._threads:
            if thread.ident is not None:  # otherwise it could not be started
                thread.join()

    def next_batches(self) -> Sequence[RecordBatch]:
        """The batches that have arrived; waits up to half a second. Raises the exception that ended a feed."""
        try:
            arrived = self._arrived.get(timeout=0.5)
        except queue.Empty:
            return []
        if isinstance(arrived, BaseException):
            raise arrived
        return arrived

    def _run(self, name: str, feed: Feed) -> None:
        wait_s = 0.5
        while not self._is_over:
            try:
                for batches in feed():
                    wait_s = 0.5
                    if batches:
                        self._hand_over(batches)
                    if self._is_over:
                        return
                return
            except RetriableConnectError as error:
                if not self._is_over:
                    logger.info("trying again", connector=self._context.connector, feed=name, error=str(error))
                self._context.stopping.wait(wait_s)
                wait_s = min(wait_s * 2, _LONGEST_S)
            except BaseException as error:  # noqa: BLE001 - the task's thread raises it
                self._hand_over(error)
                return

    @property
    def _is_over(self) -> bool:
        return self._over.is_set() or self._context.stopping.is_set()

    def _hand_over(self, what: Sequence[RecordBatch] | BaseException) -> None:
        while not self._is_over:
            try:
                self._arrived.put(what, timeout=0.5)
            except queue.Full:
                continue
            return
