"""Tidegate's REST API for event definitions: ``/tidegate/v1/events``. Salesforce uses the Metadata API for this."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, User
from events.errors import InvalidDefinition, MalformedBody, UnknownEvent, WrongMediaType
from events.fronts.requests import session_of
from events.model.definitions import EventDefinition, from_avro, to_avro
from events.model.metadata_export import object_xml
from events.model.metadata_tree import read_zip
from events.model.metadata_xml import read_object
from events.model.payloads import EventSchema
from events.store.catalog import Catalog
from tidegate.kit.http import json_response

__all__ = ["DefinitionsFront"]


class DefinitionsFront:
    """List, describe and define events."""

    def __init__(self, catalog: Catalog, access: Access, retention_ms: int) -> None:
        self._catalog, self._access, self._retention_ms = catalog, access, retention_ms

    def routes(self) -> list[Route]:
        return [
            Route("/tidegate/v1/events", self.list_or_define, methods=["GET", "POST"]),
            Route("/tidegate/v1/events/{event}", self.describe, methods=["GET"]),
        ]

    async def list_or_define(self, request: Request) -> Response:
        user = session_of(request, self._access).user
        if request.method == "POST":
            user.require_define_some()
            return await self._define(request, user)
        return json_response([_shown(schema) for schema in await self._catalog.all() if user.may_see(schema.name)])

    async def describe(self, request: Request) -> Response:
        """One event; as Salesforce metadata for clients that accept XML but not JSON."""
        user = session_of(request, self._access).user
        schema = await self._catalog.find(request.path_params["event"])
        if not user.may_see(schema.name):
            raise UnknownEvent(schema.name)
        if request.headers.get("accept", "").partition(",")[0].partition(";")[0].strip().lower().endswith("/xml"):
            return Response(object_xml(schema.definition), media_type="application/xml")
        return json_response(await self._detailed(schema))

    async def _define(self, request: Request, user: User) -> Response:
        """Define from an Avro record (JSON), from metadata XML (``?name=`` is the event's name), or from a zip of
        metadata.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await request.body()
        if kind.endswith("zip"):
            definitions = await asyncio.to_thread(read_zip, body)
        elif kind.endswith("xml"):
            definitions = [await asyncio.to_thread(read_object, request.query_params.get("name", ""), body)]
        elif kind.endswith("json"):
            definitions = [await asyncio.to_thread(_from_json, body)]
        else:
            raise WrongMediaType(
                f"Content type {kind[:100]!r} is not read here; send application/json, application/xml or application/zip"
            )
        for definition in definitions:
            user.require_define(definition.name)
        retention_ms = _retention(request)
        made = []
        for definition in definitions:
            if retention_ms is not None:
                definition = dataclasses.replace(definition, retention_ms=retention_ms)
            made.append(await self._detailed(await self._catalog.define(definition, retention_ms=self._retention_ms)))
        return json_response(made if kind.endswith("zip") else made[0], 201)

    async def _detailed(self, schema: EventSchema) -> dict[str, Any]:
        return _shown(schema) | {"retentionMs": await self._catalog.retention_ms(schema.definition.name)}


def _retention(request: Request) -> int | None:
    said = request.query_params.get("retentionMs")
    if said is None:
        return None
    digits = said.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise InvalidDefinition(f"retentionMs is {said[:50]!r}; milliseconds are needed, or -1 to keep events for good")
    return int(said)


def _from_json(body: bytes) -> EventDefinition:
    try:
        return from_avro(body.decode())
    except UnicodeDecodeError as error:
        raise MalformedBody("The body is not UTF-8 text") from error
    except RecursionError as error:
        raise InvalidDefinition("The Avro schema is nested too deep") from error


def _shown(schema: EventSchema) -> dict[str, Any]:
    definition = schema.definition
    return {
        "name": definition.name,
        "label": definition.label,
        "channel": definition.channel,
        "topic": definition.name,
        "subject": definition.subject,
        "schemaId": schema.id,
        "schema": to_avro(definition),
    }
