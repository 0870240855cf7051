"""The offsets groups have committed: what is held in memory, and which of it has expired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from broker.groups.group import Group
from broker.groups.subscription import CONSUMER
from broker.groups.values import CommittedOffset, GroupState, TopicPartition

__all__ = ["CommittedOffsets"]

_NONE: Final[Mapping[TopicPartition, CommittedOffset]] = MappingProxyType({})


class CommittedOffsets:
    """Committed offsets by group; a group is here only while it has some."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def of(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._by_group.get(group_id, _NONE)

    def groups(self) -> list[str]:
        return list(self._by_group)

    def set(self, group_id: str, where: TopicPartition, committed: CommittedOffset) -> None:
        self._by_group.setdefault(group_id, {})[where] = committed

    def drop(self, group_id: str, gone: Iterable[TopicPartition]) -> None:
        offsets = self._by_group.get(group_id)
        if offsets is None:
            return
        for where in gone:
            offsets.pop(where, None)
        if not offsets:
            del self._by_group[group_id]

    def expired(self, group: Group, now_ms: int, retention_ms: int) -> list[TopicPartition]:
        """What has outlived its retention, by Kafka's rules (KIP-211, KIP-496).

        Counted from when the group became empty; from the commit itself for consumers without a group and for topics
        a stable group of consumers does not subscribe to. A retention the client gave (OffsetCommit v2-v4) goes first.
        """
        stable_consumers = (
            group.protocol_type == CONSUMER and group.topics is not None and group.state is GroupState.STABLE
        )
        if group.protocol_type is not None and group.state is not GroupState.EMPTY and not stable_consumers:
            return []
        from_commit = group.protocol_type is None or stable_consumers or group.state_since_ms < 0
        gone = []
        for where, committed in self.of(group.group_id).items():
            if group.subscribes_to(where[0]):
                continue
            since_ms = committed.commit_timestamp_ms if from_commit else group.state_since_ms
            ends_ms = since_ms + retention_ms if committed.expire_timestamp_ms < 0 else committed.expire_timestamp_ms
            if now_ms >= ends_ms:
                gone.append(where)
        return gone
