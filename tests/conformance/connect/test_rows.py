"""Rows through both workers: lines of a file into a topic, and records of a topic into a file, are the same bytes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.servers.kafka import KafkaBroker
from tests.servers.process import answer_when, wait_until
from tests.support.worker import settled

pytestmark = [pytest.mark.servers, pytest.mark.proof]

_APACHE: Final = "org.apache.kafka.connect"
SOURCE: Final = f"{_APACHE}.file.FileStreamSourceConnector"
SINK: Final = f"{_APACHE}.file.FileStreamSinkConnector"
_STRING, _JSON = f"{_APACHE}.storage.StringConverter", f"{_APACHE}.json.JsonConverter"
_SIMPLE, _BYTES = f"{_APACHE}.storage.SimpleHeaderConverter", f"{_APACHE}.converters.ByteArrayConverter"
LINES: Final = 'one\ntwo\n\nnaïve ☕ 𝄞\n  blanks  \n12\n-7.5\ntrue\nnull\n[1, 2]\n{"a": 1}\n2024-01-02T03:04:05.678Z\n\ttab\x1f\x7f\n99\n'


def chain(*transforms: tuple[str, Mapping[str, str]], **more: str) -> dict[str, str]:
    """The keys of a chain of Kafka's transformations; those of predicates come with ``more``."""
    names = [f"t{number}" for number in range(len(transforms))]
    keys = {"transforms": ",".join(names)}
    for name, (kind, options) in zip(names, transforms, strict=True):
        keys[f"transforms.{name}.type"] = f"{_APACHE}.transforms.{kind}"
        keys |= {f"transforms.{name}.{option}": value for option, value in options.items()}
    return keys | {name.replace("__", "."): value for name, value in more.items()}


_HOIST: Final = ("HoistField$Value", {"field": "line"})
_TOPIC_T = {"predicates": "p", "predicates.p.type": f"{_APACHE}.transforms.predicates.TopicNameMatches", "predicates.p.pattern": ".*"}  # fmt: skip
SOURCES: Final[Mapping[str, Mapping[str, str]]] = {
    "text": {"value.converter": _STRING},
    "utf16": {"value.converter": _STRING, "value.converter.converter.encoding": "UTF-16BE"},
    "json with schemas": {"value.converter": _JSON},
    "json": {"value.converter": _JSON, "value.converter.schemas.enable": "false"},
    "struct as text": {"value.converter": _STRING, **chain(_HOIST)},
    "struct": {"value.converter": _JSON, **chain(_HOIST)},
    "fields": {
        "value.converter": _JSON,
        "key.converter": _JSON,
        **chain(
            _HOIST,
            ("InsertField$Value", {"static.field": "source", "static.value": "f"}),
            ("ReplaceField$Value", {"renames": "line:text"}),
            ("ValueToKey", {"fields": "text"}),
            ("ExtractField$Key", {"field": "text"}),
            ("MaskField$Value", {"fields": "source"}),
            ("SetSchemaMetadata$Value", {"schema.name": "com.acme.Line", "schema.version": "2"}),
        ),
    },
    "cast with failures": {
        "value.converter": _JSON,
        "errors.tolerance": "all",
        **chain(_HOIST, ("Cast$Value", {"spec": "line:float64"})),
    },
    "cast whole values": {"value.converter": _JSON, "errors.tolerance": "all", **chain(("Cast$Value", {"spec": "boolean"}))},
    "numbers as bytes": {
        "value.converter": f"{_APACHE}.converters.IntegerConverter",
        "errors.tolerance": "all",
        **chain(("Cast$Value", {"spec": "int32"})),
    },
    "header": {"value.converter": _STRING, "header.converter": _SIMPLE, **chain(("InsertHeader", {"header": "h", "value.literal": "12.50"}))},
    "header as json": {"value.converter": _STRING, "header.converter": _JSON, **chain(("InsertHeader", {"header": "h", "value.literal": "[1, 2]"}))},
    "headers from fields": {
        "value.converter": _JSON,
        "header.converter": _SIMPLE,
        **chain(_HOIST, ("HeaderFrom$Value", {"fields": "line", "headers": "line", "operation": "move"})),
    },
    "flat": {"value.converter": _JSON, **chain(_HOIST, ("HoistField$Value", {"field": "outer"}), ("Flatten$Value", {"delimiter": "_"}))},
    "kept by a predicate": {"value.converter": _STRING, **chain(("HoistField$Value", {"field": "x", "predicate": "p"})), **_TOPIC_T},
    "another topic": {"value.converter": _STRING, **chain(("RegexRouter", {"regex": "(.*)-in", "replacement": "$1-out"}))},
    "times": {
        "value.converter": _JSON,
        "errors.tolerance": "all",
        **chain(("TimestampConverter$Value", {"target.type": "Timestamp", "format": "yyyy"})),
    },
}  # fmt: skip
"""Keys of sources besides the class, the file and the topic."""


