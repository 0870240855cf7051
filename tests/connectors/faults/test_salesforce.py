"""The Salesforce connectors pass the suites that kill, stop and cut connections: with an events service, or, where that
lacks the API, with an org of recorded responses.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import responses

from connect.testing import SinkFaultSuite
from connectors.salesforce.bulk_sink import BulkSink
from connectors.salesforce.bulk_source import BulkSource
from connectors.salesforce.change_source import ChangeSource
from connectors.salesforce.object_source import ObjectSource
from connectors.salesforce.push_topic_source import PushTopicSource
from connectors.salesforce.sink import EventSink, ObjectSink
from connectors.salesforce.source import EventSource
from events.model.definitions import EventDefinition, EventField, FieldType
from tests.connectors.faults.parts import ROWS, NumberedRows, OnBothBrokers, ThroughForwarder
from tests.connectors.suite_targets import EventTarget
from tests.events.channels.test_change_channels import ROW, Table
from tests.support.bulk_org import LOGIN, ORG, BulkOrg, field
from tests.support.events import EventsThread
from tests.support.org_server import org_server
from tests.support.streaming_org import StreamingOrg

pytestmark = [pytest.mark.proof, pytest.mark.servers]

_BORN = datetime(2026, 1, 1, tzinfo=UTC)


class OnEventsService(ThroughForwarder):
    @pytest.fixture
    def server_port(self, events_service: EventsThread) -> int:
        port = urlsplit(events_service.secure_url).port
        assert port is not None
        return port

    @pytest.fixture
    def login(self, login: Mapping[str, str], port: int) -> Mapping[str, str]:
        """Through the forwarder; the service gives the address at which it was called."""
        return {**login, "salesforce.instance": f"https://127.0.0.1:{port}"}


class EventSinkSuite(OnEventsService, EventTarget, OnBothBrokers, SinkFaultSuite):
    pass


@pytest.mark.long
class TestEventSink(EventSinkSuite):
    connector_class = EventSink

    @pytest.fixture
    def properties(self, service_login: Mapping[str, str]) -> Mapping[str, str]:
        return {**service_login, "salesforce.platform.event.name": "Order_Shipped__e", "salesforce.batch.size": "5"}


@pytest.mark.long
class TestObjectSink(EventSinkSuite):
    connector_class = ObjectSink

    @pytest.fixture
    def properties(self, service_login: Mapping[str, str]) -> Mapping[str, str]:
        return {**service_login, "salesforce.object": "Order_Shipped__e", "salesforce.batch.size": "5"}


@pytest.mark.long
class TestBulkSink(EventSinkSuite):
    connector_class = BulkSink

    @pytest.fixture
    def properties(self, service_login: Mapping[str, str]) -> Mapping[str, str]:
        return {**service_login, "salesforce.object": "Order_Shipped__e"}


@pytest.mark.long
class TestEventSource(OnEventsService, NumberedRows):
    connector_class = EventSource

    @pytest.fixture
    def properties(self, events_service: EventsThread, login: Mapping[str, str]) -> Mapping[str, str]:
        name = f"F{time.time_ns()}__e"
        numbered = EventField("Number__c", FieldType.TEXT, required=True, length=20)
        events_service.define(EventDefinition(name, (numbered,), label="Fault", plural_label="Faults"))
        events = [{"attributes": {"type": name}, "Number__c": str(n)} for n in range(1, ROWS + 1)]
        url = f"{events_service.url}/services/data/v60.0/composite/sobjects"
        headers = {"Authorization": f"Bearer {events_service.token()}"}
        answer = requests.post(url, json={"records": events}, headers=headers, timeout=60)
        assert all(each["success"] for each in answer.json()), answer.text
        return {
            **login,
            "kafka.topic": name,
            "salesforce.platform.event.name": name,
            "salesforce.initial.start": "all",
        }

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        return int(value["Number__c"])


@pytest.mark.long
class TestChangeSource(OnEventsService, NumberedRows):
    connector_class = ChangeSource

    @pytest.fixture
    def properties(self, events_service: EventsThread, login: Mapping[str, str]) -> Mapping[str, str]:
        table = Table(events_service)
        assert table.define()[0] == 201
        table.create()
        for n in range(1, ROWS + 1):
            table.write({"op": "c", "after": ROW | {"id": n}})
        return {
            **login,
            "kafka.topic": table.event,
            "salesforce.cdc.name": table.event,
            "salesforce.initial.start": "all",
        }

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        return int(value["Id"])


class OnOrg(ThroughForwarder, NumberedRows):
    """An org of recorded answers, which a test puts on ``mock``."""

    mock: responses.RequestsMock

    @pytest.fixture
    def server_port(self, tmp_path: Path) -> Iterator[int]:
        with org_server(tmp_path) as (self.mock, port, self.authority):
            yield port

    @pytest.fixture
    def login(self, port: int) -> Mapping[str, str]:
        more = {"salesforce.instance": f"https://127.0.0.1:{port}", "salesforce.ca.file": str(self.authority)}
        return LOGIN | more

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        return int(value["Id"])


FIELDS = [
    field("Name", "string"),
    field("Id", "id"),
    field("IsDeleted", "boolean"),
    field("CreatedDate", "datetime"),
    field("SystemModstamp", "datetime"),
]


class ObjectRows(OnOrg):
    """Objects that a query finds."""

    @pytest.fixture
    def org(self, login: Mapping[str, str]) -> BulkOrg:
        org = BulkOrg(self.mock, FIELDS)
        rows = []
        for n in range(1, ROWS + 1):
            at = (_BORN + timedelta(seconds=n)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            rows.append({"Id": f"{n:03d}", "Name": "n", "IsDeleted": "false", "CreatedDate": at, "SystemModstamp": at})

        def found(soql: str) -> list[dict[str, str]]:
            asked = re.search(r"(\w+) >= (\S+)", soql)
            assert asked
            return [row for row in rows if row[asked[1]] >= asked[2].replace("Z", ".000Z")[:24]]

        org.rows = found
        return org


@pytest.mark.long
class TestBulkSource(ObjectRows):
    connector_class = BulkSource

    @pytest.fixture
    def properties(self, org: BulkOrg, login: Mapping[str, str]) -> Mapping[str, str]:
        return {
            **login,
            "kafka.topic": f"things{time.time_ns()}",
            "salesforce.object": "Thing__c",
            "salesforce.since": "2026-01-01",
            "result.max.rows": "10",
            "poll.interval.ms": "8700",
        }


@pytest.mark.long
class TestObjectSource(ObjectRows):
    """The first half comes from a query, the second from events."""

    connector_class = ObjectSource

    @pytest.fixture
    def properties(self, org: BulkOrg, login: Mapping[str, str]) -> Mapping[str, str]:
        streaming = StreamingOrg(self.mock)
        schema = f"{ORG}/services/data/v60.0/sobjects/LeadChangeEvent/eventSchema"
        self.mock.get(schema, json={"name": "LeadChangeEvent"})
        half, all_rows = ROWS // 2, org.rows
        org.rows = lambda soql: [row for row in all_rows(soql) if int(row["Id"]) <= half]
        for n in range(half + 1, ROWS + 1):
            at = datetime.fromisoformat(org.clock) + timedelta(seconds=n)
            header = {"entityName": "Lead", "recordIds": [f"{n:03d}"], "changeType": "CREATE", "changedFields": []}
            header["commitTimestamp"] = int(at.timestamp() * 1000)
            payload = {"ChangeEventHeader": header, "Name": "n"}
            streaming.publish("/data/LeadChangeEvent", {"schema": "s", "payload": payload})
        return {
            **login,
            "sobject.names": "Lead",
            "topic.prefix": f"sf{time.time_ns()}",
            "since": "2026-01-01",
            "result.max.rows": "10",
        }


@pytest.mark.long
class TestPushTopicSource(OnOrg):
    connector_class = PushTopicSource

    @pytest.fixture
    def properties(self, login: Mapping[str, str]) -> Mapping[str, str]:
        streaming = StreamingOrg(self.mock)
        BulkOrg(self.mock, FIELDS)
        told = {"Name": "Leads", "IsActive": True, "Query": "SELECT Id FROM Lead"}
        query = re.compile(rf"{ORG}/services/data/v60.0/query/?\?.*")
        self.mock.get(query, json={"records": [told], "done": True})
        for n in range(1, ROWS + 1):
            about = {"type": "created", "createdDate": "2026-01-01T00:00:00.000Z"}
            streaming.publish("/topic/Leads", {"event": about, "sobject": {"Id": f"{n:03d}", "Name": "n"}})
        return {
            **login,
            "kafka.topic": f"leads{time.time_ns()}",
            "salesforce.object": "Lead",
            "salesforce.push.topic.name": "Leads",
            "salesforce.initial.start": "all",
        }
