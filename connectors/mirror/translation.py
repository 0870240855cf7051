"""Positions of groups in the source, told in the target: from the topic of offset syncs (KIP-545).

Of each partition up to 64 syncs are kept, close to one another at its newer end and twice as far apart with each step back, so
that a position in the past is told too low by no more than it lies behind. A position is never told too high.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from connect.api import TopicPartition, get_logger
from connectors.mirror.records import MalformedRecord, OffsetSync

if TYPE_CHECKING:
    from broker.client import KafkaRecord

__all__ = ["OffsetSyncStore"]

logger = get_logger(__name__)

_KEPT: Final = 64
_FURTHEST: Final = 1 << 63
"""Bounds beyond Java's long count as none."""


class OffsetSyncStore:
    """Syncs by partition, as far as their topic has been read. ``only_latest`` until the first reading is over: where nobody
    knows which checkpoints were written before, an old sync could take a group back."""

    def __init__(self, *, only_latest: bool) -> None:
        self._only_latest, self._read_once = only_latest, False
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}

    def read(self, records: Iterable[KafkaRecord]) -> None:
        """Take in what is new in the topic, up to its end."""
        for record in records:
            try:
                self.add(OffsetSync.read(record.key, record.value))
            except MalformedRecord as error:
                logger.warning(
                    "an offset sync is passed over", topic=record.topic, offset=record.offset, error=str(error)
                )
        self._read_once = True

    def add(self, sync: OffsetSync) -> None:
        kept = self._syncs.get(sync.partition)
        first_reading = self._only_latest and not self._read_once
        if (
            kept is None or first_reading or sync.upstream < kept[0].upstream
        ):  # a source that went back: all before is void
            self._syncs[sync.partition] = [sync] * _KEPT
        else:
            self._syncs[sync.partition] = _updated(kept, sync)

    def downstream(self, partition: TopicPartition, upstream: int) -> int | None:
        """Where a group at ``upstream`` may go on in the target; None where no sync is old enough to tell."""
        kept = self._syncs.get(partition)
        if kept is None or not self._read_once:
            return None
        sync = next((sync_ for sync_ in kept if sync_.upstream <= upstream), None)
        if sync is None:
            return None
        # What follows on the sync follows on it in the target too, nobody knows how closely.
        return sync.downstream + (upstream > sync.upstream)


def _updated(kept: list[OffsetSync], sync: OffsetSync) -> list[OffsetSync]:
    """``kept`` with a newer sync in front: of neighbours i < j the newer is at most 2^j - 2^i and at least 2^(i-2) ahead."""
    made = list(kept)
    made[0] = replacement = sync
    at = 0  # in the old list: the next one that may stay
    for current in range(1, _KEPT):
        previous = current - 1
        while True:
            old = kept[at]
            apart = _apart(made[previous], old, previous)
            from_next = current + 1 >= _KEPT or _apart(old, made[current + 1], current)
            repeated = at + 1 < _KEPT and old is kept[at + 1]
            stays = _near(made[previous], old, previous, current) and apart and from_next
            if stays:
                replacement = old
            skipped = repeated or not apart
            if stays or skipped:
                at += 1
            if not (at < current and skipped):
                break
        if _near(made[previous], made[current], previous, current):
            break
        made[current] = replacement
    return made


def _near(newer: OffsetSync, older: OffsetSync, i: int, j: int) -> bool:
    bound = older.upstream + (1 << j) - (1 << i)
    return newer is older or bound >= _FURTHEST or newer.upstream <= bound


def _apart(newer: OffsetSync, older: OffsetSync, i: int) -> bool:
    bound = older.upstream + (1 << max(i - 2, 0))
    return newer is older or newer.upstream >= bound
