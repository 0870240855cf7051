"""The pages of topics, records, groups and schemas on a real platform, by an HTTP client."""

from __future__ import annotations

import asyncio
import csv
import html
import io
import json
import re

import pyarrow.parquet as pq
import pytest

from tests.support.console import Visitor
from tests.support.platform import running_platform, tidegate
from tidegate.console.config import ConsoleConfig
from tidegate.console.faces import Faces
from tidegate.console.group_samples import GroupSampler
from tidegate.kit.config import parse

PLAIN = {"type": "record", "name": "Reading", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    left_out = [option for name in ("connect", "events", "triggers") for option in ("--without", name)]
    with running_platform(tmp_path_factory.mktemp("console"), *left_out, console=True) as platform:
        yield platform


@pytest.fixture(scope="module")
def visitor(platform):
    return Visitor(platform.addresses["console"])


@pytest.fixture(scope="module")
def orders(platform, tmp_path_factory):
    """A topic of three partitions with 30,000 records, and a group that has read ten."""
    where = ("--data", platform.data)
    file = tmp_path_factory.mktemp("orders") / "orders.jsonl"
    file.write_text("".join(json.dumps({"id": n, "name": f"n{n}", "amount": n % 10}) + "\n" for n in range(30_000)))
    tidegate("topics", "create", "orders", "--partitions", "3", *where)
    tidegate("produce", "orders", file, "--key-field", "name", *where)
    tidegate("consume", "orders", "--group", "readers", "--from-beginning", "-n", "10", *where)
    return "orders"


def test_a_topic_is_made_changed_and_deleted(visitor):
    assert visitor.post("/topics", name="made", partitions=2, configs="cleanup.policy=compact\n") == "/topics/made"
    page = visitor.get("/topics/made")
    assert "newest by key" in page and "<code>compact</code>" in page
    visitor.post("/topics/made/configs", name="segment.ms", value="61000")
    assert "Set to default" in visitor.get("/topics/made") and "<code>61000</code>" in visitor.get("/topics/made")
    assert "segment.ms" in visitor.post("/topics/made/configs", 400, name="segment.ms", value="soon")
    visitor.post("/topics/made/configs", name="segment.ms", reset="yes")
    assert "<code>61000</code>" not in visitor.get("/topics/made")
    visitor.post("/topics/made/partitions", total=4)
    assert visitor.get("/topics/made").count('aria-label="Records of partition') == 4
    assert "exists already" in visitor.post("/topics", 400, name="made", partitions=1)
    visitor.post("/topics/made/delete", 400, name="mad")
    assert visitor.post("/topics/made/delete", name="made") == "/topics"
    assert "no such topic: made" in visitor.get("/topics/made", 404)


def test_the_list_of_topics_is_filtered(visitor, orders):
    assert "/topics/orders" in visitor.get("/topics?q=ORD")
    assert "0 topics" in visitor.get("/topics?q=nothing") and "/topics/_schemas" not in visitor.get("/topics")
    assert "/topics/_schemas" in visitor.get("/topics?internal=yes")


def test_a_search_goes_through_the_whole_topic_and_shows_how_far_it_is(visitor, orders):
    status, rows, steps = visitor.search(orders, "from=beginning&text=N29999")
    assert (status, len(rows)) == ("1 hit, 30,000 of 30,000 offsets scanned: this is all", 1)
    assert "n29999" in rows[0] and steps >= 1
    status, rows, _ = visitor.search(orders, "from=beginning&condition=@.value.amount==3%26%26@.value.id<100&limit=200")
    assert len(rows) == 10 and all("&#34;amount&#34;: 3" in row for row in rows)
    assert visitor.search(orders, "from=beginning&key=n7")[1][0].count("n7") == 2  # the key and the name
    assert "is no condition" in visitor.get(f"/topics/{orders}/records/begin?from=end&condition=@@", 400)
    assert "is no position" in visitor.get(f"/topics/{orders}/records/begin?from=soon", 400)
    assert "no partition 9" in visitor.get(f"/topics/{orders}/records/begin?from=end&partition=9", 400)
    assert "can&#39;t be continued" in visitor.post(f"/topics/{orders}/records/more", 400, state="[[[0, 1]], [], 0]")


def test_the_newest_records_of_all_partitions_come_first(visitor, orders):
    status, rows, steps = visitor.search(orders, "from=-5")
    assert (status, len(rows), steps) == ("15 hits, 15 of 15 offsets scanned: this is all", 15, 1)
    found = [tuple(map(int, re.search(r"/records/(\d+)/(\d+)", row).groups())) for row in rows]
    for number in range(3):
        offsets = [offset for partition, offset in found if partition == number]
        assert offsets == list(range(offsets[0], offsets[0] - 5, -1))


def test_a_topic_shows_its_size_and_producers(visitor, orders):
    assert '<th scope="col">Open transaction</th>' in visitor.get(f"/topics/{orders}/producers")
    page = visitor.get(f"/topics/{orders}")
    assert "<dt>Size</dt>" in page and re.search(r"<dt>Size</dt><dd>[1-9][\d,.]* (kB|MB)</dd>", page)


def test_what_is_found_is_exported(visitor, orders):
    lines = visitor.get(f"/topics/{orders}/records/export?from=beginning&text=n1234&format=jsonl").splitlines()
    assert sorted(json.loads(line)["value"]["id"] for line in lines) == [1234, *range(12_340, 12_350)]
    rows = list(csv.DictReader(visitor.get(f"/topics/{orders}/records/export?from=-1&format=csv").splitlines()))
    assert len(rows) == 3 and json.loads(rows[0]["value"])["name"] == rows[0]["key"]
    content = visitor.download(f"/topics/{orders}/records/export?from=beginning&text=n1234&format=parquet")
    table = pq.read_table(io.BytesIO(content))
    assert sorted(value["id"] for value in table["value"].to_pylist()) == [1234, *range(12_340, 12_350)]
    assert str(table.schema.field("timestamp").type) == "timestamp[ms, tz=UTC]"


def test_a_record_is_written_and_shown_with_all_that_it_has(visitor, orders):
    hostile = "<script>alert(1)</script>"
    form = {
        "key": hostile,
        "value": '{"price": 1.10}',
        "format": "json",
        "headers": "trace=<b>\nempty=",
        "partition": "0",
    }
    where = visitor.post(f"/topics/{orders}/produce", **form)
    offset = re.search(r"offset\+(\d+)", where)[1]
    page = visitor.get(f"/topics/{orders}/records/0/{offset}")
    assert "&#34;price&#34;: 1.10" in page and "&lt;script&gt;alert(1)" in page and hostile not in page
    assert "<code>&lt;b&gt;</code>" in page and "7b 22 70 72" in page
    assert visitor.get(f"/topics/{orders}/records/0/{offset}/value") == '{"price": 1.10}'
    assert "no record at this offset" in visitor.get(f"/topics/{orders}/records/0/{int(offset) + 1}", 404)
    assert "not JSON" in visitor.post(f"/topics/{orders}/produce", 400, **form | {"value": "{"})


def test_a_record_that_is_nested_deeper_than_the_stack_stops_no_search(visitor):
    visitor.post("/topics", name="deep", partitions=1)
    for value in ("[" * 700 + "]" * 700, '{"a":' * 900 + "1.50" + "}" * 900, '{"a": 7}'):
        visitor.post("/topics/deep/produce", value=value, format="text")
    status, rows, _ = visitor.search("deep", "from=beginning")
    assert (status, len(rows)) == ("3 hits, 3 of 3 offsets scanned: this is all", 3)
    assert len(visitor.search("deep", "from=beginning&condition=@.value.a==7")[1]) == 1
    assert "Cut. " in visitor.get("/topics/deep/records/0/1") and "[\n  [\n" in visitor.get("/topics/deep/records/0/0")
    assert "1.50" in visitor.get("/topics/deep/records/0/1/value")


def test_values_are_written_by_a_schema(visitor):
    visitor.post("/new-schema", subject="readings-value", type="AVRO", schema=json.dumps(PLAIN))
    visitor.post("/topics", name="readings", partitions=1)
    form = {"format": "schema", "subject": "readings-value"}
    assert "checked" in re.search(r'value="schema"[^>]*', visitor.get("/topics/readings/produce?format=schema"))[0]
    refused = visitor.post("/topics/readings/produce", 400, value='{"id": "x"}', **form)
    assert "does not fit the schema of readings-value" in refused and "&#34;x&#34;" in refused, "what was typed stays"
    visitor.post("/topics/readings/produce", value='{"id": 7}', **form)
    visitor.post("/topics/readings/produce", key="k", null="yes", **form)
    visitor.post("/new-schema", subject="readings-key", type="AVRO", schema=json.dumps(PLAIN))
    assert 'name="key_subject" value="readings-key"' in visitor.get("/topics/readings/produce")
    keyed = form | {"key_subject": "readings-key", "value": '{"id": 8}'}
    assert "Key: not JSON" in visitor.post("/topics/readings/produce", 400, key="k", **keyed)
    assert "Key: it does not fit" in visitor.post("/topics/readings/produce", 400, key='{"id": "x"}', **keyed)
    visitor.post("/topics/readings/produce", key='{"id": 1}', **keyed)
    _, rows, _ = visitor.search("readings", "from=beginning")
    assert "&#34;id&#34;: 7" in rows[0] and "it deletes its key" in rows[1]
    assert "&#34;id&#34;: 1" in rows[2] and "&#34;id&#34;: 8" in rows[2]


def test_values_are_written_by_a_form_of_their_schema(visitor):
    many = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "L"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "doc": "Words <for> search"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "count", "type": "int", "default": 3},
        {"name": "open", "type": "boolean"},
        {"name": "name", "type": "string"},
    ]
    schema = json.dumps({"type": "record", "name": "Many", "fields": many})
    visitor.post("/new-schema", subject="many-value", type="AVRO", schema=schema)
    visitor.post("/topics", name="many", partitions=1)
    page = visitor.get("/topics/many/produce")
    assert 'name="field.price"' in page and "<option>L</option>" in page and "Words &lt;for&gt; search" in page
    values = {"id": "7", "at": "2026-11-27T10:00:00Z", "price": "12.50", "size": "L", "tags": '["a"]', "open": "true"}
    form = {f"field.{name}": text for name, text in values.items()} | {"format": "fields", "subject": "many-value"}
    refused = visitor.post("/topics/many/produce", 400, **form | {"field.id": "seven"})
    assert "id: &#39;seven&#39; is no number" in refused and 'value="12.50"' in refused, "what was typed stays"
    assert "at: it must be given" in visitor.post("/topics/many/produce", 400, **form | {"field.at": ""})
    assert "no timestamp-millis" in visitor.post("/topics/many/produce", 400, **form | {"field.at": "soon"})
    visitor.post("/topics/many/produce", **form)
    value = json.loads(visitor.get("/topics/many/records/export?from=beginning&format=jsonl"))["value"]
    told = {"id": 7, "size": "L", "tags": ["a"], "note": None, "count": 3, "open": True, "name": ""}
    assert {name: value[name] for name in told} == told and float(value["price"]) == 12.5