class Both:
    """The original and ours over one Kafka."""

    def __init__(self, judges: Sequence[str], kafka: KafkaBroker, folder: Path) -> None:
        self.urls = dict(zip(("theirs", "ours"), judges, strict=True))
        self.servers, self.folder = kafka.bootstrap_servers, folder
        self.name = f"rows-{uuid.uuid4().hex[:8]}"

    def start(self, side: str, config: Mapping[str, str]) -> None:
        url = f"{self.urls[side]}/connectors/{self.name}-{side}/config"
        answer = answer_when(settled, lambda: requests.put(url, json=dict(config), timeout=60), url)
        assert answer.status_code == 201, answer.text

    def state(self, side: str) -> str:
        shown = requests.get(f"{self.urls[side]}/connectors/{self.name}-{side}/status", timeout=60).json()
        return str(next((task["state"] for task in shown.get("tasks", ())), ""))

    def offsets(self, side: str) -> list[Any]:
        shown = requests.get(f"{self.urls[side]}/connectors/{self.name}-{side}/offsets", timeout=60)
        return shown.json().get("offsets", []) if shown.status_code == 200 else []

    def stop(self) -> None:
        for side, url in self.urls.items():
            requests.delete(f"{url}/connectors/{self.name}-{side}", timeout=60)

    def records(self, topic: str) -> list[tuple[Any, ...]]:
        """Key, value and headers of a topic's records, as bytes."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "rows", "enable.auto.commit": False})
        try:
            known = consumer.list_topics(topic, timeout=30).topics[topic]
            if known.error is not None:
                return []
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
            consumer.assign([TopicPartition(topic, 0, first)])
            rows: list[tuple[Any, ...]] = []
            while consumer.position([TopicPartition(topic, 0)])[0].offset < end and len(rows) < end - first:
                message = consumer.poll(30)
                assert message is not None and message.error() is None, topic
                rows.append((message.key(), message.value(), message.headers()))
            return rows
        finally:
            consumer.close()


@pytest.fixture
def both(judges, apache_kafka, tmp_path):
    made = Both(judges, apache_kafka, tmp_path)
    yield made
    made.stop()


@pytest.mark.parametrize("keys", SOURCES.values(), ids=SOURCES)
def test_lines_become_the_same_records(both: Both, keys: Mapping[str, str]) -> None:
    # The last line passes each chain: the original commits no position of records that it drops after the last that it keeps.
    lines = both.folder / "lines"
    lines.write_text(LINES, encoding="utf-8")
    # The original counts the units of UTF-16 where it then skips bytes (docs/connect-differences.md).
    ends = {"theirs": len(LINES.encode("utf-16-le")) // 2, "ours": len(LINES.encode())}
    for side in both.urls:
        topic = {"connector.class": SOURCE, "file": str(lines), "topic": f"{both.name}-{side}-in"}
        both.start(side, {**topic, "key.converter": _STRING, **keys})
    for side in both.urls:
        wait_until(
            lambda side=side: (
                [entry["offset"] for entry in both.offsets(side)] == [{"position": ends[side]}]
                or both.state(side) == "FAILED"
            ),
            f"all lines on {side}, {both.state(side)}",
            timeout_s=60,
        )
    theirs, ours = (
        {way: both.records(f"{both.name}-{side}-{way}") for way in ("in", "out")} for side in ("theirs", "ours")
    )
    assert ours == theirs
    assert both.state("ours") == both.state("theirs")


STRUCT: Final = {"type": "struct", "name": "r", "fields": [
    {"field": "id", "type": "int64"}, {"field": "word", "type": "string", "optional": True},
    {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}, "optional": True},
    {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp", "optional": True},
    {"field": "tags", "type": "array", "items": {"type": "string"}, "optional": True},
    {"field": "more", "type": "map", "keys": {"type": "string"}, "values": {"type": "double"}, "optional": True},
    {"field": "inner", "type": "struct", "fields": [{"field": "f", "type": "float"}], "optional": True}]}  # fmt: skip
ROWS: Final = [
    {"schema": STRUCT, "payload": payload}
    for payload in (
        {"id": 1, "word": "naïve ☕", "price": "BM4=", "at": 1704164645678, "tags": ["a", "b"], "more": {"k": 1e10}, "inner": {"f": 1.5}},
        {"id": 2, "word": None, "price": None, "at": None, "tags": None, "more": None, "inner": None},
        {"id": -9223372036854775808, "word": "", "price": "/w==", "at": 0, "tags": [], "more": {}, "inner": {"f": 1e-7}},
    )
]  # fmt: skip
_TEXTS: Final = [b"plain", "naïve ☕".encode(), b"", b"two\nlines", None]
_ROWS: Final = [json.dumps(row, ensure_ascii=False).encode() for row in ROWS]
SINKS: Final[Mapping[str, tuple[Mapping[str, str], Sequence[bytes | None]]]] = {
    "text": ({"value.converter": _STRING}, _TEXTS),
    "structs": ({"value.converter": _JSON}, _ROWS),
    "fields": ({"value.converter": _JSON, **chain(("ExtractField$Value", {"field": "word"}))}, _ROWS),
    "changed structs": (
        {
            "value.converter": _JSON,
            **chain(
                ("InsertField$Value", {"offset.field": "offset", "partition.field": "partition"}),
                ("ReplaceField$Value", {"exclude": "more,tags", "renames": "id:ID"}),
                ("Flatten$Value", {}),
            ),
        },
        _ROWS,
    ),
    "casts": ({"value.converter": _JSON, **chain(("Cast$Value", {"spec": "id:string,at:int64"}))}, _ROWS),
    "numbers": ({"value.converter": f"{_APACHE}.converters.LongConverter"}, [(5).to_bytes(8), (-1).to_bytes(8, signed=True)]),
    "doubles": ({"value.converter": f"{_APACHE}.converters.DoubleConverter"}, [bytes.fromhex(h) for h in ("3ff8000000000000", "4202a05f20000000", "7ff8000000000000")]),
    "values without a schema": ({"value.converter": _JSON, "value.converter.schemas.enable": "false"}, [b"5", b"1.50", b"true", b'"x"', b"null"]),
    "dead letters": (
        {
            "value.converter": _JSON,
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "DEAD",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
        [_ROWS[0], b"no json", _ROWS[1], b'{"schema": {"type": "int33"}, "payload": 1}'],
    ),
}  # fmt: skip
"""Keys of sinks besides the class, the topic and the file, and the values of the records."""
_OF_A_WORKER: Final = ("stacktrace", "exception.message", "exception.class.name", "connector.name", "topic")
"""Headers of dead letters whose texts name the connector or speak of its code."""


@pytest.mark.parametrize(("keys", "values"), SINKS.values(), ids=SINKS)
def test_records_become_the_same_lines(both: Both, keys: Mapping[str, str], values: Sequence[bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": both.servers})
    for number, value in enumerate(values):
        producer.produce(both.name, value, f"k{number}", headers=[("n", str(number).encode())])
    assert producer.flush(30) == 0
    for side in both.urls:
        properties = {name: f"{both.name}-{side}-dead" if value == "DEAD" else value for name, value in keys.items()}
        to = {"connector.class": SINK, "topics": both.name, "file": str(both.folder / side)}
        both.start(side, {**to, "key.converter": _STRING, **properties})
    for side in both.urls:
        wait_until(
            lambda side=side: [entry["offset"] for entry in both.offsets(side)] == [{"kafka_offset": len(values)}],
            f"all records on {side}, {both.state(side)}",
            timeout_s=60,
        )
    theirs, ours = ((both.folder / side).read_bytes() for side in ("theirs", "ours"))
    assert ours.decode() == theirs.decode()
    theirs_dead, ours_dead = (both.records(f"{both.name}-{side}-dead") for side in ("theirs", "ours"))
    assert [(key, value) for key, value, _ in ours_dead] == [(key, value) for key, value, _ in theirs_dead]
    for mine, other in zip(ours_dead, theirs_dead, strict=True):
        names, other_names = ([name for name, _ in headers] for *_, headers in (mine, other))
        assert names == other_names
        stable = [[pair for pair in headers if not pair[0].endswith(_OF_A_WORKER)] for *_, headers in (mine, other)]
        assert stable[0] == stable[1]
