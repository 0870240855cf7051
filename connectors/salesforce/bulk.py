"""A client of the Bulk API 2.0: ingest jobs, which take one file each, and query jobs, whose results are returned in
pages.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Event
from typing import Any, Final, NamedTuple

from connect.api import ConnectError, RetriableConnectError
from connectors.salesforce.client import SalesforceClient

__all__ = ["ENDED", "BulkClient", "Page"]

ENDED: Final = frozenset({"JobComplete", "Failed", "Aborted"})
_SHORTEST_S: Final = 0.2
_LONGEST_S: Final = 5.0


class Page(NamedTuple):
    """A page of a query's results: CSV with a header line, and the locator of the next page (None: there is none)."""

    data: bytes
    next_locator: str | None


class BulkClient:
    """Jobs of one org. For use from one thread. All calls raise RetriableConnectError where a retry may help."""

    def __init__(self, client: SalesforceClient) -> None:
        self._client = client

    def open_ingest(self, name: str, operation: str, external_id: str) -> str:
        """Create a job that is open for upload. Returns its id."""
        body = {"object": name, "operation": operation, "contentType": "CSV", "lineEnding": "LF"}
        if operation == "upsert":
            body["externalIdFieldName"] = external_id
        return str(self._client.call_json("POST", "jobs/ingest", body)["id"])

    def upload(self, job: str, data: bytes) -> None:
        self._client.call("PUT", f"jobs/ingest/{job}/batches", data, "text/csv")

    def close_ingest(self, job: str) -> Mapping[str, Any]:
        """Tell Salesforce to process the upload. Returns the job's state. May be called twice."""
        job_state = self.job("ingest", job)
        if job_state["state"] != "Open":
            return job_state
        return self._client.call_json("PATCH", f"jobs/ingest/{job}", {"state": "UploadComplete"})

    def failed_rows(self, job: str) -> str:
        """The rejected rows as CSV, each with ``sf__Error``."""
        return self._client.call("GET", f"jobs/ingest/{job}/failedResults/").text

    def open_query(self, soql: str, *, deleted_too: bool = False) -> Mapping[str, Any]:
        """Create a query job; its ``createdDate`` is the org's time."""
        body = {"operation": "queryAll" if deleted_too else "query", "query": soql}
        return self._client.call_json("POST", "jobs/query", body)

    def page(self, job: str, locator: str | None, max_rows: int) -> Page:
        """Results of a completed job, from a locator on; ConnectError when the job no longer exists."""
        asked = {"maxRecords": str(max_rows)} | ({"locator": locator} if locator else {})
        answer = self._client.call("GET", f"jobs/query/{job}/results", params=asked)
        following = answer.headers.get("Sforce-Locator", "null")
        return Page(answer.content, None if following in ("null", "") else following)

    def job(self, kind: str, job: str) -> Mapping[str, Any]:
        """The current state of a query or ingest job, according to ``kind``."""
        return self._client.call_json("GET", f"jobs/{kind}/{job}")

    def wait(self, kind: str, job: str, *, stopping: Event, timeout_ms: int) -> Mapping[str, Any]:
        """Wait for the job to end, with success or failure, and return it; raises RetriableConnectError on timeout."""
        deadline, pause_s = time.monotonic() + timeout_ms / 1000, _SHORTEST_S
        while True:
            job_state = self.job(kind, job)
            if job_state.get("state") in ENDED:
                return job_state
            if stopping.wait(min(pause_s, max(0.0, deadline - time.monotonic()))) or time.monotonic() >= deadline:
                raise RetriableConnectError(
                    f"{kind} job {job} is {job_state.get('state')} still; it is waited for again (max.timeout.ms)"
                )
            pause_s = min(pause_s * 1.5, _LONGEST_S)

    def complete(self, kind: str, job: Mapping[str, Any]) -> None:
        """Raise ConnectError with Salesforce's message for a job that failed."""
        if job["state"] != "JobComplete":
            raise ConnectError(
                f"{kind} job {job['id']} ended as {job['state']}: {job.get('errorMessage') or 'no reason given'}"
            )
