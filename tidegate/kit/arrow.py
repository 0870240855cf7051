"""Arrow helpers used in several packages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["is_one_value"]

_MANY: Final = 16
"""The number of rows from which on a check for equal values is worthwhile."""


def is_one_value(column: pa.Array) -> bool:
    """Whether all rows have the same value, bit by bit, so that it need be written only once.

    Always False for nested columns, columns with nulls, and so few rows that nothing would be saved.
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
