"""Reads arrays and maps of many rows at once: items in blocks, each with a count before it, ended by an empty block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from registry.formats.avro.model import AvroType
from registry.serde.checking import Malformed, find_items, smallest
from registry.serde.cursor import Cursor, Ints
from registry.serde.errors import CorruptRecord

__all__ = ["read_blocks"]

FEW_ROWS: Final = (16, 64)
"""Up to this many rows are processed one by one: at first this many, then after as many steps as the second number
says.
"""

ReadItem = Callable[[Cursor], list[pa.Array]]


def read_blocks(
    cursor: Cursor, types: Sequence[AvroType], path: str, read_item: ReadItem
) -> tuple[Ints, list[pa.Array]]:
    """The number of items per row, and the columns of all items in row order (none without items).

    An item is a value of each of ``types``. The first items of all rows are read together, then the second ones, and so
    on. When only a few rows continue, their items are first located one by one and then read together: a step costs as
    much as locating some dozens, and a single list of a million items would take a million steps.
    """
    counts = np.zeros(len(cursor), np.int64)
    left = np.zeros(len(cursor), np.int64)
    open_ = np.arange(len(cursor)) if cursor.present is None else np.flatnonzero(cursor.present)
    sizeless = not any(smallest(type_) for type_ in types)
    # Positions are modified in place, and the caller may still use the array.
    cursor.position = cursor.position.copy()
    owners: list[Ints] = []
    ranks: list[Ints] = []
    steps: list[list[pa.Array]] = []
    while len(open_):
        _begin_blocks(cursor, left, open_, sizeless=sizeless, path=path)
        open_ = open_[left[open_] > 0]
        if not len(open_):
            break
        if len(open_) < FEW_ROWS[len(steps) >= FEW_ROWS[0]]:
            part, owner, rank = _find(cursor, types, left, open_, path)
            rank += counts[owner]
            counts += np.bincount(owner, minlength=len(counts))
            open_ = open_[:0]
        else:
            part, owner, rank = cursor.part(open_), open_, counts[open_]
            counts[open_] += 1
        steps.append(read_item(part))
        if len(open_):
            cursor.advance(open_, part)
            left[open_] -= 1
        owners.append(owner)
        ranks.append(rank)
    if not steps:
        return counts, []
    return counts, _in_order(counts, np.concatenate(owners), np.concatenate(ranks), steps)


def _in_order(counts: Ints, owners: Ints, ranks: Ints, steps: list[list[pa.Array]]) -> list[pa.Array]:
    """The items of all steps, each moved to its row."""
    if len(steps) == 1:
        return steps[0]
    positions = (np.cumsum(counts) - counts)[owners] + ranks
    order = np.empty(len(positions), np.int64)
    order[positions] = np.arange(len(positions))
    take = pa.array(order)
    return [pa.concat_arrays([step[column] for step in steps]).take(take) for column in range(len(steps[0]))]


def _begin_blocks(cursor: Cursor, left: Ints, open_: Ints, *, sizeless: bool, path: str) -> None:
    """Read the header of the next block in the rows whose current block is finished; 0 ends a list."""
    waiting = open_[left[open_] == 0]
    if not len(waiting):
        return
    part = cursor.part(waiting)
    announced = part.varints(path)
    if not len(announced) or int(announced.min()) < 0:
        sized = np.flatnonzero(announced < 0)
        # A negative count is followed by the block's size in bytes, for readers that skip it.
        headed = part.part(sized)
        headed.varints(path)
        part.advance(sized, headed)
    # Compared before the sign is dropped, because the lowest number has no opposite.
    room = np.full(len(part), part.budget.left) if sizeless else part.end - part.position
    fits = (announced <= room) & (announced >= -room)
    part.check(fits, path, lambda at: f"a block of {announced[at]} items where {max(room[at], 0)} can be at most")
    if sizeless:
        try:
            part.budget.spend(int(np.abs(announced).sum()))
        except Malformed as error:
            raise CorruptRecord(error.reason, row=int(part.rows[0]), path=path) from error
    cursor.advance(waiting, part)
    left[waiting] = np.abs(announced)


def _find(cursor: Cursor, types: Sequence[AvroType], left: Ints, open_: Ints, path: str) -> tuple[Cursor, Ints, Ints]:
    """Locate the items of some rows up to the ends of their lists: a cursor at every item, with the row and rank of
    each.
    """
    starts: list[Ints] = []
    for row in open_.tolist():
        base = int(cursor.position[row])
        record = cursor.data[base : int(cursor.end[row])].tobytes()
        try:
            first, end = find_items(types, record, 0, int(left[row]), cursor.budget)
        except Malformed as error:
            raise CorruptRecord(error.reason, row=int(cursor.rows[row]), path=f"{path}{error.path}") from error
        starts.append(np.array(first, np.int64) + base)
        cursor.position[row] = base + end
        left[row] = 0
    item_counts = [len(first) for first in starts]
    owner = np.repeat(open_, item_counts)
    rank = np.concatenate([np.arange(count) for count in item_counts])
    part = Cursor(cursor.data, np.concatenate(starts), cursor.end[owner], cursor.rows[owner], cursor.budget)
    return part, owner, rank
