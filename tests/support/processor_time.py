"""A limit on the processor time of an operation, independent of other load on the machine."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

__all__ = ["TookTooLong", "processor_time"]


class TookTooLong(AssertionError):
    """The work took more processor time than it may."""


@contextlib.contextmanager
def processor_time(limit_s: float, what: object) -> Iterator[None]:
    """Raises TookTooLong, naming ``what``, once the work has used so much processor time: at once where Python runs, after it else."""

    def ring(_: int, frame: FrameType | None) -> None:
        raise TookTooLong(f"more than {limit_s:g} s of processor time for {what}")

    interrupts = threading.current_thread() is threading.main_thread()
    began = time.process_time()
    if interrupts:
        before = signal.signal(signal.SIGPROF, ring)
        signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        if interrupts:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
    if (took := time.process_time() - began) > limit_s:
        raise TookTooLong(f"{took:.1f} s of processor time for {what}; it may take {limit_s:g} s")
