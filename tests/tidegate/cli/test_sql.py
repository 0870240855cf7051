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

pytestmark = [pytest.mark.servers, pytest.mark.proof]  # each query starts a Spark

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


def test_topics_are_joined_and_what_is_wrong_is_named(tidegate_broker: Any, registry: RegistryThread) -> None:
    servers, mark = tidegate_broker.bootstrap_servers, uuid.uuid4().hex[:6]
    flights, carriers, texts = f"flights-{mark}", f"carriers_{mark}", f"texts_{mark}"
    with RegistryClient.from_properties({"schema.registry.url": registry.url}) as client:
        known = client.register(f"{carriers}-value", json.dumps(CARRIER))
    written(servers, carriers, b"\x00" + known.to_bytes(4, "big") + b"\x04AA\x10American")
    rows = [{"id": 1, "carrier": "AA", "at": {"day": "2013-01-01"}}, {"id": 2, "carrier": "ZZ", "delay": 1.5}]
    written(servers, flights, *(json.dumps(row).encode() for row in rows), None)
    written(servers, texts, b"a b", b"{")

    def asked(query: str, *options: str, check: bool = True) -> str:
        where = ("--bootstrap-servers", servers, "--registry", registry.url)
        done = tidegate("sql", query, *where, *options, check=check)
        return done.stdout if check else done.stderr

    joined = asked(
        f"SELECT f.id, f.at, c.name FROM `{flights}` f LEFT JOIN {carriers} c ON f.carrier = c.code ORDER BY 1",
        "--json",
    )
    assert json.loads(joined) == [
        {"id": 1, "at": {"day": "2013-01-01"}, "name": "American"},
        {"id": 2, "at": None, "name": None},
    ]
    table = asked(f"SELECT value, __offset FROM {texts} ORDER BY __partition, __offset", "--metadata", "-n", "1")
    assert [line.split() for line in table.splitlines()] == [["value", "__offset"], ["a", "b", "0"]]
    wrong = asked(f"SELECT * FROM flight_{mark}", check=False)
    assert f"there is no topic flight_{mark}; is flights" in wrong and "Traceback" not in wrong
    assert "PARSE_SYNTAX_ERROR" in asked("SELEC 1", check=False)
