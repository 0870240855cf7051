"""The source for whole objects: no change is lost between the snapshot and the events, nor where events are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import responses

from connect.api import Record
from connect.bench import Bench
from connect.testing.sources import check_batch
from connectors.salesforce.bulk_config import POLLING, ObjectSourceConfig
from connectors.salesforce.object_source import ObjectSource
from tests.connectors.salesforce.test_bulk_source import FIELDS, START, at, holding, row
from tests.support.bulk_org import LOGIN, ORG, BulkOrg
from tests.support.streaming_org import StreamingOrg
from tidegate.kit.config import parse, validate

CHANNEL = "/data/LeadChangeEvent"


class Org(BulkOrg):
    """Queries and events of one org."""

    def __init__(self, mock: responses.RequestsMock) -> None:
        super().__init__(mock, FIELDS)
        self.streaming = StreamingOrg(mock)

    def change(self, id_: str, kind: str, seconds: float, *, changed: tuple[str, ...] = (), **fields: Any) -> int:
        header = {"entityName": "Lead", "recordIds": id_.split(","), "changeType": kind, "changedFields": list(changed)}
        header |= {"commitTimestamp": int((START.timestamp() + seconds) * 1000)}
        payload = {"ChangeEventHeader": header, **fields}
        return self.streaming.publish(CHANNEL, {"schema": "s", "payload": payload})


@pytest.fixture
def org() -> Iterator[Org]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        mock.get(f"{ORG}/services/data/v60.0/sobjects/LeadChangeEvent/eventSchema", json={"name": "LeadChangeEvent"})
        yield Org(mock)


def bench(**more: str) -> Bench:
    properties = {"sobject.names": "Lead", "topic.prefix": "sf", "since": "2026-01-01", "result.max.rows": "2"}
    return Bench(
        ObjectSource, {**LOGIN, **properties, **{key.replace("__", "."): value for key, value in more.items()}}
    )


def read(made: Bench, count: int) -> list[Record]:
    with made.task() as running:
        batches = running.poll_rows(count, timeout_s=60)
    for batch in batches:
        check_batch(batch)
    made.commit(batches)
    return [record for batch in batches for record in batch.records()]


def shown(records: list[Record]) -> list[tuple[Any, Any]]:
    return [(record.key, None if record.value is None else record.value["_EventType"]) for record in records]


def test_a_snapshot_passes_into_events_and_a_restart_into_later_ones(org: Org) -> None:
    holding(org, [row(1, 10), row(2, 500), row(3, 900)])
    org.clock = at(1000)
    org.change("001", "UPDATE", 10)  # in the snapshot
    org.change("002", "DELETE", 990)  # during the snapshot, so perhaps not
    org.change("004", "CREATE", 1100, Name="new", Address={"City": "York"}, changed=())
    made = bench()
    records = read(made, 5)
    assert shown(records) == [
        *(("001", "created"), ("002", "created"), ("003", "created")),
        *(("002", "deleted"), ("004", "created")),
    ]
    assert {record.topic for record in records} == {"sf.Lead"}
    assert all(record.value_schema == records[0].value_schema for record in records)
    assert (records[-1].value["Name"], records[-1].value["City"]) == ("new", "York")
    last = org.change("004", "UPDATE", 1200, Name=None, changed=("Name", "LastModifiedDate"))
    (record,) = read(made, 1)
    headers = {header.key: header.value for header in record.headers}
    assert headers == {"source.changed.fields": "Name,LastModifiedDate", "cdc.nulled.fields": "Name"}
    assert org.streaming.subscribed == [(CHANNEL, -2), (CHANNEL, last - 3)]


def test_after_a_snapshot_a_restart_loses_no_event(org: Org) -> None:
    """The task ends right after the snapshot: changes made before the restart are in the events since then."""
    holding(org, [row(1, 10)])
    org.clock = at(1000)
    made = bench()
    assert shown(read(made, 1)) == [("001", "created")]
    org.clock = at(5000)
    org.change("001", "DELETE", 2000)
    assert shown(read(made, 1)) == [("001", "deleted")]
    assert len(org.queries) == 1


def test_a_gap_is_filled_by_a_query(org: Org) -> None:
    rows = [row(1, 10)]
    holding(org, rows)
    org.clock = at(1000)
    made = bench()
    read(made, 1)
    org.change("001", "UPDATE", 2000, Name="b", changed=("Name",))
    org.change("001", "GAP_UPDATE", 3000)
    last = org.change("001", "DELETE", 4000)
    rows += [row(1, 3000, created=10), row(2, 2990)]
    org.clock = at(3500)
    assert shown(read(made, 4)) == [
        ("001", "updated"),
        *(("001", "updated"), ("002", "created")),
        ("001", "deleted"),
    ]
    assert org.queries[1].endswith(f"SystemModstamp >= {at(1940)}")
    org.change("001", "UNDELETE", 4001)
    assert shown(read(made, 1)) == [("001", "undeleted")]
    assert org.streaming.subscribed[-1] == (CHANNEL, last)


@pytest.mark.parametrize(
    ("recovery", "expected"), [("resync", [("002", "created"), ("003", "deleted")]), ("latest", [])]
)
def test_events_that_are_not_kept_any_more(org: Org, recovery: str, expected: list[Any]) -> None:
    rows = [row(1, 10)]
    holding(org, rows)
    org.clock = at(1000)
    made = bench(gap__event__recovery=recovery)
    org.change("009", "CREATE", 1100)
    assert len(read(made, 2)) == 2
    org.streaming.forget(CHANNEL)
    rows.append(row(2, 200_000))
    org.change("003", "DELETE", 400_000)
    org.clock = at(400_010)
    with made.task() as running:
        if expected:
            assert shown([r for batch in running.poll_rows(2, timeout_s=60) for r in batch.records()]) == expected
        else:
            for _ in range(120):  # a poll waits for half a second
                assert running.task.poll() == []
                if (CHANNEL, -1) in org.streaming.subscribed:
                    break
            assert (CHANNEL, -1) in org.streaming.subscribed


def test_deletes_may_be_followed_by_tombstones_and_sessions_break(org: Org) -> None:
    made = bench(historical__snapshot="false", event__sync__start__point="all", emit__tombstone__on__delete="true")
    org.change("001,002", "DELETE", 5)
    org.streaming.drop_sessions = 2
    assert shown(read(made, 4)) == [("001", "deleted"), ("001", None), ("002", "deleted"), ("002", None)]


def test_polling_reads_window_after_window(org: Org) -> None:
    rows = [row(1, 10)]
    holding(org, rows)
    org.clock = at(1000)
    made = bench(real__time__ingestion__mode=POLLING, poll__interval__ms="500")
    with made.task() as running:
        assert shown([r for batch in running.poll_rows(1, timeout_s=60) for r in batch.records()]) == [
            ("001", "created")
        ]
        rows.append(row(1, 1100, created=10))
        assert shown([r for batch in running.poll_rows(1, timeout_s=60) for r in batch.records()]) == [
            ("001", "updated")
        ]


def test_objects_are_dealt_out_over_tasks(org: Org) -> None:
    made = bench(sobject__names="Lead,Account,Lead,Case")
    assert [task["sobject.names"] for task in made.plan(2)] == ["Lead,Case", "Account"]
    assert len(made.plan(9)) == 3


def test_wrong_objects_are_said_at_validation(org: Org) -> None:
    properties = bench().properties
    assert list(ObjectSource.check(parse(ObjectSourceConfig, properties))) == []
    (problem,) = ObjectSource.check(parse(ObjectSourceConfig, {**properties, "sobject.names": "Order__c"}))
    assert "Order__ChangeEvent" in problem.message
    for more in ({"cdc.full.record.on.update": "true"}, {"sobject.names": "Old__b"}, {"since": "$TODAY"}):
        judged = validate(ObjectSourceConfig, {**properties, **more})
        assert [value.key.name for value in judged if value.errors] == list(more)
