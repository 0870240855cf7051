"""Which converter wrote a message that another one cannot read, judged by its bytes: for the end of an error."""

from __future__ import annotations

import re
from typing import Final

import orjson

__all__ = ["is_meant_as_json", "suggestion"]

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_TEXT: Final = "org.apache.kafka.connect.storage.StringConverter"
_AVRO: Final = "io.confluent.connect.avro.AvroConverter"
_FRAME_BYTES: Final = 5
_MEANT_AS_JSON: Final = re.compile(rb'\s*(\{|\[\s*[{\["])')
"""The beginning of an object, or of a list of objects, lists or texts: not of a line of a log (``[INFO] ...``)."""


def is_meant_as_json(message: bytes) -> bool:
    """Whether bytes that are not JSON begin like it, so that JSON is broken rather than the converter wrong."""
    return _MEANT_AS_JSON.match(message) is not None


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
    except orjson.JSONDecodeError as error:
        if is_meant_as_json(message):
            return f"; it looks like broken JSON ({error}): if the others are JSON, set {side}.converter={_JSON}"
        if text and text.isprintable():
            return f"; it looks like text: set {side}.converter={_TEXT}"
        return ""
    enveloped = isinstance(value, dict) and {"schema", "payload"} == set(value)
    return f"; it looks like JSON: set {side}.converter={_JSON} and {side}.converter.schemas.enable={str(enveloped).lower()}"
