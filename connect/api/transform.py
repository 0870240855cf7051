"""Transforms map a batch to batches; predicates select the rows they apply to."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from connect.data.batch import Record, RecordBatch

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Predicate", "Transformation"]


class Transformation(ABC):
    """Override ``apply`` to work on columns, or ``apply_record`` to work row by row (an order of magnitude slower)."""

    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any) -> None:
        self.config = config

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        """Batches with the changed rows in the same order; rows may be dropped.

        Keep ``origin``, ``offsets`` and the source position, as ``batch.replace`` and ``batch.filter`` do. Raises
        DataError for rows that can't be transformed.
        """
        kept, rows = [], []
        for row, record in enumerate(batch.records()):
            made = self.apply_record(record)
            if made is not None:
                kept.append(made)
                rows.append(row)
        return _rebatch(batch, kept, rows)

    def apply_record(self, record: Record) -> Record | None:
        """The changed record, or None to drop it."""
        raise NotImplementedError(f"{type(self).__name__} overrides neither apply nor apply_record")

    traces_fields: ClassVar[bool] = False
    """Whether ``field_after`` tells what becomes of the fields of values; without it the lineage ends at topics."""

    def field_after(self, path: str) -> str | None:
        """Which field of its output has the data of a field of a value, as dotted paths; None if none has. By default the same."""
        return path

    def close(self) -> None:
        """Release the transform's resources."""


class Predicate(ABC):
    """A condition on records."""

    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any) -> None:
        self.config = config

    def mask(self, batch: RecordBatch) -> pa.Array:
        """A boolean column without nulls, true if the condition holds. By default calls ``test`` for each row."""
        import pyarrow as pa

        return pa.array([self.test(record) for record in batch.records()], pa.bool_())

    def test(self, record: Record) -> bool:
        raise NotImplementedError(f"{type(self).__name__} overrides neither mask nor test")


def _rebatch(batch: RecordBatch, records: list[Record], rows: list[int]) -> list[RecordBatch]:
    """Batches of ``records``, split where topic or schema changes, with the position of ``batch`` at the end."""
    if not records:
        return [batch.slice(0, 0).replace(source_offset=batch.source_offset)]
    made: list[RecordBatch] = []
    position = 0
    for _, group in groupby(records, key=lambda r: (r.topic, r.key_schema, r.value_schema)):
        members = list(group)
        position += len(members)
        offset = batch.source_offset
        per_row = None
        if batch.source_offsets is not None:
            per_row = [batch.source_offsets[row] for row in rows[position - len(members) : position]]
        if position < len(records):
            offset = per_row[-1] if per_row else None
        more = {"origin": batch.origin, "source_partition": batch.source_partition}
        made.append(RecordBatch.from_records(members, source_offset=offset, source_offsets=per_row, **more))
    return made
