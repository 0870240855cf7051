"""Connect schemas in Avro and back, without loss, as Confluent's AvroConverter writes them.

What Avro cannot say stands in properties: ``connect.name``, ``connect.version``, ``connect.doc``, ``connect.default``,
``connect.parameters`` and ``connect.type`` (of small integers). Schemas are plain JSON values here.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final

from connect.api.errors import DataError
from connect.api.schema import DATE, DECIMAL, PRECISION, TIME, TIMESTAMP, Field, Schema, SchemaType
from connect.converters.avro_defaults import default_from_avro, default_to_avro

__all__ = ["ENUM", "FIXED_SIZE", "schema_from_avro", "schema_to_avro"]

NAMESPACE: Final = "io.confluent.connect.avro"
ENUM: Final = f"{NAMESPACE}.Enum"
"""The parameter with an enum's name; one more for each symbol. Confluent's."""
FIXED_SIZE: Final = "connect.fixed.size"
UNION: Final = f"{NAMESPACE}.Union"
_DEFAULT_PRECISION: Final = 64
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_PLAIN: Final = {
    SchemaType.INT8: "int",
    SchemaType.INT16: "int",
    SchemaType.INT32: "int",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}
_LOGICAL: Final = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis", DECIMAL: "decimal"}


def schema_to_avro(schema: Schema, *, enums: bool = False) -> Any:
    """The Avro form. ``enums`` writes strings that came from an Avro enum as that enum again.

    Raises DataError for names that Avro does not allow.
    """
    return _Writer(enums).schema(schema)


class _Writer:
    """Numbers nameless records and defines each named one once."""

    def __init__(self, enums: bool) -> None:
        self._enums, self._nameless = enums, 0
        self._defined: dict[str, Schema] = {}

    def schema(self, schema: Schema) -> Any:
        if schema.name == UNION and schema.type is SchemaType.STRUCT:
            branches = [self._base(member.schema.as_optional(False)) for member in schema.fields]
            return ["null", *branches] if schema.optional else branches
        base = self._base(schema)
        if not schema.optional:
            return base
        return [base, "null"] if schema.default is not None else ["null", base]

    def _base(self, schema: Schema) -> Any:
        """Without the union that makes it optional."""
        if schema.type is SchemaType.STRUCT:
            return self._record(schema)
        form: dict[str, Any]
        if schema.type is SchemaType.ARRAY:
            assert schema.value_schema is not None
            form = {"type": "array", "items": self.schema(schema.value_schema)}
        elif schema.type is SchemaType.MAP:
            form = self._map(schema)
        elif self._enums and schema.type is SchemaType.STRING and ENUM in schema.parameters:
            form = self._enum(schema)
        elif schema.type is SchemaType.BYTES and FIXED_SIZE in schema.parameters and schema.name:
            form = {"type": "fixed", **_named(schema.name), "size": int(schema.parameters[FIXED_SIZE])}
        else:
            form = {"type": _PLAIN[schema.type]}
            if schema.type in (SchemaType.INT8, SchemaType.INT16):
                form["connect.type"] = schema.type.value
        form |= self._properties(schema)
        return form["type"] if len(form) == 1 else form

    def _properties(self, schema: Schema) -> dict[str, Any]:
        """What is Connect's own about a schema, and Avro's logical type."""
        form: dict[str, Any] = {}
        if schema.name == DECIMAL:
            form |= {"scale": schema.scale, "precision": int(schema.parameters.get(PRECISION, _DEFAULT_PRECISION))}
        if schema.doc is not None:
            form["connect.doc"] = schema.doc
        if schema.version is not None:
            form["connect.version"] = schema.version
        if schema.parameters:
            form["connect.parameters"] = dict(schema.parameters)
        if schema.default is not None:
            form["connect.default"] = default_to_avro(schema, schema.default)
        if schema.name is not None:
            form["connect.name"] = schema.name
        if schema.name in _LOGICAL:
            form["logicalType"] = _LOGICAL[schema.name]
        return form

    def _record(self, schema: Schema) -> Any:
        name = schema.name
        if name is None:
            self._nameless += 1
            name = f"{NAMESPACE}.ConnectDefault{self._nameless if self._nameless > 1 else ''}"
        known = self._defined.get(name)
        if known is not None:
            if dataclasses.replace(known, optional=False) != dataclasses.replace(schema, optional=False):
                raise DataError(f"two different structs are called {name!r}; Avro allows one record of a name")
            return name
        self._defined[name] = schema
        form = {"type": "record", **_named(name), "fields": [self._field(member) for member in schema.fields]}
        return form | self._properties(schema)

    def _field(self, member: Field) -> dict[str, Any]:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", member.name):
            raise DataError(f"Avro does not allow the field name {member.name!r}: rename it (ReplaceField renames)")
        form: dict[str, Any] = {"name": member.name, "type": self.schema(member.schema)}
        if member.schema.doc is not None:
            form["doc"] = member.schema.doc
        if member.schema.default is not None:
            form["default"] = default_to_avro(member.schema, member.schema.default)
        elif member.schema.optional:
            form["default"] = None
        return form

    def _map(self, schema: Schema) -> dict[str, Any]:
        assert schema.key_schema is not None and schema.value_schema is not None
        if schema.key_schema.type is SchemaType.STRING and not schema.key_schema.optional:
            return {"type": "map", "values": self.schema(schema.value_schema)}
        entry = {
            "type": "record",
            "name": "MapEntry",
            "namespace": NAMESPACE,
            "fields": [
                {"name": "key", "type": self.schema(schema.key_schema)},
                {"name": "value", "type": self.schema(schema.value_schema)},
            ],
        }
        return {"type": "array", "items": entry, "connect.internal.type": "MapEntry"}

    def _enum(self, schema: Schema) -> dict[str, Any]:
        prefix = f"{ENUM}."
        symbols = [name.removeprefix(prefix) for name in schema.parameters if name.startswith(prefix)]
        return {"type": "enum", **_named(schema.parameters[ENUM]), "symbols": symbols}


def _named(full_name: str) -> dict[str, str]:
    if not _NAME.fullmatch(full_name):
        raise DataError(f"Avro does not allow the schema name {full_name!r}: letters, digits, _ and dots between parts")
    namespace, _, name = full_name.rpartition(".")
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def schema_from_avro(form: Any) -> Schema:
    """The Connect schema of an Avro one. Raises DataError for what Connect's model cannot hold (recursion)."""
    return _Reader().schema(form, "")


