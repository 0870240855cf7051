"""The data generator: the values for its schemas, and that it generates the same ones again."""

from __future__ import annotations

import io
import json
import re
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import ConnectError, RecordBatch
from connect.bench import Bench
from connect.formats import avro_schema
from connectors.datagen.generator import generator_of
from connectors.datagen.quickstarts import QUICKSTARTS
from connectors.datagen.source import DatagenConnector
from connectors.datagen.texts import texts_of
from tidegate.kit.config import validate


def bench(**more: Any) -> Bench:
    given_keys = {"kafka.topic": "made", "max.interval": "0", "random.seed": "7"}
    return Bench(DatagenConnector, given_keys | {name.replace("_", "."): str(value) for name, value in more.items()})


def records(batches: list[RecordBatch]) -> list[Any]:
    return [record for batch in batches for record in batch.records()]


def values_of(type_: Any, count: int = 200) -> list[Any]:
    form = {"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}]}
    generate = generator_of(form, avro_schema(json.dumps(form)))
    return [generate(Random(n), n)["f"] for n in range(count)]


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_a_quickstart_makes_records_of_its_schema(name: str) -> None:
    with bench(quickstart=name, iterations=9).task() as running:
        made = records(running.poll_rows(9))
    schema = fastavro.parse_schema(dict(QUICKSTARTS[name].schema))
    for record in made:
        fastavro.schemaless_writer(io.BytesIO(), schema, record.value)  # raises where it does not fit
        assert record.key == record.value[QUICKSTARTS[name].key]
    assert [{header.key: header.value for header in record.headers} for record in made[:2]] == [
        {"task.generation": 0, "task.id": 0, "current.iteration": n} for n in (0, 1)
    ]


def test_generation_resumes_and_makes_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.datagen.source._AT_ONCE", 10)
    with bench(quickstart="orders", iterations=30).task() as running:
        whole = [record.value for record in records(running.poll_rows(30))]
    again = bench(quickstart="orders", iterations=30)
    pieces: list[Any] = []
    for _ in range(3):
        with again.task() as running:
            batches = running.poll_rows(1)[:1]
        again.commit(batches)
        pieces += [record.value for record in records(batches)]
    assert pieces == whole


def test_generation_ends_as_the_original_does() -> None:
    with bench(quickstart="users", iterations=5).task() as running:
        running.poll_rows(5)
        with pytest.raises(ConnectError, match="Stopping connector: generated the configured 5 number of messages"):
            running.task.poll()


def test_tasks_make_different_records() -> None:
    made = bench(quickstart="users", iterations=20)
    shares = []
    for number, properties in enumerate(made.plan(2)):
        with made.task(properties, number) as running:
            shares.append([record.value for record in records(running.poll_rows(20))])
    assert shares[0] != shares[1]


@pytest.mark.parametrize(
    "type_, fits",
    [
        ({"type": "int", "arg.properties": {"range": {"min": 3, "max": 5}}}, lambda v: v in (3, 4)),
        ({"type": "double", "arg.properties": {"range": {"min": -1, "max": 1}}}, lambda v: -1 <= v <= 1),
        ({"type": "string", "arg.properties": {"length": 4, "prefix": "<", "suffix": ">"}}, lambda v: re.fullmatch("<.{4}>", v)),
        ({"type": "string", "arg.properties": {"length": {"min": 1, "max": 3}}}, lambda v: len(v) in (1, 2)),
        ({"type": "string", "arg.properties": {"options": ["a", "b"]}}, lambda v: v in ("a", "b")),
        ({"type": "boolean", "arg.properties": {"odds": 1.0}}, lambda v: v is True),
        ({"type": "array", "items": "int", "arg.properties": {"length": 2}}, lambda v: len(v) == 2),
        ({"type": "map", "values": "long", "arg.properties": {"length": 2, "keys": {"length": 9}}},
         lambda v: all(len(key) == 9 for key, _ in v)),
        ({"type": "enum", "name": "E", "symbols": ["X", "Y"]}, lambda v: v in ("X", "Y")),
        ({"type": "fixed", "name": "F", "size": 5}, lambda v: len(v) == 5),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2, "arg.properties": {"range": {"min": 1.5}}},
         lambda v: Decimal("1.5") <= v < 1000),
        (["null", {"type": "int", "arg.properties": {"options": [1]}}], lambda v: v in (None, 1)),
    ],
)  # fmt: skip
def test_values_are_within_their_properties(type_: Any, fits: Any) -> None:
    assert all(fits(value) for value in values_of(type_))


