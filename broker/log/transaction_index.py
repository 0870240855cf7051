"""The aborted transactions of a segment, in Kafka's ``.txnindex`` format.

Readers of committed data skip their records.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from broker.log.files import write_atomically

__all__ = ["AbortedTransaction", "TransactionIndex"]

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0


class AbortedTransaction(NamedTuple):
    """A transaction with an abort marker at ``last_offset``. ``last_stable_offset`` is its value after the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The file exists only if a transaction was aborted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, aborted: AbortedTransaction) -> bool:
        """Add an entry.

        Returns whether it is the first, which created the file. Raises OSError; ``replace`` repairs that.
        """
        with self.path.open("ab") as file:
            file.write(_ENTRY.pack(_VERSION, *aborted))
            return file.tell() == _ENTRY.size

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        """Replace the file's content by ``entries``, durably and atomically. Raises OSError."""
        if entries:
            write_atomically(self.path, b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries))
        else:
            self.clear()

    def load(self) -> list[AbortedTransaction] | None:
        """The entries in the order of their markers; None if the file is damaged: recover the segment then."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        if len(data) % _ENTRY.size:
            return None
        entries = [AbortedTransaction(*rest) for version, *rest in _ENTRY.iter_unpack(data) if version == _VERSION]
        return entries if len(entries) * _ENTRY.size == len(data) else None

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