_FROM_PLAIN: Final = {
    "int": SchemaType.INT32,
    "long": SchemaType.INT64,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "boolean": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
    "bytes": SchemaType.BYTES,
}
_FROM_LOGICAL: Final = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
    ("bytes", "decimal"): DECIMAL,
    ("fixed", "decimal"): DECIMAL,
}


class _Reader:
    """Knows the named types met so far; a name that is still being read is recursion."""

    def __init__(self) -> None:
        self._named: dict[str, Schema | None] = {}

    def schema(self, form: Any, namespace: str) -> Schema:
        if isinstance(form, list):
            return self._union(form, namespace)
        if isinstance(form, str):
            if form in _FROM_PLAIN:
                return Schema(_FROM_PLAIN[form])
            return self._reference(form, namespace)
        if not isinstance(form, Mapping) or "type" not in form:
            raise DataError(f"not an Avro schema: {str(form)[:80]}")
        kind = form["type"]
        if isinstance(kind, list | Mapping):
            return self.schema(kind, namespace)
        return self._annotated(form, self._bare(form, kind, namespace))

    def _bare(self, form: Mapping[str, Any], kind: str, namespace: str) -> Schema:
        if kind == "record":
            return self._record(form, namespace)
        if kind == "array":
            return self._array(form, namespace)
        if kind == "map":
            return Schema.map(Schema(SchemaType.STRING), self.schema(form["values"], namespace))
        if kind == "enum":
            name = _full_name(form, namespace)
            symbols = {f"{ENUM}.{symbol}": str(symbol) for symbol in form["symbols"]}
            self._named[name] = Schema(SchemaType.STRING, parameters={ENUM: name, **symbols})
            return self._named[name]  # type: ignore[return-value]
        if kind == "fixed":
            name = _full_name(form, namespace)
            found = Schema(SchemaType.BYTES, name=name, parameters={FIXED_SIZE: str(form["size"])})
            self._named[name] = found
            return found
        if kind in _FROM_PLAIN:
            small = form.get("connect.type")
            return Schema(SchemaType(small) if small in ("int8", "int16") else _FROM_PLAIN[kind])
        return self._reference(kind, namespace)

    def _annotated(self, form: Mapping[str, Any], bare: Schema) -> Schema:
        logical = _FROM_LOGICAL.get((form["type"], form.get("logicalType", "")))
        changes: dict[str, Any] = {}
        parameters = dict(bare.parameters)
        if logical == DECIMAL and form.get("connect.name") in (None, DECIMAL):
            if form["type"] == "fixed":
                parameters = {}
            parameters["scale"] = str(form.get("scale", 0))
            if form.get("precision", _DEFAULT_PRECISION) != _DEFAULT_PRECISION:
                parameters[PRECISION] = str(form["precision"])
        if logical is not None:
            changes |= {"name": logical, "version": 1}
        parameters |= {str(k): str(v) for k, v in (form.get("connect.parameters") or {}).items()}
        for name, attribute in (("connect.name", "name"), ("connect.version", "version"), ("connect.doc", "doc")):
            if form.get(name) is not None:
                changes[attribute] = form[name]
        schema = dataclasses.replace(bare, parameters=parameters, **changes)
        if form.get("connect.default") is not None:
            schema = dataclasses.replace(schema, default=default_from_avro(schema, form["connect.default"]))
        if form["type"] == "record":
            self._named[_full_name(form, "")] = schema
        return schema

    def _record(self, form: Mapping[str, Any], namespace: str) -> Schema:
        name = _full_name(form, namespace)
        inner = name.rpartition(".")[0]
        self._named[name] = None
        fields = tuple(Field(member["name"], self._field_schema(member, inner)) for member in form["fields"])
        connect_name = None if name.startswith(f"{NAMESPACE}.ConnectDefault") else name
        schema = Schema.struct(fields, name=connect_name, doc=form.get("doc"))
        self._named[name] = schema
        return schema

    def _field_schema(self, member: Mapping[str, Any], namespace: str) -> Schema:
        schema = self.schema(member["type"], namespace)
        if member.get("doc") is not None and schema.doc is None:
            schema = dataclasses.replace(schema, doc=member["doc"])
        if member.get("default") is not None and schema.default is None:
            schema = dataclasses.replace(schema, default=default_from_avro(schema, member["default"]))
        return schema

    def _array(self, form: Mapping[str, Any], namespace: str) -> Schema:
        items = form["items"]
        if form.get("connect.internal.type") == "MapEntry" or (
            isinstance(items, Mapping) and items.get("name") == "MapEntry" and items.get("namespace") == NAMESPACE
        ):
            key, value = (self.schema(member["type"], namespace) for member in items["fields"])
            return Schema.map(key, value)
        return Schema.array(self.schema(items, namespace))

    def _union(self, branches: list[Any], namespace: str) -> Schema:
        others = [branch for branch in branches if branch not in ("null", {"type": "null"})]
        optional = len(others) < len(branches)
        if len(others) == 1:
            return self.schema(others[0], namespace).as_optional(optional)
        fields = []
        for branch in others:
            schema = self.schema(branch, namespace)
            fields.append(Field(_branch_name(branch, schema), schema.as_optional()))
        return Schema.struct(fields, name=UNION, optional=optional)

    def _reference(self, name: str, namespace: str) -> Schema:
        for full in (name, f"{namespace}.{name}"):
            if full in self._named:
                found = self._named[full]
                if found is None:
                    raise DataError(f"Avro record {full} contains itself; columns cannot hold recursive schemas")
                return found
        raise DataError(f"Avro type {name!r} is not defined")


def _full_name(form: Mapping[str, Any], namespace: str) -> str:
    name = str(form["name"])
    if "." in name:
        return name
    within = form.get("namespace", namespace)
    return f"{within}.{name}" if within else name


def _branch_name(branch: Any, schema: Schema) -> str:
    """Confluent's names for the members of a union: the type, or the last part of a named type's name."""
    if isinstance(branch, Mapping) and "name" in branch:
        return str(branch["name"]).rpartition(".")[2]
    if isinstance(branch, str) and branch not in _FROM_PLAIN:
        return branch.rpartition(".")[2]
    return schema.type.value
