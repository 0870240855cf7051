"""JSON in Confluent's framing, with JSON Schemas in a schema registry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from connect.api import Converted, Converter, ConverterContext, DataError, Schema, config, key, one_of
from connect.converters.registry_json_schemas import (
    JsonSchemaStyle,
    connect_from_json_schema,
    connect_to_json_schema,
)
from connect.converters.registry_schemas import HEADER_SIZE, RegistryConverterConfig, RegistrySchemas, framed, runs_of
from connect.data.json_text import json_texts
from connect.data.json_values import from_json

if TYPE_CHECKING:
    import pyarrow as pa

    from registry.client import ParsedSchema

__all__ = ["JsonSchemaConverter", "JsonSchemaConverterConfig"]

_END: Final = 2**31 - 1


@config
class JsonSchemaConverterConfig(RegistryConverterConfig):
    """Keys of JsonSchemaConverter, in addition to those for the registry."""

    decimal_format: str = key(
        "decimal.format",
        default="BASE64",
        check=one_of("BASE64", "NUMERIC", ignore_case=True),
        importance="low",
        doc="Whether decimals are written as base64 of their unscaled bytes or as numbers. Both are read.",
    )
    additional: bool = key(
        "object.additional.properties",
        default=True,
        doc="Whether schemas of structs let an object have more properties than are declared.",
    )
    optional_for_nonrequired: bool = key(
        "use.optional.for.nonrequired",
        default=False,
        doc="Whether a property that need not be there is an optional field, also in schemas that Connect wrote.",
    )
    generalized: bool = key(
        "generalized.sum.type.support",
        default=False,
        doc="Whether enums and unions appear under names that are the same for Avro, JSON Schema and Protobuf.",
    )
    flatten_singletons: bool = key(
        "flatten.singleton.unions",
        default=True,
        importance="low",
        doc="Whether a choice of one schema is read as that schema.",
    )
    ignore_default: bool = key(
        "ignore.default.for.nullables",
        default=False,
        importance="low",
        doc="Whether an optional field without a value stays null although its schema has a default.",
    )
    fail_invalid: bool = key(
        "json.fail.invalid.schema",
        default=False,
        doc="Whether each value is held to its schema, both in writing and in reading.",
    )

    @property
    def style(self) -> JsonSchemaStyle:
        return JsonSchemaStyle(
            numeric=self.decimal_format.upper() == "NUMERIC",
            additional=self.additional,
            optional_for_nonrequired=self.optional_for_nonrequired,
            generalized=self.generalized,
            flatten_singletons=self.flatten_singletons,
        )


class JsonSchemaConverter(Converter):
    """Writes whole columns. Reads columns if a run of rows has a uniform shape, otherwise row by row."""

    config_class = JsonSchemaConverterConfig
    config: JsonSchemaConverterConfig

    def __init__(self, config: Any, context: ConverterContext) -> None:
        super().__init__(config, context)
        self._registry = RegistrySchemas(self.config, context, "JSON")
        self._style = self.config.style
        self._targets: dict[tuple[str, Schema], tuple[ParsedSchema, int]] = {}
        self._sources: dict[int, tuple[ParsedSchema, Schema]] = {}

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        if schema is None:
            what = self._registry.what(topic)
            raise DataError(f"{what} has no schema, so it cannot have a JSON Schema; use JsonConverter for such data")
        with self._registry.translating(topic):
            target, schema_id = self._target(topic, schema)
            texts = json_texts(
                schema,
                values,
                numeric_decimals=self._style.numeric,
                defaults=not self.config.ignore_default,
                entries=True,
            ).cast(pa.binary())
            self._judge(topic, target, texts)
            return framed(texts, schema_id)

    def _target(self, topic: str, schema: Schema) -> tuple[ParsedSchema, int]:
        known = self._targets.get((topic, schema))
        if known is None:
            from registry.formats.json_schema.schema import JsonSchema

            form = JsonSchema.parse(json.dumps(connect_to_json_schema(schema, self._style)))
            target = self._registry.target(topic, form)
            if len(self._targets) >= self.config.cache_size:
                self._targets.clear()
            known = self._targets[topic, schema] = (target.schema, target.id)
        return known

    def _judge(self, topic: str, schema: ParsedSchema, texts: pa.Array) -> None:
        """With ``json.fail.invalid.schema``: validate every value against its schema."""
        if not self.config.fail_invalid:
            return
        from registry.errors import InvalidSchema
        from registry.formats.json_schema.schema import JsonSchema

        assert isinstance(schema, JsonSchema)
        validator = schema.validator()
        for row, text in enumerate(texts.to_pylist()):
            try:
                error = None if text is None else next(validator.iter_errors(orjson.loads(text)), None)
            except InvalidSchema as unfit:
                hint = "json.fail.invalid.schema=false leaves values unchecked"
                raise DataError(
                    f"{self._registry.what(topic)} cannot be checked: {unfit}; {hint}", rows=[row]
                ) from unfit
            if error is not None:
                where = "/".join(str(step) for step in error.absolute_path) or "the value"
                what = self._registry.what(topic)
                raise DataError(f"{what} is not as its JSON Schema says: {where}: {error.message[:200]}", rows=[row])

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        import pyarrow as pa
        import pyarrow.compute as pc

        converted = []
        what = self._registry.what(topic)
        for start, length, schema_id in runs_of(data, what):
            rows = data.slice(start, length)
            if schema_id is None:
                converted.append(Converted(None, pa.nulls(length, pa.string())))
                continue
            with self._registry.translating(topic):
                form, schema = self._source(schema_id)
            texts = pc.binary_slice(rows.cast(pa.binary()), HEADER_SIZE, _END)
            try:
                self._judge(topic, form, texts)
                converted.append(Converted(schema, self._column(schema, texts, what)))
            except DataError as error:
                raise DataError(str(error), rows=[start + row for row in error.rows]) from error
        return converted

    def _source(self, schema_id: int) -> tuple[ParsedSchema, Schema]:
        if schema_id not in self._sources:
            from registry.formats.json_schema.schema import JsonSchema

            form = self._registry.client.any_schema(schema_id)
            if not isinstance(form, JsonSchema):
                raise DataError(f"schema {schema_id} of the registry is {form.schema_type}, not JSON")
            if len(self._sources) >= self.config.cache_size:
                self._sources.clear()
            self._sources[schema_id] = (form, connect_from_json_schema(form.value, self._style, form.references))
        return self._sources[schema_id]

    def _column(self, schema: Schema, texts: pa.Array, what: str) -> pa.Array:
        from connect.converters.json_columns import read_columns

        defaults = not self.config.ignore_default
        if not texts.null_count and (made := read_columns(schema, texts, defaults=defaults)) is not None:
            return made
        payloads: list[Any] = []
        for row, text in enumerate(texts.to_pylist()):
            try:
                payloads.append(None if text is None else orjson.loads(text))
            except orjson.JSONDecodeError as error:
                raise DataError(f"{what} is not JSON: {error}", rows=[row]) from error
        return from_json(schema.as_optional(), payloads, what, defaults=defaults, entries=True)

    def close(self) -> None:
        self._registry.close()
