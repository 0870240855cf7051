"""Single records through fastavro: Python values to framed bytes and back."""

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
from registry.serde.errors import CorruptRecord, SerializationError, UnencodableValue
from registry.serde.framing import header, unframe
from registry.serde.walk import SIZELESS, Budget, must_be_walked, walk

__all__ = ["decode_record", "encode_record"]

Resolve = Callable[[int], AvroSchema]


def encode_record(schema: AvroSchema, value: Any, schema_id: int) -> bytes:
    """A value in Confluent framing; logical types take datetime, Decimal and UUID objects. Raises UnencodableValue."""
    out = io.BytesIO()
    out.write(header(schema_id))
    with _border(UnencodableValue):
        prepared = _prepared(schema)
        # The writer alone would let an int of 40 bits through.
        fastavro.validate(value, prepared)
        fastavro.schemaless_writer(out, prepared, value)
    return out.getvalue()


def decode_record(data: bytes, resolve: Resolve, reader: AvroSchema | None = None) -> tuple[int, AvroSchema, Any]:
    """Schema id, the schema the value is in (``reader`` or the writer's) and the value. Raises CorruptRecord."""
    schema_id, body = unframe(data)
    writer = resolve(schema_id)
    source = io.BytesIO(body)
    with _border(CorruptRecord):
        if _suspect(writer):
            # fastavro takes any number of nulls on the word of a few bytes, and dies of 20,000 nested records.
            walk(writer.type, body, 0, len(body), Budget(SIZELESS))
        value = fastavro.schemaless_reader(source, _prepared(writer), _prepared(reader) if reader is not None else None)
    if source.tell() != len(body):
        raise CorruptRecord(f"{len(body) - source.tell()} bytes are left over after the record of schema {schema_id}")
    return schema_id, reader or writer, value


@lru_cache(maxsize=1000)
def _suspect(schema: AvroSchema) -> bool:
    return must_be_walked(schema.type)


@lru_cache(maxsize=1000)
def _prepared(schema: AvroSchema) -> Schema:
    return fastavro.parse_schema(json.loads(schema.resolved))


@contextmanager
def _border(kind: type[SerializationError]) -> Iterator[None]:
    """fastavro raises what its C code happens to: everything that is about the data becomes one of ours."""
    try:
        yield
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
        raise kind("; ".join(map(str, error.errors))) from error  # its own text is a JSON list over several lines
    except fastavro.schema.SchemaParseException as error:
        raise kind(str(error)) from error
    except RecursionError:
        raise kind("nested too deep") from None
    except MemoryError:
        raise kind("a length in the record is larger than memory") from None
