"""Metrics of statsd, and DogStatsD's additions to them, from lines to plain values.

There is no parser of them on PyPI apart from servers that are no longer maintained.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from connect.api import Schema, SchemaType
from connectors.telemetry.malformed import Malformed

__all__ = ["KEY", "SCHEMA", "lines", "parsed"]

KEY: Final = Schema(SchemaType.STRING)
SCHEMA: Final = Schema.struct(
    {
        "name": Schema(SchemaType.STRING),
        "type": Schema(SchemaType.STRING),
        "value": Schema(SchemaType.FLOAT64, optional=True),
        "member": Schema(SchemaType.STRING, optional=True),
        "relative": Schema(SchemaType.BOOLEAN),
        "sample_rate": Schema(SchemaType.FLOAT64),
        "tags": Schema.map(Schema(SchemaType.STRING), Schema(SchemaType.STRING)),
        "time": Schema.timestamp(),
        "sender": Schema(SchemaType.STRING),
    },
    name="tidegate.telemetry.Statsd",
)
"""The value of a record. ``member`` is what a set got, ``relative`` says that a gauge changes by its value."""

_TYPES: Final = {
    "c": "counter",
    "g": "gauge",
    "ms": "timer",
    "h": "histogram",
    "d": "distribution",
    "s": "set",
}
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SECONDS: Final = re.compile(r"\d{1,11}", re.ASCII)


def lines(datagram: bytes) -> list[bytes]:
    """The metrics of a datagram; they are not parsed yet."""
    return [line for line in datagram.replace(b"\r", b"").split(b"\n") if line]


def parsed(line: bytes, sender: str, received: datetime) -> list[dict[str, Any]]:
    """The values of a line: one, or as many as DogStatsD packs into it (``name:1:2:3|ms``). Raises Malformed."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"it is not UTF-8: {error.reason} at byte {error.start}") from error
    described, *parts = text.split("|")
    name, colon, values = described.partition(":")
    if not name or not colon or not parts:
        raise Malformed("it should be as in name:1|c")
    kind = _TYPES.get(parts[0])
    if kind is None:
        raise Malformed(f"its type is {parts[0][:20]!r}, which should be one of {', '.join(_TYPES)}")
    more: dict[str, Any] = {"sample_rate": 1.0, "tags": {}, "time": received}
    for part in parts[1:]:
        more |= _addition(part)
    common = {"name": name, "type": kind, "sender": sender, **more}
    return [{**common, **fields} for fields in _values(kind, values)]


def _values(kind: str, text: str) -> Iterator[dict[str, Any]]:
    if kind == "set":
        if not text:
            raise Malformed("a set needs a member, as in name:member|s")
        yield {"value": None, "member": text, "relative": False}
        return
    for value in text.split(":"):
        if not _NUMBER.fullmatch(value) or not math.isfinite(float(value)):
            raise Malformed(f"its value {value[:40]!r} is no number")
        yield {"value": float(value), "member": None, "relative": kind == "gauge" and value[0] in "+-"}


def _addition(part: str) -> dict[str, Any]:
    """A part behind the type: ``@0.1``, ``#tag:value,tag``, ``T1700000000``. Others are DogStatsD's, and have no effect."""
    if part.startswith("@"):
        rate = float(part[1:]) if _NUMBER.fullmatch(part[1:]) else 0.0
        if not 0 < rate <= 1:
            raise Malformed(f"its sample rate {part[1:41]!r} should be above 0 and at most 1")
        return {"sample_rate": rate}
    if part.startswith("#"):
        return {"tags": dict(tag.partition(":")[::2] for tag in part[1:].split(",") if tag)}
    if part.startswith("T"):
        if not _SECONDS.fullmatch(part[1:]):
            raise Malformed(f"its time {part[1:41]!r} should be seconds since 1970")
        return {"time": datetime.fromtimestamp(int(part[1:]), UTC)}
    return {}
