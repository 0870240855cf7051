"""The fields of an Avro record as inputs of a form."""

import json

import pytest

from registry.client import AvroSchema
from registry.serde import record_from_json
from tidegate.console.schema_form import PREFIX, form_fields, form_value


@pytest.mark.parametrize(
    ("kind", "logical"),
    [("string", "uuid"), ("int", "date"), ("int", "time-millis"), ("long", "time-micros")]
    + [("long", f"{local}timestamp-{unit}") for local in ("", "local-") for unit in ("millis", "micros")],
)
def test_the_example_of_a_field_is_a_value_of_it(kind, logical):
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": {"type": kind, "logicalType": logical}}]}
    (field,) = form_fields(schema)
    assert field.kind == "text" and field.example
    value = form_value([field], {PREFIX + "f": field.example})
    assert record_from_json(AvroSchema.parse(json.dumps(schema)), value, 1)


@pytest.mark.parametrize("type_", ["string", "long", {"type": "long", "logicalType": "timestamp-nanos"}])
def test_plain_fields_have_no_example(type_):
    assert [field.example for field in form_fields({"fields": [{"name": "f", "type": type_}]})] == [""]


def test_a_union_of_several_types_is_given_as_json():
    moment = {"type": "long", "logicalType": "timestamp-millis"}
    (field,) = form_fields({"fields": [{"name": "f", "type": ["null", moment, "string"]}]})
    assert (field.kind, field.is_required) == ("json", False)
    assert form_value([field], {PREFIX + "f": '"text"'}) == {"f": "text"}
