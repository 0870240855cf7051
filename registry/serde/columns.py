"""Converts Arrow columns to framed Avro messages and back, for converters, sinks and the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from registry.formats.avro.schema import AvroSchema
from registry.serde.arrow_types import arrow_type
from registry.serde.boundaries import record_ends
from registry.serde.checking import SIZELESS, Budget, Malformed, check_of
from registry.serde.column_resolution import resolve_column
from registry.serde.decoder import decode_bodies
from registry.serde.encoder import encode_bodies
from registry.serde.errors import CorruptRecord, Origin, SerializationError, UnencodableValue
from registry.serde.framing import HEADER_SIZE, header, schema_of

__all__ = ["DecodedRun", "decode_block", "decode_columns", "encode_columns"]

Resolve = Callable[[int], AvroSchema]


@dataclass(frozen=True, slots=True)
class DecodedRun:
    """Rows ``start`` to ``start + length`` of the decoded values, all written with one schema.

    ``schema`` is the schema of ``array``: the reader's, if there is one. ``schema_id`` is the writer's. Without a
    reader both are None in a run of nulls.
    """

    start: int
    length: int
    schema_id: int | None
    schema: AvroSchema | None
    array: pa.Array


def encode_columns(schema: AvroSchema, rows: pa.Array | pa.RecordBatch, schema_id: int) -> pa.Array:
    """Encode every row as a message in Confluent framing, and a null row as null, into a BinaryArray.

    Columns are matched to fields by name and cast if that changes no value. Raises UnencodableValue with the row and
    the field of the first value that does not fit.
    """
    if isinstance(rows, pa.RecordBatch):
        rows = rows.to_struct_array()
    if rows.null_count == 0:
        return encode_bodies(schema.type, rows, header(schema_id))
    valid = rows.is_valid().to_numpy(zero_copy_only=False)
    try:
        encoded = encode_bodies(schema.type, rows.drop_null(), header(schema_id))
    except UnencodableValue as error:
        error.row = None if error.row is None else int(np.flatnonzero(valid)[error.row])
        raise
    return _spread(encoded, valid)


def decode_columns(
    values: pa.Array, resolve: Resolve, reader: AvroSchema | None = None, origin: Origin | None = None
) -> list[DecodedRun]:
    """Decode messages in Confluent framing into columns: one run per range of rows with the same schema id. Null stays
    null.

    ``resolve`` returns the schema of an id and is called once per id. Raises CorruptRecord with the row and the field
    for data that contradicts its schema, and with the coordinates if ``origin`` has them; UnknownSchema for an id that
    ``resolve`` does not find; UnsupportedSchema if only ``decode_record`` can decode it.
    """
    try:
        return _decode(values, resolve, reader)
    except SerializationError as error:
        error.located(origin)
        raise


def decode_block(schema: AvroSchema, data: bytes, rows: int) -> pa.Array:
    """Decode ``rows`` consecutive bodies without framing, as in a block of a container file, into a column.

    Raises CorruptRecord with the row and the field for data that contradicts the schema.
    """
    if not 0 <= rows <= max(len(data), SIZELESS):
        raise CorruptRecord(f"a block of {rows} records in {len(data)} bytes")
    type_ = arrow_type(schema)
    if rows == 0:
        return pa.array([], type_)
    ends = record_ends(schema.type, data, rows) or _checked_ends(schema, data, rows)
    buffers = [None, pa.py_buffer(np.array(ends, np.int32)), pa.py_buffer(data)]
    return decode_bodies(schema.type, pa.Array.from_buffers(pa.binary(), rows, buffers))


def _checked_ends(schema: AvroSchema, data: bytes, rows: int) -> list[int]:
    check, ends = check_of(schema.type), [0]
    for row in range(rows):
        try:
            ends.append(check(data, ends[-1], len(data), Budget()))
        except Malformed as error:
            raise CorruptRecord(error.reason, row=row, path=error.path) from error
    if ends[-1] != len(data):
        raise CorruptRecord(f"{len(data) - ends[-1]} bytes are left over after the block's {rows} records")
    return ends


def _decode(values: pa.Array, resolve: Resolve, reader: AvroSchema | None) -> list[DecodedRun]:
    if not pa.types.is_binary(values.type):
        values = values.cast(pa.binary())
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else np.ones(len(values), np.bool_)
    if not valid.any():
        return _nulls_only(len(values), reader)
    messages = values.drop_null() if values.null_count else values
    original = np.flatnonzero(valid)
    ids = _schema_ids(messages, original)
    spread_ids = _with_nulls(ids, valid)
    columns: dict[int, pa.Array] = {}
    schemas: dict[int, AvroSchema] = {}
    for schema_id in _different(ids):
        writer = schema_of(schema_id, resolve, int(original[int((ids == schema_id).argmax())]))
        schemas[schema_id] = reader or writer
        mask = spread_ids == schema_id
        columns[schema_id] = _decoded(values, valid, mask, writer, reader)
    return _runs(spread_ids, columns, schemas)


def _decoded(
    values: pa.Array,
    valid: npt.NDArray[np.bool_],
    mask: npt.NDArray[np.bool_],
    writer: AvroSchema,
    reader: AvroSchema | None,
) -> pa.Array:
    """The rows of one schema id, including nulls, decoded together however many runs they form."""
    chosen = np.flatnonzero(mask & valid)
    part = values if len(chosen) == len(values) else values.take(pa.array(chosen))
    arrow_type(writer)  # raises for a schema that has no columns, before any work
    try:
        decoded = decode_bodies(writer.type, part, HEADER_SIZE)
        if reader is not None:
            decoded = resolve_column(decoded, writer.type, reader.type)
    except SerializationError as error:
        error.row = None if error.row is None else int(chosen[error.row])
        raise
    return decoded if len(chosen) == int(mask.sum()) else _spread(decoded, valid[mask])


def _runs(ids: npt.NDArray[np.int64], columns: dict[int, pa.Array], schemas: dict[int, AvroSchema]) -> list[DecodedRun]:
    starts = np.concatenate([[0], np.flatnonzero(np.diff(ids)) + 1]).tolist()
    ends = [*starts[1:], len(ids)]
    used = dict.fromkeys(columns, 0)
    runs = []
    for start, end in zip(starts, ends, strict=True):
        schema_id, length = int(ids[start]), end - start
        array = columns[schema_id].slice(used[schema_id], length)
        used[schema_id] += length
        runs.append(DecodedRun(start, length, schema_id, schemas[schema_id], array))
    return runs


def _different(ids: npt.NDArray[np.int64]) -> list[int]:
    if ids.min() == ids.max():
        return [int(ids[0])]  # the usual case, a tenth of what np.unique costs
    different: list[int] = np.unique(ids).tolist()
    return different


def _nulls_only(rows: int, reader: AvroSchema | None) -> list[DecodedRun]:
    if rows == 0:
        return []
    array = pa.nulls(rows, pa.null() if reader is None else arrow_type(reader))
    return [DecodedRun(0, rows, None, reader, array)]


def _schema_ids(messages: pa.Array, original: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The id in each message's header. ``original`` are their row numbers, for the error."""
    offsets = np.frombuffer(messages.buffers()[1], np.int32)[messages.offset :][: len(messages) + 1].astype(np.int64)
    short = np.diff(offsets) < HEADER_SIZE
    if short.any():
        at = int(short.argmax())
        raise CorruptRecord(
            f"not in Confluent framing: {offsets[at + 1] - offsets[at]} bytes are fewer than the header's {HEADER_SIZE}",
            row=int(original[at]),
        )
    data = np.frombuffer(messages.buffers()[2], np.uint8)
    strange = data[offsets[:-1]] != 0
    if strange.any():
        at = int(strange.argmax())
        header = data[offsets[at] : offsets[at] + HEADER_SIZE].tobytes()
        raise CorruptRecord(
            f"not in Confluent framing: it begins with {header.hex(' ')}, expected 00 and a schema id",
            row=int(original[at]),
        )
    # A word starting at every byte; those after a zero byte are selected.
    words = np.ndarray((len(data) - 3,), "V4", buffer=data, strides=(1,))
    ids: npt.NDArray[np.int64] = words[offsets[:-1] + 1].view(">u4").astype(np.int64)
    return ids


def _with_nulls(ids: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """An id for every row: a null joins the previous run, or the first one."""
    spread: npt.NDArray[np.int64] = ids[np.maximum(np.cumsum(valid) - 1, 0)]
    return spread


def _spread(packed: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """The values of the valid rows, with nulls inserted."""
    return packed.take(pa.array(np.maximum(np.cumsum(valid) - 1, 0), mask=~valid))
