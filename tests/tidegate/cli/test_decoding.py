"""Keys and values as the command line prints them, and the bytes of printed values that were edited."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal

import pytest

from registry.client import RegistryClient
from registry.serde import encode_record, frame
from tests.support.registry import RegistryThread
from tidegate.kit.errors import UsageError
from tidegate.records.decoding import decoder, encoded_like
from tidegate.records.exact_json import parsed_json

AVRO = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'
JSON = '{"type": "object", "properties": {"n": {"type": "integer"}}}'
PROTOBUF = (
    'syntax = "proto3"; message Outer { int64 big_n = 1; repeated string tags = 2; message Inner { bool ok = 1; } }'
)


@pytest.fixture(scope="module")
def client() -> Iterator[RegistryClient]:
    with RegistryThread() as registry, RegistryClient(registry.url) as client:
        yield client


def avro(client: RegistryClient, value: object) -> bytes:
    schema_id = client.register("avro", AVRO)
    return encode_record(client.schema(schema_id), value, schema_id)


def json_schema(client: RegistryClient, text: str) -> bytes:
    return frame(client.register("json", JSON, schema_type="JSON"), text.encode())


def protobuf(client: RegistryClient, indexes: bytes, body: bytes) -> bytes:
    return frame(client.register("protobuf", PROTOBUF, schema_type="PROTOBUF"), indexes + body)


def test_values_are_decoded_by_the_schema_that_they_name(client: RegistryClient) -> None:
    decode = decoder(client)
    assert decode(avro(client, {"n": 1})) == {"n": 1}
    assert decode(json_schema(client, '{"n": 2}')) == {"n": 2}
    assert decode(protobuf(client, b"\x00", b"\x08\x07\x12\x01a")) == {"big_n": "7", "tags": ["a"]}
    assert decode(protobuf(client, b"\x04\x00\x00", b"\x08\x01")) == {"ok": True}


@pytest.mark.parametrize("data", [b"\x00\x00\x00\x99\x99x", b"\x00\x00\x00\x00\x01", b"\x00\x00\x00\x00\x03\x00\xff"])
def test_what_does_not_fit_its_schema_is_shown_as_bytes_with_the_reason(client: RegistryClient, data: bytes) -> None:
    avro(client, {"n": 1}), json_schema(client, "1"), protobuf(client, b"\x00", b"")
    shown = decoder(client)(data)
    assert set(shown) == {"undecodable", "base64"} and shown["undecodable"]
    assert encoded_like(b"other", shown, client) == data


def test_an_edited_value_has_the_encoding_of_the_original(client: RegistryClient) -> None:
    for original, value in (
        (avro(client, {"n": 1}), {"n": 5}),
        (json_schema(client, '{"n": 2}'), {"n": 5}),
        (protobuf(client, b"\x00", b"\x08\x07"), {"big_n": "5", "tags": ["x", "y"]}),
        (protobuf(client, b"\x04\x00\x00", b"\x08\x01"), {"ok": True}),
        (b"text", "other text"),
        (b'{"n": 1}', {"n": 5}),
    ):
        changed = encoded_like(original, value, client)
        assert changed is not None and decoder(client)(changed) == value
        assert changed[:5] == original[:5] or original[:1] != b"\x00"
        assert encoded_like(original, decoder(client)(original), client) == original
        assert encoded_like(original, None, client) is None


def test_numbers_of_an_edited_value_keep_their_digits(client: RegistryClient) -> None:
    fields = [
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10}},
        {"name": "x", "type": "double"},
    ]
    schema_id = client.register("numbers", json.dumps({"type": "record", "name": "N", "fields": fields}))
    original = encode_record(client.schema(schema_id), {"d": Decimal("1.5"), "x": math.nan}, schema_id)
    edited = parsed_json('{"d": 1234567890123456789.1234567891, "x": NaN}', constants=True)
    shown = decoder(client)(encoded_like(original, edited, client))
    assert shown["d"] == "1234567890123456789.1234567891" and math.isnan(shown["x"])
    digits = '{"n": 0.12345678901234567890}'
    for plain in (b'{"n": 0.1}', json_schema(client, '{"n": 0.1}')):
        changed = encoded_like(plain, parsed_json(digits), client)
        assert changed is not None and changed.endswith(digits.encode())
        assert encoded_like(plain, parsed_json('{"n": 0.10}'), client) == plain
        with pytest.raises(ValueError, match="NaN is no number of JSON"):
            encoded_like(plain, parsed_json('{"n": NaN}', constants=True), client)
    with pytest.raises(UsageError, match="does not fit the schema"):
        encoded_like(protobuf(client, b"\x00", b"\x08\x07"), parsed_json('{"big_n": 1.5}'), client)


@pytest.mark.parametrize("value", [{"n": "no number"}, {"big_n": "x"}, {"unknown": 1}])
def test_an_edited_value_that_does_not_fit_is_refused(client: RegistryClient, value: object) -> None:
    for original in (avro(client, {"n": 1}), protobuf(client, b"\x00", b"\x08\x07")):
        with pytest.raises(UsageError, match="does not fit the schema"):
            encoded_like(original, value, client)
