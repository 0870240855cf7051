"""The records of ``__consumer_offsets``, byte for byte as Kafka 4 writes them.

A key begins with an int16 that says what it is of, a value with an int16 that says in which version it is written
(Kafka's ``OffsetCommitKey/Value.json`` and ``GroupMetadataKey/Value.json``). Read: all versions Kafka ever wrote.
Written: what Kafka 4.3 writes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from broker.coordinator.committed_offset import CommittedOffset
from broker.errors import CorruptMessage

__all__ = [
    "GroupKey",
    "OffsetKey",
    "StoredGroup",
    "StoredMember",
    "decode_group",
    "decode_key",
    "decode_offset",
    "encode_group",
    "encode_group_key",
    "encode_offset",
    "encode_offset_key",
]

_OFFSET_KEYS = (0, 1)
"""0 was written by Kafka 0.8; the layout is the same."""
_GROUP_KEY = 2
_NO_TOPIC_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class OffsetKey:
    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    group_id: str


@dataclass(frozen=True, slots=True)
class StoredMember:
    """A member as it is written down: one protocol, the chosen one, of the several it offered."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A generation of a group as it is written down. ``state_since_ms`` is -1 in records of Kafka before 2.1."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader: str | None
    state_since_ms: int
    members: tuple[StoredMember, ...]


def encode_offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return b"\0\1" + _string(group_id) + _string(topic) + struct.pack(">i", partition)


def encode_offset(committed: CommittedOffset) -> bytes:
    """The value of a commit: version 1 if the client asked for a retention of its own, version 4 otherwise."""
    metadata = committed.metadata.encode()
    if committed.expire_timestamp_ms >= 0:
        times = struct.pack(">qq", committed.commit_timestamp_ms, committed.expire_timestamp_ms)
        return struct.pack(">hq", 1, committed.offset) + _string(committed.metadata) + times
    head = struct.pack(">hqi", 4, committed.offset, committed.leader_epoch)
    tags = b"\0" if committed.topic_id is None else b"\1\0\x10" + committed.topic_id.bytes
    return head + _varint(len(metadata) + 1) + metadata + struct.pack(">q", committed.commit_timestamp_ms) + tags


def encode_group_key(group_id: str) -> bytes:
    return b"\0\2" + _string(group_id)


def encode_group(group: StoredGroup) -> bytes:
    """The value of a group's generation, in version 3."""
    out = bytearray(b"\0\3" + _string(group.protocol_type) + struct.pack(">i", group.generation))
    out += _nullable(group.protocol_name) + _nullable(group.leader)
    out += struct.pack(">qi", group.state_since_ms, len(group.members))
    for member in group.members:
        out += _string(member.member_id) + _nullable(member.instance_id)
        out += _string(member.client_id) + _string(member.client_host)
        out += struct.pack(">ii", member.rebalance_timeout_ms, member.session_timeout_ms)
        for data in (member.subscription, member.assignment):
            out += struct.pack(">i", len(data)) + data
    return bytes(out)


def decode_key(data: bytes) -> OffsetKey | GroupKey | None:
    """What a key is of; None for records of kinds this broker does not keep (KIP-848, share and streams groups)."""
    read = _Reader(data, flexible=False)
    kind = read.int16()
    if kind in _OFFSET_KEYS:
        return OffsetKey(read.string(), read.string(), read.int32())
    return GroupKey(read.string()) if kind == _GROUP_KEY else None


def decode_offset(data: bytes) -> CommittedOffset:
    version, read = _versioned(data, "OffsetCommitValue")
    offset = read.int64()
    leader_epoch = read.int32() if version >= 3 else -1
    metadata = read.string()
    commit_timestamp_ms = read.int64()
    expire_timestamp_ms = read.int64() if version == 1 else -1
    topic_id = None
    if read.flexible:
        tagged = read.tags().get(0)
        if tagged is not None and len(tagged) == 16:
            topic_id = UUID(bytes=tagged)
    if topic_id == _NO_TOPIC_ID:
        topic_id = None
    return CommittedOffset(offset, leader_epoch, metadata, topic_id, commit_timestamp_ms, expire_timestamp_ms)


def decode_group(data: bytes) -> StoredGroup:
    version, read = _versioned(data, "GroupMetadataValue")
    protocol_type, generation = read.string(), read.int32()
    protocol_name, leader = read.nullable(), read.nullable()
    state_since_ms = read.int64() if version >= 2 else -1
    members = tuple(_decode_member(version, read) for _ in range(read.count()))
    if read.flexible:
        read.tags()
    return StoredGroup(protocol_type, generation, protocol_name, leader, state_since_ms, members)


def _decode_member(version: int, read: _Reader) -> StoredMember:
    member_id = read.string()
    instance_id = read.nullable() if version >= 3 else None
    client_id, client_host = read.string(), read.string()
    rebalance_timeout_ms = read.int32() if version >= 1 else -1
    session_timeout_ms = read.int32()
    subscription, assignment = read.bytes_(), read.bytes_()
    if read.flexible:
        read.tags()
    return StoredMember(
        member_id,
        instance_id,
        client_id,
        client_host,
        session_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    )


def _versioned(data: bytes, name: str) -> tuple[int, _Reader]:
    version = _Reader(data, flexible=False).int16()
    if not 0 <= version <= 4:
        raise CorruptMessage(f"{name} in __consumer_offsets has version {version}; versions 0 to 4 are known.")
    return version, _Reader(data, flexible=version >= 4, position=2)


class _Reader:
    """Reads Kafka's primitive types one after the other; CorruptMessage where the bytes end too soon."""

    def __init__(self, data: bytes, *, flexible: bool, position: int = 0) -> None:
        self._data = data
        self._position = position
        self.flexible = flexible

    def _take(self, length: int) -> bytes:
        taken = self._data[self._position : self._position + length]
        if length < 0 or len(taken) < length:
            raise CorruptMessage(
                f"A record of __consumer_offsets ends at byte {len(self._data)}, "
                f"where {length} bytes should follow byte {self._position}."
            )
        self._position += length
        return taken

    def int16(self) -> int:
        return int.from_bytes(self._take(2), signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), signed=True)

    def _uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptMessage(f"A variable-length integer before byte {self._position} has more than five bytes.")

    def nullable(self) -> str | None:
        length = self._uvarint() - 1 if self.flexible else self.int16()
        if length < 0:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise CorruptMessage(f"A string of a record of __consumer_offsets is not UTF-8: {error}.") from error

    def string(self) -> str:
        text = self.nullable()
        if text is None:
            raise CorruptMessage(f"A string before byte {self._position} is null and must not be.")
        return text

    def bytes_(self) -> bytes:
        return self._take(self.count())

    def count(self) -> int:
        """The number of an array's elements or of bytes; a null one counts as none."""
        return max(self._uvarint() - 1 if self.flexible else self.int32(), 0)

    def tags(self) -> dict[int, bytes]:
        return {self._uvarint(): self._take(self._uvarint()) for _ in range(self._uvarint())}


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _nullable(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else _string(text)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
