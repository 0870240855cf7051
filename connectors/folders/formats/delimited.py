"""Delimited text (CSV, TSV), parsed by Arrow: no Python call per row."""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from itertools import chain
from secrets import token_hex
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from connect.api import DataError
from connectors.folders.config import FolderSourceConfig
from connectors.folders.formats import BadRow, Block, Format, Opens
from connectors.folders.formats.lines import transcoded
from connectors.folders.schemas import inferred, of_strings
from connectors.folders.texts import as_structs, fitting

__all__ = ["Delimited"]

_BLOCK_BYTES: Final = 4 * 1024 * 1024
_MOST_TEXT: Final = 10_000
_MOST_NAMES: Final = 20
_DELIMITERS: Final = ",;\t|"
_UNCLOSED: Final = "the file ends inside a quoted cell: its quote is not closed"


class Delimited(Format):
    """Cells are read as bytes, then put into the types of the schema, so that a bad cell spoils no other row."""

    def read(self, opens: Opens) -> Iterator[Block]:
        with opens() as file:
            first, lines_before = self._first_row(file)
        if first is None:
            return
        names = self._names(first)
        known = names if self.schema is None else self.schema.field_names
        self.left_out = [name for name in names if name not in known]
        with opens() as file, closing(self._starts(opens, lines_before)) as starts:
            yield from _Blocks(self, transcoded(file, self.config.charset), names, lines_before, starts).read()

    def _first_row(self, file: Any) -> tuple[list[str] | None, int]:
        """The first row that is not empty, and the number of lines before the first row of data."""
        before = self.config.skip_lines
        end = _mark(self.config)
        rows = self._python_rows(file, before, end)
        try:
            for row in rows:
                after = self.config.skip_lines + rows.line_num
                if row == [end]:
                    break
                if self.config.first_row_is_header and end in "".join(row):
                    raise DataError(f"line {before + 1}: {_UNCLOSED}, in its header")
                if row:
                    return row, after if self.config.first_row_is_header else before
                before = after
        except csv.Error as error:
            raise DataError(f"its first row cannot be read: {error}") from error
        return None, 0

    def _starts(self, opens: Opens, lines_before: int) -> Generator[int]:
        """The line at which each row begins, from 1; not all of them, if Python cannot read the file. Nothing is read before the
        first call: only files with bad rows are read a second time.
        """
        with opens() as file:
            rows, before = self._python_rows(file, lines_before), lines_before
            try:
                for row in rows:
                    if row:
                        yield before + 1
                    before = lines_before + rows.line_num
            except csv.Error:
                yield before + 1

    def _python_rows(self, file: Any, skipped: int, *more: str) -> Any:
        config = self.config
        text = io.TextIOWrapper(io.BufferedReader(_Raw(file)), encoding=config.charset, errors="replace", newline="")
        for _ in range(skipped):
            text.readline()
        quote = config.quote
        return csv.reader(
            chain(text, more),
            delimiter=config.separator,
            quotechar=quote,
            quoting=csv.QUOTE_NONE if quote is None else csv.QUOTE_MINIMAL,
            escapechar=config.escape,
        )

    def _names(self, first: Sequence[str]) -> list[str]:
        """The names of the columns, as the schema has them where it knows them."""
        fields = () if self.schema is None else self.schema.field_names
        if not self.config.first_row_is_header:
            names = [*fields, *(f"column{at + 1:02d}" for at in range(len(fields), len(first)))]
            if len(names) > len(first):
                raise DataError(f"it has {len(first)} columns, and the schema has {len(fields)} fields")
            return names
        header = [name.strip().removeprefix("\ufeff") for name in first]
        if not self.config.case_sensitive:
            by_lower = {name.lower(): name for name in fields}
            header = [by_lower.get(name.lower(), name) for name in header]
        if fields and not set(fields) & set(header):
            raise DataError(self._unknown_header(first, fields))
        if not fields and len(header) == 1:
            self._require_single(header[0])
        if twice := next((name for name in header if header.count(name) > 1), None):
            raise DataError(f"its header has the column {twice!r} twice")
        if "" in header:
            raise DataError(f"column {header.index('') + 1} of its header has no name")
        if missing := [
            m.name
            for m in (self.schema.fields if self.schema else ())
            if not m.schema.optional and m.name not in header
        ]:
            raise DataError(f"its header has no column {missing[0]!r}; it has {', '.join(header)}")
        return header

    def _require_single(self, name: str) -> None:
        """Raises DataError for the first file's only column where its name looks like several of another delimiter: what it is read as
        would be the schema of all files.
        """
        for other in _DELIMITERS:
            names = [part.strip(" \"'") for part in name.split(other)]
            if other != self.config.separator and len(names) > 1 and all(part.isidentifier() for part in names):
                raise DataError(
                    f"its header is the one column {name!r}: csv.separator.char is {self.config.separator!r}, and {other!r} "
                    f"({ord(other)}) would give it {len(names)}; if that is the column's name, give value.schema"
                )

    def _unknown_header(self, first: Sequence[str], fields: Sequence[str]) -> str:
        """The error of a header of which the schema knows no name: most often its delimiter is another one."""
        separator = self.config.separator
        text = separator.join(first).removeprefix("\ufeff")
        known = {name.lower() for name in fields}

        def shared(other: str) -> int:
            return len(known & {name.strip(" \t\"'").lower() for name in text.split(other)})

        others = {each for each in text if not each.isalnum() and each.isascii() and each != separator}
        best = max(sorted(others), key=shared, default=separator)
        schema = "the schema of the first file that was read" if self.config.makes_schema else "value.schema"
        told = (
            f"its header has none of the schema's columns: it has {_listed(first)}, and {schema} has {_listed(fields)}"
        )
        if shared(best):
            return (
                f"{told}; csv.separator.char is {separator!r}, and {best!r} ({ord(best)}) would be right for this file"
            )
        return (
            f"{told}; the header should have these names with {separator!r} between them (csv.separator.char); a file "
            "without a header needs csv.first.row.as.header=false"
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_MOST_NAMES])
    return f"{shown} and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else shown


