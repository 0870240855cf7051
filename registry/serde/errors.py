"""What can go wrong between values and bytes.

SerializationError
├── UnencodableValue   a value does not fit the schema: names the row and the field
└── CorruptRecord      bytes are not what their schema says: names the row and the field
"""

from __future__ import annotations

from tidegate.kit.errors import UsageError

__all__ = ["CorruptRecord", "SerializationError", "UnencodableValue"]


class SerializationError(UsageError):
    """``row`` is the index in the batch, None for a single record; ``path`` the field, empty for the whole value."""

    def __init__(self, reason: str, *, row: int | None = None, path: str = "") -> None:
        where = [f"row {row}"] if row is not None else []
        where += [f"field {path}"] if path else []
        super().__init__(f"{', '.join(where)}: {reason}" if where else reason)
        self.row = row
        self.path = path
        self.reason = reason


class UnencodableValue(SerializationError):
    """A value does not fit its schema."""


class CorruptRecord(SerializationError):
    """Bytes end too early, too late, or say what their schema does not know."""
