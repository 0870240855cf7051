"""Debezium's BinaryDataConverter (ByteBufferConverter in Debezium 1.x): bytes unchanged, everything else by another
converter.

Source: debezium.io, "Outbox Event Router", "Emitting messages with Avro format".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from connect.api import Converted, Converter, DataError, PluginType, Problem, Schema, SchemaType, config, family, key
from connect.converters.bytearray import ByteArrayConfig, ByteArrayConverter
from tidegate.kit.config import parse, validate

if TYPE_CHECKING:
    import pyarrow as pa

    from connect.api import Plugin

__all__ = ["BinaryDataConfig", "BinaryDataConverter"]

_DELEGATE = "delegate.converter.type"


def _plugin(name: str) -> Plugin | None:
    from connect.converters import register_plugins
    from connect.plugins.registry import PluginRegistry

    return PluginRegistry(register_plugins()).find(name, PluginType.CONVERTER)


@config
class BinaryDataConfig:
    """Keys of BinaryDataConverter."""

    delegate: str | None = key(
        "delegate.converter.type",
        default=None,
        importance="low",
        doc="The converter of what is not bytes, such as heartbeats; without it they are an error.",
    )
    own: dict[str, str] = family(f"{_DELEGATE}.", doc="Keys of that converter.")

    def problems(self) -> Iterator[Problem]:
        if self.delegate is None:
            return
        plugin = _plugin(self.delegate)
        if plugin is None:
            yield Problem(
                _DELEGATE,
                f"Invalid value {self.delegate} for configuration {_DELEGATE}: Class {self.delegate} could not be found.",
            )
            return
        for result in validate(plugin.load().config_class, self.own):
            for error in result.errors:
                yield Problem(f"{_DELEGATE}.{result.key.name}", error)


class BinaryDataConverter(Converter):
    """Reads everything as optional bytes."""

    config_class = BinaryDataConfig
    config: BinaryDataConfig

    @cached_property
    def _bytes(self) -> ByteArrayConverter:
        return ByteArrayConverter(ByteArrayConfig(), self.context)

    @cached_property
    def _delegate(self) -> Converter | None:
        plugin = _plugin(self.config.delegate) if self.config.delegate is not None else None
        if plugin is None:
            return None
        loaded = plugin.load()
        made: Converter = loaded(parse(loaded.config_class, self.config.own), self.context)
        return made

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        if schema is not None and schema.type is SchemaType.BYTES and pa.types.is_binary(values.type):
            return values
        if self._delegate is not None:
            return self._delegate.from_connect(topic, schema, values)
        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        kind = "no schema" if schema is None else schema.name or schema.type.value
        raise DataError(f"BinaryDataConverter got values of {kind} for topic {topic}: use bytes, or set {_DELEGATE}")

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        return self._bytes.to_connect(topic, data)

    def close(self) -> None:
        if self._delegate is not None:
            self._delegate.close()
