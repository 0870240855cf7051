"""Snapshots of the metadata log (KIP-630): ``<end offset>-<epoch>.checkpoint``, in the directory of the log.

A control batch with the header, batches of records, a control batch with the footer; a file without a footer is
incomplete.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from broker.errors import CorruptMessage
from broker.log.files import sync_data, sync_directory
from broker.protocol.records import Record, batches, crc_is_right, decode_batch, encode_batch
from tidegate.kit.logs import get_logger

__all__ = ["Snapshot", "latest_snapshot", "read_snapshot", "snapshots", "write_snapshot"]

logger = get_logger(__name__)

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_KEY: Final = struct.Struct(">hh")
_HEADER: Final = 3
_FOOTER: Final = 4
_KRAFT: Final = (5, 6)
"""Control records that snapshots keep: the version of KRaft and its voters (KIP-853)."""
_RECORDS_IN_BATCH: Final = 500


class Snapshot(NamedTuple):
    """A snapshot file. ``offset`` is where the log continues."""

    offset: int
    epoch: int
    path: Path


class Content(NamedTuple):
    """``values`` are those of metadata records; ``kraft`` are the control records of the quorum itself."""

    values: list[bytes]
    kraft: list[Record]


def snapshots(directory: Path) -> list[Snapshot]:
    """The snapshots in the log's directory, oldest first, complete or not."""
    names = ((_NAME.fullmatch(path.name), path) for path in directory.iterdir())
    return sorted(Snapshot(int(name[1]), int(name[2]), path) for name, path in names if name)


def latest_snapshot(directory: Path) -> tuple[Snapshot, Content] | None:
    """The newest complete snapshot. Raises OSError."""
    for snapshot in reversed(snapshots(directory)):
        try:
            return snapshot, read_snapshot(snapshot.path)
        except CorruptMessage as error:
            logger.warning("ignored a snapshot of the metadata", file=snapshot.path.name, reason=error.message)
    return None


def read_snapshot(path: Path) -> Content:
    """Raises CorruptMessage if the file is incomplete."""
    view = memoryview(path.read_bytes())
    values: list[bytes] = []
    kraft: list[Record] = []
    seen: list[int] = []
    for position, header in batches(view):
        if not crc_is_right(view, position, header):
            raise CorruptMessage(f"{path.name} has a batch with a wrong checksum at position {position}")
        records = decode_batch(view[position : position + header.size])
        if not header.is_control:
            values += (record.value or b"" for record in records)
            continue
        for record in records:
            kind = control_type(record)
            seen.append(kind)
            if kind in _KRAFT:
                kraft.append(record)
    if not seen or seen[0] != _HEADER or seen[-1] != _FOOTER:
        raise CorruptMessage(f"{path.name} does not have a snapshot's header and footer")
    return Content(values, kraft)


def control_type(record: Record) -> int:
    """Raises CorruptMessage if the record is not a control record."""
    try:
        return int(_KEY.unpack_from(record.key or b"")[1])
    except struct.error:
        raise CorruptMessage("a control record has no type") from None


def is_kraft(record: Record) -> bool:
    """Whether snapshots keep a control record of the log."""
    return control_type(record) in _KRAFT


def write_snapshot(
    directory: Path, offset: int, epoch: int, content: Content, *, last_timestamp_ms: int, now_ms: int
) -> Snapshot:
    """Write the file. It gets its name only once it is durable. Raises OSError."""
    path = directory / f"{offset:020d}-{epoch:010d}.checkpoint"
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        for batch in _batches(content, epoch, last_timestamp_ms, now_ms):
            file.write(batch)
        file.flush()
        sync_data(file.fileno())
    part.replace(path)
    sync_directory(directory)
    return Snapshot(offset, epoch, path)


def _batches(content: Content, epoch: int, last_timestamp_ms: int, now_ms: int) -> Iterator[bytes]:
    # Both messages have version 0 and are flexible: their fields, then an empty list of tagged fields.
    head = Record(_KEY.pack(0, _HEADER), struct.pack(">hqB", 0, last_timestamp_ms, 0), (), now_ms)
    foot = Record(_KEY.pack(0, _FOOTER), struct.pack(">hB", 0, 0), (), now_ms)
    parts: list[tuple[Sequence[Record], bool]] = [([head, *content.kraft], True)]
    for start in range(0, len(content.values), _RECORDS_IN_BATCH):
        values = content.values[start : start + _RECORDS_IN_BATCH]
        parts.append(([Record(None, value, (), now_ms) for value in values], False))
    parts.append(([foot], True))
    offset = 0
    for records, is_control in parts:
        yield encode_batch(records, base_offset=offset, control=is_control, leader_epoch=epoch)
        offset += len(records)
