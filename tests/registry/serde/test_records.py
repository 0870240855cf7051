import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.client import AvroSchema
from registry.serde import (
    CorruptRecord,
    SerializationError,
    UnencodableValue,
    decode_record,
    encode_record,
    subject_name,
    unframe,
)

SCHEMA = AvroSchema.parse(
    json.dumps(
        {
            "type": "record",
            "name": "shop.Order",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "note", "type": ["null", "string"]},
                {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                {"name": "parts", "type": {"type": "array", "items": {"type": "map", "values": "int"}}},
            ],
        }
    )
)
VALUE = {"id": 5, "note": None, "total": Decimal("1.25"), "parts": [{"a": 1}, {}]}


def test_a_record_comes_back() -> None:
    data = encode_record(SCHEMA, VALUE, 300)
    assert data[:5] == b"\0\0\0\x01\x2c"
    assert decode_record(data, {300: SCHEMA}.__getitem__) == (300, SCHEMA, VALUE)


def test_a_reader_schema_is_used() -> None:
    reader = AvroSchema.parse('{"type":"record","name":"Order","fields":[{"name":"id","type":"double"}]}')
    data = encode_record(SCHEMA, VALUE, 1)
    assert decode_record(data, {1: SCHEMA}.__getitem__, reader) == (1, reader, {"id": 5.0})


@pytest.mark.parametrize("value", [{"id": "x"}, {}, None, 3, {**VALUE, "parts": [{"a": 2**40}]}])
def test_a_value_that_does_not_fit_is_an_error(value: object) -> None:
    with pytest.raises(UnencodableValue):
        encode_record(SCHEMA, value, 1)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_record_or_a_clear_error(data: bytes) -> None:
    for message in (data, b"\0\0\0\0\1" + data):
        try:
            decode_record(message, lambda _: SCHEMA)
        except CorruptRecord:
            continue


def test_bytes_left_over_are_an_error() -> None:
    with pytest.raises(CorruptRecord, match="1 bytes are left over"):
        decode_record(encode_record(SCHEMA, VALUE, 1) + b"x", lambda _: SCHEMA)
    with pytest.raises(CorruptRecord, match="not in Confluent framing"):
        unframe(b"abc")


def test_a_few_bytes_cannot_announce_nulls_without_end() -> None:
    schema = AvroSchema.parse(
        '{"type":"record","name":"R","fields":[{"name":"v","type":{"type":"array","items":"null"}}]}'
    )
    with pytest.raises(CorruptRecord, match="items that have no bytes"):
        decode_record(b"\0\0\0\0\1" + b"\xfe\xff\xff\xff\xff\xff\x0f\0", lambda _: schema)
    assert decode_record(encode_record(schema, {"v": [None] * 3}, 1), lambda _: schema)[2] == {"v": [None] * 3}


def test_a_recursive_record_comes_back() -> None:
    schema = AvroSchema.parse('{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}')
    value = {"next": {"next": {"next": None}}}
    assert decode_record(encode_record(schema, value, 1), lambda _: schema)[2] == value
    with pytest.raises(CorruptRecord, match="nested deeper than 300"):
        decode_record(b"\0\0\0\0\1" + b"\x02" * 1_000_000 + b"\0", lambda _: schema)


def test_subjects_by_strategy() -> None:
    assert subject_name("orders", is_key=False) == "orders-value"
    assert subject_name("orders", is_key=True) == "orders-key"
    java = "io.confluent.kafka.serializers.subject."
    assert subject_name("orders", is_key=False, schema=SCHEMA, by=f"{java}RecordNameStrategy") == "shop.Order"
    assert subject_name("orders", is_key=False, schema=SCHEMA, by="TopicRecordNameStrategy") == "orders-shop.Order"
    with pytest.raises(SerializationError, match="must be a named type"):
        subject_name("orders", is_key=False, schema=AvroSchema.parse('"int"'), by="RecordNameStrategy")
    with pytest.raises(SerializationError, match="Unknown subject name strategy Nope"):
        subject_name("orders", is_key=False, by="Nope")
