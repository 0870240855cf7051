"""The aborted transactions of a segment, in Kafka's ``.txnindex`` format: readers of committed data skip what these span."""

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
    """A transaction whose marker at ``last_offset`` says abort; ``last_stable_offset`` is what it was after the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The file exists only where a transaction was aborted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, aborted: AbortedTransaction) -> bool:
        """Whether it is the first entry, which made the file. Raises OSError, and ``replace`` makes up for it."""
        with self.path.open("ab") as file:
            file.write(_ENTRY.pack(_VERSION, *aborted))
            return file.tell() == _ENTRY.size

    def replace(self, entries: Sequence[AbortedTransaction]) -> None:
        """Make ``entries`` all that the file has, on the disk, in one step. Raises OSError."""
        if entries:
            write_atomically(self.path, b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries))
        else:
            self.clear()

    def load(self) -> list[AbortedTransaction] | None:
        """The entries in the order of their markers; None where the file is damaged: then recover the segment."""
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
