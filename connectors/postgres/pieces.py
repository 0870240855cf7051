"""A large table in pieces of its file, so that a snapshot that was interrupted goes on inside it.

A row that nobody changes keeps its place in the file (its ctid), and pieces are ranges of it, which PostgreSQL 14 and later read
as fast as the whole. Where the pieces before a block were delivered, a later attempt reads the blocks from there on, and of those
before it only the rows that are newer than the first attempt. Rows of the others have not changed since they were delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import psycopg

__all__ = ["Part", "Pieces", "part_of", "pieces_of"]

_PIECE_BLOCKS: Final = 4096
"""32 MiB, which are the most that one reader reads again."""
_TID_RANGES: Final = 140000
"""The first version that reads a range of a file without the rest of it."""
_XIDS: Final = 1 << 32
_MOST_APART: Final = (1 << 31) - 10_000_000
"""Transaction ids further apart can't be compared."""
_ABOUT: Final = """
SELECT pg_relation_size(c.oid) / current_setting('block_size')::int, pg_relation_filenode(c.oid)::int8,
    coalesce(a.amname = 'heap', true) AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid),
    txid_snapshot_xmax(txid_current_snapshot())::int8
FROM pg_class c LEFT JOIN pg_am a ON a.oid = c.relam WHERE c.oid = %s::oid
"""


class Part(NamedTuple):
    """How far a table has been delivered: all blocks before ``block`` of the file ``file``. Rows that transactions from ``xmin`` on
    wrote may be newer than the first attempt.
    """

    block: int
    file: int
    xmin: int


def part_of(value: Any) -> Part | None:
    """The part that an offset's member describes; None if it is malformed."""
    fits = isinstance(value, list) and len(value) == len(Part._fields) and all(type(each) is int for each in value)
    return Part(*value) if fits else None


class Pieces:
    """The pieces of a table: the conditions of their statements, and how far they have been read without a gap."""

    def __init__(self, bounds: Sequence[int], file: int, xmin: int, resumed: Part | None) -> None:
        """``bounds`` are the first blocks of the pieces; the last piece has no end."""
        self._file, self._xmin, self.resumed = file, xmin, resumed
        self._waiting = list(bounds[1:])
        self._ended: set[int] = set()
        self._block = bounds[0]
        self.conditions: list[tuple[str, int | None]] = [
            (f"ctid >= '({low},0)'" + (f" AND ctid < '({high},0)'" if high is not None else ""), high)
            for low, high in zip(bounds, [*bounds[1:], None], strict=True)
        ]
        """The WHERE clause of a statement, and the block that it ends before, None for the last."""
        if resumed is not None:
            newer = f"(xmin::text::int8 - {xmin % _XIDS} + {_XIDS}) % {_XIDS} < {_XIDS // 2}"
            self.conditions.insert(0, (f"ctid < '({resumed.block},0)' AND {newer}", None))

    def ended(self, end: int | None) -> Part | None:
        """The part that is delivered now that the piece before the block ``end`` is; None if nothing is new."""
        if end is None:
            return None
        self._ended.add(end)
        before = self._block
        while self._waiting and self._waiting[0] in self._ended:
            self._block = self._waiting.pop(0)
        return Part(self._block, self._file, self._xmin) if self._block != before else None


def pieces_of(
    connection: psycopg.Connection[Any], oid: int, xmin: int, threads: int, parts: int, resumed: Part | None
) -> Pieces | None:
    """The pieces of an ordinary table; None for one that is read whole."""
    row = connection.execute(_ABOUT, [oid]).fetchone()
    if row is None or not row[2]:
        return None
    pages, file, _, next_xid = row
    ranges = connection.info.server_version >= _TID_RANGES
    shared = threads > 1 and pages >= 8 * parts
    if not shared and (not ranges or pages <= _PIECE_BLOCKS):
        return None
    if resumed is not None and (not ranges or resumed.file != file or next_xid - resumed.xmin > _MOST_APART):
        resumed = None  # the table was written anew, as by VACUUM FULL
    size = -(-pages // parts) if shared else _PIECE_BLOCKS
    if ranges:
        size = min(size, _PIECE_BLOCKS)
    first = 0 if resumed is None else resumed.block
    bounds = list(range(first, max(pages, first + 1), max(1, size)))
    return Pieces(bounds, file, xmin if resumed is None else resumed.xmin, resumed)
