"""Record parts shared by all groups whose assignments the coordinator computes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from broker.coordinator.journal import OFFSETS_TOPIC
from broker.coordinator.records import (
    RecordKey,
    RecordValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    type_number,
)
from broker.coordinator.state_log import Entry
from broker.protocol.declare import structure, wire
from broker.protocol.fields import Message

__all__ = [
    "GroupKey",
    "GroupRecordKey",
    "MemberKey",
    "Record",
    "RecordTypes",
    "TargetAssignmentMemberValue",
    "TargetAssignmentMetadataValue",
    "TopicPartition",
    "decode_entry",
    "encode_entry",
    "record_types",
]


@structure
class GroupRecordKey(RecordKey):
    """The key of a record of a group."""

    group_id: str = wire("string")


@structure
class GroupKey(GroupRecordKey):
    """The key of records that exist once per group."""


@structure
class MemberKey(GroupRecordKey):
    """The key of records that exist once per member."""

    member_id: str = wire("string")


@structure
class TargetAssignmentMetadataValue(RecordValue):
    """The epoch of a group's target assignment; the same for every group type."""

    assignment_epoch: int = wire("int32")
    assignment_timestamp: int = wire("int64", tag=0)


@structure
class TopicPartition(Message):
    """Partitions of one topic in a member's target."""

    topic_id: uuid.UUID = wire("uuid")
    partitions: Sequence[int] = wire("int32", array=True)


@structure
class TargetAssignmentMemberValue(RecordValue):
    """The target assignment of one member, in groups that assign partitions."""

    topic_partitions: Sequence[TopicPartition] = wire(TopicPartition, array=True)


Record = tuple[GroupRecordKey, RecordValue | None]
"""A change of a group. None deletes the key."""

RecordTypes = Mapping[int, tuple[type[GroupRecordKey], type[RecordValue]]]
"""Classes of key and value, by record type number."""


def record_types(*types: tuple[type[GroupRecordKey], type[RecordValue]]) -> RecordTypes:
    """The table of these types."""
    return {key.API_KEY: (key, value) for key, value in types}


def encode_entry(record: Record) -> Entry:
    """The bytes of a record's key and value."""
    key, value = record
    return encode_key(key), None if value is None else encode_value(value)


def decode_entry(types: RecordTypes, key: bytes, value: bytes | None) -> Record:
    """Decode a record of one of these types. Raises CorruptMessage."""
    key_class, value_class = types[type_number(key)]
    return (
        decode_key(key_class, key, OFFSETS_TOPIC),
        None if value is None else decode_value(value_class, value, OFFSETS_TOPIC),
    )
