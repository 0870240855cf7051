"""Reads ``__consumer_offsets`` back into groups and offsets."""

from __future__ import annotations

from broker.errors import CorruptMessage
from broker.groups.config import GroupConfig
from broker.groups.group import Group, Member
from broker.groups.journal import OFFSETS_TOPIC, GroupJournal
from broker.groups.offsets import CommittedOffsets
from broker.groups.records import GroupKey, OffsetKey, StoredGroup, decode_group, decode_key, decode_offset
from broker.groups.values import GroupState
from tidegate.kit.logs import logger

__all__ = ["load"]

_log = logger(__name__)


def load(journal: GroupJournal, config: GroupConfig, now_ms: int) -> tuple[dict[str, Group], CommittedOffsets]:
    """Replay every partition. A record that cannot be read is reported by partition and offset, and left alone.

    A group that had members is stable, as it was when its generation was written; offsets of a group that was never
    written down make a simple one.
    """
    groups: dict[str, Group] = {}
    offsets = CommittedOffsets(journal, config.offset_metadata_max_bytes)
    for partition in range(journal.log.partitions):
        for offset, key, value in journal.log.read(partition):
            try:
                _replay(groups, offsets, key, value)
            except CorruptMessage as error:
                _log.error(
                    "record cannot be read", topic=OFFSETS_TOPIC, partition=partition, offset=offset, error=str(error)
                )
    for group_id in offsets.groups():
        groups.setdefault(group_id, Group(group_id, now_ms))
    _log.info("groups loaded", groups=len(groups))
    return groups, offsets


def _replay(groups: dict[str, Group], offsets: CommittedOffsets, key: bytes | None, value: bytes | None) -> None:
    if key is None:
        raise CorruptMessage("the record has no key")
    match decode_key(key):
        case OffsetKey(group_id, topic, partition):
            if value is None:
                offsets.drop(group_id, [(topic, partition)])
            else:
                offsets.set(group_id, (topic, partition), decode_offset(value))
        case GroupKey(group_id):
            if value is None:
                groups.pop(group_id, None)
            else:
                groups[group_id] = _restore(group_id, decode_group(value))


def _restore(group_id: str, stored: StoredGroup) -> Group:
    group = Group(
        group_id,
        stored.state_since_ms,
        state=GroupState.STABLE if stored.members else GroupState.EMPTY,
        generation=stored.generation,
        protocol_type=stored.protocol_type or None,
        protocol_name=stored.protocol_name,
        leader=stored.leader,
    )
    for member in stored.members:
        group.members[member.member_id] = Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            {stored.protocol_name or "": member.subscription},
            member.assignment,
        )
    group.topics = group.subscriptions()
    return group
