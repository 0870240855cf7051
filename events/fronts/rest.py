"""Salesforce's REST API for platform events: versions, describe, publish singly and in collections, event schemas, limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, long_id
from events.catalog import Catalog
from events.errors import (
    BadRequest,
    EventsError,
    MalformedBody,
    TooManyRecords,
    UnknownEvent,
    UnknownSchema,
)
from events.fronts import describe
from events.fronts.requests import (
    FIRST_VERSION,
    LATEST_VERSION,
    base_url,
    check_version,
    json_object,
    session_of,
)
from events.publishing import Published, Publisher
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import json_response

__all__ = ["RestFront", "error_body"]

MAX_COLLECTION: Final = 200
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def error_body(error: TidegateError) -> list[dict[str, Any]]:
    """Salesforce's error answer: a list of one."""
    code = error.code if isinstance(error, EventsError) else "UNKNOWN_EXCEPTION"
    made: dict[str, Any] = {"message": error.message, "errorCode": code}
    if isinstance(error, EventsError) and error.fields:
        made["fields"] = list(error.fields)
    return [made]


class RestFront:
    """The routes below ``/services/data``. ``usage`` gives the limits that are shown."""

    def __init__(
        self,
        catalog: Catalog,
        publisher: Publisher,
        access: Access,
        usage: Callable[[], Mapping[str, tuple[int, int]]],
    ) -> None:
        self._catalog, self._publisher, self._access, self._usage = catalog, publisher, access, usage

    def routes(self) -> list[Route]:
        base = "/services/data/v{version}"
        table: tuple[tuple[str, Any, list[str]], ...] = (
            ("/services/data", self.versions, ["GET"]),
            (base, self.resources, ["GET"]),
            (f"{base}/limits", self.limits, ["GET"]),
            (f"{base}/sobjects", self.describe_global, ["GET"]),
            (f"{base}/composite/sobjects", self.publish_collection, ["POST"]),
            (f"{base}/sobjects/{{event}}", self.basic_information, ["GET"]),
            (f"{base}/sobjects/{{event}}", self.publish, ["POST"]),
            (f"{base}/sobjects/{{event}}/describe", self.describe_event, ["GET"]),
            (f"{base}/sobjects/{{event}}/eventSchema", self.schema_by_name, ["GET"]),
            (f"{base}/event/eventSchema/{{schema}}", self.schema_by_id, ["GET"]),
        )
        by_path: dict[str, dict[str, Any]] = {}
        for path, handler, methods in table:
            by_path.setdefault(path, {}).update(dict.fromkeys(methods, handler))
        return [
            Route(path + slash, _by_method(handlers), methods=list(handlers))
            for path, handlers in by_path.items()
            for slash in ("", "/")
        ]

    async def versions(self, _: Request) -> Response:
        """The versions there are; the one resource that needs no session."""
        return json_response(
            [
                {"label": describe.season(number), "url": f"/services/data/v{number}.0", "version": f"{number}.0"}
                for number in range(FIRST_VERSION, LATEST_VERSION + 1)
            ]
        )

    async def resources(self, request: Request) -> Response:
        base = f"/services/data/v{self._enter(request)}"
        return json_response(
            {
                "sobjects": f"{base}/sobjects",
                "composite": f"{base}/composite",
                "limits": f"{base}/limits",
                "eventSchema": f"{base}/event/eventSchema",
                "identity": f"{base_url(request)}/id/{self._access.org_id}/{self._access.user_id}",
            }
        )

    async def limits(self, request: Request) -> Response:
        self._enter(request)
        return json_response({name: {"Max": most, "Remaining": left} for name, (most, left) in self._usage().items()})

    async def describe_global(self, request: Request) -> Response:
        version = self._enter(request)
        summaries = [describe.summary(schema.definition, version) for schema in await self._catalog.all()]
        return json_response({"encoding": "UTF-8", "maxBatchSize": MAX_COLLECTION, "sobjects": summaries})

    async def basic_information(self, request: Request) -> Response:
        version = self._enter(request)
        definition = (await self._catalog.find(request.path_params["event"])).definition
        return json_response({"objectDescribe": describe.summary(definition, version), "recentItems": []})

    async def describe_event(self, request: Request) -> Response:
        version = self._enter(request)
        definition = (await self._catalog.find(request.path_params["event"])).definition
        return json_response(describe.full(definition, version))

    async def publish(self, request: Request) -> Response:
        """Publish one event; answered when the log has it."""
        self._enter(request)
        name = request.path_params["event"]
        await self._catalog.find(name)
        body = await json_object(request)
        (answer,) = await self._publisher.publish_json([(name, body)], user_id=self._access.user_id)
        if isinstance(answer, TidegateError):
            raise answer
        assert answer is not None
        return json_response(_save_result(answer), 201)

    async def publish_collection(self, request: Request) -> Response:
        """Publish up to 200 events of any types; each has its own result, in order."""
        self._enter(request)
        body = await json_object(request)
        records, all_or_none = body.get("records"), body.get("allOrNone", False)
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise MalformedBody("'records' is a list of objects, each with attributes.type")
        if not isinstance(all_or_none, bool):
            raise MalformedBody(f"'allOrNone' is true or false, not {str(all_or_none)[:50]!r}")
        if len(records) > MAX_COLLECTION:
            raise TooManyRecords(
                f"record limit reached. cannot submit more than {MAX_COLLECTION} records into this call, and {len(records)} came"
            )
        answers = await self._publisher.publish_json(
            [(_type_of(record), record) for record in records],
            user_id=self._access.user_id,
            all_or_none=all_or_none,
        )
        return json_response(
            [_collection_result(record, answer) for record, answer in zip(records, answers, strict=True)]
        )

    async def schema_by_name(self, request: Request) -> Response:
        self._enter(request)
        found = await self._catalog.find(request.path_params["event"])
        return _schema_response(request, found.text, found.id)

    async def schema_by_id(self, request: Request) -> Response:
        self._enter(request)
        text = request.path_params["schema"]
        if not (text.isascii() and text.isdigit() and len(text) < 11):
            raise UnknownSchema(text[:50])
        found = await self._catalog.schema(int(text))
        return _schema_response(request, found.text, found.id)

    def _enter(self, request: Request) -> str:
        """The API version of an authenticated request."""
        session_of(request, self._access)
        return check_version(request.path_params["version"])


