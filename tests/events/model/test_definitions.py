from __future__ import annotations

import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import InvalidDefinition
from events.model.definitions import EventDefinition, EventField, FieldType, from_avro, to_avro, to_avro_text
from tests.support.events import ORDER_SHIPPED

NAMES = st.from_regex(r"[A-Za-z](_?[A-Za-z0-9]){0,20}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def fields(draw: st.DrawFn) -> EventField:
    kind = draw(st.sampled_from(FieldType))
    precision = draw(st.integers(1, 18))
    return EventField(
        draw(NAMES) + "__c",
        kind,
        label=draw(TEXTS),
        required=kind is not FieldType.CHECKBOX and draw(st.booleans()),
        length=draw(st.integers(1, 255)) if kind in (FieldType.TEXT, FieldType.LONG_TEXT_AREA) else 0,
        precision=precision if kind is FieldType.NUMBER else 18,
        scale=draw(st.integers(0, precision)) if kind is FieldType.NUMBER else 0,
        description=draw(TEXTS),
        default=kind is FieldType.CHECKBOX and draw(st.booleans()),
    )


@settings(deadline=None)
@given(
    st.builds(
        EventDefinition,
        name=NAMES.map(lambda name: name + "__e"),
        fields=st.lists(fields(), max_size=6, unique_by=lambda field: field.name.lower()).map(tuple),
        label=TEXTS,
        plural_label=TEXTS,
        description=TEXTS,
        publish_behavior=st.sampled_from(["PublishImmediately", "PublishAfterCommit"]),
    )
)
def test_a_definition_survives_its_avro_record(definition: EventDefinition) -> None:
    assert from_avro(to_avro_text(definition)) == definition
    fastavro.parse_schema(to_avro(definition))


def test_the_record_has_the_shape_salesforce_shows() -> None:
    record = to_avro(ORDER_SHIPPED)
    assert (record["namespace"], record["name"]) == ("com.sforce.eventbus", "Order_Shipped__e")
    assert record["fields"][:2] == [
        {"name": "CreatedDate", "type": "long", "doc": "CreatedDate:DateTime"},
        {"name": "CreatedById", "type": "string", "doc": "CreatedBy:EntityId"},
    ]
    by_name = {field["name"]: field for field in record["fields"]}
    assert by_name["Order_Number__c"]["type"] == "string"
    assert by_name["Amount__c"]["type"] == ["null", "double"]
    assert by_name["Amount__c"]["default"] is None
    assert by_name["Express__c"]["type"] == "boolean"
    kinds = {name: field["doc"].split(":")[1] for name, field in by_name.items() if name.endswith("__c")}
    assert kinds == {
        "Order_Number__c": "Text",
        "Amount__c": "Double",
        "Express__c": "Boolean",
        "Shipped_At__c": "DateTime",
        "Due__c": "DateOnly",
        "Note__c": "StringPlusClob",
    }
    assert all(len(field["doc"].split(":")[2]) == 15 for name, field in by_name.items() if name.endswith("__c"))


def test_salesforces_own_record_is_read() -> None:
    definition = from_avro(
        {
            "type": "record",
            "name": "Camel__e",
            "namespace": "com.sforce.eventbus",
            "fields": [
                {"name": "CreatedDate", "type": "long", "doc": "CreatedDate:DateTime"},
                {"name": "CreatedById", "type": "string", "doc": "CreatedBy:EntityId"},
                {"name": "Message__c", "type": ["null", "string"], "doc": "Data:Text:00NDS00000mES97", "default": None},
                {"name": "At__c", "type": ["null", "long"], "doc": "Data:DateTime:00NDS00000mES98", "default": None},
            ],
        }
    )
    assert [(field.name, field.type) for field in definition.fields] == [
        ("Message__c", FieldType.TEXT),
        ("At__c", FieldType.DATE_TIME),
    ]


def test_a_plain_record_is_read() -> None:
    plain = {
        "type": "record",
        "name": "Plain__e",
        "fields": [
            {"name": "A__c", "type": "string"},
            {"name": "B__c", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
            {"name": "C__c", "type": {"type": "int", "logicalType": "date"}},
            {"name": "D__c", "type": ["int", "null"]},
            {"name": "E__c", "type": "boolean", "default": True},
        ],
    }
    definition = from_avro(json.dumps(plain))
    assert [(field.type, field.required) for field in definition.fields] == [
        (FieldType.TEXT, True),
        (FieldType.DATE_TIME, False),
        (FieldType.DATE, True),
        (FieldType.NUMBER, False),
        (FieldType.CHECKBOX, False),
    ]
    assert definition.fields[4].default is True


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "not JSON"),
        ('"string"', "is a record"),
        ({"type": "record", "name": "A__e"}, "is a record"),
        ({"type": "record", "name": "A", "fields": []}, "Event name 'A'"),
        ({"type": "record", "name": "A__e", "fields": [{"name": "b", "type": "string"}]}, "Field name 'b'"),
        ({"type": "record", "name": "A__e", "fields": [7]}, "not an Avro field"),
        (
            {"type": "record", "name": "A__e", "fields": [{"name": "B__c", "type": "bytes"}]},
            "Field B__c of A__e is Avro bytes",
        ),
        (
            {"type": "record", "name": "A__e", "fields": [{"name": "B__c", "type": ["int", "string"]}]},
            "union of 2 types",
        ),
        (
            {
                "type": "record",
                "name": "A__e",
                "fields": [{"name": "B__c", "type": "string", "salesforce": {"type": "Number"}}],
            },
            "said to be Number",
        ),
        (
            {
                "type": "record",
                "name": "A__e",
                "fields": [{"name": "B__c", "type": "string", "salesforce": {"length": 256}}],
            },
            "length 256",
        ),
        (
            {
                "type": "record",
                "name": "A__e",
                "fields": [{"name": "B__c", "type": "string", "salesforce": {"length": "x"}}],
            },
            "whole number",
        ),
        (
            {"type": "record", "name": "A__e", "fields": [{"name": "B__c", "type": "string"}] * 2},
            "There is already a field named b__c on A__e",
        ),
    ],
)
def test_an_invalid_field_is_refused_by_name(schema: object, message: str) -> None:
    with pytest.raises(InvalidDefinition, match=message):
        from_avro(schema)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=10)
    | st.sampled_from(["record", "string", "null", "A__e", "B__c"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "name", "fields", "doc", "default", "salesforce", "logicalType", "length"]), inner
        )
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON.map(json.dumps) | st.text(max_size=50))
def test_any_text_is_a_definition_or_an_error_with_a_reason(text: str) -> None:
    try:
        from_avro(text)
    except InvalidDefinition as error:
        assert str(error)


@pytest.mark.parametrize(
    ("number", "formula"), [(0.1234567, "0.1234567"), (1e-7, "0.0000001"), (12.50, "12.5"), (100, "100"), (-3, "-3")]
)
def test_the_default_of_a_plain_number_keeps_its_digits(number: float, formula: str) -> None:
    field = {"name": "Rate__c", "type": "double", "default": number}
    made = from_avro({"type": "record", "name": "Rates__e", "fields": [field]})
    assert made.fields[0].default_formula == formula
    assert to_avro(made)["fields"][2]["default"] == number


@pytest.mark.parametrize("number", [10**400, 1e300, float("nan"), float("inf")])
def test_a_default_that_no_number_field_can_have_is_refused(number: float) -> None:
    field = {"name": "Rate__c", "type": "double", "default": number}
    with pytest.raises(InvalidDefinition, match="Rate__c: default value"):
        from_avro({"type": "record", "name": "Rates__e", "fields": [field]})
