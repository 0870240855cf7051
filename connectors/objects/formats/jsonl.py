"""JSON lines: each record's value as JSON text followed by a newline; read back, they are values without schema."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, Schema
from connect.formats import json_column
from connectors.objects.formats import Chunk, FileFormat, FormatOptions, OpenFile

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JsonLinesFormat", "TextFile", "open_output", "separated"]

_BLOCK_BYTES: Final = 4 * 1024 * 1024
MOST_RECORD_BYTES: Final = 256 * 1024 * 1024
"""Without a separator; far more than Kafka takes."""


class JsonLinesFormat(FileFormat):
    @property
    def extension(self) -> str:
        return ".json" + (".gz" if self.options.compression == "gzip" else "")

    def open(self, path: Path, schema: Schema | None) -> OpenFile:
        numeric = self.options.decimal_format.upper() == "NUMERIC"
        return TextFile(
            open_output(path, self.options),
            lambda values: json_column(schema, values, numeric_decimals=numeric).cast(pa.binary()),
            b"\n",
        )

    @property
    def extensions(self) -> tuple[str, ...]:
        return (".json", ".json.gz")

    def read(self, file: BinaryIO) -> Iterator[Chunk]:
        rows = 0
        for lines in separated(file, b"\n"):
            texts = [text for line in lines.to_pylist() if (text := line.strip())]
            row = 0
            try:
                for row, text in enumerate(texts, 1):  # noqa: B007 - told when it fails
                    orjson.loads(text)
            except orjson.JSONDecodeError as error:
                raise DataError(f"record {rows + row} is not JSON: {error}") from error
            rows += len(texts)
            yield Chunk(None, pa.array(texts, pa.binary()).cast(pa.string()))


def separated(file: BinaryIO, separator: bytes) -> Iterator[pa.Array]:
    """The parts between separators, as binary columns; a part after the last separator counts unless it is empty.

    Raises DataError for a record that is too large: a few kilobytes of a packed file may be gigabytes without a separator.
    """
    parts: list[bytes] = []
    overlap, size, most_overlap = b"", 0, len(separator) - 1
    while block := file.read(_BLOCK_BYTES):
        block = overlap + block
        end = block.rfind(separator)
        if end >= 0:
            whole = b"".join([*parts, block[:end]])
            yield pc.split_pattern(pa.array([whole], pa.binary()), separator).flatten()
            parts, size, block = [], 0, block[end + len(separator) :]
        cut = max(len(block) - most_overlap, 0)
        parts.append(block[:cut])
        overlap = block[cut:]
        size += cut
        if size > MOST_RECORD_BYTES:
            raise DataError(f"a record has more than {MOST_RECORD_BYTES} bytes")
    if rest := b"".join([*parts, overlap]):
        yield pa.array([rest], pa.binary())


def open_output(path: Path, options: FormatOptions) -> BinaryIO:
    """A file that is written plain or compressed."""
    if options.compression != "gzip":
        return path.open("wb")
    level = 9 if options.compression_level < 0 else options.compression_level
    return cast(
        "BinaryIO", gzip.GzipFile(filename="", fileobj=path.open("wb"), mode="wb", compresslevel=level, mtime=0)
    )


class TextFile(OpenFile):
    """Rows as bytes, each followed by ``separator``."""

    def __init__(self, output: BinaryIO, render: Callable[[pa.Array], pa.Array], separator: bytes) -> None:
        self._output, self._render, self._separator = output, render, separator
        self._under = getattr(output, "fileobj", None)

    def write(self, values: pa.Array) -> None:
        rows = self._render(values).cast(pa.large_binary())
        every = pa.LargeListArray.from_arrays([0, len(rows)], rows)
        joined = pc.binary_join(every, pa.scalar(self._separator, pa.large_binary()))[0].as_buffer()
        self._output.write(joined)
        self._output.write(self._separator)

    def close(self) -> None:
        self._output.close()
        if self._under is not None:
            self._under.close()

    def discard(self) -> None:
        self.close()
