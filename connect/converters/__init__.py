"""The converters of this package, one module each: they convert columns of a schema to the bytes of the log and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from connect.api import Plugin, PluginType, hookimpl

__all__ = ["register_plugins"]

_VERSION: Final = "4.3.1"
"""The version of Kafka Connect whose converters these match."""
_DEBEZIUM_VERSION: Final = "3.5.0.Final"

_CONVERTERS: Final = (
    ("connect.converters.avro:AvroConverter", ("io.confluent.connect.avro.AvroConverter",)),
    (
        "connect.converters.apicurio:ApicurioAvroConverter",
        ("io.apicurio.registry.utils.converter.AvroConverter",),
    ),
    ("connect.converters.ext_json:ExtJsonConverter", ("io.apicurio.registry.utils.converter.ExtJsonConverter",)),
    ("connect.converters.registry_json:JsonSchemaConverter", ("io.confluent.connect.json.JsonSchemaConverter",)),
    ("connect.converters.protobuf:ProtobufConverter", ("io.confluent.connect.protobuf.ProtobufConverter",)),
    ("connect.converters.json:JsonConverter", ("org.apache.kafka.connect.json.JsonConverter",)),
    ("connect.converters.string:StringConverter", ("org.apache.kafka.connect.storage.StringConverter",)),
    (
        "connect.converters.bytearray:ByteArrayConverter",
        ("org.apache.kafka.connect.converters.ByteArrayConverter",),
    ),
)
_DEBEZIUM: Final = (
    (
        "connect.converters.binary_data:BinaryDataConverter",
        tuple(f"io.debezium.converters.{name}Converter" for name in ("BinaryData", "ByteBuffer", "ByteArray")),
    ),
    ("connect.converters.cloud_events:CloudEventsConverter", ("io.debezium.converters.CloudEventsConverter",)),
)
_NUMBERS: Final = ("Boolean", "Double", "Float", "Integer", "Long", "Short")
_HEADER_ONLY: Final = (
    "connect.converters.simple_headers:SimpleHeaderConverter",
    "org.apache.kafka.connect.storage.SimpleHeaderConverter",
)


@hookimpl
def register_plugins() -> list[Plugin]:
    converters = [Plugin(PluginType.CONVERTER, path, names, _VERSION) for path, names in _CONVERTERS]
    converters += [
        Plugin(
            PluginType.CONVERTER,
            f"connect.converters.numbers:{name}Converter",
            (f"org.apache.kafka.connect.converters.{name}Converter",),
            _VERSION,
        )
        for name in _NUMBERS
    ]
    path, simple = _HEADER_ONLY
    converters += [Plugin(PluginType.CONVERTER, path, names, _DEBEZIUM_VERSION) for path, names in _DEBEZIUM]
    headers = [Plugin(PluginType.HEADER_CONVERTER, path, (simple,), _VERSION)]
    # As in Kafka Connect, converters without a registry convert headers too.
    headers += [
        replace(plugin, type=PluginType.HEADER_CONVERTER)
        for plugin in converters
        if plugin.name.startswith("org.apache.")
    ]
    return converters + headers
