"""Keys and values of records as values that can be printed as JSON, and back."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tidegate.kit.errors import TidegateError, UsageError
from tidegate.records.exact_json import json_text, parsed_json

if TYPE_CHECKING:
    from registry.client import RegistryClient

__all__ = ["Decode", "decoder", "encoded_like", "is_framed", "raw_bytes", "shown_headers", "subject_encoder"]


Decode: TypeAlias = Callable[[bytes | None], Any]
"""Makes bytes of a record a value of JSON."""


def decoder(client: RegistryClient | None) -> Decode:
    """Decode bytes for display: by the schema that they name, if there is a registry, else JSON, else text, else base64."""

    def decode(data: bytes | None) -> Any:
        if data is None:
            return None
        if client is not None and is_framed(data):
            try:
                return _by_schema(data, client)
            except (TidegateError, ValueError) as error:
                return {"undecodable": str(error), "base64": base64.b64encode(data).decode()}
        try:
            value = parsed_json(data.decode(), constants=True)
        except ValueError:
            pass
        else:
            return _as_base64(data) if raw_bytes(value) is not None else value
        try:
            return data.decode()
        except UnicodeDecodeError:
            return _as_base64(data)

    return decode


def is_framed(data: bytes) -> bool:
    """Whether bytes look as if they named a schema, as Confluent's serializers do: a zero and an id before the value."""
    return data[:1] == b"\x00" and len(data) >= 5


def _as_base64(data: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode()}


def raw_bytes(value: Any) -> bytes | None:
    """The bytes of a value that ``decoder`` could not show in another form; None for any other value."""
    if not isinstance(value, dict) or set(value) not in ({"base64"}, {"base64", "undecodable"}):
        return None
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None


def _by_schema(data: bytes, client: RegistryClient) -> Any:
    """The value of bytes in Confluent framing. Raises TidegateError, or ValueError for what is no JSON."""
    from registry.serde import protobuf_message, record_to_json, unframe

    schema_id, body = unframe(data)
    match client.any_schema(schema_id).schema_type:
        case "JSON":
            return parsed_json(bytes(body).decode(), constants=True)
        case "PROTOBUF":
            from google.protobuf.json_format import MessageToDict

            _, message = protobuf_message(data, client.any_schema)
            return MessageToDict(message, preserving_proto_field_name=True)
    return record_to_json(data, client.schema)


def subject_encoder(client: RegistryClient, subject: str) -> Callable[[Any], bytes]:
    """Encodes values from ``parsed_json`` as Avro with the newest schema of a subject.

    The encoder raises SerializationError for a value that does not fit.
    """
    from registry.serde import record_from_json

    registered = client.version(subject)
    schema = client.parsed(registered)

    def encode(value: Any) -> bytes:
        # Bytes that contradicted their schema stay as they are; {"base64": ...} alone may be a record of the schema.
        if isinstance(value, dict) and "undecodable" in value and (data := raw_bytes(value)) is not None:
            return data
        return record_from_json(schema, value, registered.id)

    return encode


def encoded_like(
    original: bytes | None, value: Any, client: RegistryClient, encode: Callable[[Any], bytes] | None = None
) -> bytes | None:
    """The bytes of a printed value, in the encoding of the bytes that it was printed from, or by ``encode``.

    A value that was not changed keeps its bytes. It comes from ``parsed_json``. Raises UsageError for one that does not
    fit the schema, ValueError for NaN where it is written as JSON.
    """
    from registry.serde import SerializationError

    printed = json_text(decoder(client)(original), constants=True)
    if value == parsed_json(printed, constants=True):
        return original
    if value is None:
        return None
    if isinstance(value, dict) and set(value) in ({"base64"}, {"base64", "undecodable"}):
        if (data := raw_bytes(value)) is None:
            raise UsageError(f"{value['base64']!r} is not base64")
        return data
    try:
        return _framed_like(original or b"", value, client) if encode is None else encode(value)
    except SerializationError as error:
        raise UsageError(f"does not fit the schema: {error}") from error


def _framed_like(original: bytes, value: Any, client: RegistryClient) -> bytes:
    """Raises SerializationError for a value that the schema of the original does not have."""
    from registry.serde import UnencodableValue, frame, protobuf_message, record_from_json, unframe

    try:
        schema_id, _ = unframe(original)
        kind = client.any_schema(schema_id).schema_type
        schema = client.schema(schema_id) if kind == "AVRO" else None
    except TidegateError:  # it was no record of a schema
        return value.encode() if isinstance(value, str) else json_text(value).encode()
    if schema is not None:
        return record_from_json(schema, value, schema_id)
    if kind == "JSON":
        return frame(schema_id, json_text(value).encode())
    from google.protobuf.json_format import ParseDict, ParseError

    header, message = protobuf_message(original, client.any_schema)
    message.Clear()
    try:
        ParseDict(json.loads(json_text(value)), message)  # it would cut a Decimal to an integer
    except ParseError as error:
        raise UnencodableValue(str(error)) from error
    return header + message.SerializeToString()


def shown_headers(headers: Sequence[tuple[str, bytes | None]], decode: Decode) -> dict[str, Any] | list[list[Any]]:
    """Headers as an object, or as [name, value] pairs where a name is there more than once."""
    pairs = [[name, decode(value)] for name, value in headers]
    by_name = dict(pairs)
    return by_name if len(by_name) == len(pairs) else pairs
