"""Salesforce's REST API for platform events: versions, describe, publish singly and in collections, event schemas, limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Permission, Session
from events.bus.outcomes import Published, Refused, event_uuid
from events.bus.publishing import AllOrNoneBlock, JsonEvent, Publisher
from events.channels.entities import ChangeEntities
from events.errors import BadRequest, UnknownEvent, UnknownSchema, WrongType
from events.fronts.records import (
    MAX_RECORDS,
    collection_result,
    events_of,
    flag_of,
    idempotency_key,
    save_result,
)
from events.fronts.requests import (
    FIRST_VERSION,
    LATEST_VERSION,
    base_url,
    check_version,
    json_object,
    session_of,
)
from events.fronts.rest import describe
from events.fronts.rest.json_offsets import offset_of
from events.model.changes.schemas import ChangeEventSchema, is_change_event
from events.model.payloads import EventSchema
from events.store.catalog import Catalog
from tidegate.kit.http import json_response

__all__ = ["RestFront"]


class RestFront:
    """The routes below ``/services/data``. ``limits`` returns the displayed limits by name."""

    def __init__(
        self,
        catalog: Catalog,
        publisher: Publisher,
        access: Access,
        limits: Callable[[], Mapping[str, Mapping[str, int]]],
        entities: ChangeEntities,
    ) -> None:
        self._entities = entities
        self._catalog, self._publisher, self._access, self._limits = catalog, publisher, access, limits

    def routes(self, block: AllOrNoneBlock | None = None) -> list[Route]:
        """The routes; with ``block``, those of a composite request, which publishes when the block ends."""
        base = "/services/data/v{version}"
        table: tuple[tuple[str, Any, list[str]], ...] = (
            # publish comes first, because routes are tried in order
            (f"{base}/sobjects/{{event}}", partial(self.publish, block=block), ["POST"]),
            (f"{base}/sobjects/{{event}}", self.basic_information, ["GET"]),
            (f"{base}/composite/sobjects", partial(self.publish_collection, block=block), ["POST"]),
            ("/services/data", self.versions, ["GET"]),
            (base, self.resources, ["GET"]),
            (f"{base}/limits", self.limits, ["GET"]),
            (f"{base}/sobjects", self.describe_global, ["GET"]),
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
        """The supported versions; the only resource that needs no session."""
        return json_response(
            [
                {"label": describe.season(number), "url": f"/services/data/v{number}.0", "version": f"{number}.0"}
                for number in range(FIRST_VERSION, LATEST_VERSION + 1)
            ]
        )

    async def resources(self, request: Request) -> Response:
        session, version = self._enter(request)
        base = f"/services/data/v{version}"
        return json_response(
            {
                "sobjects": f"{base}/sobjects",
                "composite": f"{base}/composite",
                "limits": f"{base}/limits",
                "eventSchema": f"{base}/event/eventSchema",
                "identity": f"{base_url(request)}/id/{self._access.org_id}/{session.user_id}",
            }
        )

    async def limits(self, request: Request) -> Response:
        session, _ = self._enter(request)
        session.user.require(Permission.VIEW_SETUP)
        return json_response(self._limits())

    async def describe_global(self, request: Request) -> Response:
        session, version = self._enter(request)
        summaries = [
            describe.summary(schema.definition, version, session.user)
            for schema in await self._catalog.all()
            if session.user.may_see(schema.definition.name)
        ]
        return json_response({"encoding": "UTF-8", "maxBatchSize": MAX_RECORDS, "sobjects": summaries})

    async def basic_information(self, request: Request) -> Response:
        session, version = self._enter(request)
        definition = (await self._event(session, request.path_params["event"])).definition
        return json_response({"objectDescribe": describe.summary(definition, version, session.user), "recentItems": []})

    async def describe_event(self, request: Request) -> Response:
        session, version = self._enter(request)
        definition = (await self._event(session, request.path_params["event"])).definition
        return json_response(describe.full(definition, version, session.user))

    async def publish(self, request: Request, *, block: AllOrNoneBlock | None) -> Response:
        """Publish one event. Answered when the log has it, or when the block has written it."""
        session, _ = self._enter(request)
        name = request.path_params["event"]
        await self._event(session, name)
        key = idempotency_key(request, session.user_id)
        event = JsonEvent(name, await json_object(request), event_uuid(key), is_keyed=bool(key))
        if block is not None:
            return json_response(save_result(await block.publish(event)), 201)
        (outcome,) = await self._publisher.publish_json([event], user=session.user)
        if isinstance(outcome, Published):
            return json_response(save_result(outcome), 201)
        assert isinstance(outcome, Refused), "without all_or_none nothing is rolled back"
        error = outcome.error
        if isinstance(error, WrongType):
            offset = offset_of((await request.body()).decode(errors="replace"), error.fields[0])
            if offset is not None:
                error.locate(*offset)
        raise error

    async def publish_collection(self, request: Request, *, block: AllOrNoneBlock | None) -> Response:
        """Publish up to 200 events of any types; each has its own result, in order."""
        session, _ = self._enter(request)
        body = await json_object(request)
        events = events_of(body, idempotency_key(request, session.user_id))
        all_or_none = flag_of(body, "allOrNone")
        if block is not None:
            outcomes = await block.publish_all(events)
        else:
            outcomes = await self._publisher.publish_json(events, user=session.user, all_or_none=all_or_none)
        return json_response(
            [collection_result(event, outcome) for event, outcome in zip(events, outcomes, strict=True)]
        )

    async def schema_by_name(self, request: Request) -> Response:
        session, _ = self._enter(request)
        name = request.path_params["event"]
        schema = await (self._change_event(name) if is_change_event(name) else self._catalog.find(name))
        if not session.user.may_see(schema.name):
            raise UnknownEvent(name)
        return _schema_response(request, schema.text, schema.id)

    async def schema_by_id(self, request: Request) -> Response:
        session, _ = self._enter(request)
        text = request.path_params["schema"]
        if not (text.isascii() and text.isdigit() and len(text) < 11):
            raise UnknownSchema(text[:50])
        schema = await self._catalog.any_schema(int(text))
        if not session.user.may_see(schema.name):
            raise UnknownSchema(text)
        return _schema_response(request, schema.text, schema.id)

    async def _change_event(self, name: str) -> ChangeEventSchema:
        schema = await self._entities.schema(await self._entities.find(name))
        if schema is None:
            raise UnknownEvent(name)
        return schema

    async def _event(self, session: Session, name: str) -> EventSchema:
        """An event that the user may see. Raises UnknownEvent."""
        schema = await self._catalog.find(name)
        if not session.user.may_see(schema.name):
            raise UnknownEvent(name)
        return schema

    def _enter(self, request: Request) -> tuple[Session, str]:
        """The session and the API version of a request."""
        return session_of(request, self._access), check_version(request.path_params["version"])


def _by_method(handlers: Mapping[str, Callable[[Request], Any]]) -> Callable[[Request], Any]:
    async def dispatch(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        response: Response = await handlers[method](request)
        return response

    return dispatch


def _expanded(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema as JSON shows it: instants of a change event, and any CreatedDate, are text."""
    if field["name"] == "CreatedDate" and field["type"] == "long":
        return dict(field, type="string")
    if field["type"] == ["null", "long"] and field.get("doc", "").split(":")[1:2] in (
        ["DateTime"],
        ["DateOnly"],
        ["TimeOnly"],
    ):
        return dict(field, type=["null", "string"])
    return field


def _schema_response(request: Request, text: str, schema_id: int) -> Response:
    """EXPANDED shows the event as CometD delivers it, COMPACT the plain Avro record."""
    form = request.query_params.get("payloadFormat", "EXPANDED").upper()
    compact = json.loads(text)
    if form == "COMPACT":
        return json_response(compact | {"uuid": str(schema_id)})
    if form != "EXPANDED":
        raise BadRequest(f"payloadFormat {form[:50]!r} is not known; use EXPANDED or COMPACT")
    fields = [_expanded(field) for field in compact["fields"]]
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
