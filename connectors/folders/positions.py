"""How far files are read, as offsets of Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from connect.api import ConnectError
from connectors.folders.stores import StoredFile

__all__ = ["Position"]


class Position(NamedTuple):
    """``rows`` of a file are delivered: all of them if ``done``, all that can be read if ``failed``.

    Length and time tell a file from a later one of the same name. ``name`` is only there where one position is kept for all
    files.
    """

    rows: int = 0
    done: bool = False
    failed: bool = False
    length: int = -1
    modified_ms: int = -1
    name: str | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any] | None) -> Position:
        """Raises ConnectError for an offset that is none of this source, nor of SpoolDir."""
        offset = offset or {}
        numbers = {"offset": 0, "length": -1, "modified": -1}
        for name, default in numbers.items():
            value = offset.get(name, default)
            if not isinstance(value, int) or isinstance(value, bool) or value < default:
                raise ConnectError(f"offset {dict(offset)}: {name} should be a number")
            numbers[name] = value
        file_name = offset.get("fileName")
        if file_name is not None and not isinstance(file_name, str):
            raise ConnectError(f"offset {dict(offset)}: fileName should be the name of a file")
        done, failed = bool(offset.get("done", False)), bool(offset.get("failed", False))
        return cls(numbers["offset"], done, failed, numbers["length"], numbers["modified"], file_name)

    def at(self, file: StoredFile) -> Position:
        """The position in a file of this name: the beginning, if another file was read to its end under the name before.

        A file that was read in part and has changed since goes on behind the rows that were read: it was repaired, or has grown.
        """
        same = (self.length, self.modified_ms) == (file.length, file.modified_ms)
        if self.done or self.failed:
            return self if same or self.length < 0 else Position()
        return self

    def is_end_of(self, file: StoredFile) -> bool:
        return (self.done or self.failed) and (self.length, self.modified_ms) == (file.length, file.modified_ms)

    def moved(self, file: StoredFile, rows: int, *, done: bool = False, failed: bool = False) -> Position:
        return Position(rows, done, failed, file.length, file.modified_ms, self.name and file.name)

    @property
    def offset(self) -> Mapping[str, Any]:
        made: dict[str, Any] = {
            "offset": self.rows,
            "done": self.done,
            "length": self.length,
            "modified": self.modified_ms,
        }
        if self.failed:
            made["failed"] = True
        return made if self.name is None else {"fileName": self.name, **made}
