"""Parquet through pyarrow: a row group for every 128 Ki rows or 64 MiB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from connect.api import DataError, Schema, SchemaType, schema_from_arrow
from connectors.objects.formats import Chunk, FileFormat, OpenFile

__all__ = ["ParquetFormat"]

_GROUP_ROWS: Final = 128 * 1024
_GROUP_BYTES: Final = 64 * 1024 * 1024
_READ_ROWS: Final = 16 * 1024


class ParquetFormat(FileFormat):
    @property
    def extension(self) -> str:
        codec = self.options.parquet_codec
        return ".parquet" if codec == "none" else f".{codec}.parquet"

    def open(self, path: Path, schema: Schema | None) -> OpenFile:
        if schema is None or schema.type is not SchemaType.STRUCT:
            kind = "no schema" if schema is None else schema.type.value
            raise DataError(f"Parquet holds structs, but the records' values have {kind}: use a converter with schemas")
        return _ParquetFile(path, schema, self.options.parquet_codec)

    seeks = True

    @property
    def extensions(self) -> tuple[str, ...]:
        return (".parquet",)

    def read(self, file: BinaryIO) -> Iterator[Chunk]:
        """Times finer than milliseconds are truncated to Connect's milliseconds."""
        try:
            parquet = pq.ParquetFile(file)
            schema = schema_from_arrow(pa.struct(list(parquet.schema_arrow)))
            for rows in parquet.iter_batches(batch_size=_READ_ROWS):
                yield Chunk(schema, rows.to_struct_array().cast(schema.arrow_type, safe=False))
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"not Parquet that can be read: {error}") from error


class _ParquetFile(OpenFile):
    def __init__(self, path: Path, schema: Schema, codec: str) -> None:
        self._schema = pa.schema([member.schema.arrow_field(member.name) for member in schema.fields])
        self._writer = pq.ParquetWriter(path, self._schema, compression=codec.removesuffix("_raw"))
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def write(self, values: pa.Array) -> None:
        self._waiting.append(pa.RecordBatch.from_arrays(values.flatten(), schema=self._schema))
        self._rows += len(values)
        self._bytes += values.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        self._write_group()
        self._writer.close()

    def discard(self) -> None:
        self._waiting = []
        self._writer.close()
