"""Runs a connector's periodic jobs in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from connect.api import RetriableConnectError, TidegateError, get_logger

__all__ = ["Schedule"]

logger = get_logger(__name__)

_AGAIN_S: Final = 1.0
_LAST_JOB_S: Final = 3.0


class Schedule:
    """``first`` is repeated until it succeeds; then each job runs at its interval, one at a time.

    Failures are logged.
    """

    def __init__(self, stopping: threading.Event, first: Callable[[], None], about: str) -> None:
        self._stopping, self._first, self._about = stopping, first, about
        self._jobs: list[tuple[Callable[[], None], float, float, str]] = []
        self._thread = threading.Thread(target=self._run, name=about, daemon=True)
        self.began = threading.Event()
        """Set when ``first`` has succeeded."""

    def every(self, seconds: float, job: Callable[[], None], about: str, *, at_once: bool = False) -> None:
        """Add a job, before ``start``.

        It runs for the first time after ``seconds``, or immediately with ``at_once``; never if ``seconds`` is not
        positive.
        """
        if seconds <= 0:
            return
        self._jobs.append((job, seconds, 0 if at_once else seconds, about))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wait briefly for the running job; ``stopping`` has been set."""
        if self._thread.ident is not None:
            self._thread.join(_LAST_JOB_S)

    def _run(self) -> None:
        while not self._tried(self._first, "starting"):
            if self._stopping.wait(_AGAIN_S):
                return
        self.began.set()
        now = time.monotonic()
        due = [now + delay for _, _, delay, _ in self._jobs]
        while due:
            index = min(range(len(due)), key=due.__getitem__)
            if self._stopping.wait(max(0.0, due[index] - time.monotonic())):
                return
            job, seconds, _, about = self._jobs[index]
            self._tried(job, about)
            due[index] = max(due[index] + seconds, time.monotonic())

    def _tried(self, job: Callable[[], None], about: str) -> bool:
        try:
            job()
        except RetriableConnectError as error:
            if not self._stopping.is_set():
                logger.warning(
                    "not possible now; it is tried again", connector=self._about, job=about, error=str(error)
                )
        except TidegateError as error:
            logger.error("a job failed; it is tried again", connector=self._about, job=about, error=str(error))
        except BaseException:
            logger.exception("a job failed; it is tried again", connector=self._about, job=about)
        else:
            return True
        return False
