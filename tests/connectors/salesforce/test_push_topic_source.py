"""The PushTopic source against an org of recorded responses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import responses

from connect.api import ConnectError, Record
from connect.bench import Bench
from connect.testing.sources import check_batch
from connectors.salesforce.push_topic_source import PushTopicSource, query_of
from connectors.salesforce.streaming_config import PushTopicSourceConfig
from tests.support.bulk_org import LOGIN, ORG, BulkOrg, field
from tests.support.streaming_org import StreamingOrg
from tidegate.kit.config import parse, validate

FIELDS = [
    field("Id", "id"),
    field("Name", "string"),
    field("Description", "textarea"),
    field("CreatedDate", "datetime"),
]
CHANNEL = "/topic/Leads"
DATA = f"{ORG}/services/data/v60.0"


class Org(StreamingOrg):
    """Keeps push topics too."""

    def __init__(self, mock: responses.RequestsMock) -> None:
        super().__init__(mock)
        BulkOrg(mock, FIELDS)
        self.push_topics: list[dict[str, Any]] = []
        self.queries: list[str] = []
        mock.add_callback(responses.GET, re.compile(rf"{DATA}/query/?\?.*"), self._query)
        mock.add_callback(responses.POST, f"{DATA}/sobjects/PushTopic", self._create)

    def _query(self, request: Any) -> tuple[int, dict[str, str], str]:
        self.queries.append(request.params["q"])
        return 200, {}, json.dumps({"records": self.push_topics, "done": True})

    def _create(self, request: Any) -> tuple[int, dict[str, str], str]:
        self.push_topics.append(json.loads(request.body))
        return 201, {}, json.dumps({"id": "0IF1", "success": True, "errors": []})

    def change(self, kind: str, **fields: str) -> int:
        about = {"type": kind, "createdDate": "2026-01-01T00:00:00.000Z"}
        return self.publish(CHANNEL, {"event": about, "sobject": fields})


@pytest.fixture
def org() -> Iterator[Org]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield Org(mock)


def bench(**more: str) -> Bench:
    properties = {
        "kafka.topic": "Leads-${_EventType}",
        "salesforce.object": "Lead",
        "salesforce.push.topic.name": "Leads",
    }
    properties["salesforce.initial.start"] = "all"
    return Bench(
        PushTopicSource, {**LOGIN, **properties, **{key.replace("__", "."): value for key, value in more.items()}}
    )


def read(made: Bench, count: int) -> list[Record]:
    with made.task() as running:
        batches = running.poll_rows(count, timeout_s=60)
    for batch in batches:
        check_batch(batch)
    made.commit(batches)
    return [record for batch in batches for record in batch.records()]


def test_a_push_topic_is_created_and_followed(org: Org) -> None:
    made = bench(salesforce__push__topic__notify__delete="false")
    org.change("created", Id="00Q1", Name="Ada", CreatedDate="2026-01-01T10:00:00.000Z")
    last = org.change("updated", Id="00Q1", Name="Eve")
    first, second = read(made, 2)
    assert org.push_topics == [
        {
            "Name": "Leads",
            "Query": "SELECT Id, Name, CreatedDate FROM Lead",
            "ApiVersion": 60.0,
            "NotifyForFields": "All",
            "NotifyForOperationCreate": True,
            "NotifyForOperationUpdate": True,
            "NotifyForOperationDelete": False,
            "NotifyForOperationUndelete": True,
        }
    ]
    assert (first.topic, first.key, first.timestamp_ms) == ("leads-created", "00Q1", 1767225600000)
    assert first.value_schema is not None
    assert first.value_schema.name == "io.confluent.salesforce.Lead"
    assert (first.value["Description"], first.value["CreatedDate"].hour) == (None, 10)
    assert (second.value["Name"], second.value["_EventType"], second.value["_ObjectType"]) == ("Eve", "updated", "Lead")
    org.change("deleted", Id="00Q1")
    assert [record.value["_EventType"] for record in read(made, 1)] == ["deleted"]
    assert org.subscribed == [(CHANNEL, -2), (CHANNEL, last)]
    assert len(org.push_topics) == 1


def test_an_existing_push_topic_must_be_of_the_same_object(org: Org) -> None:
    org.push_topics = [{"Query": "select Id from Account"}]
    with pytest.raises(ConnectError, match="Leads is of Account, not of Lead"), bench().task():
        pass
    assert org.queries == ["SELECT Id, Query FROM PushTopic WHERE Name = 'Leads'"]


def test_a_missing_one_is_said_where_it_is_not_to_be_created(org: Org) -> None:
    config = parse(PushTopicSourceConfig, bench(salesforce__push__topic__create="false").properties)
    (problem,) = PushTopicSource.check(config)
    assert "there is no push topic Leads" in problem.message
    assert list(PushTopicSource.check(parse(PushTopicSourceConfig, bench().properties))) == []


def test_a_query_that_is_too_long_is_said() -> None:
    config = parse(PushTopicSourceConfig, bench().properties)
    fields = [{"name": f"Field_{n}__c", "type": "string"} for n in range(200)]
    with pytest.raises(ConnectError, match="Salesforce allows 1300: create the push topic Leads"):
        query_of(config, {"fields": fields})


@pytest.mark.parametrize(
    "more",
    [
        {"salesforce.push.topic.name": "a name of more than 25 characters"},
        dict.fromkeys(
            (f"salesforce.push.topic.notify.{kind}" for kind in ("create", "update", "delete", "undelete")), "false"
        ),
    ],
)
def test_wrong_keys_are_said(more: Mapping[str, str]) -> None:
    judged = validate(PushTopicSourceConfig, {**bench().properties, **more})
    assert [value.key.name for value in judged if value.errors] == [next(iter(more))]
