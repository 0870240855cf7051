"""``tidegate sql`` on a real broker, registry and Spark."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from connect.api import ConnectError
from connectors.spark.query import Query, run_query
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


def test_mistakes_are_told_before_spark_starts(tidegate_broker: Any, registry: RegistryThread) -> None:
    servers, topic = tidegate_broker.bootstrap_servers, f"flights-{uuid.uuid4().hex[:6]}"
    written(servers, topic, b'{"id": 12345678}')

    def notes_of(sql: str, wrong: str) -> list[str]:
        query = Query(sql, 10, False, {"bootstrap.servers": servers}, {"schema.registry.url": registry.url})
        notes: list[str] = []
        expected = pytest.raises(ConnectError, match=wrong) if wrong else contextlib.nullcontext()
        with expected, run_query(query, on_progress=notes.append) as result:
            assert list(result.rows) == [[12345678]]
        return notes

    assert notes_of(f"SELECT id FROM `{topic}` WHERE )", "PARSE_SYNTAX_ERROR") == ["starting Java"]
    assert notes_of(f"SELECT id FROM `{topic}` JOIN flites", "there is no topic flites") == ["starting Java"]
    assert notes_of(f"WITH w AS (TABLE `{topic}`) SELECT id FROM w", "")[:3] == [
        "starting Java",
        "starting Spark",
        "planning the query",
    ]
    assert "12345678" in asked(f"SELECT id FROM `{topic}`", servers, registry.url)


def test_records_that_cannot_be_decoded_are_rows_of_nulls_and_counted(
    tidegate_broker: Any, registry: RegistryThread
) -> None:
    servers, mark = tidegate_broker.bootstrap_servers, uuid.uuid4().hex[:6]
    avro, plain, texts = f"bad_avro_{mark}", f"bad_json_{mark}", f"bad_texts_{mark}"
    with RegistryClient.from_properties({"schema.registry.url": registry.url}) as client:
        known = client.register(f"{avro}-value", json.dumps(CARRIER)).to_bytes(4, "big")
    good = b"\x00" + known + b"\x04AA\x10American"
    written(servers, avro, good, b"\x00\x00\x0f\xff\xffrubbish", b"x", good, None)
    written(
        servers,
        plain,
        b'{"code": "AA", "seats": 3}',
        b'{"code": ',
        b"\xff",
        b'{"code": "BB", "seats": 4}',
        b'{"seats": 1.5}',
    )
    written(servers, texts, b"a b", b"\xff")
    rows = f"SELECT code, name, __offset AS at, __error IS NULL AS good, __bytes AS bytes FROM {avro} ORDER BY at"
    done = tidegate("sql", rows, "--bootstrap-servers", servers, "--registry", registry.url, "--metadata", "--json")
    assert json.loads(done.stdout) == [
        {"code": "AA", "name": "American", "at": 0, "good": True, "bytes": None},
        {"code": None, "name": None, "at": 1, "good": False, "bytes": "00000fffff" + b"rubbish".hex()},
        {"code": None, "name": None, "at": 2, "good": False, "bytes": b"x".hex()},
        {"code": "AA", "name": "American", "at": 3, "good": True, "bytes": None},
    ]
    assert (
        f"2 records of {avro} can't be decoded" in done.stderr
        and "in partition 0 at offset 1: the registry" in done.stderr
    )
    joined = f"SELECT (SELECT sum(seats) FROM {plain}) AS seats, (SELECT count(*) FROM {plain} a JOIN {plain} b USING (code)) AS pairs, (SELECT count(*) FROM {texts} WHERE value IS NULL) AS texts"
    done = tidegate("sql", joined, "--bootstrap-servers", servers, "--registry", registry.url, "--json")
    assert json.loads(done.stdout) == [{"seats": 8.5, "pairs": 2, "texts": 1}]
    assert (
        f"2 records of {plain} can't be decoded" in done.stderr
        and "is not JSON with the columns code STRING" in done.stderr
    )
    assert f"1 record of {texts} can't be decoded" in done.stderr and "not UTF-8" in done.stderr
    strict = asked(f"SELECT count(code) FROM {avro}", servers, registry.url, "--fail-on-undecodable", check=False)
    assert f"topic {avro}, partition 0, offset 2: not in Confluent framing" in strict


def test_text_is_a_column_with_its_coordinates_beside_it(tidegate_broker: Any, registry: RegistryThread) -> None:
    servers, texts = tidegate_broker.bootstrap_servers, f"texts_{uuid.uuid4().hex[:6]}"
    written(servers, texts, b"a b", b"{")
    query = f"SELECT value, __offset FROM {texts} ORDER BY __partition, __offset"
    table = asked(query, servers, registry.url, "--metadata", "-n", "1")
    assert [line.split() for line in table.splitlines()] == [["value", "__offset"], ["a", "b", "0"]]
