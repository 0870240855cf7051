"""Translates keys that Confluent's managed connectors have instead of converters and of one transformation.

Source: docs.confluent.io/cloud, the pages of the connectors ("output.data.format", "after.state.only"). The page of
ExtractNewRecordState says that the alias ``unwrap`` is kept for ``after.state.only``. The page of EventRouter
(/cloud/current/connectors/transforms/eventrouter.html) says that it is on by default. The page of Tableflow
(/cloud/current/topics/tableflow/concepts/materialize-cdc.html) has it set explicitly, so it is off in the second
versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connect.api.plugins import PluginType

__all__ = ["CLOUD_FORMATS", "OLD_CLOUD_FORMAT", "with_cloud_keys"]

_UNWRAP: Final = "unwrap"
OLD_CLOUD_FORMAT: Final = "data.format"
"""The old name of the data format, before keys and data had separate formats."""
_STATE_BY_DEFAULT: Final = ("MySqlCdcSource", "PostgresCdcSource")
"""Connectors whose ``after.state.only`` defaults to true in the cloud."""
_CLOUD_LOGINS: Final = ("kafka.api.key", "kafka.service.account.id")
"""Every configuration of the cloud, and no other, has one of these: they identify a cloud's short name."""
_CONVERTERS: Final = {
    "AVRO": "io.confluent.connect.avro.AvroConverter",
    "JSON_SR": "io.confluent.connect.json.JsonSchemaConverter",
    "PROTOBUF": "io.confluent.connect.protobuf.ProtobufConverter",
    "JSON": "org.apache.kafka.connect.json.JsonConverter",
    "STRING": "org.apache.kafka.connect.storage.StringConverter",
    "BYTES": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
CLOUD_FORMATS: Final = tuple(_CONVERTERS)
"""The values of ``output.data.format`` and similar keys."""


def with_cloud_keys(properties: Mapping[str, str], kind: PluginType) -> dict[str, str]:
    """A connector's properties with the converters of its formats, and with ``after.state.only`` as the first of its
    transformations.

    Explicit properties take precedence. Validation reports unknown formats.
    """
    translated = dict(properties)
    side = "output" if kind is PluginType.SOURCE else "input"
    for name, part in (("key.converter", "key"), ("value.converter", "data")):
        written = (
            translated.get(f"{side}.{part}.format")
            or (translated.get(OLD_CLOUD_FORMAT) if part == "data" else None)
            or ""
        )
        text = written.strip().upper()
        if text not in _CONVERTERS or translated.get(name):
            continue
        translated[name] = _CONVERTERS[text]
        if text == "JSON":
            translated.setdefault(f"{name}.schemas.enable", "false")
    aliases = [alias for part in translated.get("transforms", "").split(",") if (alias := part.strip())]
    of_cloud = translated.get("connector.class") in _STATE_BY_DEFAULT and any(
        translated.get(name) for name in _CLOUD_LOGINS
    )
    state_only = translated.get("after.state.only") or ("true" if of_cloud else "false")
    if state_only.strip().lower() == "true" and _UNWRAP not in aliases:
        translated["transforms"] = ",".join([_UNWRAP, *aliases])
        translated[f"transforms.{_UNWRAP}.type"] = "io.debezium.transforms.ExtractNewRecordState"
    return translated
