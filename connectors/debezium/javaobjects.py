"""Keys as Debezium stores them in an offset: a Java ``Object[]`` in Java serialization, as hexadecimal.

Source: Java Object Serialization Specification, chapter 6. Numbers and texts are written; from others, texts, booleans
and numbers are read.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.api import DataError

__all__ = ["JavaInt", "read_keys", "written_keys", "written_text"]

_MAGIC: Final = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY, _END, _LONG_STRING = 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x78, 0x7C
_SERIALIZABLE: Final = 2
_FIRST_HANDLE: Final = 0x7E0000
_ARRAY_CLASS: Final = ("[Ljava.lang.Object;", 0x90CE589F1073296C)
_NUMBER: Final = ("java.lang.Number", 0x86AC951D0B94E08B)
_BOXES: Final = {
    "I": ("java.lang.Integer", 0x12E2A0A4F7818738, ">i"),
    "J": ("java.lang.Long", 0x3B8BE490CC8F23DF, ">q"),
}
_WIDTHS: Final = {"B": ">b", "S": ">h", "I": ">i", "J": ">q", "F": ">f", "D": ">d", "Z": ">?", "C": ">H"}


class JavaInt(int):
    """A number that Java holds as Integer; other integers are Long."""


def written_keys(values: Sequence[Any] | None) -> str:
    """Serialize integers and texts; other values are converted to text. None: no keys."""
    return (_MAGIC + (bytes([_NULL]) if values is None else _Writer().array(values))).hex()


def written_text(text: str) -> bytes:
    """A text on its own."""
    return _MAGIC + _Writer().text(text)


class _Writer:
    """Classes are described once; later they are referred to by number."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._handles = 0

    def _next(self) -> int:
        self._handles += 1
        return _FIRST_HANDLE + self._handles - 1

    def array(self, values: Sequence[Any]) -> bytes:
        head = bytes([_ARRAY]) + self._described(_ARRAY_CLASS, "", bytes([_NULL]))
        self._next()
        return head + struct.pack(">i", len(values)) + b"".join(self._value(value) for value in values)

    def _described(self, name: tuple[str, int], field: str, parent: bytes | None = None) -> bytes:
        known = self._known.get(name[0])
        if known is not None:
            return struct.pack(">BI", _REFERENCE, known)
        self._known[name[0]] = self._next()
        fields = struct.pack(">H", 1) + field.encode() + _text("value") if field else struct.pack(">H", 0)
        head = bytes([_CLASS]) + _text(name[0]) + struct.pack(">QB", name[1], _SERIALIZABLE) + fields + bytes([_END])
        return head + (self._described(_NUMBER, "", bytes([_NULL])) if parent is None else parent)

    def _value(self, value: Any) -> bytes:
        if value is None:
            return bytes([_NULL])
        if isinstance(value, int) and not isinstance(value, bool):
            letter = "I" if isinstance(value, JavaInt) else "J"
            name, version, form = _BOXES[letter]
            made = bytes([_OBJECT]) + self._described((name, version), letter) + struct.pack(form, value)
            self._next()
            return made
        return self.text(str(value))

    def text(self, text: str) -> bytes:
        self._next()
        raw = _modified(text)
        if len(raw) < 0x10000:
            return struct.pack(">BH", _STRING, len(raw)) + raw
        return struct.pack(">BQ", _LONG_STRING, len(raw)) + raw


def _text(text: str) -> bytes:
    raw = _modified(text)
    return struct.pack(">H", len(raw)) + raw


