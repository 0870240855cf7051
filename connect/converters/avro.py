"""Avro in Confluent's framing, with schemas in a schema registry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from connect.api import Converted, Converter, ConverterContext, DataError, Schema, config, key
from connect.converters.avro_columns import from_avro_column, renamed, to_avro_column
from connect.converters.avro_reading import schema_from_avro
from connect.converters.avro_schema import schema_to_avro
from connect.converters.avro_style import AvroStyle
from connect.converters.registry_schemas import RegistryConverterConfig, RegistrySchemas
from connect.data.defaults import filled_defaults
from registry.client import AvroSchema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AvroConverter", "AvroConverterConfig"]


@config
class AvroConverterConfig(RegistryConverterConfig):
    """Keys of AvroConverter, in addition to those for the registry."""

    enhanced: bool = key(
        "enhanced.avro.schema.support",
        default=False,
        doc="Whether text that was read from an Avro enum is written as that enum again, and members of unions are "
        "called by full names.",
    )
    scrub: bool = key(
        "scrub.invalid.names",
        default=False,
        doc="Whether names that Avro does not allow are written with _ in place of what it does not, instead of refused.",
    )
    meta: bool = key(
        "connect.meta.data",
        default=True,
        importance="low",
        doc="Whether what is Connect's own about a schema (name, version, parameters) is kept in properties of it.",
    )
    generalized: bool = key(
        "generalized.sum.type.support",
        default=False,
        doc="Whether enums and unions appear under names that are the same for Avro, JSON Schema and Protobuf.",
    )
    discard: bool = key(
        "discard.type.doc.default",
        default=False,
        importance="low",
        doc="Whether of documentation and defaults only those of Avro's fields are kept.",
    )
    optional_keys: bool = key(
        "allow.optional.map.keys",
        default=False,
        importance="low",
        doc="Whether maps with optional text keys become Avro maps, too.",
    )
    flatten_singletons: bool = key(
        "flatten.singleton.unions",
        default=True,
        importance="low",
        doc="Whether a union of one type is read as that type.",
    )
    ignore_default: bool = key(
        "ignore.default.for.nullables",
        default=False,
        importance="low",
        doc="Whether an optional field without a value stays null although its schema has a default.",
    )

    @property
    def style(self) -> AvroStyle:
        return AvroStyle(
            enhanced=self.enhanced,
            meta=self.meta,
            scrub=self.scrub,
            generalized=self.generalized,
            discard=self.discard,
            optional_keys=self.optional_keys,
            flatten_singletons=self.flatten_singletons,
        )


class _Written(NamedTuple):
    """How rows of one schema are written: ``own`` is the schema's own Avro form, ``target`` the registered one in use."""

    own: AvroSchema
    target: AvroSchema
    id: int


class _Source(NamedTuple):
    """How rows of one schema id are read."""

    schema: Schema
    form: Any


class AvroConverter(Converter):
    """Works on whole columns.

    An unavailable registry makes the call retriable; a bad row gives an error for that row.
    """

    config_class: ClassVar[type[AvroConverterConfig]] = AvroConverterConfig
    config: AvroConverterConfig

    def __init__(self, config: Any, context: ConverterContext) -> None:
        super().__init__(config, context)
        self._registry = RegistrySchemas(self.config, context, "Avro")
        self._style = self.config.style
        self._targets: dict[tuple[str, Schema], _Written] = {}
        self._sources: dict[int, _Source] = {}

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        from registry.serde.arrow_types import arrow_type
        from registry.serde.columns import encode_columns

        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        if schema is None:
            what = self._registry.what(topic)
            raise DataError(f"{what} has no schema, so it cannot be Avro; use JsonConverter for such data")
        with self._registry.translating(topic):
            target = self._target(topic, schema)
            filled = values if self.config.ignore_default else filled_defaults(schema, values)
            column = to_avro_column(schema, filled, optional_keys=self.config.optional_keys)
            return encode_columns(target.target, renamed(column, arrow_type(target.own)), target.id)

    def _target(self, topic: str, schema: Schema) -> _Written:
        known = self._targets.get((topic, schema))
        if known is not None:
            return known
        # The column decides whether a whole key or value is optional: like Confluent we write a union for it.
        form = AvroSchema.parse(json.dumps(schema_to_avro(schema, self._style)))
        target = self._registry.target(topic, form)
        if not isinstance(target.schema, AvroSchema):
            raise DataError(f"schema {target.id} of the registry is {target.schema.schema_type}, not AVRO")
        if len(self._targets) >= self.config.cache_size:
            self._targets.clear()
        self._targets[topic, schema] = made = _Written(form, target.schema, target.id)
        return made

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        import pyarrow as pa

        from registry.serde.columns import decode_columns

        converted = []
        with self._registry.translating(topic, data):
            for run in decode_columns(data, self._registry.client.schema):
                if run.schema_id is None or run.schema is None:
                    converted.append(Converted(None, pa.nulls(run.length, pa.string())))
                    continue
                source = self._source(run.schema_id, run.schema)
                try:
                    converted.append(Converted(source.schema, from_avro_column(source.schema, run.array)))
                except DataError as error:
                    raise DataError(str(error), rows=[run.start + row for row in error.rows]) from error
        return converted

    def _source(self, schema_id: int, schema: AvroSchema) -> _Source:
        if schema_id not in self._sources:
            if len(self._sources) >= self.config.cache_size:
                self._sources.clear()
            form = json.loads(schema.resolved)
            self._sources[schema_id] = _Source(schema_from_avro(form, self._style), form)
        return self._sources[schema_id]

    def close(self) -> None:
        self._registry.close()
