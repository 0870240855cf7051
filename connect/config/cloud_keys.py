"""Keys that Confluent's managed connectors have in place of converters and of one transformation, as what they stand for.

Source: docs.confluent.io/cloud, the pages of the connectors ("output.data.format", "after.state.only"). The page of
ExtractNewRecordState says that the alias ``unwrap`` is kept for ``after.state.only``. The page of EventRouter
(/cloud/current/connectors/transforms/eventrouter.html) says that it is on by default. The page of Tableflow
(/cloud/current/topics/tableflow/concepts/materialize-cdc.html) has it set explicitly, so it is off in the second versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connect.api.plugins import PluginType

__all__ = ["CLOUD_FORMATS", "OLD_CLOUD_FORMAT", "with_cloud_keys"]

_UNWRAP: Final = "unwrap"
OLD_CLOUD_FORMAT: Final = "data.format"
"""What the formats of data were called before keys and data had formats of their own."""
_STATE_BY_DEFAULT: Final = ("MySqlCdcSource", "PostgresCdcSource")
"""Those whose ``after.state.only`` is true in the cloud."""
_CLOUD_LOGINS: Final = ("kafka.api.key", "kafka.service.account.id")
"""One of these is in each configuration of the cloud, and in no other: it tells that a short name is the cloud's."""
_CONVERTERS: Final = {
    "AVRO": "io.confluent.connect.avro.AvroConverter",
    "JSON_SR": "io.confluent.connect.json.JsonSchemaConverter",
    "PROTOBUF": "io.confluent.connect.protobuf.ProtobufConverter",
    "JSON": "org.apache.kafka.connect.json.JsonConverter",
    "STRING": "org.apache.kafka.connect.storage.StringConverter",
    "BYTES": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
CLOUD_FORMATS: Final = tuple(_CONVERTERS)
"""The values of ``output.data.format`` and its like."""


def with_cloud_keys(properties: Mapping[str, str], kind: PluginType) -> dict[str, str]:
    """A connector's properties with the converters that its formats stand for, and with ``after.state.only`` as the first of its
    transformations. What the properties say themselves comes first; formats that there are not are left to validation."""
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
