"""Decides how many of a log's oldest segments may be deleted. Takes plain facts, returns a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.log.config import LogConfig

__all__ = ["SegmentFacts", "expired_segments"]


class SegmentFacts(NamedTuple):
    """The facts about a segment that retention depends on.

    ``newest_ms`` is the segment's largest timestamp, or its file's time if records have none.
    """

    end_offset: int
    size: int
    newest_ms: int


def expired_segments(segments: Sequence[SegmentFacts], config: LogConfig, *, log_start_offset: int, now_ms: int) -> int:
    """How many of the oldest segments may be deleted, because their records were deleted, are too old, or are too many.

    By size a segment is deleted if the rest still has ``retention.bytes``. The newest segment can be deleted only by
    age.
    """
    deleted = _leading(segment.end_offset <= log_start_offset for segment in segments[:-1])
    if not config.deletes:
        return deleted
    aged = 0
    if config.retention_ms >= 0:
        aged = _leading(now_ms - segment.newest_ms > config.retention_ms for segment in segments)
    surplus = 0
    if config.retention_bytes >= 0:
        excess = sum(segment.size for segment in segments) - config.retention_bytes
        for segment in segments[:-1]:
            if segment.size > excess:
                break
            excess -= segment.size
            surplus += 1
    return max(deleted, aged, surplus)


def _leading(flags: Iterable[bool]) -> int:
    """How many are true before the first false one."""
    count = 0
    for flag in flags:
        if not flag:
            break
        count += 1
    return count
