"""Converts MySQL's binary JSON to text.

Source: MySQL's sql-common/json_binary.h. MariaDB stores JSON as text.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Final

from connect.api import DataError

__all__ = ["json_text"]

_DEPTH: Final = 100
"""The server's own limit."""


def json_text(data: bytes) -> str:
    """Raises DataError for invalid bytes."""
    if not data:
        return "null"
    try:
        return _value(data[0], data, 1, 0)
    except (IndexError, KeyError, struct.error, UnicodeDecodeError, ValueError) as error:
        raise DataError(f"the binary log holds JSON that cannot be read: {error}") from error


_NUMBERS: Final = {0x05: "<h", 0x06: "<H", 0x07: "<i", 0x08: "<I", 0x09: "<q", 0x0A: "<Q"}
_LITERALS: Final = {0: "null", 1: "true", 2: "false"}


def _value(kind: int, data: bytes, at: int, depth: int) -> str:
    if depth > _DEPTH:
        raise ValueError("it is nested too deeply")
    if kind in _NUMBERS:
        return str(struct.unpack_from(_NUMBERS[kind], data, at)[0])
    match kind:
        case 0x00 | 0x02:
            return _container(data, at, 2, depth, is_object=kind == 0x00)
        case 0x01 | 0x03:
            return _container(data, at, 4, depth, is_object=kind == 0x01)
        case 0x04:
            return _LITERALS[data[at]]
        case 0x0B:
            return repr(struct.unpack_from("<d", data, at)[0])
        case 0x0C:
            size, at = _size(data, at)
            return _quoted(_part(data, at, size).decode())
        case 0x0F:
            return _opaque(data, at)
    raise ValueError(f"there is no kind {kind}")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _part(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise IndexError("it ends in the middle of a value")
    return data[at : at + size]


def _size(data: bytes, at: int) -> tuple[int, int]:
    """A length in groups of seven bits, and the index after it."""
    size = shift = 0
    while True:
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size, at
        shift += 7
        if shift > 28:
            raise ValueError("a length of more than five bytes")


def _number(data: bytes, at: int, width: int) -> int:
    return int.from_bytes(_part(data, at, width), "little")


def _container(data: bytes, start: int, width: int, depth: int, *, is_object: bool) -> str:
    count = _number(data, start, width)
    size = _number(data, start + width, width)
    if start + size > len(data) or count > size:
        raise IndexError("it ends in the middle of a value")
    at = start + 2 * width
    keys: list[str] = []
    if is_object:
        for _ in range(count):
            offset, length = _number(data, at, width), _number(data, at + width, 2)
            keys.append(_quoted(_part(data, start + offset, length).decode()))
            at += width + 2
    texts: list[str] = []
    for _ in range(count):
        kind = data[at]
        inline = kind in (0x04, 0x05, 0x06) or (width == 4 and kind in (0x07, 0x08))
        if inline:
            texts.append(_value(kind, data, at + 1, depth + 1))
        else:
            offset = _number(data, at + 1, width)
            if offset < 2 * width or offset >= size:
                raise IndexError("a value outside of its container")
            texts.append(_value(kind, data, start + offset, depth + 1))
        at += 1 + width
    if is_object:
        return "{" + ",".join(f"{name}:{value}" for name, value in zip(keys, texts, strict=True)) + "}"
    return "[" + ",".join(texts) + "]"


def _opaque(data: bytes, at: int) -> str:
    """A value of a column type: a decimal, a date or time, or bytes."""
    kind = data[at]
    size, at = _size(data, at + 1)
    raw = _part(data, at, size)
    if kind == 246 and len(raw) > 2:
        return _decimal(raw)
    if kind in (7, 10, 11, 12) and len(raw) == 8:
        return _quoted(_temporal(kind, int.from_bytes(raw, "little", signed=True)))
    return _quoted(base64.b64encode(raw).decode())


def _decimal(raw: bytes) -> str:
    import numpy as np

    from connectors.mysql.binlog.rows import PADDING, Cells, Physical, decimal_bytes
    from connectors.mysql.binlog.values import decimals

    precision, scale = raw[0], raw[1]
    if not 0 <= scale <= precision <= 76 or len(raw) - 2 < decimal_bytes(precision - scale) + decimal_bytes(scale):
        raise ValueError("a decimal that is none")
    digits = np.array([2])
    cells = Cells(digits, digits, np.array([False]))
    texts = decimals(
        np.frombuffer(raw + bytes(PADDING), np.uint8), cells, Physical(246, len(raw) - 2, 0, precision | scale << 8)
    )
    return f"{texts[0].as_py():f}"


def _temporal(kind: int, packed: int) -> str:
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    micros, whole = packed & 0xFFFFFF, packed >> 24
    second, minute = whole & 63, whole >> 6 & 63
    if kind == 11:
        return f"{sign}{whole >> 12 & 0x3FF:02}:{minute:02}:{second:02}.{micros:06}"
    months = whole >> 22
    date = f"{months // 13:04}-{months % 13:02}-{whole >> 17 & 31:02}"
    if kind == 10:
        return date
    return f"{date} {whole >> 12 & 31:02}:{minute:02}:{second:02}.{micros:06}"
