"""A preview shows what a connector would do, with its real transformations and converters, and writes nothing."""

from __future__ import annotations

import base64
import json
import sqlite3

import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from connect.api import Record
from connect.errors import BadRequest
from connect.given_records import raw_batches
from connect.plugins.registry import load_plugins
from connect.preview import Preview, json_facts, preview

JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def plugins():
    return load_plugins()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as shop:
        shop.execute("create table orders (id integer primary key, country text)")
        shop.executemany("insert into orders values (?, ?)", [(n, "de") for n in range(1, 30)])
    return {
        "name": "shop",
        "connector.class": "JdbcSource",
        "connection.url": f"jdbc:sqlite:{path}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": "shop_",
    }


def test_a_source_is_shown_as_it_would_send(plugins, source):
    chain = {
        "transforms": "key,route",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.key.fields": "id",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "shop_(.*)",
        "transforms.route.replacement": "$1",
    }
    seen = preview(plugins, {}, {**source, **chain}, rows=3)
    records = [record for batch in seen.batches for record in batch.records()]
    assert [(r.topic, r.key, r.value["id"]) for r in records] == [("orders", {"id": n}, n) for n in (1, 2, 3)]
    assert {(s.subject, s.schema_id) for s in seen.schemas} == {("orders-key", None), ("orders-value", None)}
    assert json.loads(seen.schemas[-1].text)["type"] == "record"


def test_converter_errors_are_shown_and_not_raised(plugins, source):
    chain = {
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "transforms": "one",
        "transforms.one.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.one.field": "country",
    }
    seen = preview(plugins, {}, {**source, **chain}, rows=2)
    assert [failure.stage for failure in seen.left_out] == ["VALUE_CONVERTER"] * 2


def test_header_converters_have_their_say(plugins, source):
    chain = {
        "header.converter": "org.apache.kafka.connect.converters.IntegerConverter",
        "transforms": "mark",
        "transforms.mark.type": "org.apache.kafka.connect.transforms.InsertHeader",
        "transforms.mark.header": "kind",
        "transforms.mark.value.literal": "a word",
    }
    seen = preview(plugins, {}, {**source, **chain}, rows=2)
    assert [failure.stage for failure in seen.left_out] == ["HEADER_CONVERTER"] * 2


