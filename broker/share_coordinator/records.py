"""The records of ``__share_group_state``, byte for byte as Kafka's share coordinator writes them (KIP-932, KIP-1226)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

from broker.coordinator.records import RecordKey, RecordValue, decode_value, encode_value, type_number
from broker.coordinator.records import decode_key as decode_key_as
from broker.coordinator.records import encode_key as encode_key_of
from broker.protocol.declare import structure, wire
from broker.protocol.fields import Message
from broker.share_coordinator.config import SHARE_STATE_TOPIC
from broker.share_coordinator.values import ShareKey, StateBatch

__all__ = [
    "SNAPSHOT",
    "UPDATE",
    "Snapshot",
    "Update",
    "decode_key",
    "decode_snapshot",
    "decode_update",
    "encode_snapshot",
    "encode_update",
]

SNAPSHOT: Final = 0
UPDATE: Final = 1
_UNKNOWN: Final = -1


@structure
class ShareSnapshotKey(RecordKey):
    API_KEY = SNAPSHOT
    group_id: str = wire("string")
    topic_id: uuid.UUID = wire("uuid")
    partition: int = wire("int32")


@structure
class ShareUpdateKey(ShareSnapshotKey):
    API_KEY = UPDATE


@structure
class StoredBatch(Message):
    first_offset: int = wire("int64")
    last_offset: int = wire("int64")
    delivery_state: int = wire("int8")
    delivery_count: int = wire("int16")


@structure
class ShareSnapshotValue(RecordValue):
    snapshot_epoch: int = wire("int32")
    state_epoch: int = wire("int32")
    leader_epoch: int = wire("int32")
    start_offset: int = wire("int64")
    create_timestamp: int = wire("int64")
    write_timestamp: int = wire("int64")
    state_batches: Sequence[StoredBatch] = wire(StoredBatch, array=True)
    delivery_complete_count: int = wire("int32", tag=0, default=_UNKNOWN)


@structure
class ShareUpdateValue(RecordValue):
    snapshot_epoch: int = wire("int32")
    leader_epoch: int = wire("int32")
    start_offset: int = wire("int64")
    state_batches: Sequence[StoredBatch] = wire(StoredBatch, array=True)
    delivery_complete_count: int = wire("int32", tag=0, default=_UNKNOWN)


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
    """Changes since the snapshot. A start offset or leader epoch of -1 is unchanged."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


def encode_key(kind: int, key: ShareKey) -> bytes:
    cls = ShareSnapshotKey if kind == SNAPSHOT else ShareUpdateKey
    return encode_key_of(cls(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition))


def encode_snapshot(key: ShareKey, snapshot: Snapshot | None) -> tuple[bytes, bytes | None]:
    """Key and value; None deletes the state."""
    if snapshot is None:
        return encode_key(SNAPSHOT, key), None
    value = ShareSnapshotValue(
        snapshot_epoch=snapshot.snapshot_epoch,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        create_timestamp=snapshot.created_ms,
        write_timestamp=snapshot.written_ms,
        state_batches=_stored(snapshot.batches),
        delivery_complete_count=snapshot.delivery_complete_count,
    )
    return encode_key(SNAPSHOT, key), encode_value(value)


def encode_update(key: ShareKey, update: Update) -> tuple[bytes, bytes | None]:
    value = ShareUpdateValue(
        snapshot_epoch=update.snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        state_batches=_stored(update.batches),
        delivery_complete_count=update.delivery_complete_count,
    )
    return encode_key(UPDATE, key), encode_value(value)


def decode_key(data: bytes) -> tuple[int, ShareKey]:
    """(kind, share-partition). Raises CorruptMessage."""
    key = decode_key_as(ShareSnapshotKey, data, SHARE_STATE_TOPIC)
    return type_number(data), ShareKey(key.group_id, key.topic_id, key.partition)


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises CorruptMessage."""
    value = decode_value(ShareSnapshotValue, data, SHARE_STATE_TOPIC)
    return Snapshot(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.create_timestamp,
        value.write_timestamp,
        value.delivery_complete_count,
        _batches(value.state_batches),
    )


def decode_update(data: bytes) -> Update:
    """Raises CorruptMessage."""
    value = decode_value(ShareUpdateValue, data, SHARE_STATE_TOPIC)
    return Update(
        value.snapshot_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        _batches(value.state_batches),
    )


def _stored(batches: Sequence[StateBatch]) -> list[StoredBatch]:
    return [
        StoredBatch(
            first_offset=batch.first,
            last_offset=batch.last,
            delivery_state=batch.state,
            delivery_count=batch.deliveries,
        )
        for batch in batches
    ]


def _batches(stored: Sequence[StoredBatch]) -> list[StateBatch]:
    return [
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
        for batch in stored
    ]
