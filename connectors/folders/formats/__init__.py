"""Formats of files: each reads a file into columns, and tells the rows that it cannot read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from connectors.folders.config import FORMATS, FolderSourceConfig

if TYPE_CHECKING:
    import pyarrow as pa

    from connect.api import Schema

__all__ = ["BadRow", "Block", "Format", "Opens", "format_of"]

Opens = Callable[[], AbstractContextManager[BinaryIO]]
"""Opens the file that is read, unpacked, at its start."""


class BadRow(NamedTuple):
    """A row that cannot be read. ``row`` counts all rows of the file from 0, ``line`` its lines from 1."""

    row: int
    line: int | None
    text: str
    error: str


class Block(NamedTuple):
    """Some rows of a file, in order. ``rows`` are the numbers of those in ``values``, ascending; the others are ``bad``."""

    values: pa.Array
    schema: Schema | None
    rows: Any
    """int64 of numpy."""
    bad: Sequence[BadRow] = ()


class Format(ABC):
    """Reads files. ``schema`` is that of the values: configured, or inferred from the first file that was read."""

    seeks = False
    """Whether files need random access."""

    def __init__(self, config: FolderSourceConfig, schema: Schema | None) -> None:
        self.config, self.schema = config, schema
        self.left_out: Sequence[str] = ()
        """The file's columns that the schema does not have, once its first block is read."""

    @abstractmethod
    def read(self, opens: Opens) -> Iterator[Block]:
        """The rows of a file. Raises DataError for a file that is not in this format."""


def format_of(config: FolderSourceConfig, schema: Schema | None) -> Format:
    module, _, name = FORMATS[config.input_format.lower()].partition(":")
    made = cast("type[Format]", getattr(import_module(f"{__name__}.{module}"), name))
    return made(config, schema)
