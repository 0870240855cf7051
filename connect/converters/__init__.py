"""The converters of this package, one module each: between columns of a schema and the bytes of the log."""

from __future__ import annotations

from typing import Final

from connect.api import Plugin, PluginType, hookimpl

__all__ = ["register_plugins"]

_VERSION: Final = "4.3.1"
"""The version of Kafka Connect whose converters these do the work of."""

_CONVERTERS: Final = (
    (
        "connect.converters.avro:AvroConverter",
        ("io.confluent.connect.avro.AvroConverter", "io.apicurio.registry.utils.converter.AvroConverter"),
    ),
    ("connect.converters.json:JsonConverter", ("org.apache.kafka.connect.json.JsonConverter",)),
    ("connect.converters.string:StringConverter", ("org.apache.kafka.connect.storage.StringConverter",)),
    (
        "connect.converters.bytearray:ByteArrayConverter",
        (
            "org.apache.kafka.connect.converters.ByteArrayConverter",
            "io.debezium.converters.ByteArrayConverter",
            "io.debezium.converters.BinaryDataConverter",
        ),
    ),
)
_HEADER_CONVERTERS: Final = (
    (
        "connect.converters.bytearray:ByteArrayConverter",
        (
            "org.apache.kafka.connect.storage.SimpleHeaderConverter",
            "org.apache.kafka.connect.converters.ByteArrayConverter",
            "org.apache.kafka.connect.storage.StringConverter",
        ),
    ),
)


@hookimpl
def register_plugins() -> list[Plugin]:
    converters = [Plugin(PluginType.CONVERTER, path, names, _VERSION) for path, names in _CONVERTERS]
    # Headers travel as the bytes they are, whatever converter a configuration names for them.
    headers = [
        Plugin(PluginType.HEADER_CONVERTER, path, (name,), _VERSION)
        for path, names in _HEADER_CONVERTERS
        for name in names
    ]
    return converters + headers