@pytest.mark.parametrize(
    "type_, first",
    [
        ({"type": "int", "arg.properties": {"iteration": {"start": 5}}}, [5, 6, 7, 8]),
        ({"type": "long", "arg.properties": {"iteration": {"start": 0, "restart": 3}}}, [0, 1, 2, 0]),
        ({"type": "long", "arg.properties": {"iteration": {"start": 3, "restart": 0}}}, [3, 2, 1, 3]),
        ({"type": "long", "arg.properties": {"iteration": {"start": 0, "step": 10, "initial": 5}}}, [5, 15, 25, 35]),
        ({"type": "double", "arg.properties": {"iteration": {"start": 0, "step": 0.5}}}, [0, 0.5, 1.0, 1.5]),
        ({"type": "string", "arg.properties": {"iteration": {"start": 1}, "prefix": "n"}}, ["n1", "n2", "n3", "n4"]),
        ({"type": "boolean", "arg.properties": {"iteration": {"start": True}}}, [True, False, True, False]),
    ],
)
def test_iterations_count(type_: Any, first: list[Any]) -> None:
    assert values_of(type_, 4) == first


@pytest.mark.parametrize(
    "more, key, said",
    [
        ({}, "quickstart", "give one of"),
        ({"quickstart": "users", "schema_string": "{}"}, "quickstart", "give one of"),
        ({"quickstart": "nothing"}, "quickstart", "users"),
        ({"schema_string": "{"}, "schema.string", "not JSON"),
        ({"schema_string": '"int"'}, "schema.string", "should be an Avro record"),
        ({"schema_filename": "/no/such/file"}, "schema.filename", "cannot read"),
        ({"quickstart": "users", "schema_keyfield": "x"}, "schema.keyfield", "no field 'x'"),
    ],
)
def test_validation_names_the_key(more: dict[str, str], key: str, said: str) -> None:
    judged = [value for value in validate(DatagenConnector.config_class, bench(**more).properties) if value.errors]
    assert [value.key.name for value in judged] == [key]
    assert said in judged[0].errors[0]


@pytest.mark.parametrize(
    "type_, said",
    [
        ({"type": "int", "arg.properties": {"range": {"min": 5, "max": 5}}}, "f: .*min of range, 5, should be below"),
        ({"type": "int", "arg.properties": {"regex": "a"}}, "f: int has no arg.properties"),
        ({"type": "int", "arg.properties": {"options": ["a"]}}, "f: 'a' is not one of its options"),
        ({"type": "int", "arg.properties": {"iteration": {"start": 1, "restart": 5, "step": -1}}}, "never gets there"),
        ({"type": "int", "arg.properties": [1]}, "f: "),
        ({"type": "string", "arg.properties": {"regex": "(a"}}, "not a regular expression"),
        ({"type": "string", "arg.properties": {"regex": "(?=a)"}}, "texts cannot be made"),
    ],
)
def test_wrong_properties_name_their_field(type_: Any, said: str) -> None:
    with pytest.raises(ConnectError, match=said):
        values_of(type_)


@given(
    st.sampled_from(
        ["User_[1-9]", r"(a|bc?){2,3}\d+", "[^a-y]*x", r"\w{3}\s\W", "^Item_[1-9][0-9]{0,2}$", "(?:x|[0-9a-f]{4})+?."]
    ),
    st.integers(),
)
@settings(max_examples=60)
def test_texts_match_their_expression(regex: str, seed: int) -> None:
    assert re.fullmatch(regex, texts_of(regex)(Random(seed)))
