"""Positions in a topic as people write them: an offset, a time, or a distance from the end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from broker.client import Admin, TopicDescription, TopicPartition

__all__ = ["Position", "chosen_partitions", "parse_position", "resolve"]

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGO: Final = re.compile(r"-(\d{1,9})([smhdw])")
_NUMBER: Final = re.compile(r"-?\d{1,18}")
_FORMS: Final = "beginning, end, an offset (42), a number of records before the end (-100), an age (-15m, -2h, -7d) or a time (2026-11-25T10:00)"


class Position(NamedTuple):
    """``offset`` from the beginning, ``last`` so many records before the end, or the first record at or after a ``time_ms``."""

    offset: int | None = None
    last: int | None = None
    time_ms: int | None = None


def parse_position(text: str) -> Position:
    """The position of a text such as ``beginning``, ``42``, ``-100``, ``-15m`` or ``2026-11-25T10:00``.

    A time without a zone is local time; ``earliest`` and ``latest`` are Kafka's names for the ends. Raises UsageError.
    """
    text = text.strip()
    if text in ("beginning", "earliest"):
        return Position(offset=0)
    if text in ("end", "latest"):
        return Position(last=0)
    if _NUMBER.fullmatch(text):
        number = int(text)
        return Position(last=-number) if text.startswith("-") else Position(offset=number)
    if ago := _AGO.fullmatch(text):
        return Position(time_ms=int((time.time() - int(ago[1]) * _SECONDS[ago[2]]) * 1000))
    try:
        return Position(time_ms=int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no position: give {_FORMS}") from None


async def resolve(
    admin: Admin,
    position: Position,
    partitions: Iterable[TopicPartition],
    *,
    exactly: bool = False,
    committed: bool = False,
) -> dict[TopicPartition, tuple[int, int, int]]:
    """(first offset, position, end offset) of each partition. The position lies between the others.

    ``committed`` is for who reads committed records only: a partition ends where its oldest open transaction begins. ``exactly`` refuses an offset beyond the end of a partition, which is a slip in a command that changes something.
    """
    partitions = list(partitions)
    starts = await admin.beginning_offsets(partitions)
    ends = await admin.end_offsets(partitions, committed=committed)
    if position.time_ms is not None:
        times = await admin.offsets_for_times(dict.fromkeys(partitions, position.time_ms))
        offsets = {p: ends[p] if (there := times[p]) is None else there.offset for p in partitions}
    elif position.last is not None:
        offsets = {p: ends[p] - position.last for p in partitions}
    else:
        offsets = dict.fromkeys(partitions, position.offset or 0)
    if exactly and position.offset is not None:
        for partition in partitions:
            if position.offset > ends[partition]:
                raise UsageError(
                    f"offset {position.offset} is beyond the end of {partition}, which is {ends[partition]}; give an offset up to "
                    "that, end, or choose partitions"
                )
    return {p: (starts[p], min(max(offsets[p], starts[p]), ends[p]), ends[p]) for p in partitions}


def chosen_partitions(described: TopicDescription, numbers: Sequence[int]) -> list[TopicPartition]:
    """The partitions with these numbers, or all."""
    from broker.client import TopicPartition

    there = {p.partition for p in described.partitions}
    if missing := sorted(set(numbers) - there):
        raise UsageError(
            f"topic {described.name} has no partition {missing[0]}: it has {len(there)}, from 0 to {max(there)}"
        )
    return [TopicPartition(described.name, number) for number in sorted(set(numbers) or there)]
