"""Formats with a record in each line: plain lines, patterns, fixed width, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DATE, DECIMAL, TIME, TIMESTAMP, DataError, Schema, SchemaType, schema_from_arrow
from connectors.folders.formats import BadRow, Block, Format, Opens
from connectors.folders.schemas import inferred, of_strings
from connectors.folders.texts import as_structs, fitting
from connectors.objects.formats.jsonl import separated

__all__ = ["FixedWidth", "JsonLines", "Lines", "Pattern", "transcoded"]

_STRING: Final = Schema(SchemaType.STRING)
_MOST_TEXT: Final = 10_000
_MOST_DEPTH: Final = 100
_TEXTS: Final = frozenset({DATE, TIME, TIMESTAMP, DECIMAL})


def transcoded(file: Any, charset: str) -> Any:
    """The file in UTF-8. In UTF-8 already it stays as it is, with its invalid bytes."""
    import codecs

    if codecs.lookup(charset).name == "utf-8":
        return file
    return pa.transcoding_input_stream(pa.PythonFile(file, mode="r"), charset, "utf8")


class _Line(Format):
    """Splits a file at line ends. A subclass says what a line is; empty lines are passed over, and counted."""

    def read(self, opens: Opens) -> Iterator[Block]:
        line = 0
        skipped = self.config.skip_lines
        with opens() as file:
            for parts in separated(transcoded(file, self.config.charset), b"\n"):
                lines = pc.replace_substring_regex(parts, r"\r$", "") if _has_returns(parts) else parts
                numbers = np.arange(line, line + len(lines))
                line += len(lines)
                present = pc.greater(pc.binary_length(lines), 0)
                if numbers[0] < skipped:
                    present = pc.and_(present, pa.array(numbers >= skipped))
                if not pc.all(present).as_py():
                    lines, numbers = lines.filter(present), numbers[present.to_numpy(zero_copy_only=False)]
                if len(lines):
                    yield self._block(lines, numbers)

    def _block(self, lines: pa.Array, numbers: npt.NDArray[np.int64]) -> Block:
        """A row's number is that of its line, from 0."""
        raise NotImplementedError

    def _told(self, lines: pa.Array, numbers: npt.NDArray[np.int64], wrong: Mapping[int, str]) -> list[BadRow]:
        return [
            BadRow(int(numbers[row]), int(numbers[row]) + 1, shown(lines[row].as_py()), wrong[row])
            for row in sorted(wrong)
        ]

    def _texts(self, lines: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        """The lines as texts; those that are none are empty."""
        structs, wrong = as_structs({"line": lines}, Schema.struct({"line": _STRING}), self.config.times)
        if not wrong:
            return structs.field(0), {}
        texts = np.full(len(lines), "", object)
        texts[fitting(len(lines), wrong).to_numpy()] = structs.field(0).to_numpy(zero_copy_only=False)
        return pa.array(texts, pa.string()), wrong

    def _structs(
        self, columns: Mapping[str, pa.Array], lines: pa.Array, numbers: npt.NDArray[np.int64], wrong: dict[int, str]
    ) -> Block:
        """Columns of texts in the types of the schema, which is made of the first rows where there is none."""
        if self.schema is None:
            kept = fitting(len(lines), wrong)
            known = {name: column.take(kept) for name, column in columns.items()} if wrong else columns
            name = self.config.value_name
            self.schema = inferred(known, name) if self.config.infers_types else of_strings(list(columns), name)
        structs, misfits = as_structs(columns, self.schema, self.config.times)
        every = {**misfits, **wrong}
        if extra := wrong.keys() - misfits.keys():
            # Rows without values may fit a schema of optional fields, and go all the same.
            order = fitting(len(lines), misfits).to_numpy()
            structs = structs.filter(pa.array(~np.isin(order, list(extra))))
        rows = numbers[fitting(len(lines), every).to_numpy()] if every else numbers
        return Block(structs, self.schema, rows, self._told(lines, numbers, every))


def shown(text: bytes) -> str:
    """The text of a row for people and dead letters."""
    return text[:_MOST_TEXT].decode(errors="replace")


def _has_returns(parts: pa.Array) -> bool:
    return bool(pc.any(pc.ends_with(parts, b"\r")).as_py())


class Lines(_Line):
    """Each line is a string."""

    def _block(self, lines: pa.Array, numbers: npt.NDArray[np.int64]) -> Block:
        texts, wrong = self._texts(lines)
        if wrong:
            kept = fitting(len(lines), wrong)
            return Block(texts.take(kept), _STRING, numbers[kept.to_numpy()], self._told(lines, numbers, wrong))
        return Block(texts, _STRING, numbers)


class Pattern(_Line):
    """Named groups of ``line.regex``, which has to be found in each line."""

    def _block(self, lines: pa.Array, numbers: npt.NDArray[np.int64]) -> Block:
        texts, wrong = self._texts(lines)
        structs = pc.extract_regex(texts, self.config.line_pattern)
        for row in pc.indices_nonzero(pc.is_null(structs)).to_pylist():
            wrong.setdefault(row, "line.regex is not found in it")
        names = [structs.type.field(at).name for at in range(structs.type.num_fields)]
        return self._structs({name: pc.struct_field(structs, name) for name in names}, lines, numbers, wrong)


class FixedWidth(_Line):
    """Characters at fixed positions, as ``fixed.fields`` says; spaces around values are removed."""

    def _block(self, lines: pa.Array, numbers: npt.NDArray[np.int64]) -> Block:
        texts, wrong = self._texts(lines)
        columns, start = {}, 0
        for name, width in self.config.fixed_widths:
            columns[name] = pc.utf8_trim(pc.utf8_slice_codeunits(texts, start, start + width), " ")
            start += width
        lengths = pc.utf8_length(texts)
        for row in pc.indices_nonzero(pc.greater(lengths, start)).to_pylist():
            wrong.setdefault(row, f"it has {lengths[row]} characters, and fixed.fields has {start}")
        return self._structs(columns, lines, numbers, wrong)


class JsonLines(_Line):
    """A JSON value in each line: texts without schema, or objects in the types of one."""

    def _block(self, lines: pa.Array, numbers: npt.NDArray[np.int64]) -> Block:
        wrong: dict[int, str] = {}
        values: list[Any] = []
        for row, line in enumerate(lines.to_pylist()):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                value, wrong[row] = None, f"it is not JSON: {error}"
            else:
                if self.config.typed and not isinstance(value, dict):
                    wrong[row] = f"it should be a JSON object, not {type(value).__name__}"
            values.append(value)
        kept = fitting(len(lines), wrong)
        if not self.config.typed:
            texts = lines.take(kept).cast(pa.string())
            return Block(texts, None, numbers[kept.to_numpy()], self._told(lines, numbers, wrong))
        good = [values[row] for row in kept.to_pylist()]
        if self.schema is None:
            if not good:
                return Block(pa.array([], pa.struct([])), None, numbers[:0], self._told(lines, numbers, wrong))
            self.schema = _schema_of(good, self.config.value_name)
        fitted, misfits = self._typed(good, self.schema)
        positions = kept.to_numpy()
        wrong |= {int(positions[row]): error for row, error in misfits.items()}
        rows = numbers[fitting(len(lines), wrong).to_numpy()]
        return Block(fitted, self.schema, rows, self._told(lines, numbers, wrong))

    def _typed(self, values: list[Any], schema: Schema) -> tuple[pa.StructArray, dict[int, str]]:
        wrong: dict[int, str] = {}
        arrays = []
        for member in schema.fields:
            cells = [value.get(member.name) for value in values]
            array, misfits = self._cells(cells, member.schema)
            for row, error in misfits.items():
                wrong.setdefault(row, f"{member.name}: {error}")
            if not member.schema.optional and array.null_count:
                for row in pc.indices_nonzero(pc.is_null(array)).to_pylist():
                    wrong.setdefault(row, f"{member.name} is missing, and the schema does not say that it may be")
            arrays.append(array)
        if wrong:
            arrays = [array.take(fitting(len(values), wrong)) for array in arrays]
        fields = [member.schema.arrow_field(member.name) for member in schema.fields]
        return pa.StructArray.from_arrays(arrays, fields=fields), wrong

    def _cells(self, cells: list[Any], schema: Schema) -> tuple[pa.Array, dict[int, str]]:
        if schema.name in _TEXTS or schema.type is SchemaType.BYTES:
            texts = [cell if cell is None or isinstance(cell, str) else json.dumps(cell) for cell in cells]
            optional = Schema.struct({"value": schema.as_optional()})
            structs, wrong = as_structs({"value": pa.array(texts, pa.string())}, optional, self.config.times)
            if not wrong:
                return structs.field(0), {}
            made: list[Any] = [None] * len(cells)
            for row, value in zip(fitting(len(cells), wrong).to_pylist(), structs.field(0).to_pylist(), strict=True):
                made[row] = value
            return pa.array(made, schema.arrow_type), {row: error.partition(": ")[2] for row, error in wrong.items()}
        return _array(cells, schema.arrow_type, 0)


def _array(cells: list[Any], arrow: pa.DataType, first: int) -> tuple[pa.Array, dict[int, str]]:
    try:
        return pa.array(cells, arrow), {}
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError):
        if len(cells) == 1:
            return pa.nulls(1, arrow), {first: f"{json.dumps(cells[0])[:60]} is no {arrow}"}
    middle = len(cells) // 2
    left, wrong = _array(cells[:middle], arrow, first)
    right, more = _array(cells[middle:], arrow, first + middle)
    return pa.concat_arrays([left, right]), {**wrong, **more}


def _schema_of(values: list[Any], name: str) -> Schema:
    try:
        arrow = pa.array(values).type
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"no schema fits the first rows ({error}): give value.schema") from error
    if not arrow.num_fields:
        raise DataError("the first rows have no fields: give value.schema")
    if _is_deeper(arrow, _MOST_DEPTH):
        raise DataError(f"the first rows are nested more than {_MOST_DEPTH} deep: give value.schema")
    return schema_from_arrow(arrow, name=name)


def _is_deeper(arrow: pa.DataType, levels: int) -> bool:
    if not arrow.num_fields:
        return False
    return levels == 0 or any(_is_deeper(arrow.field(at).type, levels - 1) for at in range(arrow.num_fields))
