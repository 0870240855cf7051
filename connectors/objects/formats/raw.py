"""The bytes of values as they are, with a separator after each."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from connect.api import DataError, Schema, SchemaType
from connectors.objects.formats import FileFormat, OpenFile
from connectors.objects.formats.jsonl import TextFile, open_output

__all__ = ["RawFormat"]


class RawFormat(FileFormat):
    @property
    def extension(self) -> str:
        return self.options.raw_extension + (".gz" if self.options.compression == "gzip" else "")

    def open(self, path: Path, schema: Schema | None) -> OpenFile:
        if schema is not None and schema.type not in (SchemaType.BYTES, SchemaType.STRING):
            raise DataError(f"ByteArrayFormat writes bytes, but values are {schema.type.value}: use ByteArrayConverter")
        return TextFile(
            open_output(path, self.options), lambda values: values.cast(pa.binary()), self.options.raw_separator
        )
