"""The start of a share-partition without a start offset (``share.auto.offset.reset``)."""

from __future__ import annotations

import re
from typing import Final

from broker.log.partition import PartitionLog
from broker.work import ON_THE_LOOP, Allowance, TooMuchWork

__all__ = ["duration_ms", "offset_for"]

_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{1,9}))?S)?)?", re.IGNORECASE)


def duration_ms(text: str) -> int:
    """An ISO 8601 duration of days, hours, minutes and seconds. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is no duration of the form PnDTnHnMn.nS")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    fraction = int((match[5] or "0").ljust(9, "0")[:3])
    return ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + fraction


def offset_for(log: PartitionLog, reset: str, now_ms: int) -> int:
    """The offset for ``earliest``, ``latest``, or ``by_duration:`` and a duration.

    It may be earlier if an exact search takes too long.
    """
    if reset == "earliest":
        return log.log_start_offset
    if reset == "latest":
        return log.log_end_offset
    since_ms = now_ms - duration_ms(reset.partition(":")[2])
    try:
        result = log.reader.search_time(since_ms).run(Allowance(ON_THE_LOOP))
        offset = None if result is None else result[1]
    except TooMuchWork:
        offset = log.reader.offset_before_time(since_ms)
    return log.log_end_offset if offset is None else offset
