"""Encodes and decodes single records: Python values to framed bytes and back, through fastavro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import fastavro
from fastavro.types import Schema

from registry.formats.avro.schema import AvroSchema
from registry.serde.checking import Budget, Malformed, check_of
from registry.serde.errors import CorruptRecord, Origin, SerializationError, UnencodableValue
from registry.serde.framing import header, schema_of, unframe
from registry.serde.record_resolution import reader_of

__all__ = ["decode_record", "encode_record"]

Resolve = Callable[[int], AvroSchema]


def encode_record(schema: AvroSchema, value: Any, schema_id: int) -> bytes:
    """Encode a value in Confluent framing. Raises UnencodableValue.

    Logical types take datetime, Decimal and UUID objects. A union's value may be a tuple of the branch's name and the
    value, if the value alone is ambiguous.
    """
    out = io.BytesIO()
    out.write(header(schema_id))
    with _translating(UnencodableValue):
        prepared = _prepared(schema)
        # The writer alone would accept an int of 40 bits; the validator accepts tuples only for records.
        if not fastavro.validate(value, prepared, raise_errors=False):
            fastavro.validate(_without_branches(value), prepared)
        fastavro.schemaless_writer(out, prepared, value)
    return out.getvalue()


def _without_branches(value: Any) -> Any:
    if isinstance(value, tuple):
        return _without_branches(value[-1])
    if isinstance(value, dict):
        return {name: _without_branches(item) for name, item in value.items()}
    return [_without_branches(item) for item in value] if isinstance(value, list) else value


def decode_record(
    data: bytes, resolve: Resolve, reader: AvroSchema | None = None, origin: Origin | None = None
) -> tuple[int, AvroSchema, Any]:
    """Returns the schema id, the schema of the value (``reader`` or the writer's) and the value.

    Raises CorruptRecord with the field, and with the coordinates if ``origin`` has them; UnknownSchema for an id that
    ``resolve`` does not find.
    """
    try:
        schema_id, body = unframe(data)
        writer = schema_of(schema_id, resolve)
        return schema_id, reader or writer, _decoded(bytes(body), writer, reader)
    except SerializationError as error:
        error.located(origin)
        raise


def _decoded(body: bytes, writer: AvroSchema, reader: AvroSchema | None) -> Any:
    with _translating(CorruptRecord):
        end = check_of(writer.type)(body, 0, len(body), Budget())
        if end != len(body):
            raise Malformed(f"{len(body) - end} bytes are left over after the record")
        if reader is None or reader == writer:
            try:
                return fastavro.schemaless_reader(io.BytesIO(body), _prepared(writer), None)
            except (ValueError, OverflowError):
                # Valid bytes that have no Python value, for example a year of 10,000: our own reader names the field.
                reader_of(writer.type, writer.type)(body, 0, end, Budget())
                raise
        return reader_of(writer.type, reader.type)(body, 0, end, Budget())[0]


@lru_cache(maxsize=1000)
def _prepared(schema: AvroSchema) -> Schema:
    return fastavro.parse_schema(json.loads(schema.resolved))


@contextmanager
def _translating(kind: type[SerializationError]) -> Iterator[None]:
    """Translates fastavro's assorted exceptions about data into ours."""
    try:
        yield
    except Malformed as error:
        raise kind(error.reason, path=error.path) from error
    except (
        ValueError,
        TypeError,
        EOFError,
        IndexError,
        KeyError,
        OverflowError,
        AttributeError,
        StopIteration,
    ) as error:
        raise kind(f"{type(error).__name__}: {error}") from error
    except fastavro.validation.ValidationError as error:
        # fastavro's own text is a JSON list over several lines
        raise kind("; ".join(map(str, error.errors))) from error
    except fastavro.schema.SchemaParseException as error:
        raise kind(str(error)) from error
    except RecursionError:
        raise kind("nested too deep") from None
    except MemoryError:
        raise kind("a length in the record is larger than memory") from None
