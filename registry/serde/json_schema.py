"""JSON with a JSON Schema as Arrow columns.

An object with properties is a struct, every field nullable; an object of additional properties alone is a map; an integer
is 64 bits wide and a number a double, unless ``connect.type`` says otherwise. A choice of one type and null is that type.
Where a schema allows values of several types, or anything, the column has their JSON text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from registry.serde.arrow_types import UnsupportedSchema
from registry.serde.errors import CorruptRecord
from registry.serde.framing import HEADER_SIZE, unframe

if TYPE_CHECKING:
    from registry.formats.json_schema.schema import JsonSchema

__all__ = ["Form", "decode_json", "form_of", "json_type"]

_CONNECT: Final = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "float32": pa.float32(),
    "float64": pa.float64(),
}  # fmt: skip


@dataclass(frozen=True)
class Form:
    """A part of a schema: its Arrow type, the parts of that, and whether values are kept as their JSON text."""

    type: pa.DataType
    parts: tuple[Form, ...] = ()
    any: bool = False
    required: frozenset[str] = frozenset()
    """The members that an object must have, with a null where they have no value."""


_ANY: Final = Form(pa.string(), any=True)


def json_type(schema: JsonSchema) -> pa.DataType:
    """The Arrow type of a schema's values. Raises UnsupportedSchema for one that contains itself, and for a broken reference."""
    return form_of(schema).type


def decode_json(values: pa.Array, schema: JsonSchema, *, framed: bool = True) -> pa.Array:
    """JSON values as a column of the schema's type; null stays null. ``framed`` ones begin with a schema's id, of any schema.

    Properties that the schema lacks are left out, and those that a value lacks are null. Raises CorruptRecord with the row
    and the field of the first value that is not what the schema says.
    """
    form = form_of(schema)
    parsed: list[Any] = []
    for row, data in enumerate(values.to_pylist()):
        if data is None:
            parsed.append(None)
            continue
        try:
            if framed:
                unframe(data)
                data = data[HEADER_SIZE:]
            parsed.append(json.loads(data))
        except CorruptRecord as error:
            error.row = row
            raise
        except (ValueError, RecursionError) as error:
            raise CorruptRecord(f"not JSON: {error}", row=row) from error
    return _column(parsed, form, "")


def _column(values: list[Any], form: Form, path: str) -> pa.Array:
    """Raises CorruptRecord with the field."""
    type_ = form.type
    if form.any:
        return pa.array([None if v is None else json.dumps(v, ensure_ascii=False) for v in values], pa.string())
    if pa.types.is_struct(type_):
        objects = _all(dict, values, "an object", path)
        names = [type_.field(i).name for i in range(type_.num_fields)]
        columns = [
            _column([v.get(name) for v in objects], part, f"{path}.{name}" if path else name)
            for name, part in zip(names, form.parts, strict=True)
        ]
        missing = [v is None for v in values]
        mask = pa.array(missing) if any(missing) else None
        return pa.StructArray.from_arrays(columns, fields=list(type_), mask=mask)
    if pa.types.is_list(type_):
        lists = _all(list, values, "an array", path)
        items = _column(list(chain.from_iterable(lists)), form.parts[0], f"{path}[]")
        return pa.ListArray.from_arrays(_offsets(values, lists), items)
    if pa.types.is_map(type_):
        objects = _all(dict, values, "an object", path)
        keys = pa.array(list(chain.from_iterable(objects)), pa.string())
        items = _column([item for v in objects for item in v.values()], form.parts[0], f"{path}[]")
        return pa.MapArray.from_arrays(_offsets(values, objects), keys, items)
    try:
        if pa.types.is_binary(type_):
            return pa.array([None if v is None else base64.b64decode(v, validate=True) for v in values], type_)
        checked = _all(_PYTHON[str(type_)], values, str(type_), path, empty=None)
        if pa.types.is_integer(type_):
            checked = [_whole(value, type_, path) if isinstance(value, float) else value for value in checked]
        return pa.array(checked, type_)
    except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
        raise CorruptRecord(f"expected {type_}: {error}", path=path) from error


_PYTHON: Final[dict[str, Any]] = {
    "string": str,
    "bool": bool,
    "double": (int, float),
    "float": (int, float),
    **dict.fromkeys(("int8", "int16", "int32", "int64"), (int, float)),  # 1.0 is an integer to JSON Schema
}
_EMPTY: Final[Any] = object()


def _all(kind: Any, values: list[Any], word: str, path: str, *, empty: Any = _EMPTY) -> list[Any]:
    """The values, all of a kind; None becomes an empty one, or stays. Raises CorruptRecord."""
    substitute = kind() if empty is _EMPTY else empty
    checked = []
    for value in values:
        if value is None:
            checked.append(substitute)
        elif isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            checked.append(value)
        else:
            raise CorruptRecord(f"expected {word}, the value is {json.dumps(value, default=str)[:60]}", path=path)
    return checked