class _Blocks:
    """One pass through a file. A row's number counts the rows after the header, bad ones too, but no empty lines."""

    def __init__(
        self, format_: Delimited, file: Any, names: Sequence[str], lines_before: int, starts: Iterator[int]
    ) -> None:
        self._format, self._config, self._names = format_, format_.config, names
        self._starts, self._lines_before = enumerate(starts), lines_before
        self._bad: deque[tuple[int, str, str]] = deque()
        self._next = 0
        self._end = _mark(self._config)
        quote, escape = self._config.quote, self._config.escape
        marked = _Marked(file, self._end_row(len(names)).encode()) if quote is not None else file
        nulls = self._config.null_indicator
        self._open: Callable[[], Any] = lambda: pa_csv.open_csv(
            marked,
            read_options=pa_csv.ReadOptions(
                use_threads=False, block_size=_BLOCK_BYTES, column_names=list(names), skip_rows=lines_before
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self._config.separator,
                quote_char=quote if quote is not None else False,
                double_quote=quote is not None,
                escape_char=escape if escape is not None else False,
                newlines_in_values=quote is not None or escape is not None,
                invalid_row_handler=self._invalid,
            ),
            convert_options=pa_csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=[""],
                strings_can_be_null=nulls != "NEITHER",
                quoted_strings_can_be_null=nulls == "BOTH",
            ),
        )

    def _invalid(self, row: Any) -> str:
        """Arrow tells of rows ahead of those that it returns, and counts the lines that it skipped as well."""
        text, marked, _ = row.text.partition("\n" + self._end)
        if row.text.startswith(self._end):
            return "skip"
        error = f"it has {row.actual_columns} columns, and {row.expected_columns} are expected"
        if marked and not (self._config.escape and text.endswith(self._config.escape)):
            error = _UNCLOSED
        self._bad.append((row.number - 1 - self._lines_before, text, error))
        return "skip"

    def _end_row(self, width: int) -> str:
        """A row behind the file's last one that has the wrong number of columns: Arrow tells of it, or takes it for a part of a
        cell that is still open.
        """
        return f"\n{self._end}{self._config.separator + self._end if width == 1 else ''}\n"

    def _without_end(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, without a last one whose quote is not closed before the file ends: that one is bad."""
        last = batch.columns[-1][-1].as_py() or b""
        text, marked, rest = last.partition(b"\n" + self._end.encode())
        if not marked:
            return batch
        columns = dict(zip(self._names, batch.columns, strict=True))
        before, name = batch.slice(0, batch.num_rows - 1), self._names[-1]
        if not rest.endswith(b"\n"):  # an escape character is the file's last one, and takes the line end for itself
            cells = pa.concat_arrays([before.columns[-1], pa.array([text], pa.binary())])
            return batch.set_column(batch.num_columns - 1, name, cells)
        *others, _ = columns
        written = _written({each: columns[each] for each in others}, batch.num_rows - 1, self._config.separator)
        written += (self._config.separator if others else "") + str(self._config.quote) + text.decode(errors="replace")
        self._bad.append((self._next + len(self._bad) + batch.num_rows - 1, written, _UNCLOSED))
        return before

    def read(self) -> Iterator[Block]:
        try:
            for read in self._open():
                batch = self._without_end(read) if read.num_rows else read
                if batch.num_rows:
                    yield self._block(batch)
        except pa.ArrowInvalid as error:
            if "straddling" in str(error):
                line = self._line(self._next)
                where = "a row" if line is None else f"a row from line {line} on"
                raise DataError(
                    f"{where} is longer than {_BLOCK_BYTES // 1024**2} MiB: is a quote not closed?"
                ) from error
            if "Empty CSV file" not in str(error):
                raise DataError(f"not CSV that can be read: {error}") from error
        if self._bad:
            schema = self._format.schema
            values = pa.array([], pa.struct([]) if schema is None else schema.arrow_type)
            yield Block(values, schema, np.arange(0), self._told([], self._bad[-1][0] + 1))

    def _block(self, batch: pa.RecordBatch) -> Block:
        columns = {name: self._cells(column) for name, column in zip(self._names, batch.columns, strict=True)}
        numbers = self._numbers(batch.num_rows)
        format_ = self._format
        if format_.schema is None:
            name = self._config.value_name
            format_.schema = inferred(columns, name) if self._config.infers_types else of_strings(self._names, name)
        structs, wrong = as_structs(columns, format_.schema, self._config.times)
        misfits = [
            (int(numbers[row]), _written(columns, row, self._config.separator), error) for row, error in wrong.items()
        ]
        told = self._told(misfits, int(numbers[-1]) + 1)
        return Block(
            structs, format_.schema, numbers[fitting(len(numbers), wrong).to_numpy()] if wrong else numbers, told
        )

    def _cells(self, column: pa.Array) -> pa.Array:
        if self._config.ignore_leading_whitespace:
            column = pc.cast(pc.replace_substring_regex(column, r"^[ \t]+", ""), pa.binary())
        if self._config.null_indicator == "EMPTY_QUOTES":
            empty = pa.scalar(b"", pa.binary())
            column = pc.if_else(
                pc.is_null(column), empty, pc.if_else(pc.equal(column, empty), pa.scalar(None, pa.binary()), column)
            )
        return column

    def _numbers(self, count: int) -> npt.NDArray[np.int64]:
        """The numbers of the next rows that Arrow has returned: those of which it has not told otherwise."""
        left_out = np.array([number for number, _, _ in self._bad], np.int64) - self._next
        candidates = np.arange(count + len(left_out))
        numbers = np.setdiff1d(candidates, left_out, assume_unique=True)[:count] + self._next
        self._next = int(numbers[-1]) + 1
        return numbers

    def _told(self, misfits: Sequence[tuple[int, str, str]], end: int) -> list[BadRow]:
        """The bad rows before number ``end``, with their lines."""
        bad = list(misfits)
        while self._bad and self._bad[0][0] < end:
            bad.append(self._bad.popleft())
        return [BadRow(number, self._line(number), text[:_MOST_TEXT], error) for number, text, error in sorted(bad)]

    def _line(self, number: int) -> int | None:
        return next((line for row, line in self._starts if row == number), None)


def _written(columns: dict[str, pa.Array], row: int, separator: str) -> str:
    """A row as CSV again."""
    text = io.StringIO()
    cells = [column[row].as_py() for column in columns.values()]
    csv.writer(text, delimiter=separator, lineterminator="").writerow(
        "" if cell is None else cell.decode(errors="replace") for cell in cells
    )
    return text.getvalue()


def _mark(config: FolderSourceConfig) -> str:
    """A text that no file has, and that every parser takes as it is."""
    special = (config.separator, config.quote, config.escape)
    return "".join(each for each in token_hex(16) if each not in special)


class _Raw(io.RawIOBase):
    """A file without seeking, for io's wrappers; it stays open."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Marked(_Raw):
    """A file with some bytes behind its end."""

    def __init__(self, file: Any, end: bytes) -> None:
        super().__init__(file)
        self._left = end

    def read(self, size: int, /) -> bytes:  # type: ignore[override]
        """All that is there up to a size: Arrow skips lines in the first bytes that it gets, and needs them whole."""
        parts: list[bytes] = []
        while size and (data := self._file.read(size)):
            parts.append(data)
            size -= len(data)
        if 0 < len(self._left) <= size:
            parts.append(self._left)
            self._left = b""
        return b"".join(parts)
