"""The Bulk API 2.0 sink: jobs and rows with an org of recorded responses, and end to end with the events service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import responses

from connect.api import (
    ConnectError,
    Origin,
    Record,
    RecordBatch,
    RetriableConnectError,
    TopicPartition,
)
from connect.testing import SinkSuite
from connectors.salesforce.bulk_config import BulkSinkConfig
from connectors.salesforce.bulk_sink import BulkSink
from tests.connectors.suite_targets import EventTarget, published
from tests.support.bulk_org import LOGIN, BulkOrg, field
from tests.support.connect import FakeContext, sink_task
from tidegate.kit.config import validate

FIELDS = [
    field("Id", "id", createable=False, updateable=False),
    field("Name", "string"),
    field("Key__c", "string"),
    field("Size__c", "double"),
    field("Fixed__c", "string", updateable=False),
    field("OwnerId", "reference"),
    field("SystemModstamp", "datetime", createable=False, updateable=False),
]
PLACE = TopicPartition("things", 0)
UPSERT = {
    "salesforce.sink.object.operation": "upsert",
    "salesforce.use.custom.id.field": "true",
    "salesforce.custom.id.field.name": "Key__c",
}


@pytest.fixture
def org() -> Iterator[BulkOrg]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield BulkOrg(mock, FIELDS)


def batch(*values: Mapping[str, Any] | None, first: int = 0) -> RecordBatch:
    rows = [Record("things", value, offset=first + n) for n, value in enumerate(values)]
    return RecordBatch.from_records(rows, origin=Origin(*PLACE))


def task(**more: str) -> tuple[Any, FakeContext]:
    properties = LOGIN | {"salesforce.object": "Thing__c"} | {k.replace("__", "."): v for k, v in more.items()}
    context = FakeContext(properties)
    return sink_task(BulkSink, properties, context), context


def operations(org: BulkOrg) -> list[str]:
    return [job["operation"] for job in org.jobs.values()]


def test_records_become_one_job_when_offsets_are_committed(org: BulkOrg) -> None:
    sink, context = task()
    sink.put([batch({"Name": 'a "b",\nc', "Size__c": 1.5, "SystemModstamp": "x"}, {"Name": "d"})])
    assert org.jobs == {}
    assert sink.pre_commit({PLACE: 2}) == {PLACE: 2}
    assert org.files["7500"] == [{"Name": 'a "b",\nc', "Size__c": "1.5"}, {"Name": "d", "Size__c": ""}]
    assert context.errant == []


def test_a_null_clears_a_field_of_an_update_and_says_nothing_in_an_insert(org: BulkOrg) -> None:
    sink, _ = task()
    sink.put([batch({"Name": None, "Size__c": 1}), batch({"Id": "1", "Name": None, "_EventType": "updated"}, first=1)])
    sink.flush()
    assert [org.files[job] for job in org.jobs] == [
        [{"Name": "", "Size__c": "1"}],
        [{"Id": "1", "Name": "#N/A"}],
    ]


def test_a_record_is_never_twice_in_a_job_and_few_jobs_are_made(org: BulkOrg) -> None:
    def row(id_: str, kind: str) -> dict[str, str]:
        return {"Id": id_, "Name": f"{id_} {kind}", "_EventType": kind}

    sink, _ = task()
    sink.put([batch(row("1", "updated"), row("2", "deleted"), row("3", "updated"), row("1", "updated"))])
    sink.put([batch(row("1", "deleted"), row("2", "created"), row("4", "deleted"), None, first=4)])
    sink.flush()
    assert operations(org) == ["update", "delete", "update", "delete", "insert"]
    assert [[row.get("Id") for row in org.files[job]] for job in org.jobs] == [
        ["1", "3"],
        ["2", "4"],
        ["1"],
        ["1"],
        [None],
    ]


def test_refused_records_are_told_one_by_one_whatever_order_they_come_in(org: BulkOrg) -> None:
    org.refuse = lambda row: (
        "REQUIRED_FIELD_MISSING:Required fields are missing: [Name]:Name --" if not row["Name"] else ""
    )
    sink, context = task()
    sink.put([batch(*({"Name": name, "Size__c": n} for n, name in enumerate(["a", "", "b", ""])))])
    sink.flush()
    assert sorted(record.offset for record, _ in context.errant) == [1, 3]
    assert "REQUIRED_FIELD_MISSING:Required fields" in str(context.errant[0][1])


def test_only_temporarily_refused_rows_are_written_again(org: BulkOrg) -> None:
    locked = {"b"}
    org.refuse = lambda row: "UNABLE_TO_LOCK_ROW:unable to obtain exclusive access:--" if row["Name"] in locked else ""
    sink, context = task()
    sink.put([batch({"Name": "a"}, {"Name": "b"}, {"Name": "c"})])
    assert sink.pre_commit({PLACE: 3}) == {PLACE: 1}
    with pytest.raises(RetriableConnectError, match="UNABLE_TO_LOCK_ROW"):
        sink.flush()
    locked.clear()
    assert sink.pre_commit({PLACE: 3}) == {PLACE: 3}
    assert [[row["Name"] for row in org.files[job]] for job in org.jobs] == [["a", "b", "c"], ["b"], ["b"]]
    assert context.errant == []


def test_a_row_that_stays_locked_is_told_in_the_end(org: BulkOrg) -> None:
    org.refuse = lambda row: "UNABLE_TO_LOCK_ROW:no:--"
    sink, context = task(request__max__retries__time__ms="0")
    sink.put([batch({"Name": "a"})])
    sink.flush()
    assert "UNABLE_TO_LOCK_ROW" in str(context.errant[0][1])


@pytest.mark.parametrize("step", ["POST jobs/ingest", "PUT jobs/ingest/*/batches", "PATCH jobs/ingest/*"])
def test_a_job_that_breaks_off_sends_nothing_twice(org: BulkOrg, step: str) -> None:
    org.broken[step] = 1
    sink, _ = task()
    sink.put([batch({"Name": "a"})])
    assert sink.pre_commit({PLACE: 1}) == {PLACE: 0}
    sink.flush()
    done = [id_ for id_, job in org.jobs.items() if job["state"] == "JobComplete"]
    assert [org.files[id_] for id_ in done] == [[{"Name": "a"}]]


def test_a_slow_job_is_waited_for_again_and_not_repeated(org: BulkOrg) -> None:
    org.slow = 10**6
    sink, context = task(max__timeout__ms="1000")
    context.stopping.set()  # which ends the wait at once
    sink.put([batch({"Name": "a"})])
    with pytest.raises(RetriableConnectError, match="7500 is InProgress"):
        sink.flush()
    org.slow = 0
    sink.flush()
    assert len(org.jobs) == 1


def test_a_job_that_fails_is_told_in_salesforces_words(org: BulkOrg) -> None:
    org.ending = {"state": "Failed", "errorMessage": "InvalidBatch : Field name not found : X"}
    sink, _ = task()
    sink.put([batch({"Name": "a"})])
    with pytest.raises(ConnectError, match="7500 ended as Failed: InvalidBatch : Field name not found"):
        sink.flush()


def test_jobs_stay_within_rows_and_bytes(org: BulkOrg) -> None:
    sink, _ = task(salesforce__batch__size="3", salesforce__batch__bytes="1000")
    sink.put([batch(*({"Name": str(n)} for n in range(7)))])
    sink.put([batch({"Name": "x" * 900}, {"Name": "y" * 900}, first=7)])
    sink.flush()
    assert [len(rows) for rows in org.files.values()] == [3, 3, 1, 1, 1]


def test_upserts_go_by_the_external_id_and_what_cannot_be_is_told(org: BulkOrg) -> None:
    sink, context = task(**{name.replace(".", "__"): value for name, value in UPSERT.items()})
    good, bad = {"Key__c": "k", "Name": "a"}, [{"Name": "no key"}, {"Key__c": "k2", "Nope": 1}, {"Key__c": "#N/A"}]
    sink.put([batch(good | {"Fixed__c": "f", "OwnerId": "005"}, *bad)])
    sink.flush()
    assert (org.jobs["7500"]["operation"], org.jobs["7500"]["externalIdFieldName"]) == ("upsert", "Key__c")
    assert org.files["7500"] == [{"Key__c": "k", "Name": "a", "Fixed__c": "f", "OwnerId": "005"}]
    told = [str(error) for _, error in context.errant]
    assert [
        words in text for words, text in zip(("needs the field Key__c", "no field Nope", "#N/A"), told, strict=True)
    ]


def test_reading_on_after_partitions_went_away_leaves_their_rows_to_others(org: BulkOrg) -> None:
    sink, _ = task()
    sink.put([batch({"Name": "a"})])
    sink.close([PLACE])
    sink.flush()
    assert org.jobs == {}


def test_the_preview_shows_the_file(org: BulkOrg) -> None:
    sink, _ = task()
    lines = list(sink.preview([batch({"Name": "a", "Size__c": 2})]))
    assert lines == ["insert Thing__c, 1 rows:", '"Name","Size__c"', '"a","2"']
    assert org.jobs == {}


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"salesforce.object.num": "2"}, "salesforce.object.num"),
        ({"skip.object1.relationship.fields": "false"}, "skip.relationship.fields"),
        ({"salesforce.object": "A__e", **UPSERT}, "salesforce.sink.object.operation"),
    ],
)
def test_unsupported_settings_are_refused_at_validation(more: Mapping[str, str], key: str) -> None:
    judged = validate(BulkSinkConfig, {**LOGIN, "salesforce.object": "Thing__c", **more})
    assert [value.key.name for value in judged if value.errors] == [key]


class TestAgainstTheEventsService(EventTarget, SinkSuite):
    """Rows are published as platform events by jobs of a server that is not ours to fake."""

    connector_class = BulkSink

    @pytest.fixture
    def properties(self, service_login: Mapping[str, str]) -> Mapping[str, str]:
        return {**service_login, "salesforce.object": "Order_Shipped__e"}

    def test_a_refused_event_is_told_in_the_services_words(self, bench: Any) -> None:
        with bench.sink(PLACE) as running:
            running.task.put([batch({"Order_Number__c": "9" * 50}, {"Order_Number__c": "fine"})])
            assert running.task.pre_commit({PLACE: 2}) == {PLACE: 2}
            ((record, error),) = running.context.errant
        assert record.offset == 0
        assert "STRING_TOO_LONG" in str(error)
        assert published(self.service)[self.first :] == ["fine"]
