"""The unchanged bytes of values, each followed by a separator; read back, they are optional bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from connect.api import DataError, Schema, SchemaType
from connectors.objects.formats import Chunk, FileFormat, OpenFile
from connectors.objects.formats.jsonl import TextFile, open_output, separated

__all__ = ["RawFormat"]

_BYTES: Final = Schema(SchemaType.BYTES, optional=True)


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

    @property
    def extensions(self) -> tuple[str, ...]:
        return (self.options.raw_extension, f"{self.options.raw_extension}.gz")

    def read(self, file: BinaryIO) -> Iterator[Chunk]:
        """Without a separator the file is one row."""
        if (size := self.options.raw_block_bytes) is not None:
            while block := file.read(size):
                yield Chunk(_BYTES, pa.array([block], pa.binary()))
        elif self.options.raw_separator:
            for rows in separated(file, self.options.raw_separator):
                yield Chunk(_BYTES, rows)
        else:
            yield Chunk(_BYTES, pa.array([file.read()], pa.binary()))
