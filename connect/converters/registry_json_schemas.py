"""Converts Connect schemas to JSON Schemas and back, like Confluent's JsonSchemaConverter.

Properties express what JSON Schema can't: ``connect.type``, ``connect.version``, ``connect.parameters`` and
``connect.index`` (the position of a field). Schemas are plain JSON values here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from connect.data.errors import DataError
from connect.data.json_text import GENERALIZED_UNION, ONE_OF, is_choice, text_of
from connect.data.json_values import reader_of
from connect.data.schema import DECIMAL, Field, Schema, SchemaType

__all__ = ["JsonSchemaStyle", "connect_from_json_schema", "connect_to_json_schema"]

NAMESPACE: Final = "io.confluent.connect.json"
ENUM: Final = f"{NAMESPACE}.Enum"
GENERALIZED_ENUM: Final = "org.apache.kafka.connect.data.Enum"
_NULL: Final = "<NULL>"
_INTEGERS: Final = (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64)
_FLOATS: Final = (SchemaType.FLOAT32, SchemaType.FLOAT64)
_NUMBERS: Final = {kind.value: kind for kind in (*_INTEGERS, *_FLOATS, SchemaType.BYTES)}


class JsonSchemaStyle(NamedTuple):
    """The keys of JsonSchemaConverter that shape schemas."""

    numeric: bool = False
    """``decimal.format=NUMERIC``: decimals are numbers."""
    additional: bool = True
    """``object.additional.properties``: objects may have additional properties."""
    optional_for_nonrequired: bool = False
    """``use.optional.for.nonrequired``."""
    generalized: bool = False
    """``generalized.sum.type.support``."""
    flatten_singletons: bool = True
    """``flatten.singleton.unions``."""


def connect_to_json_schema(schema: Schema, style: JsonSchemaStyle) -> dict[str, Any]:
    """The JSON Schema of a Connect schema."""
    return _Writer(style).schema(schema, None)


class _Writer:
    def __init__(self, style: JsonSchemaStyle) -> None:
        self._style = style

    def schema(self, schema: Schema, index: int | None, *, required: bool = False) -> dict[str, Any]:
        """``index`` is the position of a field; ``required`` omits that the schema is optional."""
        extra = {} if index is None else {"connect.index": index}
        if is_choice(schema):
            options = [{"type": "null"}] if schema.optional else []
            for number, member in enumerate(schema.fields):
                options.append(self.schema(member.schema.as_optional(False), number, required=True))
            return {"oneOf": options} | extra
        if schema.optional and not required:
            inner = schema.as_optional(False) if schema.type is SchemaType.STRUCT else schema
            return {"oneOf": [{"type": "null"}, self.schema(inner, None, required=True)]} | extra
        form: dict[str, Any] = {}
        if schema.name is not None:
            form["title"] = schema.name
        if schema.doc is not None:
            form["description"] = schema.doc
        if schema.default is not None:
            form["default"] = json.loads(text_of(schema, schema.default, numeric_decimals=self._style.numeric))
        form |= self._type(schema)
        if schema.version is not None:
            form["connect.version"] = schema.version
        if parameters := {n: v for n, v in schema.parameters.items() if not n.startswith(NAMESPACE)}:
            form["connect.parameters"] = parameters
        return form | extra

    def _type(self, schema: Schema) -> dict[str, Any]:
        kind = schema.type
        if kind in _INTEGERS:
            return {"type": "integer", "connect.type": kind.value}
        if kind in _FLOATS:
            return {"type": "number", "connect.type": kind.value}
        if kind is SchemaType.BOOLEAN:
            return {"type": "boolean"}
        if kind is SchemaType.STRING:
            return self._text(schema)
        if kind is SchemaType.BYTES:
            number = schema.name == DECIMAL and self._style.numeric
            return {"type": "number" if number else "string", "connect.type": "bytes"}
        if kind is SchemaType.STRUCT:
            properties = {m.name: self.schema(m.schema, index) for index, m in enumerate(schema.fields)}
            form: dict[str, Any] = {"type": "object"}
            if properties:
                form["properties"] = properties
            return form if self._style.additional else form | {"additionalProperties": False}
        assert schema.value_schema is not None
        if kind is SchemaType.ARRAY:
            return {"type": "array", "items": self.schema(schema.value_schema, None)}
        assert schema.key_schema is not None
        if schema.key_schema.type is SchemaType.STRING and not schema.key_schema.optional:
            values = self.schema(schema.value_schema, None)
            return {"type": "object", "additionalProperties": values, "connect.type": "map"}
        entry = {"key": self.schema(schema.key_schema, 0), "value": self.schema(schema.value_schema, 1)}
        return {"type": "array", "items": {"type": "object", "properties": entry}, "connect.type": "map"}

    def _text(self, schema: Schema) -> dict[str, Any]:
        for name in (GENERALIZED_ENUM, ENUM):
            prefix = f"{name}."
            symbols = [prefixed.removeprefix(prefix) for prefixed in schema.parameters if prefixed.startswith(prefix)]
            if name in schema.parameters and symbols:
                return {"enum": [None if symbol == _NULL else symbol for symbol in symbols]}
        return {"type": "string"}


def connect_from_json_schema(value: Any, style: JsonSchemaStyle, references: Mapping[str, str] | None = None) -> Schema:
    """The Connect schema of a JSON Schema.

    Raises DataError for schemas without a column form: arbitrary values, recursion.
    """
    return _Reader(value, style, references or {}).schema(value, optional=False)


class _Reader:
    def __init__(self, root: Any, style: JsonSchemaStyle, references: Mapping[str, str]) -> None:
        self._root, self._style, self._references = root, style, references
        self._unions = 0
        self._open: list[str] = []

    def schema(self, form: Any, *, optional: bool) -> Schema:
        if not isinstance(form, Mapping):
            raise DataError(f"a JSON Schema that allows anything ({form!r}) has no columns")
        if isinstance(form.get("$ref"), str):
            return self._reference(form["$ref"], optional)
        options = form.get("oneOf") or form.get("anyOf")
        if isinstance(options, list) and options:
            return self._choice(form, options, optional)
        if isinstance(form.get("allOf"), list) and form["allOf"]:
            return self._all(form, form["allOf"], optional)
        if isinstance(form.get("type"), list):
            kinds = form["type"]
            return self._choice(form, [{**form, "type": kind} for kind in kinds], optional)
        return self._described(form, self._bare(form), optional)

    def _described(self, form: Mapping[str, Any], bare: Schema, optional: bool) -> Schema:
        changes: dict[str, Any] = {"optional": optional or bare.optional}
        if isinstance(form.get("title"), str) and bare.name is None:
            changes["name"] = form["title"]
        if isinstance(form.get("connect.version"), int):
            changes["version"] = form["connect.version"]
        if isinstance(form.get("description"), str):
            changes["doc"] = form["description"]
        parameters = form.get("connect.parameters")
        if isinstance(parameters, Mapping):
            changes["parameters"] = {**bare.parameters, **{str(n): str(v) for n, v in parameters.items()}}
        schema = dataclasses.replace(bare, **changes)
        if form.get("default") is None or is_choice(schema):
            return schema
        try:
            default = reader_of(schema, entries=True)(_plain(form["default"]))
        except (ValueError, TypeError, ArithmeticError) as error:
            raise DataError(
                f"the default of {form.get('title') or 'a JSON Schema'} does not fit it: {error}"
            ) from error
        return dataclasses.replace(schema, default=default)

    def _bare(self, form: Mapping[str, Any]) -> Schema:
        kind, connect_type = form.get("type"), form.get("connect.type")
        symbols = [form["const"]] if "const" in form else form.get("enum")
        if isinstance(symbols, list) and kind in (None, "string"):
            return self._enum(symbols)
        if kind in ("integer", "number"):
            usual = SchemaType.INT64 if kind == "integer" else SchemaType.FLOAT64
            return Schema(_NUMBERS.get(connect_type, usual) if isinstance(connect_type, str) else usual)
        if kind == "string":
            return Schema(SchemaType.BYTES if connect_type == "bytes" else SchemaType.STRING)
        if kind == "boolean":
            return Schema(SchemaType.BOOLEAN)
        if kind == "array":
            return self._array(form, connect_type)
        if kind == "object" or "properties" in form:
            if connect_type == "map" and isinstance(form.get("additionalProperties"), Mapping):
                return Schema.map(Schema(SchemaType.STRING), self.schema(form["additionalProperties"], optional=False))
            return Schema.struct(self._fields(form))
        raise DataError(f"JSON Schema {json.dumps(form, default=str)[:80]} says no type: it has no columns")

    def _enum(self, symbols: list[Any]) -> Schema:
        name = GENERALIZED_ENUM if self._style.generalized else ENUM
        parameters = {name: ""}
        for index, symbol in enumerate(symbols):
            text = _NULL if symbol is None else str(symbol)
            parameters[f"{name}.{text}"] = str(index) if self._style.generalized else text
        return Schema(SchemaType.STRING, parameters=parameters)

    def _array(self, form: Mapping[str, Any], connect_type: Any) -> Schema:
        items = form.get("items")
        if not isinstance(items, Mapping):
            raise DataError("Array schema did not specify the items type")
        if connect_type == "map" and isinstance(items.get("properties"), Mapping):
            key, value = items["properties"].get("key"), items["properties"].get("value")
            return Schema.map(self.schema(key, optional=False), self.schema(value, optional=False))
        return Schema.array(self.schema(items, optional=False))

    def _fields(self, form: Mapping[str, Any]) -> list[Field]:
        """The fields in the order of ``connect.index``, if present.

        A field that is not required is optional, unless Connect wrote the schema, which never marks fields as required.
        """
        properties = form.get("properties") or {}
        required = form.get("required") or []
        indexes = {n: p.get("connect.index") if isinstance(p, Mapping) else None for n, p in properties.items()}
        ordered = sorted(properties, key=lambda name: _index_or(indexes[name], len(indexes)))
        fields = []
        for name in ordered:
            foreign = not isinstance(indexes[name], int) or self._style.optional_for_nonrequired
            fields.append(Field(name, self.schema(properties[name], optional=foreign and name not in required)))
        return fields

    def _choice(self, form: Mapping[str, Any], options: list[Any], optional: bool) -> Schema:
        others = [option for option in options if not (isinstance(option, Mapping) and option.get("type") == "null")]
        null = len(others) < len(options)
        if len(others) == 1 and (null or self._style.flatten_singletons):
            return self.schema(others[0], optional=optional or null)
        name, prefix, parameters = ONE_OF, f"{ONE_OF}.field.", {}
        if self._style.generalized:
            name, prefix = f"connect_union_{self._unions}", "connect_union_field_"
            parameters = {GENERALIZED_UNION: name}
            self._unions += 1
        fields = [Field(f"{prefix}{index}", self.schema(option, optional=True)) for index, option in enumerate(others)]
        made = Schema.struct(fields, name=name, optional=null, parameters=parameters)
        return self._described({n: v for n, v in form.items() if n != "default"}, made, optional)

    def _all(self, form: Mapping[str, Any], parts: list[Any], optional: bool) -> Schema:
        """One object of all properties, or the part that has a type."""
        merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for part in [form, *parts]:
            resolved = self._followed(part)
            merged["properties"] |= resolved.get("properties") or {}
            merged["required"] += resolved.get("required") or []
        if merged["properties"]:
            shown = {name: form[name] for name in ("title", "description") if name in form}
            return self._described({**merged, **shown}, self._bare(merged), optional)
        typed = next(
            (part for part in parts if isinstance(part, Mapping) and {"type", "$ref", "enum"} & set(part)), None
        )
        if typed is None:
            raise DataError("an allOf without a type has no columns")
        return self.schema(typed, optional=optional)

    def _followed(self, form: Any) -> Mapping[str, Any]:
        if isinstance(form, Mapping) and isinstance(form.get("$ref"), str):
            return self._target(form["$ref"])[0]
        return form if isinstance(form, Mapping) else {}

    def _reference(self, name: str, optional: bool) -> Schema:
        if name in self._open or len(self._open) > 50:
            raise DataError(f"JSON Schema {name} contains itself; columns cannot hold recursive schemas")
        target, root = self._target(name)
        self._open.append(name)
        outer, self._root = self._root, root
        try:
            return self.schema(target, optional=optional)
        finally:
            self._root = outer
            self._open.pop()

    def _target(self, name: str) -> tuple[Mapping[str, Any], Any]:
        """The target of a reference, and its document."""
        document, _, pointer = name.partition("#")
        root = self._root
        if document:
            if document not in self._references:
                raise DataError(f"JSON Schema refers to {document!r}, which is not among its references")
            root = json.loads(self._references[document], parse_float=Decimal)
        target = root
        for step in pointer.strip("/").split("/") if pointer.strip("/") else ():
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or step not in target:
                raise DataError(f"JSON Schema refers to {name!r}, which is not there")
            target = target[step]
        if not isinstance(target, Mapping):
            raise DataError(f"JSON Schema refers to {name!r}, which is no schema")
        return target, root


def _plain(value: Any) -> Any:
    """JSON with floats instead of decimals."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _index_or(index: Any, otherwise: int) -> int:
    return index if isinstance(index, int) else otherwise
