"""A clock of its own for a process, which a test can set forward and back: libfaketime with a file that says how far it is off."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

__all__ = ["Clock"]


class Clock:
    """Start the process with ``environment``; it sees a change within a second. Intervals (CLOCK_MONOTONIC) stay what they are."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)
        spec = find_spec("libfaketime")
        assert spec is not None and spec.origin is not None
        library = Path(spec.origin).parent / "vendor/libfaketime/src/libfaketime.so.1"
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            # A read of the file for each look at the clock takes more processor time than all else.
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Where libfaketime mends the deadlines of pthread_cond_timedwait, each is over at once, and threads of Python take the
            # interpreter's lock from each other all the time: a process with several takes three times the processor time.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        }

    def set(self, off_s: int) -> None:
        """How many seconds the clock is ahead (or, below 0, behind)."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{off_s:+d}s\n")
        new.replace(self._file)
