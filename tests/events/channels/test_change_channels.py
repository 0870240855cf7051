"""Change events over a real broker: a table's topic, both protocols, custom channels, and servers that come and go."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.events.channels.test_channels import Org, receive
from tests.events.fronts.cometd.test_front import Bayeux
from tests.events.fronts.pubsub.test_service import Client, stubs
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.changes import KEY, VALUE, decoded, record, source
from tests.support.events import EventsThread

__all__ = ["stubs"]

ROW: dict[str, Any] = {"id": 1, "name": "Ada", "city": "York", "balance": None, "gone": False}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TidegateBroker]:
    made = TidegateBroker(tmp_path_factory.mktemp("broker"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def service(broker: TidegateBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventsThread]:
    more = {"bootstrap.servers": broker.bootstrap_servers, "pubsub.keepalive.ms": 300}
    with EventsThread(tmp_path_factory.mktemp("events"), real="log", **more) as running:
        yield running


class Table:
    """A captured table, written as its connector writes it, and the entity that is made of it."""

    def __init__(self, service: EventsThread) -> None:
        self.service, number = service, uuid.uuid4().hex[:12]
        self.entity, self.topic = f"C{number}__c", f"shop.public.c{number}"
        self.event = f"C{number}__ChangeEvent"
        self.value_id = service.schemas.register(f"{self.topic}-value", json.dumps(VALUE | {"doc": number}))
        self.key_id = service.schemas.register(f"{self.topic}-key", json.dumps(KEY | {"doc": number}))

    def define(self, **more: Any) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.service.token()}"}
        body = {"entity": self.entity, "topic": self.topic} | more
        answer = requests.post(f"{self.service.url}/tidegate/v1/entities", json=body, headers=headers, timeout=60)
        return answer.status_code, answer.json()

    def create(self) -> None:
        self.service.run(self.service.server.log.create(self.topic, -1))

    def write(self, *changes: dict[str, Any]) -> None:
        records = []
        for change in changes:
            row = change.get("after") or change.get("before") or ROW
            value = record(VALUE, self.value_id, {"source": source(), **change})
            records.append((record(KEY, self.key_id, {"id": row["id"]}), value, 1_700_000_000_000))
            if change["op"] == "d":
                records.append((records[-1][0], None, 1_700_000_000_000))  # type: ignore[arg-type]
        answers = self.service.run(self.service.server.log.append(self.topic, records))
        assert all(isinstance(answer, int) for answer in answers), answers


@pytest.fixture
def table(service: EventsThread) -> Table:
    return Table(service)


def follow(service: EventsThread, path: str, replay: int = -2) -> Bayeux:
    client = Bayeux(service)
    message = {"channel": "/meta/subscribe", "clientId": client.id, "subscription": path}
    answer = client.send(message | {"ext": {"replay": {path: replay}}})[0]
    assert answer["successful"], answer
    return client


def headers(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message["data"]["payload"]["ChangeEventHeader"] for message in messages]


def test_changes_reach_subscribers_of_both_protocols(service: EventsThread, table: Table, stubs: Any) -> None:
    status, said = table.define(fields={"name": "Name"}, label="A customer")
    assert (status, said["channel"]) == (201, f"/data/{table.event}"), said
    assert isinstance(said["schemaId"], int)
    cometd, pubsub = follow(service, f"/data/{table.event}"), Client(service, stubs, tls=False)
    table.create()
    table.write(
        {"op": "r", "after": ROW | {"id": 9}},
        {"op": "c", "after": ROW},
        {"op": "u", "before": ROW, "after": ROW | {"city": None}},
        {"op": "d", "before": ROW, "source": source(8)},
    )
    messages = receive(cometd, 3)
    shown = headers(messages)
    assert [each["changeType"] for each in shown] == ["CREATE", "UPDATE", "DELETE"]
    assert [each["recordIds"] for each in shown] == [["1"]] * 3
    assert [each["sequenceNumber"] for each in shown] == [2, 3, 1]
    assert shown[0]["transactionKey"] == shown[1]["transactionKey"] != shown[2]["transactionKey"]
    assert shown[1]["changedFields"] == ["LastModifiedDate", "city__c"]
    assert shown[0]["commitUser"] == service.user.id
    assert messages[1]["data"]["payload"]["city__c"] is None
    ids = [message["data"]["event"] for message in messages]
    assert [list(each) for each in ids] == [["replayId"]] * 3

    path = f"/data/{table.event.lower()}"
    topic = pubsub.stub.GetTopic(pubsub.pb.TopicRequest(topic_name=path), metadata=pubsub.metadata)
    assert (topic.topic_name, topic.can_publish) == (f"/data/{table.event}", False)
    replay = ids[0]["replayId"].to_bytes(8)
    fetch = pubsub.pb.FetchRequest(
        topic_name=path, num_requested=2, replay_preset=pubsub.pb.ReplayPreset.CUSTOM, replay_id=replay
    )
    responses, asked = pubsub.subscribe(fetch)
    events: list[Any] = []
    while len(events) < 2:
        events += next(responses).events
    asked.put(None)
    assert [each.event.schema_id for each in events] == [topic.schema_id] * 2
    schema = pubsub.stub.GetSchema(pubsub.pb.SchemaRequest(schema_id=topic.schema_id), metadata=pubsub.metadata)
    values, named = decoded(schema.schema_json, events[0].event.payload)
    assert named == {
        "nulledFields": ["city__c"],
        "diffFields": [],
        "changedFields": ["LastModifiedDate", "city__c"],
    }
    assert values["ChangeEventHeader"]["entityName"] == table.entity
    pubsub.channel.close()


def test_change_events_has_all_entities_and_a_custom_channel_filters_and_enriches(
    service: EventsThread, table: Table
) -> None:
    org = Org(service)
    other = Table(service)
    for each in (table, other):
        each.create()
        each.write({"op": "c", "after": ROW | {"name": "before"}})
        assert each.define()[0] == 201
    channel = org.channel(channelType="data")
    name = f"M{uuid.uuid4().hex}"
    metadata = {
        "eventChannel": channel,
        "selectedEntity": table.event,
        "filterExpression": "city__c = 'york' AND ChangeEventHeader.changeType IN ('UPDATE', 'DELETE')",
        "enrichedFields": [{"name": "name__c"}],
    }
    body = {"FullName": name, "Metadata": metadata}
    status, made = org.call("POST", "tooling/sobjects/PlatformEventChannelMember", body)
    assert status == 201, made
    all_of_them, filtered = follow(service, "/data/ChangeEvents"), follow(service, f"/data/{channel}")
    other.write({"op": "c", "after": ROW})
    table.write(
        {"op": "c", "after": ROW},
        {"op": "u", "before": ROW, "after": ROW | {"balance": None, "note": "x"}},
        {"op": "u", "before": ROW, "after": ROW | {"city": "Hull"}},
        {"op": "d", "before": ROW},
    )
    events: list[dict[str, Any]] = []
    while len(events) < 5:
        events += [each for each in receive(all_of_them, 1) if each_entity(each) in (table.entity, other.entity)]
    kinds = [(each_entity(each), each["data"]["payload"]["ChangeEventHeader"]["changeType"]) for each in events]
    assert [kind for entity, kind in kinds if entity == table.entity] == ["CREATE", "UPDATE", "UPDATE", "DELETE"]
    assert [kind for entity, kind in kinds if entity == other.entity] == ["CREATE"]
    update, delete = receive(filtered, 2)
    payload = update["data"]["payload"]
    assert payload.pop("ChangeEventHeader")["changedFields"] == ["LastModifiedDate", "note__c"]
    assert payload.pop("LastModifiedDate")
    assert payload == {"name__c": "Ada", "city__c": "York", "note__c": "x"}
    payload = delete["data"]["payload"]
    assert payload.pop("ChangeEventHeader")["changeType"] == "DELETE"
    assert payload == {"name__c": "Ada", "city__c": "York"}
    # an entity is not forgotten under a channel that has it
    token = {"Authorization": f"Bearer {service.token()}"}
    entity_url = f"{service.url}/tidegate/v1/entities/{table.entity}"
    assert "delete it first" in requests.delete(entity_url, headers=token, timeout=60).json()[0]["message"]
    record_url = f"tooling/sobjects/PlatformEventChannelMember/{made['id']}"
    assert org.call("DELETE", record_url)[0] == 204
    assert requests.delete(entity_url, headers=token, timeout=60).status_code == 204
    assert requests.get(entity_url, headers=token, timeout=60).status_code == 404


def each_entity(message: dict[str, Any]) -> str:
    return str(message["data"]["payload"]["ChangeEventHeader"]["entityName"])


@pytest.mark.proof
def test_another_server_goes_on_within_a_transaction(
    broker: TidegateBroker, service: EventsThread, table: Table, tmp_path: Path
) -> None:
    table.create()
    path = f"/data/{table.event}"
    with EventsThread(tmp_path, real="log", **{"bootstrap.servers": broker.bootstrap_servers}) as other:
        other.schemas = service.schemas
        other.server.catalog._schemas = service.schemas
        assert table.define()[0] == 201
        table.write(*({"op": "c", "after": ROW | {"id": number}} for number in range(5)))
        first = headers(receive(follow(other, path), 5))
    table.write(*({"op": "c", "after": ROW | {"id": number}} for number in range(5, 10)))
    shown = headers(receive(follow(service, path), 10))
    assert shown[:5] == first
    assert [each["recordIds"] for each in shown] == [[str(number)] for number in range(10)]
    assert [each["sequenceNumber"] for each in shown] == list(range(1, 11))


def test_records_that_are_no_changes_are_passed_over(service: EventsThread, table: Table) -> None:
    table.create()
    assert table.define()[0] == 201
    junk = [(b"k", b"junk", 1), (None, b"\0\0\1\0\0nothing", 1), (b"\0\0\0\0\1", b"\0\0\0\0\0", 1)]
    service.run(service.server.log.append(table.topic, junk))  # type: ignore[arg-type]
    table.write({"op": "m"}, {"op": "c", "after": ROW | {"note": "x" * 1_020_000}}, {"op": "c", "after": ROW})
    shown = headers(receive(follow(service, f"/data/{table.event}"), 2))
    assert [each["changeType"] for each in shown] == ["GAP_CREATE", "CREATE"]


def test_entities_that_none_could_be_are_refused(service: EventsThread, table: Table) -> None:
    assert table.define()[0] == 201
    for body, code, said in (
        ({"entity": "bad name"}, "FIELD_INTEGRITY_EXCEPTION", "must be an object's name"),
        ({"topic": "no/topic"}, "FIELD_INTEGRITY_EXCEPTION", "no name of a Kafka topic"),
        ({"fields": {"nope": "X"}}, "FIELD_INTEGRITY_EXCEPTION", "no column nope"),
        ({"fields": {"id": "a b"}}, "FIELD_INTEGRITY_EXCEPTION", "is to be 'a b'"),
        ({"fields": []}, "FIELD_INTEGRITY_EXCEPTION", "fields is an object"),
        ({"snapshot": "all"}, "FIELD_INTEGRITY_EXCEPTION", "must be none or create"),
        ({"from": "yesterday"}, "FIELD_INTEGRITY_EXCEPTION", "must be latest or earliest"),
        ({"deletedColumn": "nope"}, "FIELD_INTEGRITY_EXCEPTION", "no column nope"),
        ({"more": 1}, "FIELD_INTEGRITY_EXCEPTION", "is no key of an entity"),
        ({"entity": "Other__c"}, "DUPLICATE_DEVELOPER_NAME", "one entity reads a topic"),
    ):
        status, (error,) = table.define(**body)
        assert (status, error["errorCode"]) == (400, code), error
        assert said in error["message"]
    org = Org(service)
    channel = org.channel(channelType="data")
    for metadata, said in (
        ({"selectedEntity": "NopeChangeEvent"}, "is no change event"),
        ({"selectedEntity": table.event, "enrichedFields": [{"name": "nope"}]}, "has no field nope"),
        ({"selectedEntity": table.event, "filterExpression": "nope = 1"}, "has no field nope"),
        ({"selectedEntity": table.event, "filterExpression": "ChangeEventHeader.recordIds = '1'"}, "has no field"),
    ):
        body = {"FullName": "Nope", "Metadata": {"eventChannel": channel} | metadata}
        status, (error,) = org.call("POST", "tooling/sobjects/PlatformEventChannelMember", body)
        assert (status, said in error["message"]) == (400, True), error


def test_a_change_event_s_schema_is_shown_over_rest(service: EventsThread, table: Table) -> None:
    assert table.define()[0] == 201
    org = Org(service)
    _, compact = org.call("GET", f"sobjects/{table.event}/eventSchema?payloadFormat=COMPACT")
    assert (compact["name"], compact["fields"][0]["name"]) == (table.event, "ChangeEventHeader")
    _, expanded = org.call("GET", f"event/eventSchema/{compact['uuid']}")
    payload = next(field for field in expanded["fields"][0]["type"]["fields"] if field["name"] == "payload")
    types = {field["name"]: field["type"] for field in payload["type"]["fields"]}
    assert (types["seen__c"], types["id__c"]) == (["null", "string"], ["null", "long"])
    assert org.call("GET", "sobjects/NopeChangeEvent/eventSchema")[0] == 404
