"""The records of Mirror's own topics, byte for byte as in the original: offset syncs, checkpoints, heartbeats
(``connect.mirror`` of Kafka).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from connect.api import ConnectError, TopicPartition

__all__ = ["Checkpoint", "Heartbeat", "MalformedRecord", "OffsetSync"]

_VERSION: Final = struct.pack(">h", 0)
_LENGTH: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")


class MalformedRecord(ConnectError):
    """A record in one of these topics that has a different form."""


class _Reader:
    def __init__(self, data: bytes | None, what: str) -> None:
        self._data, self._at, self._what = data or b"", 0, what

    def number(self, form: struct.Struct) -> int:
        try:
            (number,) = form.unpack_from(self._data, self._at)
        except struct.error as error:
            raise MalformedRecord(f"{self._what} ends after {len(self._data)} bytes") from error
        self._at += form.size
        return int(number)

    def text(self) -> str:
        length = self.number(_LENGTH)
        part = self._data[self._at : self._at + max(length, 0)]
        if length < 0 or len(part) < length:
            raise MalformedRecord(f"{self._what} has a text of {length} bytes, and {len(part)} are left")
        self._at += length
        try:
            return part.decode()
        except UnicodeDecodeError as error:
            raise MalformedRecord(f"{self._what} has a text that is not UTF-8") from error

    def version(self) -> None:
        version = self.number(_LENGTH)
        if version != 0:
            raise MalformedRecord(f"{self._what} is of version {version}; only 0 can be read")


def _text(value: str) -> bytes:
    data = value.encode()
    return _LENGTH.pack(len(data)) + data


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """States that the source partition's record at ``upstream`` is at ``downstream`` in the target."""

    partition: TopicPartition
    upstream: int
    downstream: int

    @property
    def key(self) -> bytes:
        return _text(self.partition.topic) + _INT.pack(self.partition.partition)

    @property
    def value(self) -> bytes:
        return _LONG.pack(self.upstream) + _LONG.pack(self.downstream)

    @classmethod
    def read(cls, key: bytes | None, value: bytes | None) -> OffsetSync:
        """Raises MalformedRecord."""
        keys, values = _Reader(key, "the key of an offset sync"), _Reader(value, "an offset sync")
        partition = TopicPartition(keys.text(), keys.number(_INT))
        return cls(partition, values.number(_LONG), values.number(_LONG))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A group's offset: ``upstream`` in the source cluster, ``downstream`` in the target's partition ``place``."""

    group: str
    partition: TopicPartition
    upstream: int
    downstream: int
    metadata: str = ""

    @property
    def key(self) -> bytes:
        return _text(self.group) + _text(self.partition.topic) + _INT.pack(self.partition.partition)

    @property
    def value(self) -> bytes:
        return _VERSION + _LONG.pack(self.upstream) + _LONG.pack(self.downstream) + _text(self.metadata)

    @property
    def source_partition(self) -> dict[str, Any]:
        """The members in the order that the original writes, so that either one replaces the other's records."""
        return {"partition": self.partition.partition, "topic": self.partition.topic, "group": self.group}

    @classmethod
    def read(cls, key: bytes | None, value: bytes | None) -> Checkpoint:
        """Raises MalformedRecord."""
        keys, values = _Reader(key, "the key of a checkpoint"), _Reader(value, "a checkpoint")
        values.version()
        upstream, downstream, metadata = values.number(_LONG), values.number(_LONG), values.text()
        return cls(keys.text(), TopicPartition(keys.text(), keys.number(_INT)), upstream, downstream, metadata)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """States that records from one cluster reached the other at this time."""

    source: str
    target: str
    timestamp_ms: int

    @property
    def key(self) -> bytes:
        return _text(self.source) + _text(self.target)

    @property
    def value(self) -> bytes:
        return _VERSION + _LONG.pack(self.timestamp_ms)

    @property
    def source_partition(self) -> dict[str, Any]:
        return {"sourceClusterAlias": self.source, "targetClusterAlias": self.target}

    @classmethod
    def read(cls, key: bytes | None, value: bytes | None) -> Heartbeat:
        """Raises MalformedRecord."""
        keys, values = _Reader(key, "the key of a heartbeat"), _Reader(value, "a heartbeat")
        values.version()
        return cls(keys.text(), keys.text(), values.number(_LONG))
