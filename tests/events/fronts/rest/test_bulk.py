from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from simple_salesforce import Salesforce, SalesforceLogin

from events.bulk.jobs import BulkJob, BulkJobs, State
from events.store.log import LogSlice
from tests.proofs import effort
from tests.support.events import PASSWORD, USER, EventsThread

JOBS = "/services/data/v60.0/jobs/ingest"


class Client:
    def __init__(self, service: EventsThread) -> None:
        self.url, self.session = service.url, requests.Session()
        self.session.headers["Authorization"] = f"Bearer {service.token()}"

    def call(self, method: str, path: str, **more: Any) -> requests.Response:
        return self.session.request(method, f"{self.url}{path}", timeout=60, **more)

    def job(self, **more: Any) -> dict[str, Any]:
        answer = self.call("POST", JOBS, json={"object": "Order_Shipped__e", "operation": "insert", **more})
        assert answer.status_code == 200, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def upload(self, job: dict[str, Any], data: bytes) -> requests.Response:
        return self.call("PUT", f"/{job['contentUrl']}", data=data, headers={"Content-Type": "text/csv"})

    def change(self, job: dict[str, Any], state: str) -> requests.Response:
        return self.call("PATCH", f"{JOBS}/{job['id']}", json={"state": state})

    def ended(self, job: dict[str, Any]) -> dict[str, Any]:
        while True:
            job_state: dict[str, Any] = self.call("GET", f"{JOBS}/{job['id']}/").json()
            if job_state["state"] in ("JobComplete", "Failed", "Aborted"):
                return job_state
            time.sleep(0.01)

    def run(self, data: bytes, **more: Any) -> dict[str, Any]:
        job = self.job(**more)
        assert self.upload(job, data).status_code == 201
        assert self.change(job, "UploadComplete").json()["state"] == "UploadComplete"
        return self.ended(job)

    def results(self, job: dict[str, Any], name: str) -> str:
        return self.call("GET", f"{JOBS}/{job['id']}/{name}").text


@pytest.fixture
def client(service: EventsThread) -> Iterator[Client]:
    made = Client(service)
    yield made
    made.session.close()


@pytest.fixture(scope="module")
def org(service: EventsThread) -> Iterator[Salesforce]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", service.addresses["ca"])
        session_id, instance = SalesforceLogin(
            username=USER, password=PASSWORD, security_token="", scratch_url=service.secure_url
        )
        made = Salesforce(session_id=session_id, instance=instance)
        yield made
        made.session.close()


def stored(service: EventsThread) -> int:
    return len(service.memory_log.records("Order_Shipped__e"))


def end_of(service: EventsThread) -> int:
    """The offset of the next event, regardless of retention."""
    return len(service.memory_log.topics["Order_Shipped__e"])


def test_simple_salesforce_publishes_by_bulk(service: EventsThread, org: Salesforce) -> None:
    before = stored(service)
    records = [{"Order_Number__c": f"B-{n}", "Amount__c": str(n)} for n in range(450)]
    records[7]["Amount__c"] = "many"
    (job,) = org.bulk2.Order_Shipped__e.insert(records=records, wait=0)
    assert (job["numberRecordsProcessed"], job["numberRecordsFailed"]) == (450, 1)
    failed = org.bulk2.Order_Shipped__e.get_failed_records(job["job_id"])
    assert "INVALID_TYPE_ON_FIELD_IN_RECORD:Amount: value not of required type: many:Amount__c --" in failed
    assert '"B-7"' in failed
    assert len(org.bulk2.Order_Shipped__e.get_successful_records(job["job_id"]).splitlines()) == 450
    assert stored(service) == before + 449


def test_rows_are_read_in_the_jobs_own_form(service: EventsThread, client: Client) -> None:
    data = (
        '\ufefforder_number__c;Note__c;Due__c\r\n"a;b";"two\r\nlines";#N/A\r\n\r\nc;;2026-01-31\r\nshort\r\n'.encode()
    )
    job = client.run(data, columnDelimiter="SEMICOLON", lineEnding="CRLF")
    assert (job["state"], job["numberRecordsProcessed"], job["numberRecordsFailed"]) == ("JobComplete", 3, 1)
    good = client.results(job, "successfulResults")
    assert good.startswith('"sf__Id";"sf__Created";"order_number__c";"Note__c";"Due__c"\r\n"e01')
    assert '"two\r\nlines"' in good
    assert "cells where 3 belong" in client.results(job, "FAILEDRESULTS")
    assert client.results(job, "unprocessedrecords") == ""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no line with the names"),
        (b"Order_Number__c,Nope__c\na,b\n", "Field name not found : Nope__c"),
        (b"Order_Number__c\n\xff\n", "not UTF-8"),
        (b'Order_Number__c\n"a"b\n', "line 2 is not CSV"),
        (b"Order_Number__c,order_number__c\na,b\n", "named twice"),
    ],
)
def test_a_file_that_cannot_be_read_fails_the_job(
    service: EventsThread, client: Client, data: bytes, message: str
) -> None:
    job = client.run(data)
    assert job["state"] == "Failed"
    assert message in job["errorMessage"]
    assert client.call("DELETE", f"{JOBS}/{job['id']}").status_code == 204
    assert client.call("GET", f"{JOBS}/{job['id']}").status_code == 404


