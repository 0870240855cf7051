"""The unit of work: a batch of records as Arrow columns, and the lazy view of its rows.

A batch has one topic, one key schema and one value schema. It is immutable: transforms create new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.data.errors import DataError
from connect.data.headers import Header, column_of, header_lists
from connect.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MAX_BATCH_BYTES", "Header", "Origin", "Record", "RecordBatch", "TopicPartition", "pieces"]

MAX_BATCH_BYTES: Final = 8 * 1024 * 1024
"""The recommended maximum size of a source's batch, and the largest batch for a sink (one record may be larger)."""


class TopicPartition(NamedTuple):
    """A partition of a topic of the log."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the records of a sink batch were read, preserved by transforms (KIP-793)."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a batch. ``key`` and ``value`` are in the Python form of their schemas (see ``Schema``).

    If ``partition`` or ``timestamp_ms`` is None, the producer decides. ``offset`` is the row's offset in the log in a
    sink, otherwise None. Without a schema a value is its parsed JSON.
    """

    topic: str
    value: Any
    value_schema: Schema | None = None
    key: Any = None
    key_schema: Schema | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: tuple[Header, ...] = ()
    offset: int | None = None
    origin: Origin | None = None
    """Where it was read, in a sink, even if transforms changed the topic."""


@dataclass(frozen=True, eq=False)
class RecordBatch:
    """Records as columns of one length.

    ``values``         a column of ``value_schema.arrow_type``; a null is a tombstone (not a struct of nulls). Without a
                       schema (``value_schema=None``) a string column of JSON texts, one a row.
    ``keys``           likewise by ``key_schema``; None when no record has a key.
    ``timestamps_ms``  int64 milliseconds since the epoch; null or None: the producer's clock.
    ``headers``        list<struct<key: string, value: binary>>, and ``schema`` once values have one (``connect.data.headers``);
                       None when no record has one.
    ``partitions``     int32, in a source; null or None: by the key's hash, else as the producer likes.

    In a sink: ``origin`` and an ascending ``offsets`` column, which may have gaps.
    In a source: ``source_partition`` and ``source_offset``, the position after the last row (as Connect's offset maps);
    ``source_offsets`` is the position after each row, where a source has it. A batch filtered down to nothing still
    advances the position. ``offsets`` are int64 numbers of the source's own, for ``SourceTask.acknowledged``.
    """

    topic: str
    values: pa.Array
    value_schema: Schema | None
    keys: pa.Array | None = None
    key_schema: Schema | None = None
    timestamps_ms: pa.Array | None = None
    headers: pa.Array | None = None
    partitions: pa.Array | None = None
    origin: Origin | None = None
    offsets: pa.Array | None = None
    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None
    source_offsets: Sequence[Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            column = getattr(self, name)
            if column is not None and len(column) != len(self.values):
                raise DataError(
                    f"column {name} of a batch for {self.topic!r} has {len(column)} rows, values {len(self)}"
                )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Size of the columns' used parts, in bytes."""
        return sum(column.nbytes for name in _COLUMNS if (column := getattr(self, name)) is not None)

    def replace(self, **changes: Any) -> RecordBatch:
        """The same batch with changed attributes; every column must keep the length."""
        return replace(self, **changes)

    def slice(self, start: int, length: int | None = None) -> RecordBatch:
        """Rows from ``start``, without a copy.

        The source position becomes that of its last row if the source has positions per row; a slice to the end keeps
        the batch's.
        """
        stop = len(self) if length is None else min(len(self), start + length)
        changes = self._each_column(lambda column: column.slice(start, stop - start))
        if self.source_offsets is not None:
            rows = self.source_offsets[start:stop]
            changes |= {"source_offsets": rows, "source_offset": rows[-1] if rows else self.source_offset}
        elif stop < len(self):
            changes["source_offset"] = None
        return replace(self, **changes)

    def filter(self, mask: pa.Array) -> RecordBatch:
        """Rows where ``mask`` is true. The source position stays: dropped rows count as processed."""
        changes = self._each_column(lambda column: column.filter(mask))
        if self.source_offsets is not None:
            changes["source_offsets"] = [
                o for o, kept in zip(self.source_offsets, mask.to_pylist(), strict=True) if kept
            ]
        return replace(self, **changes)

    def column(self, name: str) -> pa.Array:
        """A field of the values' struct as a column, null where the record is.

        Raises DataError for an unknown field.
        """
        import pyarrow.compute as pc

        if self.value_schema is None:
            raise DataError(
                f"records of {self.topic!r} have no schema, so no column {name!r}; use a converter with one"
            )
        self.value_schema.field(name)
        return pc.struct_field(self.values, name)

    def table(self) -> pa.Table:
        """The values' fields as columns, for Arrow, pandas or polars; null where a record is a tombstone.

        Values other than structs become one column ``value``.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_struct(self.values.type):
            return pa.table({"value": self.values})
        names = [field.name for field in self.values.type]
        return pa.Table.from_arrays([pc.struct_field(self.values, name) for name in names], names=names)

    def records(self) -> Iterator[Record]:
        """The rows one by one, converted on demand: the compatible slow path."""
        values, keys = _python(self.values, self.value_schema), _python(self.keys, self.key_schema)
        headers = None if self.headers is None else header_lists(self.headers)
        for row in range(len(self)):
            yield Record(
                topic=self.topic,
                value=values(row),
                value_schema=self.value_schema,
                key=keys(row),
                key_schema=self.key_schema,
                partition=_cell(self.partitions, row),
                timestamp_ms=_cell(self.timestamps_ms, row),
                headers=headers[row] if headers is not None else (),
                offset=_cell(self.offsets, row),
                origin=self.origin,
            )

    @classmethod
    def from_records(cls, records: Sequence[Record], **more: Any) -> RecordBatch:
        """A batch of records that share topic and schemas; ``more`` is the origin or source position.

        Raises DataError that names the record whose value does not fit its schema, or whose topic differs.
        """
        import pyarrow as pa

        if not records:
            raise DataError("a batch cannot be made of no records: its topic and schema would be unknown")
        first = records[0]
        for row, record in enumerate(records):
            if record.topic != first.topic:
                text = f"record {row} is for topic {record.topic}, the batch for {first.topic}: make a batch for each topic"
                raise DataError(text, rows=[row])
        has_keys = first.key_schema is not None or any(r.key is not None for r in records)
        return cls(
            topic=first.topic,
            values=_column([r.value for r in records], first.value_schema),
            value_schema=first.value_schema,
            keys=_column([r.key for r in records], first.key_schema) if has_keys else None,
            key_schema=first.key_schema,
            timestamps_ms=_optional_column([r.timestamp_ms for r in records], pa.int64()),
            headers=column_of([r.headers for r in records]),
            partitions=_optional_column([r.partition for r in records], pa.int32()),
            offsets=_optional_column([r.offset for r in records], pa.int64()),
            **{"origin": first.origin, **more},
        )

    def _each_column(self, change: Any) -> dict[str, Any]:
        return {name: change(column) for name in _COLUMNS if (column := getattr(self, name)) is not None}


_COLUMNS: Final = ("values", "keys", "timestamps_ms", "headers", "partitions", "offsets")


def _cell(column: pa.Array | None, row: int) -> Any:
    return None if column is None else column[row].as_py()


def _python(column: pa.Array | None, schema: Schema | None) -> Any:
    if column is None:
        return lambda row: None
    if schema is not None:
        return lambda row: _as_python(column, row)
    import json

    def schemaless(row: int) -> Any:
        text = column[row].as_py()
        return None if text is None else json.loads(text)

    return schemaless


def _as_python(column: pa.Array, row: int) -> Any:
    try:
        return column[row].as_py(maps_as_pydicts="strict")
    except (OverflowError, ValueError) as error:
        raise DataError(f"record {row} has a value that Python has no form of: {error}", rows=[row]) from error


def _column(values: list[Any], schema: Schema | None) -> pa.Array:
    import pyarrow as pa

    if schema is None:
        import json

        return pa.array([None if v is None else json.dumps(v, separators=(",", ":")) for v in values], pa.string())
    try:
        return pa.array(values, schema.arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
        row = _first_misfit(values, schema)
        raise DataError(
            f"record {row} does not fit schema {schema.name or schema.type.value}: {error}", rows=[row]
        ) from error


def _first_misfit(values: list[Any], schema: Schema) -> int:
    import pyarrow as pa

    for row, value in enumerate(values):
        try:
            pa.array([value], schema.arrow_type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError):
            return row
    return 0


def _optional_column(values: list[Any], arrow: pa.DataType) -> pa.Array | None:
    import pyarrow as pa

    return pa.array(values, arrow) if any(value is not None for value in values) else None


def pieces(values: pa.Array, most_rows: int) -> Iterator[tuple[int, int]]:
    """Start and length of the slices of a column that make batches of at most so many rows and about half of MAX_BATCH_BYTES."""
    step = most_rows
    if len(values) and values.nbytes > MAX_BATCH_BYTES // 2:
        step = max(1, min(step, len(values) * (MAX_BATCH_BYTES // 2) // values.nbytes))
    for start in range(0, len(values), step):
        yield start, min(step, len(values) - start)
