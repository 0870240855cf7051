"""Salesforce's Bulk API 2.0 for ingest: a job takes one CSV file and publishes an event for each row."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Session
from events.bulk.jobs import DELIMITERS, BulkJob, BulkJobs, InvalidJob, State
from events.errors import WrongMediaType
from events.fronts.requests import check_version, json_object, session_of
from tidegate.kit.http import json_response

__all__ = ["BulkFront"]

_ENDINGS: Final = ("LF", "CRLF")


class BulkFront:
    """``/services/data/vNN.0/jobs/ingest`` and below. The names of results are case-insensitive."""

    def __init__(self, jobs: BulkJobs, access: Access) -> None:
        self._jobs, self._access = jobs, access

    def routes(self) -> list[Route]:
        base = "/services/data/v{version}/jobs/ingest"
        return [
            Route(path + slash, handler, methods=methods)
            for path, handler, methods in (
                (base, self.list_or_create, ["GET", "POST"]),
                (base + "/{job}", self.job, ["GET", "PATCH", "DELETE"]),
                (base + "/{job}/batches", self.upload, ["PUT"]),
                (base + "/{job}/{results}", self.results, ["GET"]),
            )
            for slash in ("", "/")
        ]

    async def list_or_create(self, request: Request) -> Response:
        session, version = self._enter(request)
        if request.method == "POST":
            body = await json_object(request)
            _choice(body, "contentType", ("CSV",), "CSV")
            job = await self._jobs.create(
                event=_text(body, "object", ""),
                operation=_text(body, "operation", "insert"),
                delimiter=_choice(body, "columnDelimiter", tuple(DELIMITERS), "COMMA"),
                ending=_choice(body, "lineEnding", _ENDINGS, "LF"),
                user=session.user,
            )
            return json_response(_shown(job, version))
        records = [_shown(job, version) for job in self._jobs.of(session.user)]
        return json_response({"done": True, "records": records, "nextRecordsUrl": None})

    async def job(self, request: Request) -> Response:
        version, job = self._job_of(request)
        if request.method == "PATCH":
            state = _choice(await json_object(request), "state", (State.UPLOADED.value, State.ABORTED.value), "")
            self._jobs.change(job, State(state))
        elif request.method == "DELETE":
            self._jobs.delete(job)
            return Response(status_code=204)
        return json_response(_shown(job, version))

    async def upload(self, request: Request) -> Response:
        _, job = self._job_of(request)
        kind = request.headers.get("content-type", "text/csv").partition(";")[0].strip().lower()
        if kind != "text/csv":
            raise WrongMediaType(f"Content type {kind[:100]!r} is not read here; send text/csv")
        self._jobs.upload(job, await request.body())
        return Response(status_code=201)

    async def results(self, request: Request) -> Response:
        _, job = self._job_of(request)
        content = self._jobs.results(job, request.path_params["results"])
        return Response(content, media_type="text/csv; charset=utf-8")

    def _job_of(self, request: Request) -> tuple[str, BulkJob]:
        session, version = self._enter(request)
        return version, self._jobs.find(request.path_params["job"], session.user)

    def _enter(self, request: Request) -> tuple[Session, str]:
        return session_of(request, self._access), check_version(request.path_params["version"])


def _text(body: dict[str, Any], name: str, default: str) -> str:
    value = body.get(name, default)
    if not isinstance(value, str):
        raise InvalidJob(f"InvalidJob : {name} is {str(value)[:50]!r}; a text is needed")
    return value


def _choice(body: dict[str, Any], name: str, choices: tuple[str, ...], default: str) -> str:
    value = _text(body, name, default)
    if value not in choices:
        raise InvalidJob(f"InvalidJob : {name} is {value[:50]!r}; it is one of {', '.join(choices)}")
    return value


def _shown(job: BulkJob, version: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": job.id,
        "operation": "insert",
        "object": job.event,
        "createdById": job.user_id,
        "createdDate": job.created,
        "systemModstamp": job.changed,
        "state": job.state.value,
        "concurrencyMode": "Parallel",
        "contentType": "CSV",
        "apiVersion": float(version),
        "jobType": "V2Ingest",
        "contentUrl": f"services/data/v{version}/jobs/ingest/{job.id}/batches",
        "lineEnding": job.ending,
        "columnDelimiter": job.delimiter,
        "retries": 0,
        "totalProcessingTime": job.processing_ms,
        "apiActiveProcessingTime": job.processing_ms,
        "apexProcessingTime": 0,
        "numberRecordsProcessed": job.processed,
        "numberRecordsFailed": job.failed,
    }
    return shown | ({"errorMessage": job.error} if job.error else {})