def test_a_group_is_moved_after_a_look_at_what_that_means(visitor, orders):
    assert "/groups/readers" in visitor.get("/groups")
    page = visitor.get("/groups/readers")
    assert "empty" in page and "nobody" in page
    assert f">{orders}<" in page and "readers" in visitor.get(f"/topics/{orders}/groups")
    look = visitor.post("/groups/readers/reset", 200, to="beginning")
    assert "10 offsets would be read again" in look and "Move the offsets" in look
    assert "would be skipped" in visitor.post("/groups/readers/reset", 200, to="end")
    assert visitor.post("/groups/readers/reset", to="beginning", execute="yes") == "/groups/readers"
    assert "Nothing that was read" in visitor.post("/groups/readers/reset", 200, to="beginning")
    assert "did you mean readers?" in visitor.get("/groups/reader", 404)
    assert visitor.post("/groups/readers/delete") == "/groups"


def test_the_lag_of_groups_is_known_over_time(platform, orders):
    where = ("--data", platform.data)
    tidegate("consume", orders, "--group", "followed", "--from-beginning", "-n", "10", *where)
    tidegate("groups", "reset", "followed", "--to", "beginning", "--topic", orders, "--execute", *where)
    sampler = GroupSampler(Faces(parse(ConsoleConfig, {"bootstrap.servers": platform.bootstrap_servers}), None))

    async def twice():
        await sampler.sample()
        await sampler.sample()

    asyncio.run(twice())
    history = sampler.opened("followed")
    assert len(history.total) == 2 and history.total[0] >= 30_000
    assert history.partitions.keys() == {(orders, 0), (orders, 1), (orders, 2)}
    assert not sampler.falling_behind and sampler.opened("nobody") is None