def _whole(value: float, type_: pa.DataType, path: str) -> int:
    if not value.is_integer():
        raise CorruptRecord(f"expected {type_}, the value is {value}", path=path)
    return int(value)


def _offsets(values: list[Any], lists: Iterable[Any]) -> pa.Array:
    """Where each list begins; a null there makes the list null."""
    ends = list(accumulate(map(len, lists), initial=0))
    return pa.array([None if v is None else end for v, end in zip(values, ends, strict=False)] + ends[-1:], pa.int32())


def form_of(schema: JsonSchema) -> Form:
    documents = {name: json.loads(text) for name, text in schema.references.items()}
    return _Walk(documents).form(schema.value, schema.value, ())


class _Walk:
    """Goes through a schema and the documents that it refers to."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self._documents = documents

    def form(self, part: Any, root: Any, within: tuple[str, ...]) -> Form:
        if not isinstance(part, Mapping):
            return _ANY
        if isinstance(reference := part.get("$ref"), str):
            if reference in within:
                raise UnsupportedSchema(f"the JSON Schema {reference} contains itself, which columns cannot")
            return self.form(*self._target(reference, root), (*within, reference))
        for word in ("oneOf", "anyOf"):
            if isinstance(part.get(word), list) and part[word]:
                return self._choice(part[word], root, within)
        if isinstance(part.get("allOf"), list) and part["allOf"]:
            return self._together(part, root, within)
        if isinstance(part.get("type"), list):
            return self._choice([{**part, "type": kind} for kind in part["type"]], root, within)
        return self._plain(part, root, within)

    def _plain(self, part: Mapping[str, Any], root: Any, within: tuple[str, ...]) -> Form:
        kind, connect = part.get("type"), part.get("connect.type")
        if kind in ("integer", "number"):
            usual = pa.int64() if kind == "integer" else pa.float64()
            return Form(_CONNECT.get(connect, usual) if isinstance(connect, str) else usual)
        if kind == "boolean":
            return Form(pa.bool_())
        if kind == "string":
            return Form(pa.binary() if connect == "bytes" else pa.string())
        if kind is None and isinstance(part.get("enum"), list):
            return Form(pa.string()) if all(isinstance(v, str | None) for v in part["enum"]) else _ANY
        if kind == "array" and isinstance(part.get("items"), Mapping):
            item = self.form(part["items"], root, within)
            return Form(pa.list_(pa.field("item", item.type)), (item,))
        properties = part.get("properties")
        if isinstance(properties, Mapping) and properties:
            parts = {name: self.form(value, root, within) for name, value in properties.items()}
            type_ = pa.struct([pa.field(n, form.type) for n, form in parts.items()])
            return Form(type_, tuple(parts.values()), required=frozenset(part.get("required") or ()))
        if kind == "object" and isinstance(part.get("additionalProperties"), Mapping):
            item = self.form(part["additionalProperties"], root, within)
            return Form(pa.map_(pa.string(), pa.field("value", item.type)), (item,))
        return _ANY

    def _choice(self, options: list[Any], root: Any, within: tuple[str, ...]) -> Form:
        others = [o for o in options if not (isinstance(o, Mapping) and o.get("type") == "null")]
        forms = [self.form(option, root, within) for option in others]
        return forms[0] if forms and all(form == forms[0] for form in forms) else _ANY

    def _together(self, part: Mapping[str, Any], root: Any, within: tuple[str, ...]) -> Form:
        """An object of all properties; else the form that all parts have."""
        parts = [{name: value for name, value in part.items() if name != "allOf"}, *part["allOf"]]
        forms = [self.form(piece, root, within) for piece in parts]
        structs = [form for form in forms if pa.types.is_struct(form.type)]
        if structs:
            members = {f.type.field(i).name: form for f in structs for i, form in enumerate(f.parts)}
            required = frozenset(chain.from_iterable(piece.get("required") or () for piece in parts)) | frozenset(
                chain.from_iterable(form.required for form in structs)
            )
            type_ = pa.struct([pa.field(n, f.type) for n, f in members.items()])
            return Form(type_, tuple(members.values()), required=required)
        typed = [form for form in forms if form != _ANY]
        return typed[0] if typed and all(form == typed[0] for form in typed) else _ANY

    def _target(self, reference: str, root: Any) -> tuple[Any, Any]:
        """The part that a reference names, and the document that has it."""
        document, _, pointer = reference.partition("#")
        if document:
            if document not in self._documents:
                raise UnsupportedSchema(f"the JSON Schema refers to {document!r}, which is not among its references")
            root = self._documents[document]
        target = root
        for step in filter(None, pointer.split("/")):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or name not in target:
                raise UnsupportedSchema(f"the JSON Schema refers to {reference!r}, which does not exist")
            target = target[name]
        return target, root
