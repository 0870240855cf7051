"""Turns batches of records into changes of tables: determines the table and the columns, handles deletes, and keeps
only the last row of each key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import ConnectError, DataError, Field, RecordBatch, Schema, SchemaType
from connectors.jdbc.sink_settings import KAFKA_COLUMNS, SinkSettings
from connectors.sql.tables import TableId
from connectors.sql.write_dialects import parse_table
from connectors.sql.write_types import ColumnSpec, spec_of

__all__ = ["Part", "RowShaper", "row_id"]

_ROW_BITS: Final = 32
_STRING: Final = Schema(SchemaType.STRING)
_KAFKA: Final = (_STRING, Schema(SchemaType.INT32), Schema(SchemaType.INT64))


def row_id(batch: int, row: int) -> int:
    """The number of a row among all rows of several batches."""
    return batch << _ROW_BITS | row


class _NoSchema(DataError):
    """Applies to all rows of a batch."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table for one operation: the configured ``insert.mode``, delete or truncate.

    ``ids`` are the numbers of the rows.
    """

    operation: str
    table: TableId
    specs: tuple[ColumnSpec, ...]
    rows: pa.RecordBatch
    ids: pa.Array

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs if spec.key)

    @property
    def rest(self) -> tuple[str, ...]:
        return tuple(spec.name for spec in self.specs if not spec.key)

    def taken(self, rows: pa.Array) -> Part:
        return replace(self, rows=self.rows.take(rows), ids=self.ids.take(rows))


class RowShaper:
    """Not thread-safe: it caches results for schemas."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self.refused: dict[int, Exception] = {}
        """Rows rejected since the last ``parts``, by their numbers."""
        self.table_of = lru_cache(maxsize=1000)(self._table_of)

    def parts(self, batches: Sequence[RecordBatch], without: Sequence[int] = ()) -> list[Part]:
        """The changes in order, except the rows with these numbers."""
        self.refused = {}
        left_out = pa.array(without, pa.int64())
        parts: list[Part] = []
        for number, batch in enumerate(batches):
            ids = pa.array(range(row_id(number, 0), row_id(number, len(batch))), pa.int64())
            if len(left_out) and (kept := pc.invert(pc.is_in(ids, value_set=left_out))).false_count:
                batch, ids = batch.filter(kept), ids.filter(kept)
            if len(batch):
                parts += self._of(batch, ids)
        return [part for joined in _joined(parts) for part in self._deduplicated(joined)]

    def _of(self, batch: RecordBatch, ids: pa.Array) -> list[Part]:
        try:
            return list(self._shaped(batch, ids))
        except (DataError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            if len(batch) == 1 or isinstance(error, _NoSchema):
                self.refused |= dict.fromkeys(ids.to_pylist(), error)
                return []
            half = len(batch) // 2
            return self._of(batch.slice(0, half), ids[:half]) + self._of(batch.slice(half), ids[half:])

    def _shaped(self, batch: RecordBatch, ids: pa.Array) -> Iterator[Part]:
        settings = self._settings
        source = _source_of(batch) if settings.debezium else None
        table = self.table_of(batch.topic, source)
        batch, deleted, emptied = _change_events(batch) if settings.debezium else (batch, batch.values.is_null(), None)
        if deleted.true_count == 0 and emptied is None:
            yield self._written(table, batch, ids)
            return
        codes = pc.if_else(deleted, 1, 0)
        if emptied is not None:
            codes = pc.if_else(emptied, 2, codes)
        for start, stop, code in _runs(codes):
            some, numbers = batch.slice(start, stop - start), ids[start:stop]
            if code == 0:
                yield self._written(table, some, numbers)
            elif code == 1 and settings.delete_enabled:
                yield self._deleted(table, some, numbers)
            elif code == 2 and settings.truncate_enabled:
                yield Part("truncate", table, (), pa.record_batch([numbers], names=["id"]), numbers)
            elif code == 1 and not settings.debezium:
                message = (
                    "the record has no value, and delete.enabled is false: it is neither written nor a row deleted; "
                    "set delete.enabled=true with pk.mode=record_key, or drop such records with a Filter"
                )
                self.refused |= dict.fromkeys(numbers.to_pylist(), DataError(message))

    def _deleted(self, table: TableId, batch: RecordBatch, ids: pa.Array) -> Part:
        specs, columns = self._key_columns(batch)
        return Part("delete", table, tuple(specs), pa.record_batch(columns, names=[s.name for s in specs]), ids)

    def _written(self, table: TableId, batch: RecordBatch, ids: pa.Array) -> Part:
        settings = self._settings
        fields, values = self._fields(batch)
        if settings.pk_mode == "record_value":
            keys = self._chosen(settings.pk_fields, fields, batch)
            key_specs: list[ColumnSpec] = []
            key_columns: list[pa.Array] = []
        else:
            key_specs, key_columns = self._key_columns(batch)
            keys = [spec.name for spec in key_specs]
        columns_by_name = {s.name: (s, c) for s, c in zip(key_specs, key_columns, strict=True)}
        order = [name for name in columns_by_name if name in KAFKA_COLUMNS]
        for field, column in zip(fields, values, strict=True):
            name = field.name
            if name in keys or self._is_written(batch.topic, name):
                if name not in columns_by_name:
                    columns_by_name[name] = self._column(field, column, key=name in keys)
                order.append(name)
        order += [name for name in columns_by_name if name not in order]
        made = [columns_by_name[name] for name in dict.fromkeys(order)]
        if not made:
            raise _NoSchema("no fields found using key and value schemas: nothing would be written")
        made.sort(key=lambda pair: not pair[0].key)  # keys first, as the statements expect
        rows = pa.record_batch([column for _, column in made], names=[spec.name for spec, _ in made])
        return Part(settings.insert_mode, table, tuple(spec for spec, _ in made), rows, ids)

    def _is_written(self, topic: str, name: str) -> bool:
        settings = self._settings
        if settings.include:
            return name in settings.include or f"{topic}:{name}" in settings.include
        return name not in settings.exclude and f"{topic}:{name}" not in settings.exclude

    def _fields(self, batch: RecordBatch) -> tuple[Sequence[Field], list[pa.Array]]:
        schema = batch.value_schema
        if schema is not None and schema.type is SchemaType.STRING and schema.name is None:
            return [Field(self._settings.string_column, schema)], [batch.values]
        if schema is None or schema.type is not SchemaType.STRUCT:
            kind = "no schema" if schema is None else f"the schema {schema.type.value}"
            raise _NoSchema(
                f"records of {batch.topic!r} have values of {kind}, and a table needs fields: use a converter with schemas "
                "(Avro, Protobuf, JSON Schema, or JsonConverter with schemas.enable=true)"
            )
        return schema.fields, [pc.struct_field(batch.values, [number]) for number in range(len(schema.fields))]

    def _key_columns(self, batch: RecordBatch) -> tuple[list[ColumnSpec], list[pa.Array]]:
        settings = self._settings
        if settings.pk_mode in ("none", "record_value"):
            return [], []
        if settings.pk_mode == "kafka":
            assert batch.origin is not None and batch.offsets is not None
            count = len(batch)
            columns = [
                pa.repeat(pa.scalar(batch.topic), count),
                pa.repeat(pa.scalar(batch.origin.partition, pa.int32()), count),
                batch.offsets.cast(pa.int64()),
            ]
            names = settings.pk_fields or KAFKA_COLUMNS
            return [spec_of(n, s, key=True) for n, s in zip(names, _KAFKA, strict=True)], columns
        schema, keys = batch.key_schema, batch.keys
        if keys is None or schema is None:
            raise _NoSchema(
                f"records of {batch.topic!r} have {'no keys' if keys is None else 'keys without schema'}, and pk.mode is record_key"
            )
        if keys.null_count:
            raise DataError("the record has no key, and pk.mode is record_key")
        if schema.type is not SchemaType.STRUCT:
            if len(settings.pk_fields) != 1:
                message = f"pk.fields has to name one column for keys that are a {schema.type.value}"
                raise ConnectError(f"{message}; it is {','.join(settings.pk_fields) or 'empty'}")
            made = [self._column(Field(settings.pk_fields[0], schema), keys, key=True)]
        else:
            chosen = self._chosen(settings.pk_fields, schema.fields, batch)
            fields = {f.name: (number, f) for number, f in enumerate(schema.fields)}
            made = [self._column(fields[n][1], pc.struct_field(keys, [fields[n][0]]), key=True) for n in chosen]
        return [spec for spec, _ in made], [column for _, column in made]

    def _chosen(self, names: Sequence[str], fields: Sequence[Field], batch: RecordBatch) -> list[str]:
        there = [field.name for field in fields]
        missing = [name for name in names if name not in there]
        if missing:
            raise _NoSchema(
                f"PK mode for table {batch.topic!r} is {self._settings.pk_mode.upper()} with configured PK fields "
                f"{list(names)}, but the schema has no field {missing[0]!r}; it has {', '.join(there)}"
            )
        return list(names or there)

    def _column(self, field: Field, column: pa.Array, *, key: bool) -> tuple[ColumnSpec, pa.Array]:
        settings = self._settings
        unit = settings.timestamp_unit if field.name in settings.timestamp_fields else ""
        spec = spec_of(field.name, field.schema, key=key, debezium=settings.debezium, timestamp_unit=unit)
        if settings.replace_null and field.schema.default is not None and column.null_count:
            column = pc.fill_null(column, pa.scalar(field.schema.default, column.type))
        return spec, _temporal(column, spec) if spec.unit else column

    def _deduplicated(self, part: Part) -> Iterator[Part]:
        """For operations that find rows by key: only the last of the rows with the same key."""
        keys = part.keys
        if part.operation in ("insert", "truncate") or not keys:
            yield part
            return
        last = _last_of_each(part.rows.select(list(keys)))
        yield part if len(last) == len(part.rows) else part.taken(last)

    def _table_of(self, topic: str, source: tuple[tuple[str, str], ...] | None) -> TableId:
        settings = self._settings
        if topic in settings.tables:
            return parse_table(settings.tables[topic])
        shown = topic if settings.dots is None else topic.replace(".", settings.dots)
        if settings.normalize:
            shown = re.sub(r"[^A-Za-z0-9_]", "_", shown)
        name = settings.table_format.replace("${topic}", shown)
        for member, value in source or ():
            name = name.replace(f"${{source.{member}}}", value)
        if "${" in name:
            raise ConnectError(
                f"table.name.format {settings.table_format!r} holds what records of {topic!r} have not: {name}"
            )
        return parse_table(name)


def _change_events(batch: RecordBatch) -> tuple[RecordBatch, pa.Array, pa.Array | None]:
    """From Debezium's envelopes: the rows after the change, which of them are deletes, and which are truncates."""
    schema = batch.value_schema
    if (
        schema is None
        or schema.type is not SchemaType.STRUCT
        or not {"op", "after", "source"} <= set(schema.field_names)
    ):
        return batch, batch.values.is_null(), None
    op = pc.struct_field(batch.values, "op")
    after = schema.field("after").schema
    emptied = pc.fill_null(pc.equal(op, "t"), False)
    deleted = pc.or_(batch.values.is_null(), pc.fill_null(pc.equal(op, "d"), False))
    values = pc.struct_field(batch.values, "after")
    return batch.replace(values=values, value_schema=after), deleted, emptied if emptied.true_count else None


def _source_of(batch: RecordBatch) -> tuple[tuple[str, str], ...] | None:
    """The text fields of the source block, from the first record: all records of a topic come from one table."""
    schema = batch.value_schema
    if schema is None or "source" not in schema.field_names or not len(batch):
        return None
    block = pc.struct_field(batch.values, "source").drop_null()
    first = block[0].as_py() if len(block) else {}
    return tuple((name, first[name]) for name in ("db", "schema", "table") if isinstance(first.get(name), str))


def _runs(codes: pa.Array) -> Iterator[tuple[int, int, int]]:
    """Start, end and code of each run of rows with the same code."""
    encoded = pc.run_end_encode(codes)
    start = 0
    for stop, code in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        yield start, stop, code
        start = stop


def _joined(parts: list[Part]) -> Iterator[Part]:
    """Joins adjacent parts that differ only in their rows.

    Before that, deletes and upserts of one table are separated by the last change of each key, so that a mixed stream
    needs two statements rather than one per run.
    """
    group: list[Part] = []
    for part in parts:
        if group and not _same_statement(group[0], part):
            yield from _merged(group)
            group = []
        group.append(part)
    yield from _merged(group)


def _same_statement(first: Part, other: Part) -> bool:
    if (first.operation, first.table, first.specs) == (other.operation, other.table, other.specs):
        return True
    operations = {first.operation, other.operation}
    if first.table != other.table or not operations <= {"upsert", "delete"}:
        return False
    if [s for s in first.specs if s.key] != [s for s in other.specs if s.key]:
        return False
    return len(operations) == 2


def _merged(group: list[Part]) -> Iterator[Part]:
    if not group:
        return
    if len({part.operation for part in group}) == 1 and len({part.specs for part in group}) == 1:
        yield _concatenated(group)
        return
    keys = list(group[0].keys)
    last = _last_of_each(pa.concat_batches([part.rows.select(keys) for part in group]))
    start, kept = 0, []
    for part in group:
        stop = start + len(part.rows)
        within = last.filter(pc.and_(pc.greater_equal(last, start), pc.less(last, stop)))
        if len(within):
            kept.append(part.taken(pc.subtract(within, start)))
        start = stop
    for operation in ("delete", "upsert"):
        by_specs: dict[tuple[ColumnSpec, ...], list[Part]] = {}
        for part in kept:
            if part.operation == operation:
                by_specs.setdefault(part.specs, []).append(part)
        for same in by_specs.values():
            yield _concatenated(same)


def _concatenated(group: list[Part]) -> Part:
    if len(group) == 1:
        return group[0]
    rows = pa.concat_batches([part.rows for part in group])
    return replace(group[0], rows=rows, ids=pa.concat_arrays([part.ids for part in group]))


def _last_of_each(keys: pa.RecordBatch) -> pa.Array:
    """The rows, in order, whose key does not occur in a later row."""
    table = pa.table([*keys.columns, pa.array(range(len(keys)), pa.int64())], names=[*keys.schema.names, "\0row"])
    last = table.group_by(keys.schema.names).aggregate([("\0row", "max")]).column("\0row_max").combine_chunks()
    return last.take(pc.sort_indices(last))


def _temporal(column: pa.Array, spec: ColumnSpec) -> pa.Array:
    """Convert numbers and texts to the dates, times and instants that they represent."""
    if spec.unit == "text":
        return column.cast(pa.timestamp("us", "UTC"))
    if pa.types.is_string(column.type):
        column = column.cast(pa.int64())
    if spec.unit == "ns":
        column = _micros(column)
    if spec.kind == "date":
        return column.cast(pa.int32()).cast(pa.date32())
    if spec.kind == "time":
        return column.cast(pa.int32()).cast(pa.time32("ms")) if spec.unit == "ms" else column.cast(pa.time64("us"))
    return (
        column.cast(pa.int64()).cast(pa.timestamp("ms" if spec.unit == "ms" else "us")).cast(pa.timestamp("us", "UTC"))
    )


def _micros(nanos: pa.Array) -> pa.Array:
    """Whole microseconds, rounded down so that instants before 1970 are correct."""
    floored = pc.floor_temporal(nanos.cast(pa.timestamp("ns")), unit="microsecond")
    return floored.cast(pa.timestamp("us")).cast(pa.int64())
