from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import BadEvent, NumberOutOfRange, UndecodablePayload, WrongType
from events.model.definitions import EventDefinition, EventField, FieldType, to_avro, to_avro_text
from events.model.payloads import EventSchema, frame, instant_text, unframe
from tests.support.events import ORDER_SHIPPED

SCHEMA = EventSchema(7, to_avro_text(ORDER_SHIPPED))


def encode(**body: Any) -> bytes:
    return SCHEMA.encode_json({"Order_Number__c": "N", **body}, created_ms=1_767_225_600_123, created_by="005")


def shown(**body: Any) -> dict[str, Any]:
    return SCHEMA.to_json(encode(**body), timestamp_ms=0)


def test_an_omitted_field_is_null_or_its_default() -> None:
    assert shown() == {
        "CreatedDate": "2026-01-01T00:00:00.123Z",
        "CreatedById": "005",
        "Order_Number__c": "N",
        "Amount__c": None,
        "Express__c": False,
        "Shipped_At__c": None,
        "Due__c": None,
        "Note__c": None,
    }


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("Amount__c", 12.5, 12.5),
        ("Amount__c", "12.5", 12.5),
        ("Amount__c", -99999999, -99999999.0),
        ("Express__c", "TRUE", True),
        ("Shipped_At__c", "2026-01-31T12:00:00.000+0100", "2026-01-31T11:00:00.000Z"),
        ("Shipped_At__c", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
        ("Shipped_At__c", "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ("Due__c", "2026-02-28", "2026-02-28"),
        ("Due__c", "1950-01-01T10:00:00", "1950-01-01"),
        ("Due__c", "1950-01-01Z", "1950-01-01"),
        ("Due__c", "1950-01-01+0100", "1950-01-01"),
        ("Amount__c", "", None),
        ("Note__c", "", None),
        ("Note__c", 5, "5"),
        ("Note__c", "ünïcödé 🚢", "ünïcödé 🚢"),
    ],
)
def test_values_are_read_as_salesforce_reads_them(field: str, value: Any, expected: Any) -> None:
    assert shown(**{field: value})[field] == expected


def test_lengths_count_characters_not_bytes() -> None:
    assert shown(Order_Number__c="ü" * 40)["Order_Number__c"] == "ü" * 40
    with pytest.raises(BadEvent, match="max length=40"):
        encode(Order_Number__c="ü" * 41)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "nan", 10**400])
def test_a_number_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises((NumberOutOfRange, WrongType)):
        encode(Amount__c=value)


def test_the_avro_body_is_what_the_schema_says() -> None:
    record = fastavro.schemaless_reader(
        io.BytesIO(encode(Due__c="1970-01-02")), fastavro.parse_schema(to_avro(ORDER_SHIPPED)), None
    )
    assert record["Due__c"] == 86_400_000


def test_a_finished_body_is_checked_as_json_is() -> None:
    parsed = fastavro.parse_schema(to_avro(ORDER_SHIPPED))

    def body(**more: Any) -> bytes:
        out = io.BytesIO()
        record = {"CreatedDate": 0, "CreatedById": "005", "Order_Number__c": "N", "Express__c": False, **more}
        fastavro.schemaless_writer(out, parsed, record)
        return out.getvalue()

    SCHEMA.check(body())
    for more in (
        {"Order_Number__c": "x" * 41},
        {"Amount__c": float("nan")},
        {"Shipped_At__c": 1 << 62},
        {"CreatedDate": 1 << 62},
    ):
        with pytest.raises(BadEvent):
            SCHEMA.check(body(**more))


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    try:
        SCHEMA.check(data)
        SCHEMA.to_json(data, timestamp_ms=0)
    except BadEvent as error:
        assert str(error)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda i: st.lists(i, max_size=3) | st.dictionaries(st.text(), i, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([field.name for field in ORDER_SHIPPED.fields] + ["attributes", "Id", "x"]), JSON)
)
def test_any_json_object_is_encoded_or_refused(body: dict[str, Any]) -> None:
    try:
        SCHEMA.to_json(SCHEMA.encode_json(body, created_ms=0, created_by="005"), timestamp_ms=0)
    except BadEvent as error:
        assert error.fields


def test_framing_is_confluents() -> None:
    assert frame(258, b"x") == b"\0\0\0\1\2x"
    assert unframe(b"\0\0\0\1\2x") == (258, b"x")
    for value in (b"", b"\0\0\0", b"\1\0\0\0\1"):
        with pytest.raises(UndecodablePayload):
            unframe(value)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_instants_are_iso_text(ms: int) -> None:
    text = instant_text(ms)
    assert text.endswith("Z")
    assert len(text) == 24


def test_a_field_that_is_left_out_gets_its_default_and_one_that_is_null_does_not() -> None:
    definition = EventDefinition(
        "Late__e",
        (
            EventField("Day__c", FieldType.DATE, default_formula="TODAY() + 1"),
            EventField("Code__c", FieldType.TEXT, required=True, default_formula="'none'"),
            EventField("Rate__c", FieldType.NUMBER, default_formula="7"),
        ),
    )
    schema = EventSchema(1, to_avro_text(definition))
    values = schema.decode(schema.encode_json({"Rate__c": None}, created_ms=86_400_005, created_by="u"))
    assert (values["Day__c"], values["Code__c"], values["Rate__c"]) == (2 * 86_400_000, "none", None)
