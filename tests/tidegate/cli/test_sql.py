"""``tidegate sql`` on a real broker, registry and Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from registry.client import RegistryClient
from tests.support.platform import tidegate
from tests.support.registry import RegistryThread

# Each query starts a Spark; a short proof of the console runs one.
pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long]

CARRIER = {
    "type": "record",
    "name": "Carrier",
    "fields": [{"name": "code", "type": "string"}, {"name": "name", "type": "string"}],
}


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryThread]:
    with RegistryThread() as started:
        yield started


def written(servers: str, topic: str, *values: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0


def asked(query: str, servers: str, registry: str, *options: str, check: bool = True) -> str:
    done = tidegate("sql", query, "--bootstrap-servers", servers, "--registry", registry, *options, check=check)
    return done.stdout if check else done.stderr


def test_topics_with_and_without_schemas_are_joined(tidegate_broker: Any, registry: RegistryThread) -> None:
    servers, mark = tidegate_broker.bootstrap_servers, uuid.uuid4().hex[:6]
    flights, carriers = f"flights-{mark}", f"carriers_{mark}"
    with RegistryClient.from_properties({"schema.registry.url": registry.url}) as client:
        known = client.register(f"{carriers}-value", json.dumps(CARRIER))
    written(servers, carriers, b"\x00" + known.to_bytes(4, "big") + b"\x04AA\x10American")
    rows = [{"id": 1, "carrier": "AA", "at": {"day": "2013-01-01"}}, {"id": 2, "carrier": "ZZ", "delay": 1.5}]
    written(servers, flights, *(json.dumps(row).encode() for row in rows), None)
    query = f"SELECT f.id, f.at, c.name FROM `{flights}` f LEFT JOIN {carriers} c ON f.carrier = c.code ORDER BY 1"
    assert json.loads(asked(query, servers, registry.url, "--json")) == [
        {"id": 1, "at": {"day": "2013-01-01"}, "name": "American"},
        {"id": 2, "at": None, "name": None},
    ]


def test_what_is_wrong_is_named(tidegate_broker: Any, registry: RegistryThread) -> None:
    servers, mark = tidegate_broker.bootstrap_servers, uuid.uuid4().hex[:6]
    written(servers, f"flights-{mark}", b"{}")
    wrong = asked(f"SELECT * FROM flight_{mark}", servers, registry.url, check=False)
    assert f"there is no topic flight_{mark}; is flights" in wrong and "Traceback" not in wrong


def test_text_is_a_column_with_its_coordinates_beside_it(tidegate_broker: Any, registry: RegistryThread) -> None:
    servers, texts = tidegate_broker.bootstrap_servers, f"texts_{uuid.uuid4().hex[:6]}"
    written(servers, texts, b"a b", b"{")
    query = f"SELECT value, __offset FROM {texts} ORDER BY __partition, __offset"
    table = asked(query, servers, registry.url, "--metadata", "-n", "1")
    assert [line.split() for line in table.splitlines()] == [["value", "__offset"], ["a", "b", "0"]]
    assert "PARSE_SYNTAX_ERROR" in asked("SELEC 1", servers, registry.url, check=False)
