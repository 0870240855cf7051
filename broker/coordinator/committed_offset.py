"""A group's committed offset for a partition, as the group coordinator stores it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

__all__ = ["CommittedOffset", "TopicPartition"]

TopicPartition = tuple[str, int]
"""A topic's name and the number of one of its partitions."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, as a group committed it. ``leader_epoch`` is -1 if the client sent none.

    ``commit_timestamp_ms`` is set by the coordinator. Only clients of OffsetCommit v2-v4 send ``expire_timestamp_ms``.
    Otherwise it is -1, and the broker's retention decides.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: UUID | None = None
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
