"""Reads groups and offsets back from ``__consumer_offsets``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.coordinator.journal import OFFSETS_TOPIC, GroupJournal
from broker.coordinator.namespace import GroupNamespace
from broker.coordinator.records import type_number
from broker.errors import CorruptMessage
from broker.groups.classic.group import Group, Member
from broker.groups.classic.values import GroupState
from broker.groups.modern.records import decode_entry
from broker.groups.modern.service import GroupService
from broker.groups.offsets.store import CommittedOffsets
from broker.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    decode_group,
    decode_key,
    decode_offset,
)
from broker.protocol.records import Record
from tidegate.kit.logs import get_logger

__all__ = ["load"]

_OffsetOf = tuple[str, str, int]
"""Group, topic, partition."""

logger = get_logger(__name__)


def load(
    journal: GroupJournal,
    groups: GroupNamespace,
    offsets: CommittedOffsets,
    service_of: Callable[[int], GroupService[Any] | None],
    now_ms: int,
) -> None:
    """Replay every partition. ``service_of`` returns the service for a record type's number. An unreadable record is
    logged with its partition and offset, and skipped.

    A classic group that had members is stable, as it was when its generation was written. Offsets of a group without a
    record create a simple group.
    """
    for partition in range(journal.log.partitions):
        still_open: dict[int, list[Record]] = {}
        written: dict[_OffsetOf, int] = {}
        for offset, key, value in journal.log.read(partition, still_open):
            try:
                service = service_of(type_number(key))
                if service is not None:
                    service.replay(*decode_entry(service.RECORDS, key or b"", value))
                else:
                    _replay(groups, offsets, written, offset, key, value)
            except CorruptMessage as error:
                logger.error(
                    "record cannot be read", topic=OFFSETS_TOPIC, partition=partition, offset=offset, error=str(error)
                )
        for producer_id, records in still_open.items():
            for record in records:
                _restore_pending(offsets, written, partition, producer_id, record)
    for group_id in offsets.groups():
        if group_id not in groups:
            groups.put(Group(group_id, now_ms))
    logger.info("groups loaded", groups=len(groups))


def _restore_pending(
    offsets: CommittedOffsets, written: dict[_OffsetOf, int], partition: int, producer_id: int, record: Record
) -> None:
    """Restore an offset of a transaction that was open at the end of the log: its marker is still to come."""
    try:
        key = decode_key(record.key or b"")
        if not isinstance(key, OffsetCommitKey) or record.value is None:
            return
        overtaken = written.get((key.group_id, key.topic, key.partition), -1) > record.offset
        committed = None if overtaken else decode_offset(record.value)
    except CorruptMessage as error:
        logger.error(
            "record cannot be read", topic=OFFSETS_TOPIC, partition=partition, offset=record.offset, error=str(error)
        )
        return
    offsets.pending.add(partition, producer_id, key.group_id, {(key.topic, key.partition): committed})


def _replay(
    groups: GroupNamespace,
    offsets: CommittedOffsets,
    written: dict[_OffsetOf, int],
    at: int,
    key: bytes | None,
    value: bytes | None,
) -> None:
    """Apply one record.

    ``written`` has the position of each offset's last write: offsets written before that in a transaction take effect
    later, but don't overwrite it.
    """
    if key is None:
        raise CorruptMessage("the record has no key")
    match decode_key(key):
        case OffsetCommitKey(group_id=group_id, topic=topic, partition=partition):
            if written.get((group_id, topic, partition), -1) > at:
                return
            written[group_id, topic, partition] = at
            if value is None:
                offsets.drop(group_id, [(topic, partition)])
            else:
                offsets.set(group_id, (topic, partition), decode_offset(value))
        case GroupMetadataKey(group_id=group_id):
            if value is not None:
                groups.put(_restore(group_id, decode_group(value)))
            elif isinstance(groups.get(group_id), Group):
                groups.remove(group_id)


def _restore(group_id: str, stored: GroupMetadataValue) -> Group:
    group = Group(
        group_id,
        stored.current_state_timestamp,
        state=GroupState.STABLE if stored.members else GroupState.EMPTY,
        generation=stored.generation,
        protocol_type=stored.protocol_type or None,
        protocol_name=stored.protocol,
        leader=stored.leader,
    )
    for member in stored.members:
        group.members[member.member_id] = Member(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout,
            member.session_timeout,
            {stored.protocol or "": member.subscription},
            member.assignment,
        )
    group.topics = group.subscriptions()
    return group
