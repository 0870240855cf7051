"""File formats: each makes a file of the values of records that share a schema, and reads such files."""

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

__all__ = ["FORMATS", "Chunk", "FileFormat", "FormatOptions", "OpenFile", "format_of"]


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Settings of all formats; each takes its own."""

    parquet_codec: str = "snappy"
    avro_codec: str = "null"
    compression: str = "none"
    compression_level: int = -1
    decimal_format: str = "BASE64"
    raw_extension: str = ".bin"
    raw_separator: bytes = b"\n"
    raw_block_bytes: int | None = None
    """Raw files are read in rows of so many bytes, instead of by the separator."""


class Chunk(NamedTuple):
    """Some rows that were read, in the file's order; ``values`` is as in a RecordBatch of ``schema``."""

    schema: Schema | None
    values: pa.Array


class OpenFile(ABC):
    """A file being written."""

    @abstractmethod
    def write(self, values: pa.Array) -> None:
        """Add rows, none of them null. Raises DataError and adds none where a value does not fit."""

    @abstractmethod
    def close(self) -> None:
        """Finish the file: it is whole afterwards."""

    @abstractmethod
    def discard(self) -> None:
        """Release it unfinished."""


class FileFormat(ABC):
    """A format under its settings."""

    def __init__(self, options: FormatOptions) -> None:
        self.options = options

    @property
    @abstractmethod
    def extension(self) -> str:
        """What names of its files end with, such as ``.snappy.parquet``."""

    @abstractmethod
    def open(self, path: Path, schema: Schema | None) -> OpenFile:
        """A new file at ``path``. Raises DataError for a schema that the format has no form for."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """What names of files in this format may end with, whatever they are compressed with."""
        return (self.extension,)

    seeks = False
    """Whether reading jumps within the file, which then cannot be a compressed stream."""

    @abstractmethod
    def read(self, file: BinaryIO) -> Iterator[Chunk]:
        """The rows of a file, in pieces. Raises DataError for what is not in this format."""


FORMATS: Final[Mapping[str, str]] = {
    "AvroFormat": "avro:AvroFormat",
    "ByteArrayFormat": "raw:RawFormat",
    "JsonFormat": "jsonl:JsonLinesFormat",
    "ParquetFormat": "parquet:ParquetFormat",
}
"""Where each format is, by the last part of the class names that ``format.class`` takes."""


def format_of(class_name: str, options: FormatOptions) -> FileFormat:
    """The format that a class name of any of the originals' packages means; KeyError for an unknown one."""
    module, _, name = FORMATS[class_name.rpartition(".")[2]].partition(":")
    made = cast("type[FileFormat]", getattr(import_module(f"{__name__}.{module}"), name))
    return made(options)
