"""Avro in Confluent's framing, its schemas in a schema registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from connect.api import (
    ConnectError,
    Converted,
    Converter,
    ConverterContext,
    DataError,
    RetriableConnectError,
    Schema,
    config,
    key,
)
from connect.converters.avro_columns import from_avro_column, to_avro_column
from connect.converters.avro_schema import schema_from_avro, schema_to_avro
from registry.client import AvroSchema, RegistryClient, RegistryClientConfig, RegistryClientError
from registry.serde.errors import SerializationError
from registry.serde.subjects import STRATEGIES, subject_name
from tidegate.kit.errors import RetriableError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AvroConverter", "AvroConverterConfig"]


def _strategy(value: str) -> str | None:
    known = ", ".join(STRATEGIES)
    return (
        None if value.rpartition(".")[2] in STRATEGIES else f"String must be one of: {known}, with or without package"
    )


@config
class AvroConverterConfig(RegistryClientConfig):
    """Keys of AvroConverter, beside those that reach the registry."""

    # The worker's registry stands in where a converter names none.
    url: str | None = key(  # type: ignore[assignment]
        "schema.registry.url",
        default=None,
        importance="high",
        doc="Addresses of schema registries, separated by commas; the worker's schema.registry.url unless given.",
    )
    auto_register: bool = key(
        "auto.register.schemas", default=True, doc="Whether schemas that the registry does not have are registered."
    )
    use_latest: bool = key(
        "use.latest.version",
        default=False,
        doc="Without auto.register.schemas: whether records are written with the subject's latest schema.",
    )
    key_strategy: str = key(
        "key.subject.name.strategy",
        default="io.confluent.kafka.serializers.subject.TopicNameStrategy",
        check=_strategy,
        doc="Under which subject the schemas of keys are registered.",
    )
    value_strategy: str = key(
        "value.subject.name.strategy",
        default="io.confluent.kafka.serializers.subject.TopicNameStrategy",
        check=_strategy,
        doc="Under which subject the schemas of values are registered.",
    )
    enhanced: bool = key(
        "enhanced.avro.schema.support",
        default=False,
        doc="Whether text that was read from an Avro enum is written as that enum again.",
    )
    cache_size: int = key("schemas.cache.config", default=1000, doc="How many schemas are kept for reuse.")


class _Target(NamedTuple):
    """What rows of one schema are written with."""

    schema: AvroSchema
    id: int


class _Source(NamedTuple):
    """What rows of one schema id are read as."""

    schema: Schema
    form: Any


class AvroConverter(Converter):
    """Works on whole columns; a registry that does not answer makes the call repeatable, a bad row is that row's fault."""

    config_class = AvroConverterConfig
    config: AvroConverterConfig

    def __init__(self, config: Any, context: ConverterContext) -> None:
        super().__init__(config, context)
        if self.config.url is None:
            side = "key" if context.is_key else "value"
            raise ConnectError(f"no schema registry: set {side}.converter.schema.registry.url, or the worker's")
        client = RegistryClient.from_properties(
            {
                "schema.registry.url": self.config.url,
                "basic.auth.user.info": self.config.user_info,
                "bearer.auth.token": self.config.bearer_token,
                "schema.registry.ssl.ca.location": self.config.ca_location,
                "http.read.timeout.ms": self.config.timeout_ms,
            }
        )
        if context.rehearsals is not None:
            from registry.rehearsal import RehearsingClient

            client = RehearsingClient.over(client, context.rehearsals)
        self._client = client
        self._targets: dict[tuple[str, Schema], _Target] = {}
        self._sources: dict[int, _Source] = {}

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        from registry.serde.columns import encode_columns

        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        if schema is None:
            raise DataError(f"{self._what(topic)} has no schema, so it cannot be Avro; use JsonConverter for such data")
        with self._border(topic):
            target = self._target(topic, schema)
            return encode_columns(target.schema, to_avro_column(schema, values), target.id)

    def _target(self, topic: str, schema: Schema) -> _Target:
        known = self._targets.get((topic, schema))
        if known is not None:
            return known
        # Whether a whole key or value is optional is the column's matter: Confluent writes a union for it, and so do we.
        form = AvroSchema.parse(json.dumps(schema_to_avro(schema, enums=self.config.enhanced)))
        strategy = self.config.key_strategy if self.context.is_key else self.config.value_strategy
        subject = subject_name(topic, is_key=self.context.is_key, schema=form, by=strategy)
        if self.config.auto_register:
            target = _Target(form, self._client.register(subject, form))
        elif self.config.use_latest:
            latest = self._client.version(subject)
            target = _Target(self._client.parsed(latest), latest.id)
        else:
            target = _Target(form, self._client.id_of(subject, form))
        if len(self._targets) >= self.config.cache_size:
            self._targets.clear()
        self._targets[topic, schema] = target
        return target

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        import pyarrow as pa

        from registry.serde.columns import decode_columns

        converted = []
        with self._border(topic):
            for run in decode_columns(data, self._client.schema):
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
            self._sources[schema_id] = _Source(schema_from_avro(form), form)
        return self._sources[schema_id]

    @contextmanager
    def _border(self, topic: str) -> Iterator[None]:
        """The registry's errors become ours."""
        try:
            yield
        except SerializationError as error:
            rows = [] if error.row is None else [error.row]
            raise DataError(f"{self._what(topic)} is not as its Avro schema says: {error}", rows=rows) from error
        except RetriableError as error:
            raise RetriableConnectError(f"schema registry of {self._what(topic)}: {error}") from error
        except RegistryClientError as error:
            raise ConnectError(f"schema registry refused {self._what(topic)}: {error}") from error

    def _what(self, topic: str) -> str:
        return f"a {'key' if self.context.is_key else 'value'} of {topic}"

    def close(self) -> None:
        self._client.close()
