"""The codec of coordinator records: an int16 that names the record's type before a key's fields, its version before a value's.

Keys are of version 0 and not flexible, values of version 0 and flexible (KIP-482), for every type from 3 on. Types 0 to 2
(offsets and classic groups) are older and have their own codec in ``broker.groups.records``.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TypeVar

from broker.coordinator.state_log import Entry
from broker.errors import CorruptMessage
from broker.protocol.declare import structure, wire
from broker.protocol.primitives import MalformedMessage
from broker.protocol.schema import Message, Request, decode, encode

__all__ = [
    "GroupKey",
    "MemberKey",
    "Record",
    "RecordKey",
    "RecordTypes",
    "RecordValue",
    "TargetAssignmentMemberValue",
    "TargetAssignmentMetadataValue",
    "TopicPartition",
    "decode_entry",
    "encode_entry",
    "record_types",
]


@structure
class RecordKey(Request):
    """What a record is about. It shares the codec of requests; ``API_KEY`` is the number of the record's type."""

    FLEXIBLE_SINCE = 1
    group_id: str = wire("string")


@structure
class GroupKey(RecordKey):
    """The key of records of which a group has one."""


@structure
class MemberKey(RecordKey):
    """The key of records of which each member has one."""

    member_id: str = wire("string")


@structure
class RecordValue(Request):
    """What is so from here on."""

    FLEXIBLE_SINCE = 0


@structure
class TargetAssignmentMetadataValue(RecordValue):
    """Which epoch a group's target assignment is of; every type of group writes it the same way."""

    assignment_epoch: int = wire("int32")
    assignment_timestamp: int = wire("int64", tag=0)


@structure
class TopicPartition(Message):
    """Partitions of one topic that a member shall have."""

    topic_id: uuid.UUID = wire("uuid")
    partitions: Sequence[int] = wire("int32", array=True)


@structure
class TargetAssignmentMemberValue(RecordValue):
    """What one member shall have, of groups whose members are given partitions."""

    topic_partitions: Sequence[TopicPartition] = wire(TopicPartition, array=True)


Record = tuple[RecordKey, RecordValue | None]
"""A change of a group; None deletes what the key names."""

RecordTypes = Mapping[int, tuple[type[RecordKey], type[RecordValue]]]
"""Classes of key and value, by the number of the record's type."""


def record_types(*types: tuple[type[RecordKey], type[RecordValue]]) -> RecordTypes:
    """The table of these types."""
    return {key.API_KEY: (key, value) for key, value in types}


def encode_entry(record: Record) -> Entry:
    """The bytes of a record's key and value."""
    key, value = record
    data = bytes(encode(key, 0, bytearray(key.API_KEY.to_bytes(2))))
    return data, None if value is None else bytes(encode(value, 0, bytearray(2)))


def decode_entry(types: RecordTypes, key: bytes, value: bytes | None) -> Record:
    """Read a record of one of these types. Raises CorruptMessage."""
    number = int.from_bytes(key[:2], signed=True)
    key_class, value_class = types[number]
    if value is None:
        return _decode(key_class, key), None
    version = int.from_bytes(value[:2], signed=True)
    if len(value) < 2 or version != 0:
        raise CorruptMessage(
            f"{value_class.__name__} in __consumer_offsets has version {version}; version 0 is the only one known."
        )
    return _decode(key_class, key), _decode(value_class, value)


M = TypeVar("M", bound=Request)


def _decode(cls: type[M], data: bytes) -> M:
    try:
        return decode(cls, data, 0, 2)
    except MalformedMessage as error:
        raise CorruptMessage(f"A record of __consumer_offsets is not what its type says: {error}.") from error
