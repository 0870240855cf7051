"""The change data capture source follows change events that the events service creates from a table's changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from connect.api import ConnectError, Record, SchemaType
from connect.bench import Bench
from connect.testing.sources import check_batch
from connectors.salesforce.change_source import Changes, ChangeSource
from connectors.salesforce.schemas import change_schema, python_value
from connectors.salesforce.sink import ObjectSink
from connectors.salesforce.streaming_config import ChangeSourceConfig
from tests.events.channels.test_change_channels import ROW, Table
from tests.support.connect import FakeContext, sink_task
from tests.support.events import EventsThread
from tidegate.kit.config import parse, validate


@pytest.fixture(scope="module")
def table(events_service: EventsThread) -> Table:
    """A table with four changes: created, updated, deleted, and one of another row."""
    made = Table(events_service)
    assert made.define(fields={"name": "Name", "street": "Address__c.Street", "city": "Address__c.City"})[0] == 201
    made.create()
    made.write(
        {"op": "c", "after": ROW | {"street": "Gate 1", "born": 7305}},
        {"op": "u", "before": ROW, "after": ROW | {"city": None}},
        {"op": "d", "before": ROW},
        {"op": "c", "after": ROW | {"id": 2, "name": "Bob"}},
    )
    return made


def bench(login: Mapping[str, str], channel: str, **more: str) -> Bench:
    properties = {"kafka.topic": "Changes", "salesforce.cdc.name": channel, "salesforce.initial.start": "all"}
    return Bench(ChangeSource, {**login, **properties, **{key.replace("_", "."): value for key, value in more.items()}})


def read(made: Bench, count: int) -> list[Record]:
    with made.task() as running:
        batches = running.poll_rows(count, timeout_s=60)
    for batch in batches:
        check_batch(batch)
    made.commit(batches)
    return [record for batch in batches for record in batch.records()]


def test_changes_arrive_in_the_form_of_confluents_connector(table: Table, login: Mapping[str, str]) -> None:
    records = read(bench(login, table.event), 4)
    created, updated, deleted, other = records
    assert {record.topic for record in records} == {"changes"}
    assert [record.key for record in records] == ["1", "1", "1", "2"]
    assert [record.value["_EventType"] for record in records] == ["created", "updated", "deleted", "created"]
    assert {record.value["_ObjectType"] for record in records} == {table.event}
    assert created.value_schema is not None
    assert created.value_schema.name == f"io.confluent.salesforce.{table.event}"
    assert created.value_schema.field_names[:3] == ("Id", "ReplayId", "ChangeEventHeader")
    assert created.value_schema.field_names[-2:] == ("_ObjectType", "_EventType")
    assert (created.value["Name"], created.value["Address__c"]) == ("Ada", {"Street": "Gate 1", "City": "York"})
    assert created.value["born__c"].isoformat() == "1990-01-01"
    assert created.value["ChangeEventHeader"]["recordIds"] == ["1"]
    assert updated.value["ChangeEventHeader"]["changedFields"] == ["LastModifiedDate", "Address__c.City"]
    assert (updated.value["Name"], updated.value["Address__c"]) == (None, {"Street": None, "City": None})
    assert deleted.value["Id"] == "1"
    assert deleted.timestamp_ms == deleted.value["ChangeEventHeader"]["commitTimestamp"]
    assert other.value["Name"] == "Bob"


def test_reading_resumes_after_the_last_event(table: Table, login: Mapping[str, str]) -> None:
    made = bench(login, table.event)
    assert len(read(made, 4)) == 4
    table.write({"op": "c", "after": ROW | {"id": 3, "name": "Cid"}})
    (record,) = read(made, 1)
    assert (record.key, record.value["Name"]) == ("3", "Cid")


def test_a_channel_of_all_entities_is_filtered_and_split_over_topics(table: Table, login: Mapping[str, str]) -> None:
    more = {"salesforce_channel_entities": table.entity, "kafka_topic": "crm.${_ObjectType}.${_EventType}"}
    records = read(bench(login, "ChangeEvents", **more), 4)
    assert records[2].topic == f"crm.{table.event}.deleted".lower()
    assert {record.value["_ObjectType"] for record in records} == {table.event}


def test_a_position_that_is_not_kept_falls_back(table: Table, login: Mapping[str, str]) -> None:
    made = bench(login, table.event)
    with made.task() as running:
        batch = running.poll_rows(1, timeout_s=60)[0]
    made.commit([batch.replace(source_offset={"replayId": 10**9})])
    assert len(read(made, 4)) >= 4


@pytest.mark.parametrize(
    ("channel", "words"),
    [("Account", "change event"), ("Nope__ChangeEvent", "Nope__ChangeEvent"), ("", "change event")],
)
def test_a_wrong_channel_is_said_at_validation(login: Mapping[str, str], channel: str, words: str) -> None:
    properties = bench(login, channel).properties
    judged = [error for value in validate(ChangeSourceConfig, properties) for error in value.errors]
    judged += (
        [] if judged else [problem.message for problem in ChangeSource.check(parse(ChangeSourceConfig, properties))]
    )
    assert any(words in error for error in judged), judged


def event(payload: Mapping[str, Any], **header: Any) -> dict[str, Any]:
    full = {"entityName": "Contact", "changeType": "UPDATE", "recordIds": ["003A"], "changedFields": [], **header}
    return {"schema": "s1", "payload": {"ChangeEventHeader": full, **payload}, "event": {"replayId": 7}}


class Schemas:
    """A client that gives out one schema."""

    avro: Mapping[str, Any] = {
        "name": "ContactChangeEvent",
        "fields": [
            {"name": "ChangeEventHeader", "type": {"type": "record", "name": "ChangeEventHeader", "fields": []}},
            {"name": "Name", "type": ["null", "string"]},
            {"name": "Fax", "type": ["null", "string"]},
            {"name": "Salary__c", "type": ["null", "double"], "doc": "Data:Currency:00N1"},
        ],
    }

    def event_schema(self, schema_id: str) -> Mapping[str, Any]:
        return self.avro


def records_of(event: Mapping[str, Any]) -> list[Record]:
    config = parse(ChangeSourceConfig, {"kafka.topic": "t", "salesforce.cdc.name": "ChangeEvents", **USER_ONLY})
    return list(Changes(Schemas()).records(event, config.topic_of))  # type: ignore[arg-type]


USER_ONLY = {"salesforce.username": "u", "salesforce.password": "p"}


def test_an_event_of_several_records_becomes_several() -> None:
    records = records_of(event({"Name": "Ada", "Salary__c": 10.5}, recordIds=["003A", "003B"], changedFields=["Name"]))
    assert [(record.key, record.value["Id"], record.value["Name"]) for record in records] == [
        ("003A", "003A", "Ada"),
        ("003B", "003B", "Ada"),
    ]
    assert records[0].value["Salary__c"] == "10.5"


def test_the_sink_writes_what_changed_and_refuses_a_gap() -> None:
    properties = USER_ONLY | {"salesforce.object": "Contact"}
    context = FakeContext(properties)
    sink = sink_task(ObjectSink, properties, context)
    changed = records_of(event({"Name": None}, changedFields=["Name"])) + records_of(event({}, changeType="GAP_UPDATE"))
    from connect.api import RecordBatch

    (line,) = sink.preview([RecordBatch.from_records(changed)])
    assert json.loads(line.partition(": ")[2]) == {"Id": "003A", "Name": None}
    assert "gap_update" in str(context.errant[0][1])


def test_a_schema_that_is_no_change_events_is_said() -> None:
    class Wrong(Schemas):
        avro: Mapping[str, Any] = {"type": "string"}

    with pytest.raises(ConnectError, match="s1"):
        list(Changes(Wrong()).records(event({}), str))  # type: ignore[arg-type]


def test_the_schema_of_a_change_has_the_types_of_its_docs() -> None:
    schema = change_schema(Schemas.avro)
    assert schema.field("Salary__c").schema.type is SchemaType.STRING
    assert python_value({"a": 1}, schema.field("Name").schema) == '{"a":1}'
