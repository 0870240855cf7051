"""Keys and values of records as values that can be printed as JSON, and back."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from registry.client import RegistryClient

__all__ = ["decoder", "encoded_like", "readable"]


def decoder(client: RegistryClient) -> Callable[[bytes | None], Any]:
    """Decode bytes for display: Avro by its schema, else JSON, else text, else base64."""
    from registry.serde import decode_record

    def decode(data: bytes | None) -> Any:
        if data is None:
            return None
        if data[:1] == b"\x00" and len(data) >= 5:
            try:
                return decode_record(data, client.schema)[2]
            except TidegateError as error:
                return {"undecodable": str(error), "base64": base64.b64encode(data).decode()}
        try:
            return json.loads(data)
        except ValueError:
            pass
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}

    return decode


def encoded_like(original: bytes | None, value: Any, client: RegistryClient) -> bytes | None:
    """The bytes of a printed value, in the encoding of the bytes that it was printed from.

    A value that was not changed keeps its bytes. Raises UsageError for one that does not fit the schema.
    """
    from registry.serde import SerializationError, decode_record, encode_record

    if value == json.loads(json.dumps(decoder(client)(original), default=readable)):
        return original
    if value is None:
        return None
    if isinstance(value, dict) and set(value) in ({"base64"}, {"base64", "undecodable"}):
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, TypeError) as error:
            raise UsageError(f"{value['base64']!r} is not base64: {error}") from error
    try:
        schema_id, schema, _ = decode_record(original or b"", client.schema)
    except TidegateError:
        return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()
    try:
        return encode_record(schema, value, schema_id)
    except SerializationError as error:
        raise UsageError(f"does not fit schema {schema_id}: {error}") from error


def readable(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
