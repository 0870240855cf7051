"""The plan and the result of a compaction, as plain data that any process can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from broker.log.config import LogConfig
from broker.log.transaction_index import AbortedTransaction

__all__ = ["MAX_KEYS", "CleanedGroup", "Compaction", "CompactionPlan", "SourceSegment", "plan"]

MAX_KEYS: Final = 500_000
"""The default number of keys remembered in one round. A log with more keys takes several rounds."""


class SourceSegment(NamedTuple):
    """A closed segment as compaction sees it. ``size`` is the valid part of the file."""

    base_offset: int
    next_offset: int
    size: int
    max_timestamp: int
    modified_ms: int
    first_timestamp: int | None = None
    """The timestamp of its first batch; None if it does not matter."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The segments to compact: ``clean`` ones from earlier rounds, then ``dirty`` ones. Plain data."""

    directory: Path
    clean: tuple[SourceSegment, ...]
    dirty: tuple[SourceSegment, ...]
    aborted: tuple[AbortedTransaction, ...]
    config: LogConfig
    now_ms: int
    max_keys: int = MAX_KEYS
    bytes_per_s: float | None = None
    """The most bytes to read and write per second; None is no limit."""


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """One ``.cleaned`` file replaces the segments with these base offsets. Without a file nothing of them is left."""

    replaced: tuple[int, ...]
    next_offset: int
    has_file: bool


@dataclass(frozen=True, slots=True)
class Compaction:
    """The result of a run. Up to ``clean_until`` the log has each key once, except for later records."""

    groups: tuple[CleanedGroup, ...]
    clean_until: int
    records_before: int
    records_after: int


def plan(
    segments: Sequence[SourceSegment],
    aborted: Sequence[AbortedTransaction],
    config: LogConfig,
    *,
    directory: Path,
    first_dirty_offset: int,
    stable_until: int,
    now_ms: int,
) -> CompactionPlan | None:
    """A plan for the closed ``segments``, oldest first; None if too little is dirty.

    Records younger than ``min.compaction.lag.ms`` are not compacted, nor is anything from ``stable_until`` on, where a
    transaction is open.
    """
    clean: list[SourceSegment] = []
    dirty: list[SourceSegment] = []
    for segment in segments:
        newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms
        if segment.next_offset > stable_until or now_ms - newest < config.min_compaction_lag_ms:
            break
        (clean if segment.next_offset <= first_dirty_offset else dirty).append(segment)
    if not dirty:
        return None
    dirty_bytes = sum(segment.size for segment in dirty)
    total = dirty_bytes + sum(segment.size for segment in clean)
    began = min(
        (source.first_timestamp for source in dirty if source.first_timestamp and source.first_timestamp > 0),
        default=now_ms,
    )
    overdue = now_ms - began > config.max_compaction_lag_ms
    if dirty_bytes < config.min_cleanable_dirty_ratio * total and not overdue:
        return None
    return CompactionPlan(directory, tuple(clean), tuple(dirty), tuple(aborted), config, now_ms)
