"""Several REST requests in one: ``composite`` with references among them, ``composite/batch``, and ``composite/tree``."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message

from events.access import Access, Session
from events.bus.outcomes import Published, Refused, error_body, event_uuid, record_error
from events.bus.publishing import AllOrNoneBlock, JsonEvent, Publisher
from events.errors import BadRequest, MalformedBody, ResourceNotFound, TooManyRecords, WrongMethod
from events.fronts.records import events_of, flag_of, idempotency_key, save_result
from events.fronts.requests import check_version, json_object, session_of
from events.fronts.rest.references import References
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import json_response
from tidegate.kit.http_routes import Routes

__all__ = ["CompositeFront"]

MAX_SUBREQUESTS: Final = 25
_METHODS: Final = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE")
_REFERENCE_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_ROLLED_BACK: Final = "The transaction was rolled back since another operation in the same transaction failed."
_HALTED: Final = "Batch processing halted per request, error in previous request"


class _Sub(NamedTuple):
    """One request of several; ``url`` may still have references."""

    method: str
    url: str
    body: Any
    headers: Mapping[str, str]
    name: str


class _Answer(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]


class CompositeFront:
    """The routes below ``/services/data/vNN.0/composite``, which run each request on the plain routes.

    ``routes`` creates those routes; with a block, their requests publish in the block.
    """

    def __init__(
        self, publisher: Publisher, access: Access, routes: Callable[[AllOrNoneBlock | None], Sequence[BaseRoute]]
    ) -> None:
        self._publisher, self._access, self._routes_of = publisher, access, routes
        self._single = Routes(routes(None))

    def routes(self) -> list[Route]:
        base = "/services/data/v{version}/composite"
        return [
            Route(path + slash, handler, methods=methods)
            for path, handler, methods in (
                (base, self.composite, ["GET", "POST"]),
                (f"{base}/batch", self.batch, ["POST"]),
                (f"{base}/tree/{{event}}", self.tree, ["POST"]),
            )
            for slash in ("", "/")
        ]

    async def composite(self, request: Request) -> Response:
        """Up to 25 requests in order, later ones with ``@{id.path}`` of earlier results; all or none if requested."""
        session, version = self._enter(request)
        if request.method != "POST":
            base = f"/services/data/v{version}/composite"
            return json_response({"sobjects": f"{base}/sobjects", "tree": f"{base}/tree", "batch": f"{base}/batch"})
        body = await json_object(request)
        subs = _subrequests(body, "compositeRequest", "referenceId")
        all_or_none = flag_of(body, "allOrNone")
        flag_of(body, "collateSubrequests")
        names = [sub.name for sub in subs]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise BadRequest(f"Duplicate referenceId: {twice[0]}")
        answers = [answer async for answer in self._answers(request, session, subs, all_or_none)]
        return json_response(
            {
                "compositeResponse": [
                    {
                        "body": answer.body,
                        "httpHeaders": dict(answer.headers),
                        "httpStatusCode": answer.status,
                        "referenceId": sub.name,
                    }
                    for sub, answer in zip(subs, answers, strict=True)
                ]
            }
        )

    async def _answers(
        self, request: Request, session: Session, subs: list[_Sub], all_or_none: bool
    ) -> AsyncGenerator[_Answer, None]:
        if not (all_or_none and any(sub.method == "POST" for sub in subs)):
            async for answer in self._in_order(request, session, subs, self._single):
                yield answer
            return
        answers: list[_Answer] = []
        failed: int | None = None
        try:
            async with (
                self._publisher.all_or_none(user=session.user) as block,
                contextlib.aclosing(self._in_order(request, session, subs, Routes(self._routes_of(block)))) as running,
            ):
                async for answer in running:
                    answers.append(answer)
                    if answer.status >= 400 or block.refused:
                        failed = len(answers) - 1
                        raise _RolledBack
        except _RolledBack:
            pass
        for index in range(len(subs)):
            halted = failed is not None and index != failed
            yield _halted(400, "PROCESSING_HALTED", _ROLLED_BACK) if halted else answers[index]

    async def _in_order(
        self, request: Request, session: Session, subs: list[_Sub], routes: Routes
    ) -> AsyncGenerator[_Answer, None]:
        references = References()
        for sub in subs:
            try:
                sub = sub._replace(url=str(references.resolved(sub.url)), body=references.resolved(sub.body))
                answer = await self._run(request, session, sub, routes)
            except BadRequest as error:
                answer = _Answer(400, error_body(error), {})
            if answer.status < 400:
                references.add(sub.name, answer.body)
            yield answer

    async def batch(self, request: Request) -> Response:
        """Up to 25 independent requests, in order; if requested, a failure stops the rest."""
        session, version = self._enter(request)
        body = await json_object(request)
        subs = _subrequests(body, "batchRequests", None)
        halt, halted, results = flag_of(body, "haltOnError"), False, []
        for sub in subs:
            url = sub.url if sub.url.startswith("/services/") else f"/services/data/{sub.url.lstrip('/')}"
            if halted:
                answer = _halted(412, "BATCH_PROCESSING_HALTED", _HALTED)
            elif _version_of(url) > float(version):
                answer = _Answer(400, error_body(BadRequest(f"{url[:100]} is of a later version than the batch")), {})
            else:
                answer = await self._run(request, session, sub._replace(url=url), self._single)
            halted = halted or (halt and answer.status >= 400)
            results.append(answer)
        return json_response(
            {
                "hasErrors": any(answer.status >= 400 for answer in results),
                "results": [{"statusCode": answer.status, "result": answer.body} for answer in results],
            }
        )

    async def tree(self, request: Request) -> Response:
        """Up to 200 events of one type, all or none. Events have no children."""
        session, _ = self._enter(request)
        body = await json_object(request)
        name = request.path_params["event"]
        references = []
        for event in events_of(body, ""):
            attributes = event.body["attributes"] if isinstance(event.body.get("attributes"), dict) else {}
            reference = attributes.get("referenceId")
            if not isinstance(reference, str) or not reference or reference in references:
                raise BadRequest(
                    f"Each record has a referenceId of its own in its attributes, not {str(reference)[:100]!r}"
                )
            if event.name.lower() != name.lower():
                raise BadRequest(
                    f"Record {reference[:100]} is of type {event.name[:100]!r}; this tree is of {name[:100]}"
                )
            references.append(reference)
        if not references:
            raise BadRequest("The tree has no records; send at least one")
        key = idempotency_key(request, session.user_id)
        events = [
            JsonEvent(name, record, event_uuid(key, reference), is_keyed=bool(key))
            for record, reference in zip(body["records"], references, strict=True)
        ]
        outcomes = await self._publisher.publish_json(events, user=session.user, all_or_none=True)
        failed = any(not isinstance(outcome, Published) for outcome in outcomes)
        results = []
        for reference, outcome in zip(references, outcomes, strict=True):
            if isinstance(outcome, Published):
                results.append({"referenceId": reference, "id": save_result(outcome)["id"]})
            elif isinstance(outcome, Refused):
                code, message, fields = record_error(name, outcome)
                error = {"statusCode": code, "message": message, "fields": list(fields)}
                results.append({"referenceId": reference, "errors": [error]})
        return json_response({"hasErrors": failed, "results": results}, 400 if failed else 201)

    async def _run(self, request: Request, session: Session, sub: _Sub, routes: Routes) -> _Answer:
        """Answer one request as if it were sent alone, in the same session."""
        path, _, query = sub.url.partition("?")
        path = unquote(path)
        if not path.startswith("/services/data/v") or re.search(r"/composite(/(batch|tree).*)?/?$", path):
            return _Answer(404, error_body(ResourceNotFound()), {})
        headers = {"authorization": request.headers.get("authorization", ""), "content-type": "application/json"}
        headers |= {name: text for name, text in sub.headers.items() if name == "idempotency-key"}
        if "idempotency-key" not in headers and "idempotency-key" in request.headers:
            headers["idempotency-key"] = event_uuid(idempotency_key(request, session.user_id), sub.name)
        scope = {name: value for name, value in request.scope.items() if name in _SCOPE} | {
            "method": sub.method,
            "path": path,
            "raw_path": path.encode(errors="replace"),
            "query_string": query.encode(errors="replace"),
            "headers": [(name.encode(), text.encode("latin-1", "replace")) for name, text in headers.items()],
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": json.dumps(sub.body).encode(), "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        try:
            await routes(scope, receive, send)
        except TidegateError as error:
            return _Answer(error.http_status, error_body(error), {})
        except HTTPException as error:
            known = (
                WrongMethod(f"HTTP Method '{sub.method}' not allowed.")
                if error.status_code == 405
                else ResourceNotFound()
            )
            return _Answer(known.http_status, error_body(known), {})
        status = next((message["status"] for message in sent if message["type"] == "http.response.start"), 500)
        content = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
        body = json.loads(content) if content else None
        made = body.get("id") if isinstance(body, dict) and status == 201 else None
        return _Answer(status, body, {"Location": f"{path.rstrip('/')}/{made}"} if made is not None else {})

    def _enter(self, request: Request) -> tuple[Session, str]:
        return session_of(request, self._access), check_version(request.path_params["version"])


class _RolledBack(Exception):
    """Leaves the block so that it is not published."""


_SCOPE: Final = ("type", "asgi", "http_version", "scheme", "server", "client", "root_path", "extensions", "state")


def _version_of(url: str) -> float:
    match = re.match(r"/services/data/v(\d{1,3}\.\d)/", url)
    return float(match[1]) if match else 0


def _halted(status: int, code: str, message: str) -> _Answer:
    return _Answer(status, [{"errorCode": code, "message": message}], {})


def _subrequests(body: Mapping[str, Any], name: str, name_key: str | None) -> list[_Sub]:
    requests = body.get(name)
    if not isinstance(requests, list) or not requests or not all(isinstance(entry, dict) for entry in requests):
        raise MalformedBody(f"'{name}' is a list of requests, each an object with method and url")
    if len(requests) > MAX_SUBREQUESTS:
        raise TooManyRecords(f"{len(requests)} subrequests came; at most {MAX_SUBREQUESTS} are taken")
    return [_subrequest(entry, index, name_key) for index, entry in enumerate(requests)]


def _subrequest(entry: Mapping[str, Any], index: int, name_key: str | None) -> _Sub:
    method, url = entry.get("method"), entry.get("url")
    if not isinstance(method, str) or method.upper() not in _METHODS:
        raise BadRequest(f"Subrequest {index}: method {str(method)[:50]!r} is none of {', '.join(_METHODS)}")
    if not isinstance(url, str) or not url:
        raise BadRequest(f"Subrequest {index}: 'url' is a path such as /services/data/v60.0/sobjects/X__e")
    name: Any = str(index) if name_key is None else entry.get(name_key)
    if not isinstance(name, str) or (name_key is not None and not _REFERENCE_ID.fullmatch(name)):
        raise BadRequest(
            f"Subrequest {index}: referenceId {str(name)[:50]!r} is not one; letters, digits and _ are, a letter first"
        )
    headers = entry.get("httpHeaders", {})
    if not isinstance(headers, dict) or not all(isinstance(text, str) for text in headers.values()):
        raise BadRequest(f"Subrequest {index}: 'httpHeaders' is an object of texts")
    body = entry.get("body" if name_key is not None else "richInput")
    return _Sub(method.upper(), url, body, {key.lower(): text for key, text in headers.items()}, name)
