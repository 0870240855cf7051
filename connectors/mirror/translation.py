"""Translates groups' offsets from the source to the target, using the topic of offset syncs (KIP-545).

Up to 64 syncs are kept per partition: dense at its newest end, and twice as far apart with each step back. A translated
offset may be too low, by no more than the group is behind the end. It is never too high.
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
"""Limits beyond Java's long mean that there is none."""


class OffsetSyncStore:
    """The syncs of each partition that have been read so far.

    With ``only_latest``, until the topic was read to its end for the first time, only the latest sync is used: while
    the earlier checkpoints are unknown, an old sync could move a group back.
    """

    def __init__(self, *, only_latest: bool) -> None:
        self._only_latest, self._read_once = only_latest, False
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}

    def read(self, records: Iterable[KafkaRecord]) -> None:
        """Read the new records of the topic, up to its end."""
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
        ):  # the source moved back: all earlier syncs are invalid
            self._syncs[sync.partition] = [sync] * _KEPT
        else:
            self._syncs[sync.partition] = _updated(kept, sync)

    def downstream(self, partition: TopicPartition, upstream: int) -> int | None:
        """The offset at which a group at ``upstream`` may continue in the target; None where no sync is old enough."""
        kept = self._syncs.get(partition)
        if kept is None or not self._read_once:
            return None
        sync = next((sync_ for sync_ in kept if sync_.upstream <= upstream), None)
        if sync is None:
            return None
        # a record after the sync is also after it in the target; how far after is unknown
        return sync.downstream + (upstream > sync.upstream)


def _updated(kept: list[OffsetSync], sync: OffsetSync) -> list[OffsetSync]:
    """``kept`` with a newer sync in front: of neighbours i < j the newer is at most 2^j - 2^i and at least 2^(i-2)
    ahead.
    """
    made = list(kept)
    made[0] = replacement = sync
    at = 0  # index in the old list of the next sync that may be kept
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
