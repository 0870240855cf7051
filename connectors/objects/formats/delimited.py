"""CSV and TSV: a column for each field, as RFC 4180 has it, with lines that end in a newline.

A text is quoted where it would read as something else, so an empty text is ``""`` where a null is nothing. Read back, all
columns are optional texts.
"""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import re2

from connect.api import DataError, Schema, SchemaType
from connect.formats import json_column
from connectors.objects.formats import Chunk, FileFormat, FormatOptions, OpenFile
from connectors.objects.formats.jsonl import TextFile, open_output

__all__ = ["CsvFormat", "TsvFormat"]

_TEXT: Final = pa.large_string()
_HEAD_BYTES: Final = 1024 * 1024
_BLOCK_BYTES: Final = 16 * 1024 * 1024
"""A row must fit into a block."""
_NESTED: Final = (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT)
_VALUE: Final = "value"


class CsvFormat(FileFormat):
    ending = ".csv"

    @property
    def delimiter(self) -> str:
        return self.options.csv_delimiter

    @property
    def extension(self) -> str:
        return self.ending + (".gz" if self.options.compression == "gzip" else "")

    @property
    def extensions(self) -> tuple[str, ...]:
        return (self.ending, f"{self.ending}.gz")

    def open(self, path: Path, schema: Schema | None) -> OpenFile:
        rendering = _Rendering(schema, self.delimiter, self.options)
        output = open_output(path, self.options)
        if self.options.csv_header:
            output.write(rendering.header)
        return TextFile(output, rendering.lines, b"\n")

    def read(self, file: BinaryIO) -> Iterator[Chunk]:
        from pyarrow import csv as arrow

        head = file.read(_HEAD_BYTES)
        text = io.StringIO(head.decode(errors="replace"), newline="")
        try:
            names = next(csv.reader(text, delimiter=self.delimiter, strict=False), None)
        except csv.Error as error:
            raise DataError(f"its first line cannot be read: {error}") from error
        if not names:
            return
        if not self.options.csv_header:
            names = [f"column{n:02d}" for n in range(1, len(names) + 1)]
        if len({*names}) < len(names):
            raise DataError("its first line names a column twice")
        schema = Schema.struct({name: Schema(SchemaType.STRING, optional=True) for name in names})
        reading = arrow.ReadOptions(
            column_names=names, skip_rows=int(self.options.csv_header), block_size=_BLOCK_BYTES, use_threads=False
        )
        parsing = arrow.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        converting = arrow.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[self.options.csv_null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        try:
            stream = pa.PythonFile(cast("Any", _Joined(head, file)), mode="r")
            for rows in arrow.open_csv(stream, reading, parsing, converting):
                yield Chunk(schema, rows.to_struct_array().cast(schema.arrow_type))
        except (pa.ArrowException, ValueError) as error:
            raise DataError(f"not {self.ending[1:].upper()} that can be read: {error}") from error


class TsvFormat(CsvFormat):
    ending = ".tsv"
    delimiter = "\t"


class _Rendering:
    """Rows of a schema as lines. Raises DataError for a schema without columns, and for one with fields that are no cells."""

    def __init__(self, schema: Schema | None, delimiter: str, options: FormatOptions) -> None:
        if schema is None:
            raise DataError(
                "CSV needs a schema for its columns, but the records have none: use a converter with schemas"
            )
        whole = schema.type is not SchemaType.STRUCT
        fields = [(_VALUE, schema)] if whole else [(each.name, each.schema) for each in schema.fields]
        if not fields:
            raise DataError("CSV needs columns, but the records' values have no fields")
        self._whole, self._delimiter, self._options = whole, delimiter, options
        self._cells = [self._cell(name, each) for name, each in fields]
        self._special = f'[\\r\\n"{re2.escape(delimiter)}]|^$|^\\s|\\s$|^{re2.escape(options.csv_null)}$'
        if (broken := next((name for name, _ in fields if {*name} & {*"\r\n"}), None)) is not None:
            raise DataError(f"field {broken!r} cannot name a column of CSV: it holds the end of a line")
        names = pa.array([name for name, _ in fields], _TEXT)
        self.header = f"{delimiter.join(self._quoted(names).to_pylist())}\n".encode()

    def lines(self, values: pa.Array) -> pa.Array:
        columns = [values] if self._whole else values.flatten()
        texts = [self._quoted(cell(column)) for cell, column in zip(self._cells, columns, strict=True)]
        if len(texts) == 1 and texts[0].null_count and not self._options.csv_null:
            raise DataError(
                "a row of a null alone would be an empty line, which readers pass over: set format.csv.null, as to NULL",
                rows=[int(pc.index(texts[0].is_null(), True).as_py())],
            )
        separator, null = pa.scalar(self._delimiter, _TEXT), self._options.csv_null
        joined = pc.binary_join_element_wise(*texts, separator, null_handling="replace", null_replacement=null)
        return joined.cast(pa.large_binary())

    def _quoted(self, texts: pa.Array) -> pa.Array:
        special = pc.match_substring_regex(texts, self._special)
        doubled = pc.replace_substring(texts, '"', '""')
        quote, nothing = pa.scalar('"', _TEXT), pa.scalar("", _TEXT)
        quoted = pc.binary_join_element_wise(quote, doubled, quote, nothing)
        return pc.if_else(special, quoted, texts)

    def _cell(self, name: str, schema: Schema) -> Callable[[pa.Array], pa.Array]:
        """The function that renders the cells of a column. Null stays null."""
        if schema.type in _NESTED:
            if self._options.csv_nested.lower() != "json":
                raise DataError(
                    f"field {name!r} is {schema.type.value}, which is no cell of CSV: set format.csv.nested=json to write it as "
                    "JSON, flatten it with the transformation Flatten, or take JsonFormat"
                )
            return lambda column: _or_null(column, json_column(schema, column))
        if schema.type is SchemaType.BYTES and schema.name is None:
            return lambda column: pa.array(
                [None if each is None else base64.b64encode(each).decode() for each in column.to_pylist()], _TEXT
            )
        if pa.types.is_timestamp(schema.arrow_type):
            return _timestamps
        return lambda column: column.cast(_TEXT)


def _timestamps(column: pa.Array) -> pa.Array:
    """ISO 8601 in UTC."""
    texts = pc.replace_substring(column.cast(pa.timestamp("ms")).cast(_TEXT), " ", "T")
    return pc.binary_join_element_wise(texts, pa.scalar("Z", _TEXT), pa.scalar("", _TEXT))


def _or_null(column: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(column.is_valid(), texts.cast(_TEXT), pa.scalar(None, _TEXT))


class _Joined(io.RawIOBase):
    """The first bytes of a file, and the rest of it."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if not self._head:
            return self._file.read(-1 if size is None else size)
        if size is None or size < 0:
            data, self._head = self._head + self._file.read(), b""
        else:
            data, self._head = self._head[:size], self._head[size:]
        return data
