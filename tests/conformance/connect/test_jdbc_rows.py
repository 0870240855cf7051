"""Records through Debezium's JDBC sink in Kafka Connect and through ours: the same tables with the same rows in PostgreSQL."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest
import requests
from confluent_kafka import Producer

from tests.servers.fetch import require
from tests.servers.kafka import KafkaBroker, KafkaConnect
from tests.servers.postgres import PostgresServer
from tests.servers.process import answer_when, wait_until
from tests.support.worker import ConnectWorker, settled

# Its jars are fetched for this and for a benchmark only: `python -m tests.servers fetch debezium-jdbc`.
pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long]

_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_DECIMAL: Final = {
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2", "connect.decimal.precision": "12"},
}


def struct(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "name": name, "fields": list(fields)}


def field(label: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"field": label, "type": kind, "optional": True, **more}


KEY: Final = struct("k", {"field": "id", "type": "int64"})
PLAIN: Final = struct(
    "v",
    {"field": "id", "type": "int64"},
    field("word", "string"),
    field("small", "int16"),
    field("number", "int32"),
    field("ratio", "double"),
    field("single", "float"),
    field("yes", "boolean"),
    field("price", "bytes", **_DECIMAL),
    field("raw", "bytes"),
    field("day", "int32", name="org.apache.kafka.connect.data.Date"),
    field("at", "int64", name="org.apache.kafka.connect.data.Timestamp"),
    field("clock", "int32", name="org.apache.kafka.connect.data.Time"),
    field("micros", "int64", name="io.debezium.time.MicroTimestamp"),
    field("zoned", "string", name="io.debezium.time.ZonedTimestamp"),
    field("document", "string", name="io.debezium.data.Json"),
    field("mark", "string", name="io.debezium.data.Uuid"),
)
FULL: Final = {
    "word": "naïve ☕", "small": 7, "number": -12, "ratio": 1e-7, "single": 1.5, "yes": True, "price": "BM4=", "raw": "AP8=", "day": 19_782,
    "at": 1704164645678, "clock": 3_601_000, "micros": 1704164645678901, "zoned": "2024-01-02T03:04:05.678901Z",
    "document": '{"a": [1, 2]}', "mark": "8f14e45f-ceea-467f-9bfc-53a3a3a1f6b1",
}  # fmt: skip
EMPTY: Final = dict.fromkeys(FULL)
WIDER: Final = struct("v", *PLAIN["fields"], field("more", "string"))
ENVELOPE: Final = struct(
    "e.Envelope",
    {**struct("e.Value", *PLAIN["fields"][:3]), "field": "before", "optional": True},
    {**struct("e.Value", *PLAIN["fields"][:3]), "field": "after", "optional": True},
    {
        **struct("io.debezium.connector.postgresql.Source", field("table", "string"), field("ts_ms", "int64")),
        "field": "source",
    },
    {"field": "op", "type": "string"},
    field("ts_ms", "int64"),
)


def record(key: int, schema: dict[str, Any] | None, payload: Any) -> tuple[bytes, bytes | None]:
    """Key and value as the JSON converter has them, with schemas."""
    value = None if schema is None else json.dumps({"schema": schema, "payload": payload}, ensure_ascii=False).encode()
    return json.dumps({"schema": KEY, "payload": {"id": key}}).encode(), value


def change(key: int, op: str, before: Any, after: Any) -> tuple[bytes, bytes | None]:
    source = {"table": "t", "ts_ms": 1704164645678}
    return record(key, ENVELOPE, {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1704164645678})


ROWS: Final = [record(1, PLAIN, {"id": 1, **FULL}), record(2, PLAIN, {"id": 2, **EMPTY})]
_BY_KEY: Final = {"primary.key.mode": "record_key", "insert.mode": "upsert"}
SCENARIOS: Final[Mapping[str, tuple[Mapping[str, str], Sequence[tuple[bytes, bytes | None]], int]]] = {
    "insert": ({"insert.mode": "insert"}, ROWS, 2),
    "insert with a key": ({"insert.mode": "insert", "primary.key.mode": "record_key"}, ROWS, 2),
    "upsert": (_BY_KEY, [*ROWS, record(1, PLAIN, {"id": 1, **FULL, "word": "later"})], 2),
    "key of the value": ({"insert.mode": "upsert", "primary.key.mode": "record_value", "primary.key.fields": "id"}, ROWS, 2),
    "tombstones": ({**_BY_KEY, "delete.enabled": "true"}, [*ROWS, record(1, None, None)], 1),
    "a column more": (
        {**_BY_KEY, "schema.evolution": "basic"},
        [*ROWS, record(3, WIDER, {"id": 3, **FULL, "more": "x"})],
        3,
    ),
    "some fields": ({**_BY_KEY, "field.include.list": "TOPIC:id,TOPIC:word,TOPIC:price"}, ROWS, 2),
    "envelopes": (
        {**_BY_KEY, "delete.enabled": "true"},
        [
            change(1, "c", None, {"id": 1, "word": "a", "small": 1}),
            change(2, "r", None, {"id": 2, "word": None, "small": None}),
            change(1, "u", {"id": 1, "word": "a", "small": 1}, {"id": 1, "word": "b", "small": 2}),
            change(3, "c", None, {"id": 3, "word": "c", "small": 3}),
            change(3, "d", {"id": 3, "word": "c", "small": 3}, None),
            record(3, None, None),
        ],
        2,
    ),
}  # fmt: skip
"""Keys besides the class, the records, and the number of rows that they leave."""


@pytest.fixture(scope="module")
def workers(apache_kafka: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    plugins = ",".join(str(require(name).absolute() / "plugins") for name in ("kafka", "debezium-jdbc"))
    settings = {"plugin.path": plugins, "plugin.discovery": "hybrid_warn", "group.id": "sinks"}
    settings |= {f"{kind}.storage.topic": f"sinks-{kind}" for kind in ("config", "offset", "status")}
    theirs = KafkaConnect(tmp_path_factory.mktemp("theirs"), apache_kafka.bootstrap_servers, settings, heap="1G")
    settings_of_ours = {"offset.flush.interval.ms": "1000"}
    ours = ConnectWorker(tmp_path_factory.mktemp("ours"), apache_kafka.bootstrap_servers, settings_of_ours, name="sunk")
    theirs.start()
    ours.start()
    yield {"theirs": theirs.url, "ours": ours.url}
    ours.stop()
    theirs.stop()


def table(server: PostgresServer, name: str) -> tuple[list[Any], list[Any]]:
    """Columns with their types and keys, and the rows in the order of ``id``; nothing where there is no table."""
    with server.connect() as connection:
        columns = connection.execute(
            "SELECT column_name, data_type, is_nullable, numeric_precision, numeric_scale, datetime_precision, "
            "character_maximum_length, column_default, column_name IN (SELECT column_name FROM information_schema.key_column_usage "
            "WHERE table_name = %s) FROM information_schema.columns WHERE table_name = %s ORDER BY column_name",
            (name, name),
        ).fetchall()
        if not columns:
            return [], []
        names = ", ".join(f'"{column[0]}"::text' for column in columns)
        rows = connection.execute(f'SELECT {names} FROM "{name}" ORDER BY id'.encode()).fetchall()
    return columns, rows


@pytest.mark.parametrize(("keys", "records", "count"), SCENARIOS.values(), ids=SCENARIOS)
def test_records_become_the_same_rows(
    workers: dict[str, str],
    apache_kafka: KafkaBroker,
    postgres_server: PostgresServer,
    keys: Mapping[str, str],
    records: Sequence[tuple[bytes, bytes | None]],
    count: int,
) -> None:
    topic = f"s{uuid.uuid4().hex[:8]}"
    producer = Producer({"bootstrap.servers": apache_kafka.bootstrap_servers})
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0
    config = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "connection.url": f"jdbc:postgresql://127.0.0.1:{postgres_server.port}/{postgres_server.database}",
        "connection.username": postgres_server.user,
        "connection.password": "unused",
        "topics": topic,
        "schema.evolution": "basic",
        "key.converter": _JSON,
        "value.converter": _JSON,
        "key.converter.schemas.enable": "true",
        "value.converter.schemas.enable": "true",
        **{name: value.replace("TOPIC", topic) for name, value in keys.items()},
    }
    tables = {side: f"{topic}_{side}" for side in workers}
    try:
        for side, url in workers.items():
            address = f"{url}/connectors/{tables[side]}/config"
            body = {**config, "collection.name.format": tables[side]}
            answer = answer_when(
                settled, lambda address=address, body=body: requests.put(address, json=body, timeout=60), address
            )
            assert answer.status_code == 201, answer.text
        for side, url in workers.items():
            shown = f"{url}/connectors/{tables[side]}/offsets"
            wait_until(
                lambda shown=shown: (
                    [entry["offset"] for entry in requests.get(shown, timeout=60).json().get("offsets", ())]
                    == [{"kafka_offset": len(records)}]
                ),
                f"all records on {side}: {requests.get(f'{url}/connectors/{tables[side]}/status', timeout=60).text}",
                timeout_s=90,
            )
        theirs, ours = table(postgres_server, tables["theirs"]), table(postgres_server, tables["ours"])
        assert len(theirs[1]) == count
        assert ours == theirs
    finally:
        for side, url in workers.items():
            requests.delete(f"{url}/connectors/{tables[side]}", timeout=60)
