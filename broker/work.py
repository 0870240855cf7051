"""How much work one request may cause where the broker looks into records: numbers, bytes and time, all in one place.

A few bytes of a compressed batch can stand for millions of records. So code that walks records spends from an allowance. On the
event loop it is small. More work is done in a process for it (``broker.storage.record_worker``), which has its bounds too.
"""

from __future__ import annotations

from time import thread_time
from typing import Final, NamedTuple

__all__ = [
    "AT_ONCE",
    "MOST_COMPACTED",
    "MOST_UNPACKED_BYTES",
    "OFF_THE_LOOP",
    "ON_THE_LOOP",
    "Allowance",
    "Budget",
    "TooMuchWork",
]

MOST_UNPACKED_BYTES: Final = 128 * 1024 * 1024
"""One batch may decompress to so much where the broker looks into it."""
MOST_COMPACTED: Final = 256 * 1024
"""Records of one batch that compaction looks into. A larger batch stays as it is."""
AT_ONCE: Final = 1024
"""Records that are walked before the next look at the allowance: less than a millisecond."""


class TooMuchWork(Exception):
    """An allowance is used up. Nothing is wrong with the records."""


class Budget(NamedTuple):
    """``packed_bytes`` is how much may be compressed anew, ``unpacked_bytes`` what one batch may decompress to. ``seconds`` are of
    the processor's time in one thread: on a machine that has much else to do, work that is allowed is not refused."""

    records: int
    unpacked_bytes: int
    packed_bytes: int
    seconds: float


ON_THE_LOOP: Final = Budget(records=8192, unpacked_bytes=1024 * 1024, packed_bytes=128 * 1024, seconds=0.005)
"""For all batches of one request together: other clients wait that long."""
OFF_THE_LOOP: Final = Budget(
    records=32 * 1024 * 1024, unpacked_bytes=MOST_UNPACKED_BYTES, packed_bytes=MOST_UNPACKED_BYTES, seconds=20.0
)
"""For the same in the process for it. A million records take about half a second."""


class Allowance:
    """The rest of a budget, to be made and used in one thread: its time runs from when it is made. ``spend`` raises TooMuchWork
    once it is used up."""

    __slots__ = ("_packed", "_records", "_until", "unpacked_bytes")

    def __init__(self, budget: Budget) -> None:
        self._records = budget.records
        self._packed = budget.packed_bytes
        self._until = thread_time() + budget.seconds
        self.unpacked_bytes = budget.unpacked_bytes

    def spend(self, records: int = 0, *, packed_bytes: int = 0) -> None:
        """Before walking so many records, or compressing so many bytes."""
        self._records -= records
        self._packed -= packed_bytes
        if self._records < 0 or self._packed < 0 or thread_time() > self._until:
            raise TooMuchWork
