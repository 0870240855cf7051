"""CloudEventsConverter compared with Debezium's, whose events were recorded (see RecordCloudEvents.java), and with a
real registry.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connect.api import Converter, ConverterContext, DataError, Schema, SchemaType
from connect.converters.cloud_events import CloudEventsConfig, CloudEventsConverter
from connect.converters.json import JsonConfig, JsonConverter
from connect.data.json_schema import schema_from_json
from connect.data.json_values import reader_of
from tests.support.registry import RegistryThread
from tidegate.kit.config import parse, validate

CONTEXT = ConverterContext(is_key=False)


def recorded() -> dict[str, list[dict[str, Any]]]:
    cases = defaultdict(list)
    with gzip.open(Path(__file__).with_name("cloud_events.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            cases[case["kind"]].append(case)
    return cases


CASES = recorded()


class Framed(JsonConverter):
    """The recording's stand-in for Avro: JSON with its schema, in Confluent's framing."""

    def from_connect(self, topic, schema, values):
        made = super().from_connect(topic, schema, values).to_pylist()
        number = 8 if topic.endswith("-data") else 7
        return pa.array([b"\0" + number.to_bytes(4) + payload for payload in made], pa.binary())

    def to_connect(self, topic, data):
        return super().to_connect(
            topic, pa.array([payload and payload[5:] for payload in data.to_pylist()], pa.binary())
        )


class OverFramed(CloudEventsConverter):
    def _avro_converter(self) -> Converter:
        return Framed(parse(JsonConfig, {}), CONTEXT)


def converter(config: dict[str, str]) -> CloudEventsConverter:
    return OverFramed(parse(CloudEventsConfig, config), CONTEXT)


def schema_and_values(case: dict[str, Any]) -> tuple[Schema, pa.Array]:
    schema = schema_from_json(case["given"]["schema"])
    value = reader_of(schema, defaults=False)(case["given"]["payload"])
    return schema, pa.array([value], schema.arrow_type)


def shown(data: bytes) -> Any:
    """An event to compare: JSON in its order, parts in frames too."""

    def opened(value: Any) -> Any:
        if isinstance(value, dict):
            return [(name, opened(item)) for name, item in value.items()]
        if isinstance(value, list):
            return [opened(item) for item in value]
        if isinstance(value, str) and value.startswith("AAAAA"):
            return shown(base64.b64decode(value))
        return value

    if data[:1] == b"\0":
        return [data[:5], opened(json.loads(data[5:]))]
    return opened(json.loads(data))


def test_events_are_written_as_debezium_does() -> None:
    wrong = []
    for number, case in enumerate(CASES["write"]):
        if "given" not in case:
            assert case["written"] is None  # a tombstone
            continue
        what = f"{number}: {case['config']} {case['given']['payload']}"
        try:
            made = converter(case["config"]).from_connect("t", *schema_and_values(case))[0].as_py()
        except DataError as error:
            if str(error).partition(";")[0] != case.get("error", "").partition(": ")[2]:
                wrong.append(f"{what} fails: {error}, not {case.get('error')}")
            continue
        if "error" in case:
            wrong.append(f"{what} does not fail with {case['error']}")
        elif (made and shown(made)) != (case["written"] and shown(base64.b64decode(case["written"]))):
            wrong.append(f"{what}\n    {made!r}\n    {base64.b64decode(case['written'] or '')!r}")
    assert not wrong, f"{len(wrong)} of {len(CASES['write'])}\n" + "\n".join(wrong[:20])
    assert sum(case.get("written") is not None for case in CASES["write"]) > 150


def test_events_are_read_as_debezium_does() -> None:
    wrong = []
    written = [case for case in CASES["write"] if case.get("written")]
    for case in [*CASES["read"], *written]:
        data = case["text"].encode() if case["kind"] == "read" else base64.b64decode(case["written"])
        try:
            (run,) = converter(case["config"]).to_connect("t", pa.array([data], pa.binary()))
        except DataError as error:
            if "unreadable" not in case:
                wrong.append(f"{case['config']} {data!r} fails: {error}")
            continue
        if "unreadable" in case:
            wrong.append(f"{case['config']} {data!r} does not fail: {case['unreadable']}")
            continue
        if case["config"].get("data.serializer.type") == "avro" and run.schema is None:
            assert json.loads(run.values[0].as_py())["data"]  # the original reads nothing there
            assert case["made"]["data"] is None
            continue
        if run.schema is None:
            made = json.loads(run.values[0].as_py())
        else:
            text = JsonConverter(parse(JsonConfig, {"schemas.enable": "false", "decimal.format": "NUMERIC"}), CONTEXT)
            made = json.loads(text.from_connect("t", run.schema, run.values)[0].as_py())
        if made != case["made"]:
            wrong.append(f"{case['config']} {data!r}\n    {made}\n    {case['made']}")
    assert not wrong, f"{len(wrong)} of {len(CASES['read']) + len(written)}\n" + "\n".join(wrong[:20])


def test_keys_are_judged_as_by_debezium() -> None:
    headers = {"header", "value,id:header"}
    for case in CASES["configure"]:
        names = [value.key.name for value in validate(CloudEventsConfig, {case["key"]: case["value"]}) if value.errors]
        refused_here = case["value"] in headers or case["key"].startswith("opentelemetry")
        assert bool(names) == ("error" in case or refused_here), case


def test_wrong_keys_of_its_converters_are_named() -> None:
    config = {"json.schemas.cache.size": "x", "data.serializer.type": "avro", "avro.apicurio.registry.url": "http://a"}
    errors = {value.key.name: value.errors for value in validate(CloudEventsConfig, config) if value.errors}
    assert set(errors) == {"json.schemas.cache.size", "avro.apicurio.registry.url", "avro.schema.registry.url"}
    assert "json.schemas.cache.size: Not a number" in errors["json.schemas.cache.size"][0]


def test_a_batch_keeps_its_rows_in_order() -> None:
    """Tombstones, and events of several connectors, among others."""
    cases = [case for case in CASES["write"] if case.get("written") and case["config"] == {}]
    for case in cases:
        schema, values = schema_and_values(case)
        made = converter({}).from_connect("t", schema, pa.concat_arrays([values, values.slice(0, 0), values]))
        assert made[0] == made[1]
        again = pa.concat_arrays([pa.nulls(1, values.type), values, pa.nulls(2, values.type), values])
        rows = converter({}).from_connect("t", schema, again).to_pylist()
        assert rows == [None, made[0].as_py(), None, None, made[0].as_py()]
    assert cases


def test_confluents_deserializer_reads_events_in_avro() -> None:
    case = next(c for c in CASES["write"] if c.get("written") and c["given"]["payload"]["after"])
    with RegistryThread() as registry, SchemaRegistryClient({"url": registry.url}) as client:
        url = registry.url
        config = {
            "serializer.type": "avro",
            "data.serializer.type": "avro",
            "avro.schema.registry.url": url.replace("//", "//ann:hunter2@"),
        }
        made = CloudEventsConverter(parse(CloudEventsConfig, config), CONTEXT)
        (event,) = written = made.from_connect("shop", *schema_and_values(case))
        read = AvroDeserializer(client)
        decoded = read(event.as_py(), SerializationContext("shop", MessageField.VALUE))
        schema_id = int(decoded["dataschema"].removeprefix(f"{url}/schemas/ids/"))
        assert int.from_bytes(decoded["data"][1:5]) == schema_id
        data = read(decoded["data"], SerializationContext("shop", MessageField.VALUE))
        assert data["after"]["id"] == case["given"]["payload"]["after"]["id"]
        (run,) = made.to_connect("shop", written)
        assert run.schema is not None and run.schema.field("data").schema.type is SchemaType.STRUCT
        assert run.values[0].as_py()["data"]["after"]["id"] == data["after"]["id"]
        made.close()


@pytest.mark.parametrize("text", [b"{}", b"[]", b"null", b"5", b"{"])
def test_an_invalid_event_is_an_error_of_its_row(text: bytes) -> None:
    event = b'{"id":"1","source":"s","specversion":"1.0","type":"t","data":{"schema":{"type":"int32"},"payload":5}}'
    with pytest.raises(DataError) as caught:
        converter({}).to_connect("t", pa.array([event, None, text], pa.binary()))
    assert caught.value.rows == (2,)
