import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidSchema
from registry.formats.avro.schema import AvroSchema
from registry.formats.json_text import write_json


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (1e10, "1.0E10"),
        (1.5e300, "1.5E300"),
        (-123.456, "-123.456"),
        (5e-324, "5.0E-324"),
    ],
)
def test_numbers_are_written_as_java_does(number: float, text: str) -> None:
    assert write_json(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_number_is_the_number(number: float) -> None:
    assert float(write_json(number)) == number


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_written_json_is_json(value: Any) -> None:
    assert json.loads(write_json(value)) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("nope", "not valid JSON"),
        ("[NaN]", "NaN is not JSON"),
        ("3", "Schema not yet supported: 3"),
        ('"nope"', 'Undefined name: "nope"'),
        ('{"type":"nope"}', 'Type "nope" is not supported'),
        ('{"type":"record","name":"R"}', "Record has no fields"),
        ('{"type":"record","fields":[]}', "No name in schema"),
        ('{"type":"record","name":"1R","fields":[]}', "Illegal initial character: 1R"),
        ('{"type":"record","name":"R-","fields":[]}', "Illegal character in: R-"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
            "Duplicate field a",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
            "Invalid default for field a",
        ),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "Duplicate enum symbol: A"),
        ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "The Enum Default: B is not in"),
        ('{"type":"fixed","name":"F"}', "Invalid or no size"),
        ('["int","int"]', "Duplicate in union: int"),
        ('["int",["string"]]', "Nested union"),
        ("[" * 100_000, "nested too deep"),
        ('{"type":"array","items":' * 150 + '"int"' + "}" * 150, "nested too deep"),
        (
            '{"type":"record","name":"R","fields":[{"name":"r","default":{},"type":{"type":"record","name":"S",'
            '"fields":[{"name":"s","type":"S","default":{}}]}}]}',
            "Invalid default for field s",
        ),
    ],
)
def test_an_invalid_schema_says_why(text: str, words: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        AvroSchema.parse(text)
    assert words in str(caught.value)


@given(
    st.text()
    | st.recursive(
        st.none() | st.text(max_size=3) | st.integers(),
        lambda s: (
            st.lists(s, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "name", "fields", "items", "symbols", "default", "size", "aliases", "namespace"]
                ),
                st.sampled_from(["record", "enum", "int", "fixed", "array", "map"]) | s,
            )
        ),
    ).map(json.dumps)
)
def test_any_text_is_a_schema_or_a_clear_error(text: str) -> None:
    for strict in (True, False):
        try:
            schema = AvroSchema.parse(text, strict=strict)
        except InvalidSchema:
            continue
        assert AvroSchema.parse(schema.canonical, strict=False) == schema


def test_types_used_twice_at_every_level_cost_no_more_than_their_text() -> None:
    def doubling(last: str) -> AvroSchema:
        inner: Any = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": last}]}
        for level in range(1, 60):
            fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{level - 1}"}]
            inner = {"type": "record", "name": f"R{level}", "fields": fields}
        return AvroSchema.parse(json.dumps(inner))

    new, old = doubling("int"), doubling("string")
    assert new.normalized().canonical == new.canonical
    assert 0 < len(new.reading_problems(old)) <= 1000
    inner: Any = {"type": "record", "name": "D0", "fields": [{"name": "a", "type": "int", "default": 1}]}
    for level in range(1, 60):
        fields = [{"name": "a", "type": inner, "default": {}}, {"name": "b", "type": f"D{level - 1}", "default": {}}]
        inner = {"type": "record", "name": f"D{level}", "fields": fields}
    assert AvroSchema.parse(json.dumps(inner)).canonical


def test_a_bare_primitive_is_a_schema() -> None:
    assert AvroSchema.parse("string").canonical == '"string"'
    assert AvroSchema.parse('{"type":"string"}').canonical == '"string"'


def test_normalization_sorts_what_has_no_order() -> None:
    schema = AvroSchema.parse(
        '{"type":"record","name":"R","namespace":"a","doc":"","aliases":["z","b.c"],"y":1,"x":{"q":1,"p":2},"fields":['
        '{"name":"d","type":{"type":"bytes","scale":2,"precision":9,"k":1,"logicalType":"decimal"},"z":1,"order":"ascending",'
        '"aliases":["n","m"]}]}'
    )
    assert schema.normalized().canonical == (
        '{"type":"record","name":"R","namespace":"a","fields":[{"name":"d","type":{"type":"bytes","logicalType":"decimal",'
        '"precision":9,"scale":2,"k":1},"aliases":["m","n"],"z":1}],"x":{"p":2,"q":1},"y":1,"aliases":["z","b.c"]}'
    ).replace('["z","b.c"]', '["z","b.c"]')
    assert schema.normalized().normalized().canonical == schema.normalized().canonical
