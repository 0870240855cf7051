"""The codec of coordinators' records: an int16 precedes the fields, the type in keys and the version in values.

Keys have version 0 and are not flexible. Values are flexible (KIP-482) from the version that their class names.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar

from broker.errors import CorruptMessage
from broker.protocol.declare import structure
from broker.protocol.primitives import MalformedMessage
from broker.protocol.schema import Request, decode, encode

__all__ = ["RecordKey", "RecordValue", "decode_key", "decode_value", "encode_key", "encode_value", "type_number"]


@structure
class RecordKey(Request):
    """The key of a record. It uses the codec of requests; ``API_KEY`` is the record type's number."""

    FLEXIBLE_SINCE = 1


@structure
class RecordValue(Request):
    """The value of a record, valid until the next record with the same key."""

    FLEXIBLE_SINCE = 0
    LATEST: ClassVar[int] = 0
    """The latest readable version."""


M = TypeVar("M", bound=Request)
V = TypeVar("V", bound=RecordValue)


def type_number(key: bytes | None) -> int:
    """The type number at the start of a key; -1, which is no type, if the key is too short."""
    return int.from_bytes(key[:2], signed=True) if key is not None and len(key) >= 2 else -1


def encode_key(key: RecordKey) -> bytes:
    return bytes(encode(key, 0, bytearray(key.API_KEY.to_bytes(2))))


def encode_value(value: RecordValue, version: int = 0) -> bytes:
    return bytes(encode(value, version, bytearray(version.to_bytes(2))))


def decode_key(cls: type[M], key: bytes, topic: str) -> M:
    """Raises CorruptMessage that names the topic."""
    return _decode(cls, key, 0, topic)


def decode_value(cls: type[V], value: bytes, topic: str) -> V:
    """Raises CorruptMessage, also for an unknown version."""
    version = int.from_bytes(value[:2], signed=True)
    if len(value) < 2 or not 0 <= version <= cls.LATEST:
        known = f"versions 0 to {cls.LATEST} are known" if cls.LATEST else "version 0 is the only one known"
        raise CorruptMessage(f"{cls.__name__} in {topic} has version {version}; {known}.")
    return _decode(cls, value, version, topic)


def _decode(cls: type[M], data: bytes, version: int, topic: str) -> M:
    try:
        return decode(cls, data, version, 2)
    except MalformedMessage as error:
        raise CorruptMessage(f"A record of {topic} is not what its type says: {error}.") from error
