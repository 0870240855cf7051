"""An org of recorded responses that accepts Bulk API 2.0 jobs and stores objects, for connectors that use it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import requests
import responses

__all__ = ["LOGIN", "ORG", "BulkOrg", "field"]

ORG = "https://org.example.com"
LOGIN = {"salesforce.username": "u", "salesforce.password": "p", "salesforce.consumer.key": "k"}
LOGIN |= {"salesforce.consumer.secret": "s"}
Answer = tuple[int, dict[str, str], str]
_DATA = f"{ORG}/services/data/v60.0"


def field(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "createable": True, "updateable": True, "compoundFieldName": None, **more}


class BulkOrg:
    """Answers the connectors. ``refuse`` says what is wrong with a row of an ingest job; ``rows`` what a query finds."""

    def __init__(self, mock: responses.RequestsMock, fields: Iterable[Mapping[str, Any]]) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.files: dict[str, list[dict[str, str]]] = {}
        self.queries: list[str] = []
        self.calls: list[str] = []
        self.refuse: Callable[[Mapping[str, str]], str] = lambda row: ""
        self.rows: Callable[[str], list[dict[str, str]]] = lambda soql: []
        self.slow = 0
        """The number of queries during which a job is still in progress."""
        self.broken: dict[str, int] = {}
        """How often a step ("POST jobs/ingest") fails with a 503."""
        self.clock = "2026-01-02T00:00:00.000+0000"
        self.ending: dict[str, str] = {"state": "JobComplete"}
        fields = list(fields)
        mock.post("https://login.salesforce.com/services/oauth2/token", json={"access_token": "t", "instance_url": ORG})
        described = {"name": "Thing__c", "fields": fields, "queryable": True}
        mock.add(responses.GET, re.compile(rf"{_DATA}/sobjects/\w+/describe"), json=described)
        for method in ("GET", "POST", "PUT", "PATCH"):
            mock.add_callback(method, re.compile(rf"{_DATA}/jobs/.*"), self._answer)

    def _answer(self, request: requests.PreparedRequest) -> Answer:
        assert request.url is not None
        assert request.method is not None
        path, _, query = request.url.removeprefix(f"{_DATA}/").partition("?")
        step = re.sub(r"750\d+", "*", f"{request.method} {path}").rstrip("/")
        self.calls.append(step)
        if self.broken.get(step):
            self.broken[step] -= 1
            return 503, {}, json.dumps([{"errorCode": "SERVER_UNAVAILABLE", "message": "busy"}])
        kind, _, rest = path.removeprefix("jobs/").partition("/")
        id_, _, what = rest.rstrip("/").partition("/")
        body = request.body if isinstance(request.body, bytes) else (request.body or "").encode()
        if not id_:
            return self._open(kind, json.loads(body))
        if id_ not in self.jobs:
            return 404, {}, json.dumps([{"errorCode": "NOT_FOUND", "message": "The requested resource does not exist"}])
        if what == "batches":
            self.files[id_] = list(csv.DictReader(io.StringIO(body.decode(), newline="")))
            return 201, {}, ""
        if what == "failedResults":
            rows = [{"sf__Id": "", "sf__Error": why, **row} for row in self.files[id_] if (why := self.refuse(row))]
            return 200, {}, _csv(rows[::-1])
        if what == "results":
            return self._page(id_, dict(part.split("=") for part in query.split("&")))
        return self._state(id_, json.loads(body) if body else {})

    def _open(self, kind: str, asked: Mapping[str, Any]) -> Answer:
        id_ = f"750{len(self.jobs)}"
        first = "Open" if kind == "ingest" else "UploadComplete"
        self.jobs[id_] = {"id": id_, "state": first, "createdDate": self.clock, **asked}
        if kind == "query":
            self.queries.append(asked["query"])
            self.files[id_] = self.rows(asked["query"])
        return 200, {}, json.dumps(self.jobs[id_])

    def _state(self, id_: str, asked: Mapping[str, str]) -> Answer:
        job = self.jobs[id_]
        if asked or job["state"] == "UploadComplete":
            job["state"], job["looks"] = "InProgress", 0
        if job["state"] == "InProgress":
            job["looks"] += 1
            if job["looks"] > self.slow:
                failed = sum(1 for row in self.files[id_] if self.refuse(row))
                job |= {"numberRecordsFailed": failed, **self.ending}
        return 200, {}, json.dumps(job)

    def _page(self, id_: str, asked: Mapping[str, str]) -> Answer:
        first, count = int(asked.get("locator", "0")), int(asked["maxRecords"])
        rows = self.files[id_]
        names = re.split(r",\s*", self.jobs[id_]["query"].partition("SELECT ")[2].partition(" FROM")[0])
        data = _csv([{name: row.get(name, "") for name in names} for row in rows[first : first + count]], names)
        following = str(first + count) if first + count < len(rows) else "null"
        return 200, {"Sforce-Locator": following, "Sforce-NumberOfRecords": str(len(rows))}, data


def _csv(rows: list[dict[str, str]], names: list[str] | None = None) -> str:
    if not rows and names is None:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, names or list(rows[0]), quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
