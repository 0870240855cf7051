"""Errors of encoding and decoding.

SerializationError
├── UnencodableValue    a value does not fit the schema: names the row and the field
├── CorruptRecord       bytes contradict their schema: names the row, or the offset, and the field
│   └── UnknownSchema   the registry has no schema with the record's id
└── UnsupportedSchema   the schema has no representation in columns (``arrow_types``)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from tidegate.kit.errors import UsageError

__all__ = ["CorruptRecord", "Origin", "SerializationError", "UnencodableValue", "UnknownSchema"]


class Origin(NamedTuple):
    """The origin of bytes, for errors: ``offsets`` has one per row, or is the offset of a single record."""

    topic: str
    partition: int | None = None
    offsets: Sequence[int] | int | None = None


class SerializationError(UsageError):
    """``row`` is the index in the batch, None for a single record; ``path`` the field, empty for the whole value.

    ``topic``, ``partition`` and ``offset`` are set if the caller passed an origin.
    """

    def __init__(self, reason: str, *, row: int | None = None, path: str = "") -> None:
        super().__init__(reason)
        self.row = row
        self.path = path
        self.reason = reason
        self.topic: str | None = None
        self.partition: int | None = None
        self.offset: int | None = None

    def located(self, origin: Origin | None) -> Self:
        """The same error, with the coordinates of its row."""
        if origin is not None:
            self.topic, self.partition = origin.topic, origin.partition
            if origin.offsets is None or isinstance(origin.offsets, int):
                self.offset = origin.offsets
            elif self.row is not None:
                self.offset = int(origin.offsets[self.row])
        return self

    def __str__(self) -> str:
        parts = (("topic", self.topic), ("partition", self.partition), ("offset", self.offset))
        where = [f"{name} {value}" for name, value in parts if value is not None]
        if self.row is not None and self.offset is None:
            where.append(f"row {self.row}")
        if self.path:
            where.append(f"field {self.path}")
        return f"{', '.join(where)}: {self.reason}" if where else self.reason


class UnencodableValue(SerializationError):
    """A value does not fit its schema."""


class CorruptRecord(SerializationError):
    """Bytes end too early or too late, or contain something that their schema does not define."""


class UnknownSchema(CorruptRecord):
    """The registry has no schema with the id in a record's header."""
