"""Joins columns of text from parts, without a Python call per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Piece", "joined", "joined_items"]

Piece: TypeAlias = "str | pa.Array"
"""A part of each row's text: a constant for all rows, or a string column."""


def joined(pieces: list[Piece], rows: int) -> pa.Array:
    """One text per row from its parts in order.

    A null part adds nothing. Adjacent constants are joined once, not per row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        elif not isinstance(piece, str) or piece:
            merged.append(piece)
    if all(isinstance(piece, str) for piece in merged):
        return pa.repeat(pa.scalar("".join(map(str, merged)), pa.string()), rows)
    if len(merged) == 1:
        return merged[0]
    return pc.binary_join_element_wise(*merged, "", null_handling="skip")


def joined_items(lists: pa.Array, texts: pa.Array, separator: str = ",") -> pa.Array:
    """One text per list (or map): the joined texts of its items.

    ``texts`` has one text per item; null if the list is null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(lists.cast(_as_list(lists.type))), 0)
    ends = pc.cumulative_sum(lengths.cast("int32"))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    texts = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), separator)
    return pc.if_else(pc.is_null(lists), pa.scalar(None, pa.string()), texts)


def _as_list(arrow: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_map(arrow):
        return pa.list_(pa.struct([arrow.key_field, arrow.item_field]))
    return arrow
