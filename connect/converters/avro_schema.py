"""Converts Connect schemas to Avro, like Confluent's AvroConverter; ``avro_reading`` does the reverse.

Properties express what Avro can't: ``connect.name``, ``connect.version``, ``connect.doc``, ``connect.default``,
``connect.parameters`` and ``connect.type`` (of small integers). Schemas are plain JSON values here.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

from connect.converters.avro_defaults import default_to_avro
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
    LOGICAL,
    NAMESPACE,
    PLAIN,
    PLAIN_ENUM_DOC,
    PLAIN_RECORD_DOC,
    RECORD_DOC,
    UNION,
    AvroStyle,
)
from connect.data.errors import DataError
from connect.data.schema import DECIMAL, PRECISION, Field, Schema, SchemaType

__all__ = ["schema_to_avro"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def schema_to_avro(schema: Schema, style: AvroStyle = AvroStyle()) -> Any:  # noqa: B008 - it is a tuple
    """The Avro form. Raises DataError for names that are invalid in Avro, and for two different structs of one name."""
    return _Writer(style).schema(schema)


class _Writer:
    """Numbers nameless records and defines each named one once."""

    def __init__(self, style: AvroStyle) -> None:
        self._style, self._nameless = style, 0
        self._defined: dict[str, Schema] = {}
        self._seen: set[str] = set()

    def schema(self, schema: Schema) -> Any:
        if _is_union(schema):
            branches = [self._base(member.schema.as_optional(False)) for member in schema.fields]
            return ["null", *branches] if schema.optional else branches
        base = self._base(schema)
        if not schema.optional:
            return base
        return [base, "null"] if schema.default is not None else ["null", base]

    def _base(self, schema: Schema) -> Any:
        """The form without the union that makes it optional."""
        if schema.type is SchemaType.STRUCT:
            return self.schema(schema) if _is_union(schema) else self._record(schema)
        form: dict[str, Any]
        if schema.type is SchemaType.ARRAY:
            assert schema.value_schema is not None
            form = {"type": "array", "items": self.schema(schema.value_schema)}
        elif schema.type is SchemaType.MAP:
            form = self._map(schema)
        elif self._is_enum(schema):
            made = self._enum(schema)
            if isinstance(made, str):
                return made
            form = made
        elif schema.type is SchemaType.BYTES and FIXED_SIZE in schema.parameters and schema.name:
            name = self._style.full_name(schema.name)
            if name in self._defined:
                return name
            self._defined[name] = schema
            form = {"type": "fixed", **_named(name), "size": int(schema.parameters[FIXED_SIZE])}
        else:
            form = {"type": PLAIN[schema.type]}
        form |= self._properties(schema)
        return form["type"] if len(form) == 1 else form

    def _properties(self, schema: Schema) -> dict[str, Any]:
        """The properties with Connect's own facts, and Avro's logical type."""
        form: dict[str, Any] = {}
        if schema.name == DECIMAL:
            form |= {"scale": schema.scale, "precision": int(schema.parameters.get(PRECISION, DEFAULT_PRECISION))}
        if self._style.meta:
            form |= self._metadata(schema)
        if schema.name in LOGICAL:
            form["logicalType"] = LOGICAL[schema.name]
        form |= {name: value for name, value in schema.parameters.items() if name.startswith(AVRO_PREFIX)}
        return form

    def _metadata(self, schema: Schema) -> dict[str, Any]:
        form: dict[str, Any] = {}
        if schema.doc is not None:
            form["connect.doc"] = schema.doc
        if schema.version is not None:
            form["connect.version"] = schema.version
        if parameters := self._parameters(schema):
            form["connect.parameters"] = parameters
        if schema.default is not None and (self._style.discard or DEFAULT_FLAG not in schema.parameters):
            form["connect.default"] = default_to_avro(schema, schema.default)
        if schema.name is not None:
            form["connect.name"] = schema.name
        if schema.type in (SchemaType.INT8, SchemaType.INT16):
            form["connect.type"] = schema.type.value
        return form

    def _parameters(self, schema: Schema) -> dict[str, str]:
        return {n: v for n, v in schema.parameters.items() if self._style.discard or n != DEFAULT_FLAG}

    def _record(self, schema: Schema) -> Any:
        if schema.name is None:
            self._nameless += 1
            name = f"{NAMESPACE}.{DEFAULT_NAME}{self._nameless if self._nameless > 1 else ''}"
        else:
            name = self._style.full_name(schema.name)
        known = self._defined.get(name)
        if known is not None:
            if dataclasses.replace(known, optional=False) != dataclasses.replace(schema, optional=False):
                raise DataError(f"two different structs are called {name!r}; Avro allows one record of a name")
            return name
        self._defined[name] = schema
        form: dict[str, Any] = {"type": "record", **_named(name)}
        doc = schema.parameters.get(PLAIN_RECORD_DOC if self._style.discard else RECORD_DOC)
        if doc is not None:
            form["doc"] = doc
        form["fields"] = [self._field(member, schema) for member in schema.fields]
        return form | self._properties(schema)

    def _field(self, member: Field, struct: Schema) -> dict[str, Any]:
        name = self._style.name(member.name)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise DataError(
                f"Avro does not allow the field name {member.name!r}: rename it (ReplaceField renames), or let "
                "scrub.invalid.names=true write it in another way"
            )
        schema = member.schema
        again = schema.name is not None and schema.name in self._seen
        self._seen.add(schema.name or "")
        form: dict[str, Any] = {"name": name, "type": self.schema(schema)}
        doc = schema.doc if self._style.discard else struct.parameters.get(f"{FIELD_DOC}{member.name}")
        if doc is not None:
            form["doc"] = doc
        if schema.default is not None:
            form["default"] = default_to_avro(schema, schema.default)
        elif schema.optional:
            form["default"] = None
        if again and self._style.meta and self._is_named(schema) and (parameters := self._parameters(schema)):
            form["connect.parameters"] = parameters
        return form

    def _is_named(self, schema: Schema) -> bool:
        fixed = schema.type is SchemaType.BYTES and FIXED_SIZE in schema.parameters
        return schema.type is SchemaType.STRUCT or self._is_enum(schema) or fixed

    def _map(self, schema: Schema) -> dict[str, Any]:
        assert schema.key_schema is not None and schema.value_schema is not None
        text = schema.key_schema.type is SchemaType.STRING
        if text and (not schema.key_schema.optional or self._style.optional_keys):
            return {"type": "map", "values": self.schema(schema.value_schema)}
        name = f"{NAMESPACE}.MapEntry" if schema.name is None else self._style.full_name(schema.name)
        entry = {
            "type": "record",
            **_named(name),
            "fields": [
                {"name": "key", "type": self.schema(schema.key_schema)},
                {"name": "value", "type": self.schema(schema.value_schema)},
            ],
        }
        if schema.name is not None:
            entry["connect.internal.type"] = "MapEntry"
        return {"type": "array", "items": entry}

    def _is_enum(self, schema: Schema) -> bool:
        has_enums = self._style.generalized or self._style.enhanced
        return has_enums and schema.type is SchemaType.STRING and self._style.enum in schema.parameters

    def _enum(self, schema: Schema) -> dict[str, Any] | str:
        prefix = f"{self._style.enum}."
        name = schema.parameters[self._style.enum]
        if name in self._defined:
            return name
        self._defined[name] = schema
        form: dict[str, Any] = {"type": "enum", **_named(name)}
        simple = name.rpartition(".")[2]
        doc = schema.parameters.get(PLAIN_ENUM_DOC if self._style.discard else f"{ENUM_DOC}{simple}")
        if doc is not None:
            form["doc"] = doc
        form["symbols"] = [symbol.removeprefix(prefix) for symbol in schema.parameters if symbol.startswith(prefix)]
        default = schema.parameters.get(f"{ENUM_DEFAULT}{simple}")
        if default is not None and not self._style.discard:
            form["default"] = default
        return form


def _is_union(schema: Schema) -> bool:
    return schema.type is SchemaType.STRUCT and (schema.name == UNION or GENERALIZED_UNION in schema.parameters)


def _named(full_name: str) -> dict[str, str]:
    if not _NAME.fullmatch(full_name):
        raise DataError(
            f"Avro does not allow the schema name {full_name!r}: letters, digits, _ and dots between parts; "
            "scrub.invalid.names=true writes it in another way"
        )
    namespace, _, name = full_name.rpartition(".")
    return {"name": name, "namespace": namespace} if namespace else {"name": name}