def _modified(text: str) -> bytes:
    """Java's modified UTF-8: a zero character takes two bytes, and characters beyond 16 bits are written as two
    surrogates.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    made = bytearray()
    for at in range(0, len(units), 2):
        unit = units[at] << 8 | units[at + 1]
        if 0 < unit < 0x80:
            made.append(unit)
        elif unit < 0x800:
            made += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
        else:
            made += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))
    return bytes(made)


def _plain(raw: bytes) -> str:
    return (
        raw.replace(b"\xc0\x80", b"\x00")
        .decode("utf-8", "surrogatepass")
        .encode("utf-16-be", "surrogatepass")
        .decode("utf-16-be", "surrogatepass")
    )


def read_keys(text: str) -> list[Any] | None:
    """The keys in an offset. Raises DataError where the text is not such an array, or holds values of other classes."""
    try:
        raw = bytes.fromhex(text)
        if raw[:4] != _MAGIC:
            raise DataError("not Java's serialization")
        content = _Reader(raw, 4).content()
    except (ValueError, IndexError, struct.error, UnicodeError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{text[:80]!r} is no array of keys in Java's serialization: {error}") from error
    if content is not None and not isinstance(content, list):
        raise DataError(f"{text[:80]!r} is no array of keys in Java's serialization")
    return content


@dataclass(slots=True)
class _Described:
    name: str
    fields: list[tuple[str, str]]
    parent: _Described | None
    writes_itself: bool


class _Reader:
    def __init__(self, raw: bytes, at: int) -> None:
        self._raw, self._at = raw, at
        self._handles: list[Any] = []

    def _take(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._raw, self._at)
        self._at += struct.calcsize(form)
        return value

    def _bytes(self, length: int) -> bytes:
        end = self._at + length
        if not 0 <= length <= len(self._raw) - self._at:
            raise ValueError("it ends too early")
        piece, self._at = self._raw[self._at : end], end
        return piece

    def _utf(self) -> str:
        return _plain(self._bytes(self._take(">H")))

    def content(self) -> Any:
        kind = self._take(">B")
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self._handles[self._take(">I") - _FIRST_HANDLE]
        if kind in (_STRING, _LONG_STRING):
            text = _plain(self._bytes(self._take(">H" if kind == _STRING else ">Q")))
            self._handles.append(text)
            return text
        if kind == _ARRAY:
            return self._array()
        if kind == _OBJECT:
            return self._object()
        raise ValueError(f"content of kind {kind:#x}")

    def _array(self) -> list[Any]:
        described = self._class()
        if described is None or described.name != _ARRAY_CLASS[0]:
            raise ValueError("an array of other things than objects")
        made: list[Any] = []
        self._handles.append(made)
        count = self._take(">i")
        if not 0 <= count <= len(self._raw):
            raise ValueError(f"an array of {count}")
        made += [self.content() for _ in range(count)]
        return made

    def _class(self) -> _Described | None:
        kind = self._take(">B")
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            known = self._handles[self._take(">I") - _FIRST_HANDLE]
            if not isinstance(known, _Described):
                raise ValueError("a reference to something that is no class")
            return known
        if kind != _CLASS:
            raise ValueError(f"a class of kind {kind:#x}")
        described = _Described(self._utf(), [], None, False)
        self._take(">Q")
        self._handles.append(described)
        described.writes_itself = self._take(">B") != _SERIALIZABLE
        for _ in range(self._take(">H")):
            letter = chr(self._take(">B"))
            described.fields.append((letter, self._utf()))
            if letter in "[L":
                raise ValueError(f"a value of class {described.name}")
        if self._take(">B") != _END:
            raise ValueError(f"notes on class {described.name}")
        described.parent = self._class()
        return described

    def _object(self) -> Any:
        described = self._class()
        chain: list[_Described] = []
        while described is not None:
            chain.append(described)
            described = described.parent
        if not chain or any(description.writes_itself for description in chain):
            raise ValueError("a value of a class that writes itself")
        values = {
            name: self._take(_WIDTHS[letter]) for description in reversed(chain) for letter, name in description.fields
        }
        if "value" not in values:
            raise ValueError(f"a value of class {chain[0].name}")
        value = values["value"]
        self._handles.append(value)
        return JavaInt(value) if chain[0].name in ("java.lang.Integer", "java.lang.Short", "java.lang.Byte") else value
