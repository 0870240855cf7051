"""Limits on the work that one request may cause when the broker inspects records: numbers, bytes and time.

A few bytes of a compressed batch can represent millions of records. So code that iterates over records spends an
allowance. On the event loop it is small. More work runs in a separate process (``broker.storage.record_worker``), which
has limits too.
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
"""The most bytes that one inspected batch may decompress to."""
MOST_COMPACTED: Final = 256 * 1024
"""The most records of one batch that compaction reads. A larger batch stays unchanged."""
AT_ONCE: Final = 1024
"""Records processed between checks of the allowance: less than a millisecond."""


class TooMuchWork(Exception):
    """An allowance is used up. The records themselves may be valid."""


class Budget(NamedTuple):
    """``packed_bytes`` limits recompressed bytes, ``unpacked_bytes`` the decompressed size of one batch.

    ``seconds`` are processor time of one thread, so that a busy machine does not refuse permitted work.
    """

    records: int
    unpacked_bytes: int
    packed_bytes: int
    seconds: float


ON_THE_LOOP: Final = Budget(records=8192, unpacked_bytes=1024 * 1024, packed_bytes=128 * 1024, seconds=0.005)
"""For all batches of one request together: other clients wait that long."""
OFF_THE_LOOP: Final = Budget(
    records=32 * 1024 * 1024, unpacked_bytes=MOST_UNPACKED_BYTES, packed_bytes=MOST_UNPACKED_BYTES, seconds=20.0
)
"""The same in the separate process. A million records take about half a second."""


class Allowance:
    """The rest of a budget, created and used in one thread: its time starts with its creation.

    ``spend`` raises TooMuchWork once it is used up.
    """

    __slots__ = ("_packed", "_records", "_until", "unpacked_bytes")

    def __init__(self, budget: Budget) -> None:
        self._records = budget.records
        self._packed = budget.packed_bytes
        self._until = thread_time() + budget.seconds
        self.unpacked_bytes = budget.unpacked_bytes

    def spend(self, records: int = 0, *, packed_bytes: int = 0) -> None:
        """Call it before processing this many records, or compressing this many bytes."""
        self._records -= records
        self._packed -= packed_bytes
        if self._records < 0 or self._packed < 0 or thread_time() > self._until:
            raise TooMuchWork
