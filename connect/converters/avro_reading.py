"""Converts an Avro schema to a Connect schema, like Confluent's AvroConverter."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from connect.converters.avro_defaults import default_from_avro
from connect.converters.avro_style import (
    AVRO_PREFIX,
    DEFAULT_FLAG,
    DEFAULT_NAME,
    DEFAULT_PRECISION,
    ENUM_DEFAULT,
    ENUM_DOC,
    FIELD_DOC,
    FIXED_SIZE,
    GENERALIZED_UNION,
    NAMESPACE,
    PLAIN_ENUM_DOC,
    PLAIN_RECORD_DOC,
    RECORD_DOC,
    UNION,
    AvroStyle,
)
from connect.data.errors import DataError
from connect.data.schema import DATE, DECIMAL, PRECISION, TIME, TIMESTAMP, Field, Schema, SchemaType

__all__ = ["schema_from_avro"]

_PLAIN: Final = {
    "int": SchemaType.INT32,
    "long": SchemaType.INT64,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "boolean": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
    "bytes": SchemaType.BYTES,
}
_LOGICAL: Final = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("bytes", "decimal"): DECIMAL,
    ("fixed", "decimal"): DECIMAL,
}
_NULLS: Final[tuple[Any, ...]] = ("null", {"type": "null"})


def schema_from_avro(form: Any, style: AvroStyle = AvroStyle()) -> Schema:  # noqa: B008 - it is a tuple
    """The Connect schema.

    Raises DataError for schemas that Connect's model, or a column, can't represent (recursion).
    """
    return _Reader(style).schema(form, "")


class _Reader:
    """Tracks named types; a name that is still being read is a recursion."""

    def __init__(self, style: AvroStyle) -> None:
        self._style = style
        self._named: dict[str, Schema | None] = {}
        self._unions = 0

    def schema(self, form: Any, namespace: str) -> Schema:
        if isinstance(form, list):
            return self._union(form, namespace)
        if isinstance(form, str):
            if form in _PLAIN:
                return Schema(_PLAIN[form])
            return self._reference(form, namespace)
        if not isinstance(form, Mapping) or "type" not in form:
            raise DataError(f"not an Avro schema: {str(form)[:80]}")
        kind = form["type"]
        if isinstance(kind, list | Mapping):
            return self.schema(kind, namespace)
        made = self._annotated(form, self._bare(form, kind, namespace))
        if "name" in form:
            self._named[_full_name(form, namespace)] = made
        return made

    def _bare(self, form: Mapping[str, Any], kind: str, namespace: str) -> Schema:
        if kind == "record":
            return self._record(form, namespace)
        if kind == "array":
            return self._array(form, namespace)
        if kind == "map":
            return Schema.map(Schema(SchemaType.STRING), self.schema(form["values"], namespace))
        if kind == "enum":
            return self._enum(form, namespace)
        if kind == "fixed":
            name = _full_name(form, namespace)
            return Schema(SchemaType.BYTES, name=name, parameters={FIXED_SIZE: str(form["size"])})
        if kind in _PLAIN:
            small = form.get("connect.type")
            return Schema(SchemaType(small) if small in ("int8", "int16") else _PLAIN[kind])
        return self._reference(kind, namespace)

    def _annotated(self, form: Mapping[str, Any], bare: Schema) -> Schema:
        logical = _LOGICAL.get((form["type"], form.get("logicalType", "")))
        changes: dict[str, Any] = {}
        parameters = dict(bare.parameters)
        if logical == DECIMAL and form.get("connect.name") in (None, DECIMAL):
            if form["type"] == "fixed":
                parameters = {}
            parameters["scale"] = str(form.get("scale", 0))
            if form.get("precision", DEFAULT_PRECISION) != DEFAULT_PRECISION:
                parameters[PRECISION] = str(form["precision"])
        if logical is not None:
            changes |= {"name": logical, "version": 1}
        if self._style.meta:
            parameters |= _texts(form.get("connect.parameters"))
        parameters |= {name: str(value) for name, value in form.items() if name.startswith(AVRO_PREFIX)}
        if isinstance(form.get("connect.name"), str) and not form["connect.name"].startswith(_NAMELESS):
            changes["name"] = form["connect.name"]
        if isinstance(form.get("connect.version"), int):
            changes["version"] = form["connect.version"]
        if self._style.meta or self._style.discard:
            changes["doc"] = (form.get("doc") if self._style.discard else None) or form.get("connect.doc") or bare.doc
        schema = dataclasses.replace(bare, parameters=parameters, **changes)
        if form.get("connect.default") is not None:
            schema = dataclasses.replace(schema, default=default_from_avro(schema, form["connect.default"]))
        return schema

    def _record(self, form: Mapping[str, Any], namespace: str) -> Schema:
        name = _full_name(form, namespace)
        inner = name.rpartition(".")[0]
        self._named[name] = None
        parameters: dict[str, str] = {}
        keeps_docs = self._style.meta and not self._style.discard
        if self._style.meta and form.get("doc") is not None:
            parameters[PLAIN_RECORD_DOC if self._style.discard else RECORD_DOC] = str(form["doc"])
        fields = []
        for member in form["fields"]:
            if keeps_docs and member.get("doc") is not None:
                parameters[f"{FIELD_DOC}{member['name']}"] = str(member["doc"])
            fields.append(Field(member["name"], self._field_schema(member, inner)))
        return Schema.struct(fields, name=None if name.startswith(_NAMELESS) else name, parameters=parameters)

    def _field_schema(self, member: Mapping[str, Any], namespace: str) -> Schema:
        """Includes the field's default, unless its type is a union, whose default is Connect's own."""
        schema = self.schema(member["type"], namespace)
        if self._style.discard and member.get("doc") is not None:
            schema = dataclasses.replace(schema, doc=member["doc"])
        if member.get("default") is not None and not isinstance(member["type"], list):
            flagged = self._style.meta and not self._style.discard and schema.default is None
            parameters = {**schema.parameters, DEFAULT_FLAG: "true"} if flagged else schema.parameters
            default = default_from_avro(schema, member["default"])
            schema = dataclasses.replace(schema, default=default, parameters=parameters)
        if self._style.meta and isinstance(member.get("connect.parameters"), Mapping):
            more = _texts(member["connect.parameters"])
            schema = dataclasses.replace(schema, parameters={**schema.parameters, **more})
        return schema

    def _enum(self, form: Mapping[str, Any], namespace: str) -> Schema:
        name, parameter = _full_name(form, namespace), self._style.enum
        simple = name.rpartition(".")[2]
        parameters: dict[str, str] = {}
        if self._style.meta and form.get("doc") is not None:
            parameters[PLAIN_ENUM_DOC if self._style.discard else f"{ENUM_DOC}{simple}"] = str(form["doc"])
        if self._style.meta and not self._style.discard and form.get("default") is not None:
            parameters[f"{ENUM_DEFAULT}{simple}"] = str(form["default"])
        parameters[parameter] = name
        for index, symbol in enumerate(form["symbols"]):
            parameters[f"{parameter}.{symbol}"] = str(index) if self._style.generalized else str(symbol)
        return Schema(SchemaType.STRING, name=name, parameters=parameters)

    def _array(self, form: Mapping[str, Any], namespace: str) -> Schema:
        items = form["items"]
        if isinstance(items, Mapping) and _is_map_entry(items, namespace):
            key, value = (self.schema(member["type"], namespace) for member in items["fields"])
            return Schema.map(key, value)
        return Schema.array(self.schema(items, namespace))

    def _union(self, branches: list[Any], namespace: str) -> Schema:
        others = [branch for branch in branches if branch not in _NULLS]
        optional = len(others) < len(branches)
        if len(others) == 1 and (optional or self._style.flatten_singletons):
            return self.schema(others[0], namespace).as_optional(optional)
        name, parameters = UNION, {}
        if self._style.generalized:
            name = f"connect_union_{self._unions}"
            parameters = {GENERALIZED_UNION: name}
            self._unions += 1
        fields = []
        for index, branch in enumerate(branches):
            if branch in _NULLS:
                continue
            schema = self.schema(branch, namespace)
            fields.append(Field(self._branch_name(branch, schema, index), schema.as_optional()))
        if len({member.name for member in fields}) < len(fields):
            raise DataError("Multiple union schemas map to the Connect union field name")
        return Schema.struct(fields, name=name, optional=optional, parameters=parameters)

    def _branch_name(self, branch: Any, schema: Schema, index: int) -> str:
        """Confluent's names for members of a union: the type, or a named type's name."""
        if self._style.generalized:
            return f"connect_union_field_{index}"
        named = isinstance(branch, Mapping) and "name" in branch
        if named or (isinstance(branch, str) and branch not in _PLAIN):
            full = schema.name or (_full_name(branch, "") if named else str(branch))
            return full if self._style.enhanced else full.rpartition(".")[2]
        kind = branch.get("type") if isinstance(branch, Mapping) else branch
        return str(kind)

    def _reference(self, name: str, namespace: str) -> Schema:
        for full in (name, f"{namespace}.{name}"):
            if full in self._named:
                schema = self._named[full]
                if schema is None:
                    raise DataError(f"Avro record {full} contains itself; columns cannot hold recursive schemas")
                return schema
        raise DataError(f"Avro type {name!r} is not defined")


_NAMELESS: Final = f"{NAMESPACE}.{DEFAULT_NAME}"


def _is_map_entry(form: Mapping[str, Any], namespace: str) -> bool:
    if form.get("type") != "record":
        return False
    marked = form.get("connect.internal.type") == "MapEntry"
    return marked or _full_name(form, namespace) == f"{NAMESPACE}.MapEntry"


def _full_name(form: Mapping[str, Any], namespace: str) -> str:
    name = str(form["name"])
    if "." in name:
        return name
    within = form.get("namespace", namespace)
    return f"{within}.{name}" if within else name


def _texts(parameters: Any) -> dict[str, str]:
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise DataError(f"Expected JSON object for schema parameters but found: {parameters}")
    for value in parameters.values():
        if not isinstance(value, str):
            raise DataError(f"Expected schema parameter values to be strings but found: {value}")
    return dict(parameters)
