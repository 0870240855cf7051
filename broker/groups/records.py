"""The records of ``__consumer_offsets`` for offsets and classic groups, as Kafka 4 writes them.

These are Kafka's ``OffsetCommitKey/Value.json`` and ``GroupMetadataKey/Value.json``. Read: all versions Kafka ever
wrote. Written: what Kafka 4.3 writes.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from broker.coordinator.committed_offset import CommittedOffset
from broker.coordinator.journal import OFFSETS_TOPIC
from broker.coordinator.records import RecordKey, RecordValue, decode_value, encode_key, encode_value, type_number
from broker.coordinator.records import decode_key as decode_key_as
from broker.protocol.declare import structure, wire
from broker.protocol.fields import Message
from broker.protocol.primitives import ZERO_UUID

__all__ = [
    "GroupMetadataKey",
    "GroupMetadataValue",
    "MemberMetadata",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "decode_group",
    "decode_key",
    "decode_offset",
    "encode_group",
    "encode_group_key",
    "encode_offset",
    "encode_offset_key",
]

_GROUP_VERSION = 3
_OFFSET_VERSION = 4
_OFFSET_WITH_RETENTION = 1


@structure
class OffsetCommitKey(RecordKey):
    """Kafka 0.8 wrote type 0; the layout is the same."""

    API_KEY = 1
    group_id: str = wire("string")
    topic: str = wire("string")
    partition: int = wire("int32")


@structure
class OffsetCommitValue(RecordValue):
    FLEXIBLE_SINCE = 4
    LATEST = 4
    offset: int = wire("int64")
    leader_epoch: int = wire("int32", since=3, default=-1)
    metadata: str = wire("string")
    commit_timestamp: int = wire("int64")
    expire_timestamp: int = wire("int64", since=1, until=1, default=-1)
    topic_id: uuid.UUID = wire("uuid", since=4, tag=0)


@structure
class GroupMetadataKey(RecordKey):
    API_KEY = 2
    group_id: str = wire("string")


@structure
class MemberMetadata(Message):
    """A member as stored: with the chosen protocol only, not all that it offered.

    Kafka before 0.10.1 wrote no ``rebalance_timeout``; it used the session timeout.
    """

    member_id: str = wire("string")
    group_instance_id: str | None = wire("string", since=3, null_since=3, default=None)
    client_id: str = wire("string")
    client_host: str = wire("string")
    rebalance_timeout: int = wire("int32", since=1, default=-1)
    session_timeout: int = wire("int32")
    subscription: bytes = wire("bytes")
    assignment: bytes = wire("bytes")


@structure
class GroupMetadataValue(RecordValue):
    """A generation of a group. ``current_state_timestamp`` is -1 in records from Kafka before 2.1."""

    FLEXIBLE_SINCE = 4
    LATEST = 4
    protocol_type: str = wire("string")
    generation: int = wire("int32")
    protocol: str | None = wire("string", null_since=0, default=None)
    leader: str | None = wire("string", null_since=0, default=None)
    current_state_timestamp: int = wire("int64", since=2, default=-1)
    members: Sequence[MemberMetadata] = wire(MemberMetadata, array=True)


_KEYS: dict[int, type[OffsetCommitKey | GroupMetadataKey]] = {
    0: OffsetCommitKey,
    OffsetCommitKey.API_KEY: OffsetCommitKey,
    GroupMetadataKey.API_KEY: GroupMetadataKey,
}


def encode_offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_key(OffsetCommitKey(group_id=group_id, topic=topic, partition=partition))


def encode_offset(committed: CommittedOffset) -> bytes:
    """The value of a commit: version 1 if the client requested its own retention, otherwise version 4."""
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id or ZERO_UUID,
    )
    return encode_value(value, _OFFSET_WITH_RETENTION if committed.expire_timestamp_ms >= 0 else _OFFSET_VERSION)


def encode_group_key(group_id: str) -> bytes:
    return encode_key(GroupMetadataKey(group_id=group_id))


def encode_group(group: GroupMetadataValue) -> bytes:
    return encode_value(group, _GROUP_VERSION)


def decode_key(data: bytes) -> OffsetCommitKey | GroupMetadataKey | None:
    """The key of a record; None for records of other types. Raises CorruptMessage."""
    cls = _KEYS.get(type_number(data))
    return None if cls is None else decode_key_as(cls, data, OFFSETS_TOPIC)


def decode_offset(data: bytes) -> CommittedOffset:
    """Raises CorruptMessage."""
    value = decode_value(OffsetCommitValue, data, OFFSETS_TOPIC)
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        None if value.topic_id == ZERO_UUID else value.topic_id,
        value.commit_timestamp,
        value.expire_timestamp,
    )


def decode_group(data: bytes) -> GroupMetadataValue:
    """Raises CorruptMessage."""
    group = decode_value(GroupMetadataValue, data, OFFSETS_TOPIC)
    for member in group.members:
        if member.rebalance_timeout == -1:
            member.rebalance_timeout = member.session_timeout
    return group
