"""XML: each element of a name is a row. A file is parsed piece by piece, and only one row of it is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from xml.etree.ElementTree import Element, ParseError

import numpy as np
import orjson
import pyarrow as pa

from connect.api import DataError, Schema, SchemaType, schema_from_arrow
from connectors.folders.formats import BadRow, Block, Opens
from connectors.folders.formats.lines import JsonLines, shown
from connectors.folders.schemas import inferred
from connectors.folders.texts import fitting

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["XmlRows"]

_ROWS: Final = 2_000
_TEXT: Final = "value"
"""The field with the text of an element that has attributes or elements too, as FilePulse calls it."""
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_DEPTH: Final = 100


class XmlRows(JsonLines):
    """Attributes and elements are fields, repeated ones lists; an element with text alone is that text, an empty one null.

    Names have no namespace. Entities that a file defines are refused, as they can make gigabytes of a few bytes or read files.
    """

    def read(self, opens: Opens) -> Iterator[Block]:
        with opens() as file:
            rows: list[Any] = []
            first = 0
            for element in _records(file, self.config.xml_element):
                rows.append(_value(element))
                if len(rows) == _ROWS:
                    yield self._made(rows, first)
                    first, rows = first + len(rows), []
            if rows:
                yield self._made(rows, first)

    def _made(self, values: list[Any], first: int) -> Block:
        numbers = np.arange(first, first + len(values))
        if not self.config.typed:
            texts = [orjson.dumps(value).decode() for value in values]
            return Block(pa.array(texts, pa.string()), None, numbers)
        wrong = {
            row: "it has neither attributes nor elements, so it has no fields"
            for row, value in enumerate(values)
            if not isinstance(value, dict)
        }
        kept = fitting(len(values), wrong).to_numpy()
        good = [values[row] for row in kept]
        if self.schema is None:
            if not good:
                return Block(pa.array([], pa.struct([])), None, numbers[:0], _bad(values, numbers, wrong))
            self.schema = self._schema_of(good)
        fitted, misfits = self._typed([_as_json(value, self.schema) for value in good], self.schema)
        wrong |= {int(kept[row]): error for row, error in misfits.items()}
        return Block(fitted, self.schema, numbers[fitting(len(values), wrong).to_numpy()], _bad(values, numbers, wrong))

    def _schema_of(self, values: list[Any]) -> Schema:
        """Texts get the narrowest type that fits; what is a list in one row is one in all."""
        names = dict.fromkeys(name for value in values for name in value)
        columns: dict[str, Schema] = {}
        for name in names:
            cells = [value.get(name) for value in values]
            if any(isinstance(cell, list) for cell in cells):
                cells = [cell if cell is None or isinstance(cell, list) else [cell] for cell in cells]
            elif self.config.infers_types and all(cell is None or isinstance(cell, str) for cell in cells):
                columns[name] = inferred({name: pa.array(cells, pa.string())}, "").fields[0].schema
                continue
            try:
                arrow = pa.array(cells).type
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise DataError(f"no schema fits {name} in the first rows ({error}): give value.schema") from error
            columns[name] = schema_from_arrow(pa.string() if pa.types.is_null(arrow) else arrow, optional=True)
        return Schema.struct(columns, name=self.config.value_name)


def _bad(values: list[Any], numbers: npt.NDArray[np.int64], wrong: dict[int, str]) -> list[BadRow]:
    return [BadRow(int(numbers[row]), None, shown(orjson.dumps(values[row])), wrong[row]) for row in sorted(wrong)]


class _Counted:
    """A file that tells how much was read of it, and ends with a DataError where a row goes on for too long."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = self.mark = 0

    def read(self, size: int = -1) -> bytes:
        if self.count - self.mark > _MOST_BYTES:
            raise DataError(f"an element has more than {_MOST_BYTES // 1024 // 1024} MiB")
        data = self._file.read(size)
        self.count += len(data)
        return data


def _records(file: BinaryIO, name: str) -> Iterator[Element]:
    """The elements with this name that are not within one another; without a name those below the root."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    source = _Counted(file)
    above: list[Element] = []
    begun = 0
    """At which depth the record begins; 0 outside of one."""
    try:
        for event, element in iterparse(source, events=("start", "end")):
            if event == "start":
                above.append(element)
                if len(above) > _MOST_DEPTH:
                    raise DataError(f"its elements are nested more than {_MOST_DEPTH} deep")
                if not begun and (_local(element.tag) == name if name else len(above) == 2):
                    begun = len(above)
                continue
            if len(above) == begun:
                yield element
                begun = 0
            above.pop()
            if not begun:
                source.mark = source.count
                if above:
                    above[-1].remove(element)
                    above[-1].text = None
    except DefusedXmlException as error:
        raise DataError(f"it defines entities or loads from elsewhere, which is refused: {error}") from error
    except (ParseError, ValueError, LookupError) as error:
        raise DataError(f"it is not XML: {error}") from error


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _value(element: Element) -> Any:
    fields: dict[str, Any] = {}
    for name, text in element.attrib.items():
        _add(fields, _local(name), text)
    for child in element:
        _add(fields, _local(child.tag), _value(child))
    text = (element.text or "").strip()
    if not fields:
        return text or None
    if text:
        _add(fields, _TEXT, text)
    return fields


def _add(fields: dict[str, Any], name: str, value: Any) -> None:
    if name not in fields:
        fields[name] = value
    elif isinstance(fields[name], list):
        fields[name].append(value)
    else:
        fields[name] = [fields[name], value]


def _as_json(value: Any, schema: Schema) -> Any:
    """A value as JSON has it for this schema; what does not fit stays as it is, and is told later."""
    if value is None:
        return [] if schema.type is SchemaType.ARRAY and not schema.optional else None
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return [_as_json(item, schema.value_schema) for item in (value if isinstance(value, list) else [value])]
    if schema.type is SchemaType.STRUCT:
        fields = value if isinstance(value, dict) else {_TEXT: value}
        return {member.name: _as_json(fields.get(member.name), member.schema) for member in schema.fields}
    if schema.name is not None or not isinstance(value, str):
        return value
    try:
        if schema.type is SchemaType.BOOLEAN:
            return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower(), value)
        if schema.type in (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64):
            return int(value)
        return float(value) if schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64) else value
    except ValueError:
        return value
