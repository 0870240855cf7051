"""What is asked of Arrow columns in more than one place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["is_one_value"]

_MANY: Final = 16
"""Rows from which on it is worth looking whether they are all alike."""


def is_one_value(column: pa.Array) -> bool:
    """Whether all rows hold the same value, told apart by bits, so that it need be written only once.

    Never of nested columns, of those with nulls, or of so few rows that nothing would be saved.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = len(column)
    if rows < _MANY or column.null_count or column.type.num_fields or pa.types.is_dictionary(column.type):
        return False
    if pa.types.is_floating(column.type):  # 0.0 is equal to -0.0
        column = column.view(f"int{column.type.bit_width}")
    first = column[0]
    if first != column[rows - 1] or first != column[rows // 2]:
        return False
    return bool(pc.all(pc.equal(column, first)).as_py())
