"""The records of ``__share_group_state``, byte for byte as Kafka's share coordinator writes them (KIP-932, KIP-1226).

A key begins with an int16 that says what it is of (0 a snapshot, 1 an update), a value with its version, 0. Keys are
not flexible, values are.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from broker.errors import CorruptMessage
from broker.protocol.primitives import (
    MalformedMessage,
    read_array_length,
    read_string,
    read_uuid,
    read_uvarint,
    write_array_length,
    write_string,
)
from broker.share_coordinator.values import ShareKey, StateBatch

__all__ = ["Snapshot", "Update", "decode_key", "decode_snapshot", "decode_update", "encode_snapshot", "encode_update"]

SNAPSHOT: Final = 0
UPDATE: Final = 1

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_SNAPSHOT: Final = Struct(">hiiiqqq")
_UPDATE: Final = Struct(">hiiq")
_BATCH: Final = Struct(">qqbhx")
"""First and last offset, state, number of deliveries, and no tagged fields."""
_COMPLETE: Final = Struct(">BBBi")
"""One tagged field: number 0, of four bytes."""
_UNKNOWN: Final = -1


class Snapshot(NamedTuple):
    """The whole state of a share-partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    created_ms: int
    written_ms: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class Update(NamedTuple):
    """What changed since the snapshot; a start offset or leader epoch of -1 did not."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


def encode_key(kind: int, key: ShareKey) -> bytes:
    out = bytearray(_INT16.pack(kind))
    write_string(out, key.group_id, False)
    return bytes(out + key.topic_id.bytes + _INT32.pack(key.partition))


def encode_snapshot(key: ShareKey, snapshot: Snapshot | None) -> tuple[bytes, bytes | None]:
    """Key and value; None deletes the state."""
    if snapshot is None:
        return encode_key(SNAPSHOT, key), None
    return encode_key(SNAPSHOT, key), _value(_SNAPSHOT.pack(0, *snapshot[:6]), snapshot)


def encode_update(key: ShareKey, update: Update) -> tuple[bytes, bytes | None]:
    return encode_key(UPDATE, key), _value(_UPDATE.pack(0, *update[:3]), update)


def _value(head: bytes, state: Snapshot | Update) -> bytes:
    out = bytearray(head)
    write_array_length(out, len(state.batches), True)
    for batch in state.batches:
        out += _BATCH.pack(batch.first, batch.last, batch.state, batch.deliveries)
    if state.delivery_complete_count == _UNKNOWN:
        out.append(0)
    else:
        out += _COMPLETE.pack(1, 0, 4, state.delivery_complete_count)
    return bytes(out)


def decode_key(data: bytes) -> tuple[int, ShareKey]:
    """(kind, share-partition). Raises CorruptMessage."""
    try:
        (kind,) = _INT16.unpack_from(data)
        group_id, at = read_string(data, 2, False)
        topic_id, at = read_uuid(data, at)
        (partition,) = _INT32.unpack_from(data, at)
    except (struct.error, IndexError, UnicodeDecodeError, MalformedMessage) as error:
        raise CorruptMessage(f"the key of a share-partition's state cannot be read: {error}") from error
    return kind, ShareKey(group_id or "", topic_id, partition)


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises CorruptMessage."""
    try:
        _check_version(data)
        _, epoch, state_epoch, leader_epoch, start, created_ms, written_ms = _SNAPSHOT.unpack_from(data)
        batches, complete = _read_rest(data, _SNAPSHOT.size)
    except (struct.error, IndexError, MalformedMessage) as error:
        raise CorruptMessage(f"a snapshot of a share-partition's state cannot be read: {error}") from error
    return Snapshot(epoch, state_epoch, leader_epoch, start, created_ms, written_ms, complete, batches)


def decode_update(data: bytes) -> Update:
    """Raises CorruptMessage."""
    try:
        _check_version(data)
        _, epoch, leader_epoch, start = _UPDATE.unpack_from(data)
        batches, complete = _read_rest(data, _UPDATE.size)
    except (struct.error, IndexError, MalformedMessage) as error:
        raise CorruptMessage(f"an update of a share-partition's state cannot be read: {error}") from error
    return Update(epoch, leader_epoch, start, complete, batches)


def _check_version(data: bytes) -> None:
    (version,) = _INT16.unpack_from(data)
    if version != 0:
        raise CorruptMessage(f"the state of a share-partition has version {version}; version 0 is the only one known")


def _read_rest(data: bytes, at: int) -> tuple[list[StateBatch], int]:
    count, at = read_array_length(data, at, True)
    batches = []
    for _ in range(count):
        first, last, state, deliveries = struct.unpack_from(">qqbh", data, at)
        _, at = _read_tags(data, at + 19)
        batches.append(StateBatch(first, last, deliveries, state))
    tags, _ = _read_tags(data, at)
    complete = tags.get(0)
    return batches, _UNKNOWN if complete is None else _INT32.unpack(complete)[0]


def _read_tags(data: bytes, at: int) -> tuple[dict[int, bytes], int]:
    count, at = read_uvarint(data, at)
    tags: dict[int, bytes] = {}
    for _ in range(count):
        number, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        if size > len(data) - at:
            raise MalformedMessage(f"a tagged field of {size} bytes is announced, {len(data) - at} bytes are there")
        tags[number] = bytes(data[at : at + size])
        at += size
    return tags, at