def test_a_job_goes_through_its_states_and_no_others(service: EventsThread, client: Client) -> None:
    job, before = client.job(), stored(service)
    assert client.upload(job, b"Order_Number__c\na\n").status_code == 201
    assert client.upload(job, b"Order_Number__c\nb\n").json()[0]["errorCode"] == "INVALIDJOBSTATE"
    assert client.call("DELETE", f"{JOBS}/{job['id']}").status_code == 400
    assert client.change(job, "Aborted").json()["state"] == "Aborted"
    assert client.change(job, "UploadComplete").status_code == 400
    assert client.results(job, "unprocessedRecords") == '"Order_Number__c"\n"a"\n'
    assert job["id"] in [record["id"] for record in client.call("GET", JOBS).json()["records"]]
    assert stored(service) == before


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"object": "Missing__e"}, "INVALIDENTITY"),
        ({"object": "Order_Shipped__e", "operation": "delete"}, "INVALIDENTITY"),
        ({"object": "Order_Shipped__e", "columnDelimiter": "DOT"}, "INVALIDJOB"),
        ({"object": 1}, "INVALIDJOB"),
        ({"object": "Order_Shipped__e", "contentType": "XML"}, "INVALIDJOB"),
        ([], "JSON_PARSER_ERROR"),
    ],
)
def test_a_job_that_cannot_be_is_refused(client: Client, body: Any, code: str) -> None:
    before = client.call("GET", JOBS).json()["records"]
    assert client.call("POST", JOBS, json=body).json()[0]["errorCode"] == code
    assert client.call("GET", JOBS).json()["records"] == before


def test_a_job_that_a_restart_cut_off_is_finished_and_publishes_nothing_twice(tmp_path: Path) -> None:
    with EventsThread(tmp_path) as service:
        service.define()
        client, server = Client(service), service.server
        job = client.run(b"Order_Number__c\n" + b"".join(b"%d\n" % n for n in range(500)))
        path = tmp_path / "bulk" / job["id"] / "job.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"state": "InProgress"}))

        async def again() -> BulkJob:
            await server._jobs.stop()
            users = server.access.user
            server._jobs = BulkJobs(
                tmp_path / "bulk", server.catalog, server._publisher, users, lambda: time.time_ns() // 10**6
            )
            server._jobs.start()
            job_found = server._jobs.find(job["id"], service.user)
            while job_found.state is not State.DONE:
                await asyncio.sleep(0.01)
            return job_found

        assert service.run(again()).processed == 500
        assert stored(service) == 500
        client.session.close()


@pytest.mark.parametrize("fault", ["none", "log cut off", "log cut off meanwhile", "results lost"])
def test_a_job_that_is_taken_up_after_a_day_publishes_nothing_twice(tmp_path: Path, fault: str) -> None:
    """Killed in its second block, with 400 of 500 rows in the log; a day later nobody knows their ids any more."""
    with EventsThread(tmp_path) as service:
        service.define()
        client, server = Client(service), service.server
        began = time.time_ns() // 10**6
        job = client.run(b"Order_Number__c\n" + b"".join(b"%d\n" % n for n in range(500)))
        folder = tmp_path / "bulk" / job["id"]
        lines = (folder / "successful.csv").read_bytes().splitlines(keepends=True)
        sizes = {"successful.csv": len(b"".join(lines[:201])), "failed.csv": (folder / "failed.csv").stat().st_size}
        told = json.loads((folder / "job.json").read_text())
        told |= {"state": "InProgress", "processed": 200, "block_ms": began, "sizes": sizes}
        (folder / "job.json").write_text(json.dumps(told))
        del service.memory_log.topics["Order_Shipped__e"][-100:]
        if fault == "log cut off":
            service.memory_log.starts["Order_Shipped__e"] = 300
        elif fault == "log cut off meanwhile":
            read = service.memory_log.read

            async def read_and_cut_off(*arguments: Any) -> LogSlice:
                service.memory_log.starts["Order_Shipped__e"] = 300
                return await read(*arguments)

            service.memory_log.read = read_and_cut_off
        elif fault == "results lost":
            os.truncate(folder / "successful.csv", sizes["successful.csv"] - 10)

        def tomorrow() -> int:
            return time.time_ns() // 10**6 + 25 * 3600 * 1000

        async def again() -> BulkJob:
            await server._jobs.stop()
            server._ids._clock_ms = tomorrow
            server._jobs = BulkJobs(tmp_path / "bulk", server.catalog, server._publisher, server.access.user, tomorrow)
            server._jobs.start()
            job_found = server._jobs.find(job["id"], service.user)
            while job_found.state not in (State.DONE, State.FAILED):
                await asyncio.sleep(0.01)
            return job_found

        ended = service.run(again())
        if fault == "none":
            assert (ended.state, ended.processed, stored(service)) == (State.DONE, 500, 500)
            assert (folder / "successful.csv").read_bytes().splitlines(keepends=True) == lines
        else:
            assert (ended.state, ended.processed, end_of(service)) == (State.FAILED, 200, 401)
            told = (
                "of the results of the first 200 rows" if fault == "results lost" else "rows 201 to 400 were begun at"
            )
            assert told in ended.error
        client.session.close()


@settings(max_examples=effort(25, 750), deadline=None)
@given(
    st.binary(max_size=60)
    | st.text('Order_Number__c,"\n\r;x', max_size=60).map(lambda text: b"Order_Number__c\n" + text.encode())
)
def test_any_file_ends_its_job(service: EventsThread, data: bytes) -> None:
    client = Client(service)
    assert client.run(data)["state"] in ("JobComplete", "Failed")
    client.session.close()