def _by_method(handlers: Mapping[str, Callable[[Request], Any]]) -> Callable[[Request], Any]:
    async def dispatch(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        response: Response = await handlers[method](request)
        return response

    return dispatch


def _type_of(record: Mapping[str, Any]) -> str:
    attributes = record.get("attributes")
    name = attributes.get("type") if isinstance(attributes, dict) else None
    return name if isinstance(name, str) else ""


def _record_id(replay_id: int) -> str:
    """An 18-character id as Salesforce gives one; it identifies nothing there, and is the replay id here."""
    digits, number = "", replay_id
    for _ in range(12):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return long_id("e01" + digits)


def _save_result(published: Published) -> dict[str, Any]:
    enqueued = {"statusCode": "OPERATION_ENQUEUED", "message": published.uuid, "fields": []}
    return {"id": _record_id(published.replay_id), "success": True, "errors": [enqueued]}


def _collection_result(record: Mapping[str, Any], answer: Published | TidegateError | None) -> dict[str, Any]:
    if isinstance(answer, Published):
        return _save_result(answer)
    if answer is None:
        code = "ALL_OR_NONE_OPERATION_ROLLED_BACK"
        message = "Record rolled back because not all records were valid and the request was using AllOrNone header"
        fields: list[str] = []
    elif isinstance(answer, UnknownEvent):
        code, message = "INVALID_TYPE", f"sObject type '{_type_of(record)[:100]}' is not supported."
        fields = []
    else:
        (said,) = error_body(answer)
        code, message, fields = said["errorCode"], said["message"], said.get("fields", [])
    return {"success": False, "errors": [{"statusCode": code, "message": message, "fields": fields}]}


def _schema_response(request: Request, text: str, schema_id: int) -> Response:
    """EXPANDED shows the event as CometD delivers it, COMPACT the plain Avro record."""
    form = request.query_params.get("payloadFormat", "EXPANDED").upper()
    compact = json.loads(text)
    if form == "COMPACT":
        return json_response(compact | {"uuid": str(schema_id)})
    if form != "EXPANDED":
        raise BadRequest(f"payloadFormat {form[:50]!r} is not known; use EXPANDED or COMPACT")
    fields = [dict(field, type="string") if field["name"] == "CreatedDate" else field for field in compact["fields"]]
    payload = {"type": "record", "name": "Payload", "doc": "", "fields": fields}
    position = {"type": "record", "name": "Event", "fields": [{"name": "replayId", "type": "long"}]}
    data = [
        {"name": "schema", "type": "string"},
        {"name": "payload", "type": payload},
        {"name": "event", "type": position},
    ]
    return json_response(
        {
            "name": compact["name"],
            "namespace": compact["namespace"],
            "type": "expanded-record",
            "uuid": str(schema_id),
            "fields": [
                {"name": "data", "type": {"type": "record", "name": "Data", "namespace": "", "fields": data}},
                {"name": "channel", "type": "string"},
            ],
        }
    )