def test_a_share_group_has_its_lag_and_is_moved(visitor, platform, orders):
    from broker.client import ClientConfig, TopicPartition
    from broker.client.blocking import Admin

    with Admin(ClientConfig(platform.bootstrap_servers)) as admin:
        admin.alter_share_group_offsets("sharers", {TopicPartition(orders, 0): 5, TopicPartition(orders, 2): 0})
        ends = admin.end_offsets([TopicPartition(orders, 0), TopicPartition(orders, 2)])
    left = sum(ends.values()) - 5
    page = visitor.get("/groups/sharers")
    assert "Starts at" in page and f"{left:,}</dd>" in page
    assert "sharers" in visitor.get(f"/topics/{orders}/groups")
    assert "5 offsets would be read again" in visitor.post("/groups/sharers/reset", 200, to="beginning")
    assert visitor.post("/groups/sharers/reset", to="end", execute="yes") == "/groups/sharers"
    listed = json.loads(tidegate("groups", "list", "--json", "--data", platform.data).stdout)
    (row,) = [each for each in listed if each["group"] == "sharers"]
    assert (row["type"], row["lag"]) == ("share", 0)
    assert visitor.post("/groups/sharers/delete") == "/groups"


def test_a_broker_that_tells_no_offsets_of_share_groups_keeps_nobody_from_the_list(platform, orders, monkeypatch):
    from broker.client import Admin, ClientConfig, TopicPartition
    from broker.client.errors import UnsupportedVersion
    from tidegate.records.group_offsets import group_lags

    def refuse(admin, group):
        raise UnsupportedVersion("DescribeShareGroupOffsets is not known here")

    async def lags():
        async with Admin(ClientConfig(platform.bootstrap_servers)) as admin:
            await admin.alter_share_group_offsets("older", {TopicPartition(orders, 0): 5})
            monkeypatch.setattr(Admin, "share_group_offsets", refuse)
            described = await admin.describe_group("older")
            answer = described.type, await group_lags(admin, described)
            await admin.delete_groups(["older"])
            return answer

    assert asyncio.run(lags()) == ("share", [])


