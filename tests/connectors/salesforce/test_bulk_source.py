"""The sources that read objects with query jobs, against an org of recorded responses."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import responses

from connect.api import ConnectError, RecordBatch, RetriableConnectError
from connect.bench import Bench
from connect.testing import SourceSuite
from connect.testing.sources import check_batch
from connectors.salesforce.bulk import BulkClient
from connectors.salesforce.bulk_config import BulkSourceConfig
from connectors.salesforce.bulk_query import ObjectQuery, ObjectReader
from connectors.salesforce.bulk_source import BulkSource
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.config import SalesforceConfig
from tests.support.bulk_org import LOGIN, BulkOrg, field
from tidegate.kit.config import parse, validate

FIELDS = [
    field("Name", "string"),
    field("Id", "id"),
    field("Fee__c", "currency"),
    field("Address", "address"),
    field("City", "string", compoundFieldName="Address"),
    field("IsDeleted", "boolean"),
    field("CreatedDate", "datetime"),
    field("SystemModstamp", "datetime"),
]
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def row(number: int, changed: float, *, created: float | None = None, **more: str) -> dict[str, str]:
    stamps = {"CreatedDate": at(changed if created is None else created), "SystemModstamp": at(changed)}
    return {"Id": f"{number:03d}", "Name": f"n{number}", "IsDeleted": "false", **stamps, **more}


@pytest.fixture
def org() -> Iterator[BulkOrg]:
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield BulkOrg(mock, FIELDS)


def holding(org: BulkOrg, rows: list[dict[str, str]]) -> None:
    """Let queries find the rows that changed from the time that they ask for."""

    def found(soql: str) -> list[dict[str, str]]:
        asked = re.search(r"(\w+) >= (\S+)", soql)
        assert asked
        since = datetime.fromisoformat(asked[2])
        return [each for each in rows if datetime.fromisoformat(each[asked[1]]) >= since]

    org.rows = found


def reader(org: BulkOrg, position: Mapping[str, Any] | None = None, **more: Any) -> ObjectReader:
    client = SalesforceClient(parse(SalesforceConfig, LOGIN))
    query = ObjectQuery("Thing__c", "things", **{"since": "2026-01-01", "page_rows": 2, **more})
    return ObjectReader(
        BulkClient(client),
        query,
        client.describe("Thing__c"),
        partition={"object": "Thing__c"},
        position=position,
        stopping=threading.Event(),
    )


def read(made: ObjectReader) -> list[RecordBatch]:
    batches_read = [batch for batches in made.window() for batch in batches]
    for batch in batches_read:
        check_batch(batch)
    return batches_read


def ids(batches: list[RecordBatch]) -> list[Any]:
    return [key for batch in batches for key in batch.keys.to_pylist()]  # type: ignore[union-attr]


def kinds(batches: list[RecordBatch]) -> list[Any]:
    return [kind for batch in batches for kind in batch.column("_EventType").to_pylist()]


def test_records_come_page_by_page_in_the_types_of_the_object(org: BulkOrg) -> None:
    holding(org, [row(1, 10, Fee__c="1.50", City='a,\n"b"'), row(2, 20), row(3, 30)])
    batches = read(reader(org))
    assert org.queries == [
        "SELECT Name, Id, Fee__c, City, IsDeleted, CreatedDate, SystemModstamp FROM Thing__c "
        "WHERE CreatedDate >= 2026-01-01T00:00:00Z"
    ]
    assert [len(batch) for batch in batches] == [2, 1]
    first = next(batches[0].records())
    assert first.value_schema is not None
    assert first.value_schema.name == "io.confluent.salesforce.Thing__c"
    assert first.value == {
        "Id": "001",
        "Name": "n1",
        "Fee__c": "1.50",
        "City": 'a,\n"b"',
        "IsDeleted": False,
        "CreatedDate": START + timedelta(seconds=10),
        "SystemModstamp": START + timedelta(seconds=10),
        "_ObjectType": "Thing__c",
        "_EventType": "created",
    }
    assert (first.key, first.timestamp_ms) == ("001", int(START.timestamp() * 1000) + 10_000)
    assert batches[-1].source_offset == {"time": "2026-01-02T00:00:00.000Z"}


def test_the_next_window_has_what_changed_since_and_nothing_twice(org: BulkOrg) -> None:
    org.clock = at(100)
    rows = [row(1, 10), row(2, 90)]
    holding(org, rows)
    made = reader(org)
    assert kinds(read(made)) == ["created", "created"]
    org.clock = at(200)
    rows += [row(3, 150), row(1, 160, created=10), row(4, 80), row(5, 170, created=20, IsDeleted="true")]
    batches = read(made)
    assert org.queries[1].endswith(f"WHERE SystemModstamp >= {at(40)}")
    assert dict(zip(ids(batches), kinds(batches), strict=True)) == {
        "003": "created",
        "001": "updated",
        "004": "created",  # its transaction ended after the first window
        "005": "deleted",
    }
    org.clock = at(300)
    assert ids(read(made)) == []


def test_reading_resumes_within_a_page_and_after_a_break(org: BulkOrg) -> None:
    holding(org, [row(n, n) for n in range(5)])
    whole = read(reader(org))
    positions = [offset for batch in whole for offset in batch.source_offsets or ()]
    assert len(positions) == 5
    for count, position in enumerate(positions[:-1], 1):
        assert ids(read(reader(org, position))) == [f"{n:03d}" for n in range(count, 5)]
    assert len(org.jobs) == 1, "the results of the first job are used"
    org.broken["GET jobs/query/*/results"] = 1
    made = reader(org)
    with pytest.raises(RetriableConnectError):
        read(made)
    assert len(ids(read(made))) == 5
    assert len(org.jobs) == 2


def test_a_job_that_is_gone_is_made_anew_and_one_that_fails_is_told(org: BulkOrg) -> None:
    holding(org, [row(1, 1)])
    position = {"until": at(5), "jobId": "750999", "locator": None, "rows": 1}
    assert ids(read(reader(org, position))) == ["001"]
    org.ending = {"state": "Failed", "errorMessage": "INVALID_FIELD: no"}
    with pytest.raises(ConnectError, match="ended as Failed: INVALID_FIELD"):
        read(reader(org))
    org.ending = {"state": "Aborted"}
    made = reader(org)
    with pytest.raises(RetriableConnectError, match="aborted"):
        read(made)


def test_large_pages_make_batches_within_bounds(org: BulkOrg) -> None:
    holding(org, [row(n, n, Name="x" * 3_000_000) for n in range(2)])
    batches = read(reader(org, page_rows=10))
    assert [len(batch) for batch in batches] == [1, 1]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"offset_field": "Name"}, "a datetime is needed"),
        ({"fields": ["Id"]}, "have to include SystemModstamp"),
        ({"fields": ["Id", "SystemModstamp", "Nope"]}, "Nope of Thing__c is not there"),
        ({"fields": ["Id", "SystemModstamp", "Address"]}, "Address of Thing__c is of type address"),
    ],
)
def test_an_unreadable_object_is_reported_at_validation(org: BulkOrg, more: Mapping[str, Any], words: str) -> None:
    with pytest.raises(ConnectError, match=words):
        reader(org, **more)


def test_a_query_of_ones_own(org: BulkOrg) -> None:
    properties = {
        "kafka.topic": "t",
        "salesforce.object1": "Thing__c",
        "salesforce.object1.enable.custom.query": "true",
        "salesforce.object1.custom.query.fields": "Id,SystemModstamp",
        "salesforce.object1.custom.query.where": "Name != 'x' OR Fee__c > 1",
        "salesforce.since": "2026-01-01",
    }
    config = parse(BulkSourceConfig, LOGIN | properties)
    client = SalesforceClient(config)
    made = ObjectReader(
        BulkClient(client),
        config.query(),
        client.describe("Thing__c"),
        partition={},
        position={"time": at(60)},
        stopping=threading.Event(),
    )
    assert made.soql() == (
        f"SELECT Id, SystemModstamp FROM Thing__c WHERE SystemModstamp >= {at(0)} AND (Name != 'x' OR Fee__c > 1)"
    )


@pytest.mark.parametrize("since", ["$TODAY", "20260101", "2026-1-1", "2026-02-30"])
def test_since_is_a_day(since: str) -> None:
    config = LOGIN | {"kafka.topic": "t", "salesforce.object": "Lead", "salesforce.since": since}
    assert [value.key.name for value in validate(BulkSourceConfig, config) if value.errors] == ["salesforce.since"]


class TestBulkSource(SourceSuite):
    connector_class = BulkSource

    @pytest.fixture(autouse=True)
    def _org(self, org: BulkOrg) -> None:
        org.slow = 1
        holding(org, [row(n, n) for n in range(12)])

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        more = {"kafka.topic": "things", "salesforce.since": "2026-01-01", "result.max.rows": "5"}
        return LOGIN | {"salesforce.object": "Thing__c"} | more

    @pytest.fixture
    def expected_rows(self) -> int:
        return 12

    def test_its_object_is_looked_for(self, bench: Bench) -> None:
        assert list(BulkSource.check(parse(BulkSourceConfig, bench.properties))) == []
