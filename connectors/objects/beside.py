"""Files beside those of values: the keys and the headers of their records, row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, RecordBatch, Schema, SchemaType
from connect.formats import header_texts
from connectors.objects.formats import Chunk, FileFormat, OpenFile
from connectors.objects.formats.jsonl import JsonLinesFormat
from connectors.objects.formats.parquet import ParquetFormat

__all__ = ["Beside", "Headers", "Keys"]

_TEXT: Final = Schema(SchemaType.STRING)
_HEADERS: Final = Schema.array(Schema.struct({"key": _TEXT, "value": _TEXT}))


class Beside(ABC):
    """A part of each record that is stored beside its value.

    Formats of ``wrapping`` hold structs; there it is the only ``field`` of a struct that is called ``envelope``.
    """

    suffix: ClassVar[str]
    """Stands before the extension in names of files."""
    field: ClassVar[str]
    envelope: ClassVar[str]
    wrapping: ClassVar[tuple[type[FileFormat], ...]]

    def __init__(self, file_format: FileFormat) -> None:
        self.format = file_format
        self._wraps = isinstance(file_format, self.wrapping)

    @property
    def extension(self) -> str:
        return f"{self.suffix}{self.format.extension}"

    def open(self, path: Path, key_schema: Schema | None) -> OpenFile:
        """Create a file for records with this key schema."""
        schema = self._schema(key_schema)
        if self._wraps and schema is not None:
            schema = Schema.struct({self.field: schema}, name=self.envelope)
        return self.format.open(path, schema)

    @abstractmethod
    def prepared(self, batch: RecordBatch) -> RecordBatch:
        """The batch in the form that ``rows`` takes. Raises DataError where a record has nothing to store."""

    def rows(self, batch: RecordBatch) -> pa.Array:
        """The rows of a file for part of a batch that was prepared."""
        column = self._column(batch)
        if not self._wraps:
            return column
        field = pa.field(self.field, column.type, nullable=False)
        return pa.StructArray.from_arrays([column], fields=[field])

    def unwrapped(self, chunk: Chunk) -> Chunk:
        """Rows of such a file as ``rows`` of a batch, without the struct around them."""
        if not self._wraps:
            return chunk
        if chunk.schema is None:
            values = [orjson.loads(text)[self.field] for text in chunk.values.to_pylist()]
            return Chunk(None, pa.array(values, _HEADERS.arrow_type))
        if chunk.schema.type is SchemaType.STRUCT and chunk.schema.field_names == (self.field,):
            return Chunk(chunk.schema.fields[0].schema, pc.struct_field(chunk.values, self.field))
        return chunk

    @abstractmethod
    def _schema(self, key_schema: Schema | None) -> Schema | None: ...

    @abstractmethod
    def _column(self, batch: RecordBatch) -> pa.Array: ...


class Keys(Beside):
    suffix = ".keys"
    field = "key"
    envelope = "RecordKey"
    wrapping = (ParquetFormat,)

    def _schema(self, key_schema: Schema | None) -> Schema | None:
        return key_schema

    def _column(self, batch: RecordBatch) -> pa.Array:
        return batch.keys

    def prepared(self, batch: RecordBatch) -> RecordBatch:
        if batch.keys is not None and not batch.keys.null_count:
            return batch
        row = 0 if batch.keys is None else int(pc.index(batch.keys.is_null(), True).as_py())
        raise DataError(
            f"record {row} of a batch of {batch.topic!r} has no key, and store.kafka.keys is true", rows=[row]
        )


class Headers(Beside):
    """Headers as Kafka Connect writes their values as text. A record without headers has an empty list."""

    suffix = ".headers"
    field = "headers"
    envelope = "RecordHeaders"
    wrapping = (ParquetFormat, JsonLinesFormat)

    def _schema(self, key_schema: Schema | None) -> Schema | None:
        return _HEADERS

    def _column(self, batch: RecordBatch) -> pa.Array:
        return batch.headers

    def prepared(self, batch: RecordBatch) -> RecordBatch:
        return batch.replace(headers=header_texts(batch))
