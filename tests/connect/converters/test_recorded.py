"""Converters compared with Kafka Connect's own, whose results for random values and texts were recorded (see
RecordConverters.java).
"""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from connect.api import ConverterContext, DataError, Schema, SchemaType
from connect.converters import numbers
from connect.converters.json import JsonConfig, JsonConverter
from connect.converters.simple_headers import SimpleHeaderConfig, SimpleHeaderConverter
from connect.converters.string import StringConfig, StringConverter
from connect.data.json_schema import schema_from_json
from connect.data.json_values import reader_of
from tidegate.kit.config import parse

RECORDED = Path(__file__).with_name("recorded.jsonl.gz")
CONTEXT = ConverterContext(is_key=False)
DIFFERENT = {"25:61:00.000Z"}
"""A time of more than a day, which Kafka Connect lets through."""
STRICTER = {
    '{"schema":{"type":"int8"},"payload":300}',
    '{"schema":{"type":"int32"},"payload":"x"}',
    '{"schema":{"type":"boolean"},"payload":1}',
    '{"schema":{"type":"int64"},"payload":1.7}',
}
"""Payloads that are not what their schema says: Kafka Connect reads another value out of them, here they are errors."""
LENIENT = {'{"schema":{"type":"string"},"payload":null}'}
"""A null payload means a tombstone, whatever the schema."""


def recorded() -> dict[str, list[dict[str, Any]]]:
    cases = defaultdict(list)
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            cases[case["kind"]].append(case)
    return cases


CASES = recorded()


def shape(schema: Schema | None) -> str:
    """A schema in the words of the recording."""
    if schema is None:
        return "none"
    if schema.type is SchemaType.ARRAY:
        return f"[{shape(schema.value_schema)}]"
    if schema.type is SchemaType.MAP:
        return f"{{{shape(schema.key_schema)}:{shape(schema.value_schema)}}}"
    return schema.type.value + (schema.name or "").rpartition(".")[2]


def column(form: Any) -> tuple[Schema | None, pa.Array]:
    if form is None:
        return None, pa.nulls(1, pa.string())
    schema, payload = schema_from_json(form["schema"]), form["payload"]
    value = None if payload is None else reader_of(schema, defaults=False)(payload)
    return schema, pa.array([value], schema.arrow_type)


def plain(value: Any) -> Any:
    """JSON to compare: numbers as numbers, NaN as text."""
    if isinstance(value, float):
        # Java before 19 writes some floats with a digit more than they need.
        return "NaN" if math.isnan(value) else f"{value:.7g}"
    if isinstance(value, dict):
        return [(name, plain(item)) for name, item in value.items()]
    return [plain(item) for item in value] if isinstance(value, list) else value


def test_texts_stand_for_the_values_that_kafka_connect_sees_in_them() -> None:
    converter = SimpleHeaderConverter(SimpleHeaderConfig(), CONTEXT)
    wrong = []
    for case in CASES["parse"]:
        schema, value = converter.to_connect_header("t", "h", case["text"].encode())
        made = converter.from_connect_header("t", "h", schema, value)
        result = (shape(schema), None if made is None else made.decode())
        if result != (case["schema"], case["written"]) and case["text"] not in DIFFERENT:
            wrong.append(f"{case['text']!r}: {result}, not {(case['schema'], case['written'])}")
    assert not wrong, f"{len(wrong)} of {len(CASES['parse'])}\n" + "\n".join(wrong[:50])


def test_json_is_written_as_kafka_connect_does() -> None:
    wrong = []
    for case in CASES["json"]:
        schema, values = column(case["given"])
        try:
            made = (
                JsonConverter(parse(JsonConfig, case["config"]), CONTEXT).from_connect("t", schema, values)[0].as_py()
            )
        except DataError as error:
            wrong.append(f"{case['config']} {case['given']} fails: {error}")
            continue
        if case["given"]["payload"] is None:
            continue  # a null is a tombstone
        if plain(json.loads(made)) != plain(json.loads(case["written"])):
            wrong.append(f"{case['config']}\n    {made.decode()}\n    {case['written']}")
    assert not wrong, f"{len(wrong)} of {len(CASES['json'])}\n" + "\n".join(wrong[:50])


def test_json_is_read_as_kafka_connect_does() -> None:
    wrong = []
    for case in CASES["read"]:
        converter = JsonConverter(parse(JsonConfig, {"schemas.enable": str(case["schemas"]).lower()}), CONTEXT)
        try:
            (run,) = converter.to_connect("t", pa.array([case["text"].encode()], pa.binary()))
            made = run.values[0].as_py(maps_as_pydicts="strict")
        except DataError as error:
            if "error" not in case and case["text"] not in STRICTER:
                wrong.append(f"{case['text']} fails: {error}")
            continue
        if "error" in case and case["text"] in LENIENT:
            continue
        if "error" in case:
            wrong.append(f"{case['text']} is {made!r}, not an error: {case['error']}")
        elif case["made"] is not None and case["made"]["schema"] is not None:
            schema, expected = column(case["made"])
            if (run.schema, made) != (schema, expected[0].as_py(maps_as_pydicts="strict")):
                wrong.append(f"{case['text']} is {run.schema} {made!r}, not {schema} {expected}")
        elif (None if made is None else json.loads(made)) != (case["made"] or {"payload": None})["payload"]:
            wrong.append(f"{case['text']} is {made!r}, not {case['made']}")
    assert not wrong, f"{len(wrong)} of {len(CASES['read'])}\n" + "\n".join(wrong[:50])


def test_numbers_have_the_bytes_of_kafkas_serializers() -> None:
    wrong = []
    for case in CASES["number"]:
        schema, values = column(case["given"])
        made_class = getattr(numbers, case["converter"])
        converter = made_class(made_class.config_class(), CONTEXT)
        try:
            made = converter.from_connect("t", schema, values)
        except DataError as error:
            if "error" not in case:
                wrong.append(f"{case} fails: {error}")
            continue
        if "error" in case:
            if values.null_count == 0:
                wrong.append(f"{case} does not fail")
            continue
        data = made[0].as_py()
        if (None if data is None else data.hex()) != case["written"]:
            wrong.append(f"{case}: {data!r}")
            continue
        (run,) = converter.to_connect("t", made)
        if plain(run.values[0].as_py()) != plain(values[0].as_py()):
            wrong.append(f"{case} is read as {run.values[0]}")
    assert not wrong, f"{len(wrong)} of {len(CASES['number'])}\n" + "\n".join(wrong[:50])


def with_sql_times(schema: Schema) -> Schema:
    """The schema as the JDBC source gives it."""
    parts = {
        name: part and with_sql_times(part)
        for name, part in (("key_schema", schema.key_schema), ("value_schema", schema.value_schema))
    }
    fields = tuple(replace(field, schema=with_sql_times(field.schema)) for field in schema.fields)
    return replace(schema, is_java_sql=True, fields=fields, **parts)


def test_strings_are_written_as_kafka_connect_does() -> None:
    converter = StringConverter(parse(StringConfig, {}), CONTEXT)
    wrong = []
    for case in CASES["string"]:
        schema, values = column(case["given"])
        assert schema is not None
        made = converter.from_connect("t", with_sql_times(schema) if case["sql"] else schema, values)[0].as_py()
        if made.decode() != case["written"]:
            wrong.append(f"{schema}\n    {made.decode()}\n    {case['written']}")
    assert len(CASES["string"]) > 500
    assert not wrong, f"{len(wrong)} of {len(CASES['string'])}\n" + "\n".join(wrong[:50])
