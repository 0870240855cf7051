"""Transformations compared with the originals, whose results for random records were recorded.

Kafka's by RecordTransforms.java, Debezium's by RecordDebezium.java, jcustenborder's by RecordCommon.java.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from connect.api import DataError, Header, Origin, PluginType, RecordBatch, Schema
from connect.data.headers import column_of
from connect.data.json_schema import schema_from_json
from connect.data.json_values import reader_of
from connect.plugins.registry import load_plugins
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

PLUGINS = load_plugins(entry_points=False)
HERE = Path(__file__).parent
RECORDED = {
    "recorded.jsonl.gz": "org.apache.kafka.connect.transforms.",
    "debezium.jsonl.gz": "io.debezium.transforms.",
    "common.jsonl.gz": "com.github.jcustenborder.kafka.connect.transform.common.",
}


def recorded() -> dict[str, list[dict[str, Any]]]:
    cases = defaultdict(list)
    for file, package in RECORDED.items():
        with gzip.open(HERE / file, "rt", encoding="utf-8") as lines:
            for line in lines:
                case = json.loads(line)
                if file == "common.jsonl.gz" and "message" in case:
                    case["message"] = ""  # its own do not name what they mean
                cases[case["transform"].partition("$")[0]].append({**case, "class": package + case["transform"]})
    return cases


CASES = recorded()


def read(envelope: Any) -> tuple[Schema | None, Any]:
    """Schema and value of what JsonConverter wrote; nulls stay nulls."""
    if envelope is None:
        return None, None
    if envelope["schema"] is None:
        return None, envelope["payload"]
    schema = schema_from_json(envelope["schema"])
    payload = envelope["payload"]
    value = None if payload is None else reader_of(schema, defaults=False)(payload)
    return schema, pa.array([value], schema.arrow_type)[0].as_py(maps_as_pydicts="strict")


def column(envelope: Any) -> tuple[pa.Array, Schema | None]:
    schema, value = read(envelope)
    if schema is None:
        return pa.array([None if value is None else json.dumps(value)], pa.string()), None
    if envelope["payload"] is not None and isinstance(value, dict):
        value = reader_of(schema, defaults=False)(envelope["payload"])
    return pa.array([value], schema.arrow_type), schema


def batch(record: dict[str, Any]) -> RecordBatch:
    (keys, key_schema), (values, value_schema) = column(record["key"]), column(record["value"])
    headers = [Header(h["key"], *reversed(read(h["value"]))) for h in record["headers"]]
    return RecordBatch(
        record["topic"],
        values,
        value_schema,
        keys=None if record["key"] is None else keys,
        key_schema=key_schema,
        headers=column_of([headers]),
        timestamps_ms=pa.array([record.get("timestamp")], pa.int64()),
        origin=Origin(record["topic"], record["partition"]) if "offset" in record else None,
        offsets=pa.array([record["offset"]], pa.int64()) if "offset" in record else None,
    )


def plain(value: Any) -> Any:
    """A value that equals itself: NaN as text, dicts without order."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def differences(made: RecordBatch, expected: dict[str, Any]) -> Iterator[str]:
    try:
        (record,) = made.records()
    except DataError as error:
        assert "Python has no form of" in str(error)  # a year beyond 9999: in columns, not in Python
        return
    if record.topic != expected["topic"]:
        yield f"topic {record.topic}, not {expected['topic']}"
    if made.origin is None and record.partition != expected.get("partition"):
        yield f"partition {record.partition}, not {expected.get('partition')}"
    if record.timestamp_ms != expected.get("timestamp"):
        yield f"time {record.timestamp_ms}, not {expected.get('timestamp')}"
    for side in ("key", "value"):
        if expected[side] is not None and "unwritable" in expected[side]:
            continue
        schema, value = read(expected[side])
        if plain(getattr(record, side)) != plain(value):
            yield f"{side} {getattr(record, side)!r}, not {value!r}"
        # A record without a value has whatever schema its batch has.
        if value is not None and repr(getattr(record, f"{side}_schema")) != repr(schema):
            yield f"{side} schema {getattr(record, f'{side}_schema')}, not {schema}"
    if len(record.headers) != len(expected["headers"]):
        yield f"{len(record.headers)} headers, not {len(expected['headers'])}"
    for header, other in zip(record.headers, expected["headers"], strict=False):
        if other["value"] is not None and "unwritable" in other["value"]:
            continue
        schema, value = read(other["value"])
        if (header.key, plain(header.value)) != (other["key"], plain(value)):
            yield f"header {header}, not {other['key']} {value!r}"
        if value is not None and repr(header.schema) != repr(schema):
            yield f"header schema {header.schema}, not {schema}"


def is_tombstone(case: dict[str, Any]) -> bool:
    side = case["record"]["key" if case["transform"].endswith("$Key") else "value"]
    return side is None or side["payload"] is None


def texts(case: dict[str, Any]) -> Iterator[str]:
    """The texts that an error may have: Kafka Connect's message up to a class name or a printed record."""
    yield re.split(r"(?<=found: )|(?<=class )|(?<=on record: )|(?<=message received )", case["message"] or "")[0]
    if case["error"] == "NullPointerException":
        yield "no field 'nope' for header"
        yield "nope is not a valid field name"


@pytest.mark.parametrize("transform", sorted(CASES))
def test_transformations_give_the_results_of_kafka_connect(transform: str) -> None:
    wrong: list[str] = []
    for number, case in enumerate(CASES[transform]):
        plugin = PLUGINS.find(case["class"], PluginType.TRANSFORMATION)
        assert plugin is not None
        loaded = plugin.load()
        what = f"{number}: {case['config']} on {json.dumps(case['record'])}"
        try:
            transformation = loaded(parse(loaded.config_class, case["config"]))
        except ConfigError as error:
            # The class alone takes names that repeat; Kafka Connect refuses the configuration.
            if "refused" not in case and case["config"].get("headers") != "h1,h1":
                wrong.append(f"{what} is refused: {error}")
            continue
        if "refused" in case:
            wrong.append(f"{what} is not refused: {case['refused']}")
            continue
        try:
            made = transformation.apply(batch(case["record"]))
        except DataError as error:
            # Kafka Connect lets such a date go round 2^31 days where it is written.
            if "message" not in case and "further away than a Date holds" not in str(error):
                wrong.append(f"{what} fails: {error}")
            elif "message" in case and not any(str(error).startswith(text) for text in texts(case)):
                wrong.append(f"{what} fails with {error}, not {case['message']}")
            continue
        except Exception as error:
            wrong.append(f"{what} breaks: {error!r}")
            continue
        if "made" not in case and is_tombstone(case):
            continue  # with the schema of its batch or without one: nothing is there to look for fields
        if "made" not in case and case["message"] != "Cannot list fields on non-struct type":
            wrong.append(f"{what} does not fail with {case['error']}: {case['message']}")
        elif "made" in case and case["made"] is None:
            if any(len(each) for each in made):
                wrong.append(f"{what} does not drop the record")
        elif "made" in case:
            if not len(made[0]):
                wrong.append(f"{what} drops the record")
                continue
            wrong += [f"{what}\n    {difference}" for difference in differences(made[0], case["made"])]
    assert not wrong, f"{len(wrong)} of {len(CASES[transform])}\n" + "\n".join(wrong[:200])
