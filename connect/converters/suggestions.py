"""Which converter wrote a message that another one cannot read, judged by its bytes: for the end of an error."""

from __future__ import annotations

from typing import Final

import orjson

__all__ = ["suggestion"]

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_TEXT: Final = "org.apache.kafka.connect.storage.StringConverter"
_AVRO: Final = "io.confluent.connect.avro.AvroConverter"
_FRAME_BYTES: Final = 5


def suggestion(message: bytes, *, is_key: bool) -> str:
    """``; it looks like ...: set value.converter=...``; empty if the bytes do not tell."""
    side = "key" if is_key else "value"
    if len(message) > _FRAME_BYTES and message[0] == 0:
        schema_id = int.from_bytes(message[1:_FRAME_BYTES], "big")
        return (
            f"; it looks like Confluent's framing with schema id {schema_id}: set {side}.converter={_AVRO}, or the "
            "converter of the schema's type"
        )
    try:
        text = message.decode()
    except UnicodeDecodeError:
        return ""
    try:
        value = orjson.loads(message)
    except orjson.JSONDecodeError:
        if text and text.isprintable():
            return f"; it looks like text: set {side}.converter={_TEXT}"
        return ""
    enveloped = isinstance(value, dict) and {"schema", "payload"} == set(value)
    return f"; it looks like JSON: set {side}.converter={_JSON} and {side}.converter.schemas.enable={str(enveloped).lower()}"