def test_a_sink_is_shown_what_it_would_store(plugins, tidegate_broker, tmp_path):
    config = ClientConfig(tidegate_broker.bootstrap_servers)
    with Admin(config) as admin, BatchProducer(config) as producer:
        admin.create_topics([NewTopic("preview-orders", 2, 1)])
        for n in range(20):
            value = json.dumps({"id": n, "country": "de" if n % 2 else "fr"}).encode()
            producer.send("preview-orders", None, value, partition=n % 2)
        producer.flush()
    sink = {
        "name": "out",
        "connector.class": "tidegate.local.LocalSinkConnector",
        "topics": "preview-orders",
        "store.url": str(tmp_path / "out"),
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "100",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    seen = preview(plugins, {"bootstrap.servers": tidegate_broker.bootstrap_servers}, sink, rows=15)
    assert seen.rows == 15
    assert [action.split(" (")[0] for action in seen.actions] == [
        f"object topics/preview-orders/partition={n}/preview-orders+{n}+0000000000.json" for n in (0, 1)
    ]
    assert not (tmp_path / "out").exists()
    with Admin(config) as admin:
        assert not [group for group in admin.list_groups() if group.group_id == "connect-out"]


def test_a_job_is_shown_records_as_they_lie_in_the_log(tidegate_broker, tmp_path):
    config = ClientConfig(tidegate_broker.bootstrap_servers)
    with Admin(config) as admin, BatchProducer(config) as producer:
        admin.create_topics([NewTopic("preview-ranges", 1, 1)])
        for value in (b"\x00\x01", b"{", b"more"):
            producer.send("preview-ranges", None, value, partition=0)
        producer.flush()
    job = {
        "name": "ranges",
        "connector.class": "org.toys.RangesConnector",
        "topics": "preview-ranges",
        "file": str(tmp_path / "out"),
        "value.converter": JSON,
    }
    plugins = load_plugins(["tests.support.toy_plugins"])
    seen = preview(plugins, {"bootstrap.servers": tidegate_broker.bootstrap_servers}, job, rows=2)
    assert (seen.batches, seen.left_out) == ([], [])
    assert seen.actions == [f"0 [0, 1] {[bytes([0, 1]), b'{']} at {tidegate_broker.bootstrap_servers}"]
    assert not (tmp_path / "out").exists()
    # Who reads committed records only does not wait for the end of a transaction.
    undecided = Producer({"bootstrap.servers": tidegate_broker.bootstrap_servers, "transactional.id": "undecided"})
    undecided.init_transactions()
    undecided.begin_transaction()
    undecided.produce("preview-ranges", b"undecided", partition=0)
    assert undecided.flush(60) == 0
    committed = {"consumer.isolation.level": "read_committed"}
    seen = preview(plugins, {"bootstrap.servers": tidegate_broker.bootstrap_servers, **committed}, job, rows=10)
    assert seen.actions[0].startswith("0 [0, 1, 2] ")
    undecided.abort_transaction()


def test_a_sink_is_shown_what_it_would_do_with_records_that_are_given(plugins, tmp_path):
    sink = {
        "name": "out",
        "connector.class": "tidegate.local.LocalSinkConnector",
        "topics": "given-orders",
        "store.url": str(tmp_path / "out"),
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "100",
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "transforms": "left,renamed",
        "transforms.left.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.left.predicate": "tombstone",
        "predicates": "tombstone",
        "predicates.tombstone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
        "transforms.renamed.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.renamed.regex": "given-(.*)",
        "transforms.renamed.replacement": "$1",
    }
    values = [b'{"id": 1}', b"no json", None]
    records = [
        {"topic": "given-orders", "partition": 3, "offset": 9 - n, "value": value and base64.b64encode(value).decode()}
        for n, value in enumerate(values)
    ]
    told = json_facts(preview(plugins, {}, sink, given=raw_batches(records)))
    assert [(r["topic"], r["partition"], r["offset"], r["value"]) for r in told["records"]] == [
        ("orders", 3, 9, {"id": 1})
    ]
    assert [(f["stage"], f["partition"], f["offset"]) for f in told["left_out"]] == [("VALUE_CONVERTER", 3, 8)]
    assert told["actions"] and not (tmp_path / "out").exists()
    with pytest.raises(BadRequest, match="is a source: only another sink can be given records"):
        preview(plugins, {}, {"name": "in", "connector.class": "FileStreamSource"}, given=raw_batches(records))


RECORD = {"topic": "t", "partition": 0, "offset": 0}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["topic", "partition", "offset", "timestamp", "key", "value", "headers"]), JSON_VALUES
    )
)
@settings(max_examples=200)
def test_records_of_a_request_are_read_or_refused_by_number(changes):
    try:
        (batch,) = raw_batches([RECORD | changes])
        assert len(batch) == 1
    except BadRequest as error:
        assert "record 0" in str(error)


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ({}, "a list of 1 to 100 records"),
        ([], "a list of 1 to 100 records"),
        ([RECORD] * 101, "a list of 1 to 100 records"),
        ([RECORD, RECORD], "record 1 has the offset 0 of another record of its partition"),
        ([RECORD | {"valeu": ""}], "record 0 has 'valeu'; a record has headers, key,"),
        ([RECORD | {"partition": -1}], "record 0 has the partition -1: give a whole number from 0"),
        ([RECORD | {"value": "{"}], "record 0 has a value that is no base64"),
    ],
)
def test_what_is_no_list_of_records_is_refused(records, why):
    with pytest.raises(BadRequest, match=why):
        raw_batches(records)


class Batch:
    """A batch of one record with this key and value."""

    def __init__(self, value):
        self._record = Record("t", value, None, value, None)

    def __len__(self):
        return 1

    def records(self):
        return iter([self._record])


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals() | st.datetimes()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.binary() | st.integers(), inner)
)


@given(VALUES | st.integers(900, 100_000).map(nested) | st.integers(0, 100_000).map("x".__mul__))
@settings(max_examples=200)
def test_any_record_is_told_in_json_of_bounded_length(value):
    text = json.dumps(json_facts(Preview([Batch(value)])), allow_nan=False)
    assert json.loads(text)["records"][0]["topic"] == "t"
    assert len(text) < 1_000_000


def test_what_json_can_not_hold_is_said():
    told = [
        json_facts(Preview([Batch(value)]))["records"][0]["value"] for value in (nested(5000), {b"k": 1}, "x" * 30_000)
    ]
    assert told[0] == "(nested too deeply to be shown)"
    assert told[1].startswith("(not shown: keys must be str")
    assert told[2].endswith("... (30,002 characters)") and len(told[2]) < 20_100
