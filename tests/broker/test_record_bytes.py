"""The bytes of every record type in which the broker stores its state, compared with a file, so that existing logs stay
readable.

``python -m tests.broker.test_record_bytes`` writes the file again, which is only right when a record type was added.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.coordinator.committed_offset import CommittedOffset
from broker.groups.consumer.records import RECORDS as CONSUMER
from broker.groups.modern.records import decode_entry, encode_entry
from broker.groups.records import (
    GroupMetadataValue,
    MemberMetadata,
    encode_group,
    encode_group_key,
    encode_offset,
    encode_offset_key,
)
from broker.groups.share.records import RECORDS as SHARE
from broker.groups.streams.records import RECORDS as STREAMS
from broker.metadata.records import RECORD_TYPES, decode_record, encode_record
from broker.protocol.fields import Field, Message
from broker.share_coordinator.records import Snapshot, Update, encode_snapshot, encode_update
from broker.share_coordinator.values import ShareKey, StateBatch
from broker.transactions.records import encode_key, encode_value
from broker.transactions.values import Transaction, TransactionState

FILE = Path(__file__).with_name("record_bytes.json")
_BYTES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8}


def filled(kind: type[Message], path: str = "") -> Message:
    """A structure with a value in every field that follows from the field's name alone, arrays with two elements."""
    return kind(**{field.name: _value(field, f"{path}.{field.name}") for field in kind.FIELDS})


def _value(field: Field, path: str) -> Any:
    if not field.array:
        return _single(field, path)
    return [_single(field, f"{path}{number}") for number in range(2)]


def _single(field: Field, path: str) -> Any:
    if not isinstance(field.kind, str):
        return filled(field.kind, path)
    number = zlib.crc32(path.encode())
    match field.kind:
        case "string":
            return f"{path} ü"
        case "bytes":
            return path.encode()
        case "uuid":
            return uuid.uuid5(uuid.NAMESPACE_URL, path)
        case "bool":
            return True
        case "float64":
            return number / 7
        case kind:
            return number * 2654435761 % (1 << (8 * _BYTES[kind] - 1))


def records() -> Iterator[tuple[str, tuple[bytes, bytes | None]]]:
    """A name for each case, the key and the value."""
    for number, record in sorted(RECORD_TYPES.items()):
        for version in range(record.LATEST + 1):
            name = f"metadata {number} {record.__name__} v{version}"
            yield f"{name} filled", (b"", encode_record(filled(record), version))
            yield f"{name} default", (b"", encode_record(record(), version))
    for kinds in (CONSUMER, SHARE, STREAMS):
        for number, (key, value) in sorted(kinds.items()):
            name = f"group {number} {value.__name__}"
            yield f"{name} filled", encode_entry((filled(key), filled(value)))
            yield f"{name} default", encode_entry((key(), value()))
            yield f"{name} deleted", encode_entry((filled(key), None))
    yield from _classic()
    yield from _transactions()
    yield from _share_states()


def _classic() -> Iterator[tuple[str, tuple[bytes, bytes | None]]]:
    offset_key, group_key = encode_offset_key("g ü", "topic", 7), encode_group_key("g ü")
    topic_id = uuid.UUID(int=0x1234567890ABCDEF << 64 | 0xFEDC)
    for name, offset in {
        "plain": CommittedOffset(5, commit_timestamp_ms=1_700_000_000_000),
        "whole": CommittedOffset(1 << 40, 3, "where ü", topic_id, 1_700_000_000_000),
        "long metadata": CommittedOffset(0, -1, "m" * 300, None, 1),
        "with a retention": CommittedOffset(9, 3, "m", None, 1_700_000_000_000, 1_800_000_000_000),
    }.items():
        yield f"offset {name}", (offset_key, encode_offset(offset))
    members = (
        MemberMetadata(
            member_id="m-1",
            group_instance_id="i ü",
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=45_000,
            subscription=b"subscription",
            assignment=b"assignment",
        ),
        MemberMetadata(member_id="m-2", rebalance_timeout=0, session_timeout=-1),
    )
    whole = GroupMetadataValue(
        protocol_type="consumer",
        generation=12,
        protocol="range",
        leader="m-1",
        current_state_timestamp=1_700_000_000_000,
        members=members,
    )
    yield "group whole", (group_key, encode_group(whole))
    yield "group empty", (group_key, encode_group(GroupMetadataValue()))


def _transactions() -> Iterator[tuple[str, tuple[bytes, bytes | None]]]:
    key = encode_key("id ü")
    ongoing = Transaction(
        producer_id=1 << 40,
        previous_producer_id=4,
        next_producer_id=5,
        epoch=6,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset({("b", 2), ("a", 1), ("a", 0)}),
        updated_ms=1_700_000_000_000,
        started_ms=1_600_000_000_000,
        client_version=2,
    )
    empty = Transaction(producer_id=3, timeout_ms=1, updated_ms=2)
    for version in (0, 1, 2):
        yield f"transaction ongoing, transaction.version {version}", (key, encode_value(ongoing, version))
        yield f"transaction empty, transaction.version {version}", (key, encode_value(empty, version))


def _share_states() -> Iterator[tuple[str, tuple[bytes, bytes | None]]]:
    key = ShareKey("g ü", uuid.UUID(int=77), 3)
    batches = [StateBatch(5, 9, 2, 0), StateBatch(10, 1 << 40, 1, 2)]
    yield "share snapshot", encode_snapshot(key, Snapshot(1, 2, 3, 4, 5, 6, 7, batches))
    yield "share snapshot, count unknown", encode_snapshot(key, Snapshot(1, 2, 3, -1, 5, 6, -1, ()))
    yield "share snapshot deleted", encode_snapshot(key, None)
    yield "share update", encode_update(key, Update(1, 2, 3, 4, batches))
    yield "share update, count unknown", encode_update(key, Update(1, -1, -1, -1, ()))


def written() -> dict[str, list[str | None]]:
    return {name: [key.hex(), None if value is None else value.hex()] for name, (key, value) in records()}


KEPT: dict[str, list[str | None]] = json.loads(FILE.read_text()) if FILE.exists() else {}


def test_every_record_has_its_bytes_in_the_file() -> None:
    assert written().keys() == KEPT.keys()


@pytest.mark.parametrize("name", KEPT)
def test_a_record_is_written_with_the_bytes_it_always_had(name: str) -> None:
    assert written()[name] == KEPT[name]


@pytest.mark.parametrize("name", [name for name in KEPT if name.startswith("metadata")])
def test_a_metadata_record_is_read_as_it_was_written(name: str) -> None:
    value = bytes.fromhex(KEPT[name][1] or "")
    version = int(name.split()[3].removeprefix("v"))
    assert encode_record(decode_record(value), version) == value


@pytest.mark.parametrize("name", [name for name in KEPT if name.startswith("group") and name.split()[1].isdigit()])
def test_a_record_of_a_group_is_read_as_it_was_written(name: str) -> None:
    key, value = (None if data is None else bytes.fromhex(data) for data in KEPT[name])
    assert encode_entry(decode_entry({**CONSUMER, **SHARE, **STREAMS}, key or b"", value)) == (key, value)


if __name__ == "__main__":
    FILE.write_text(json.dumps(written(), indent=1) + "\n")
