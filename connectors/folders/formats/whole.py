"""Formats that bring their schema (Avro, Parquet), and files that are one value."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from connect.api import DataError, Schema, SchemaType
from connectors.folders.formats import Block, Format, Opens
from connectors.objects.formats import FileFormat, FormatOptions
from connectors.objects.formats import format_of as stored_format
from connectors.objects.formats.jsonl import MOST_RECORD_BYTES

__all__ = ["AvroRows", "ParquetRows", "WholeFile"]

_BYTES = Schema(SchemaType.BYTES)


class _Stored(Format):
    """The formats of the object sinks."""

    name: str

    def read(self, opens: Opens) -> Iterator[Block]:
        stored: FileFormat = stored_format(self.name, FormatOptions())
        row = 0
        with opens() as file:
            for chunk in stored.read(file):
                yield Block(chunk.values, chunk.schema, np.arange(row, row + len(chunk.values)))
                row += len(chunk.values)


class AvroRows(_Stored):
    name = "AvroFormat"


class ParquetRows(_Stored):
    name = "ParquetFormat"
    seeks = True


class WholeFile(Format):
    def read(self, opens: Opens) -> Iterator[Block]:
        with opens() as file:
            content = file.read(MOST_RECORD_BYTES + 1)
        if len(content) > MOST_RECORD_BYTES:
            raise DataError(f"the file has more than {MOST_RECORD_BYTES} bytes, which is too much for one record")
        yield Block(pa.array([content], pa.binary()), _BYTES, np.arange(1))