def test_a_refused_schema_is_explained_before_and_after_it_is_registered(visitor):
    subject = "measures/of <b>-value"
    visitor.post("/new-schema", subject=subject, type="AVRO", schema=json.dumps(PLAIN))
    wrong = json.dumps(PLAIN | {"fields": [{"name": "id", "type": "string"}]})
    verdict = visitor.post("/new-schema/try", 200, subject=subject, type="AVRO", schema=wrong)
    assert "TYPE_MISMATCH" in verdict and "What would help" in verdict
    refused = visitor.post("/new-schema", 409, subject=subject, type="AVRO", schema=wrong)
    assert "&#34;string&#34;" in refused, "what was typed stays"
    grown = PLAIN | {"fields": [*PLAIN["fields"], {"name": "unit", "type": "string", "default": "K"}]}
    path = visitor.post("/new-schema", subject=subject, type="AVRO", schema=json.dumps(grown))
    page = visitor.get(path)
    assert "<ins>+" in page and "Version 2 reads data of version 1" in html.unescape(page)
    assert "<b>" not in page and path in visitor.get("/schemas?q=of <b>")
    visitor.post(f"{path}/level", level="FULL")
    assert "<option selected>FULL</option>" in visitor.get(path)
    assert visitor.post(f"{path}/delete", version=2) == path
    assert visitor.post(f"{path}/delete", subject=subject) == "/schemas"


def test_references_are_a_picture_over_any_number_of_steps(visitor):
    def record(name: str, kind: str) -> str:
        return json.dumps({"type": "record", "name": name, "fields": [{"name": "part", "type": kind}]})

    for name, inner in (("City", "string"), ("Address", "City"), ("Customer", "Address")):
        references = f"{inner}={inner.lower()}@1" if inner != "string" else ""
        form = {"subject": name.lower(), "type": "AVRO", "schema": record(name, inner), "references": references}
        assert visitor.post("/new-schema", **form) == f"/schemas/{name.lower()}"
    for subject, user in (("city", "address@1"), ("address", "customer@1"), ("customer", "no other schema")):
        page = visitor.get(f"/schemas/{subject}")
        titles = re.findall(r"<title>(\w+) version 1</title>", page)
        assert sorted(titles) == ["address", "city", "customer"], subject
        assert user in re.search(r"<dt>Used by</dt>(.*)", page)[1]
