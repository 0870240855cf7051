"""File formats: each writes the values of records that share a schema to a file, and reads such files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast

from connect.api import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "RESTORABLE", "Chunk", "FileFormat", "FormatOptions", "OpenFile", "format_name", "format_of"]


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Settings of all formats; each uses those that concern it."""

    parquet_codec: str = "snappy"
    avro_codec: str = "null"
    compression: str = "none"
    compression_level: int = -1
    decimal_format: str = "BASE64"
    csv_header: bool = True
    csv_delimiter: str = ","
    csv_null: str = ""
    csv_nested: str = "fail"
    raw_extension: str = ".bin"
    raw_separator: bytes = b"\n"
    raw_block_bytes: int | None = None
    """Raw files are read in rows of this many bytes, instead of splitting at the separator."""


class Chunk(NamedTuple):
    """Some rows read from a file, in order; ``values`` is as in a RecordBatch of ``schema``."""

    schema: Schema | None
    values: pa.Array


class OpenFile(ABC):
    """A file being written."""

    @abstractmethod
    def write(self, values: pa.Array) -> None:
        """Append rows, none of them null. Raises DataError and appends none where a value does not fit."""

    @abstractmethod
    def close(self) -> None:
        """Complete the file."""

    @abstractmethod
    def discard(self) -> None:
        """Close the file without completing it."""


class FileFormat(ABC):
    """A format with its settings."""

    def __init__(self, options: FormatOptions) -> None:
        self.options = options

    @property
    @abstractmethod
    def extension(self) -> str:
        """The end of file names in this format, such as ``.snappy.parquet``."""

    @abstractmethod
    def open(self, path: Path, schema: Schema | None) -> OpenFile:
        """Create a file at ``path``. Raises DataError for a schema that the format cannot represent."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """The possible ends of names of files in this format, with any compression."""
        return (self.extension,)

    seeks = False
    """Whether reading needs random access, so that the file cannot be a compressed stream."""

    @abstractmethod
    def read(self, file: BinaryIO) -> Iterator[Chunk]:
        """The rows of a file, in pieces. Raises DataError for a file that is not in this format."""


FORMATS: Final[Mapping[str, str]] = {
    "AvroFormat": "avro:AvroFormat",
    "ByteArrayFormat": "raw:RawFormat",
    "CsvFormat": "delimited:CsvFormat",
    "JsonFormat": "jsonl:JsonLinesFormat",
    "ParquetFormat": "parquet:ParquetFormat",
    "TsvFormat": "delimited:TsvFormat",
}
"""Where each format is defined, by the last part of the class names that ``format.class`` accepts."""
RESTORABLE: Final = tuple(name for name in FORMATS if name not in ("CsvFormat", "TsvFormat"))
"""Those whose values are the same when they are read back."""


def format_name(class_name: str) -> str:
    """The last part of a class name. Confluent's sources have classes of their own too, such as ``CloudStorageJsonFormat``."""
    return class_name.rpartition(".")[2].removeprefix("CloudStorage")


def format_of(class_name: str, options: FormatOptions) -> FileFormat:
    """The format for a class name from any of the originals' packages; KeyError for an unknown one."""
    module, _, name = FORMATS[format_name(class_name)].partition(":")
    made = cast("type[FileFormat]", getattr(import_module(f"{__name__}.{module}"), name))
    return made(options)
