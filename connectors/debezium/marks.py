"""The ``snapshot`` field of the source block: marks the first and the last row of the snapshot and of each table."""

from __future__ import annotations

import pyarrow as pa

from connectors.debezium.events import constant

__all__ = ["SnapshotMarks"]


class SnapshotMarks:
    """For the blocks of a snapshot in their order; each block is rows of one table."""

    def __init__(self) -> None:
        self._table: object = None

    def column(self, table: object, length: int, *, ends_table: bool, ends_all: bool = False) -> pa.Array:
        """The marks of the next block, which has at least one row."""
        first = last = "true"
        if self._table is not table:
            first = "first" if self._table is None else "first_in_data_collection"
            self._table = table
        if ends_all:
            last = "last"
        elif ends_table:
            last = "last_in_data_collection"
        if length == 1:
            return pa.array([last if ends_all or (ends_table and first != "first") else first], pa.string())
        middle = constant("true", pa.string(), length)
        if first == last == "true":
            return middle
        return pa.concat_arrays([pa.array([first], pa.string()), middle[2:], pa.array([last], pa.string())])
