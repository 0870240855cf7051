"""Records that a request brings, as a sink's fetch would: bytes in base64, in JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from connect.api import Origin, RecordBatch, Schema, SchemaType
from connect.errors import BadRequest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_RECORDS", "raw_batches", "read_records"]

MOST_RECORDS: Final = 100
"""The most records of a request."""
_MEMBERS: Final = frozenset({"topic", "partition", "offset", "timestamp", "key", "value", "headers"})
_INT64_MAX: Final = 2**63 - 1
_BYTES: Final = Schema(SchemaType.BYTES, optional=True)


def read_records(records: Any) -> dict[Origin, dict[int, Mapping[str, Any]]]:
    """The records by topic and partition, and by offset, with their bytes decoded.

    ``records`` is a list of objects with ``topic``, ``partition``, ``offset``; ``timestamp`` in ms, ``key``, ``value``
    (base64 or null) and ``headers`` (a list of ``{"key": text, "value": base64 or null}``) may be missing. Raises
    BadRequest, which names the record, for another shape, for no record or more than ``MOST_RECORDS``, and for two at
    the same offset.
    """
    if not isinstance(records, list) or not 1 <= len(records) <= MOST_RECORDS:
        raise BadRequest(f'"records" must be a list of 1 to {MOST_RECORDS} records')
    by_origin: dict[Origin, dict[int, Mapping[str, Any]]] = {}
    for number, record in enumerate(records):
        checked = _checked(number, record)
        offsets = by_origin.setdefault(Origin(checked["topic"], checked["partition"]), {})
        if checked["offset"] in offsets:
            raise BadRequest(f"record {number} has the offset {checked['offset']} of another record of its partition")
        offsets[checked["offset"]] = checked
    return by_origin


def raw_batches(records: Any) -> list[RecordBatch]:
    """A batch of bytes for each topic and partition, in the order of offsets. Takes and raises what ``read_records`` does."""
    return [_batch(origin, [rows[offset] for offset in sorted(rows)]) for origin, rows in read_records(records).items()]


def _batch(origin: Origin, rows: Sequence[Mapping[str, Any]]) -> RecordBatch:
    import pyarrow as pa

    def column(name: str, kind: pa.DataType) -> pa.Array | None:
        cells = [row[name] for row in rows]
        return None if all(cell is None for cell in cells) else pa.array(cells, kind)

    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return RecordBatch(
        topic=origin.topic,
        values=pa.array([row["value"] for row in rows], pa.binary()),
        value_schema=_BYTES,
        keys=column("key", pa.binary()),
        key_schema=_BYTES,
        timestamps_ms=column("timestamp", pa.int64()),
        headers=column("headers", header),
        origin=origin,
        offsets=pa.array([row["offset"] for row in rows], pa.int64()),
    )


def _checked(number: int, record: Any) -> dict[str, Any]:
    what = f"record {number}"
    if not isinstance(record, dict):
        raise BadRequest(f"{what} is no object")
    if unknown := sorted(record.keys() - _MEMBERS):
        raise BadRequest(f"{what} has {unknown[0]!r}; a record has {', '.join(sorted(_MEMBERS))}")
    topic = record.get("topic")
    if not isinstance(topic, str) or not topic:
        raise BadRequest(f"{what} has the topic {topic!r}: give the topic's name")
    headers = record.get("headers") or []
    if not isinstance(headers, list) or not all(isinstance(h, dict) and isinstance(h.get("key"), str) for h in headers):
        raise BadRequest(f'{what} has other headers than a list of {{"key": ..., "value": ...}}')
    timestamp = record.get("timestamp")
    return {
        "topic": topic,
        "partition": _whole(what, "partition", record.get("partition"), 2**31 - 1),
        "offset": _whole(what, "offset", record.get("offset"), _INT64_MAX),
        "timestamp": None if timestamp is None else _whole(what, "timestamp", timestamp, _INT64_MAX),
        "key": _bytes(what, "key", record.get("key")),
        "value": _bytes(what, "value", record.get("value")),
        "headers": [{"key": h["key"], "value": _bytes(what, "header", h.get("value"))} for h in headers] or None,
    }


def _whole(what: str, name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BadRequest(f"{what} has the {name} {value!r}: give a whole number from 0 to {most}")
    return value


def _bytes(what: str, name: str, value: Any) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise BadRequest(f"{what} has a {name} that is no base64: {error}") from error
