"""Tidegate's REST API for entities, the tables whose changes are events: ``/tidegate/v1/entities``.

In Salesforce an entity is an existing object. Here its definition names the topic of a CDC connector with its changes.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Permission
from events.access.errors import CannotRead
from events.channels.channels import Channels
from events.channels.entities import ChangeEntity
from events.errors import InvalidMetadata
from events.fronts.requests import json_object, session_of
from events.model.changes.schemas import STANDARD_CHANNEL
from tidegate.kit.http import json_response

__all__ = ["EntitiesFront"]


class EntitiesFront:
    """List, describe, define and delete entities. A new one is selected for ``/data/ChangeEvents``."""

    def __init__(self, channels: Channels, access: Access) -> None:
        self._channels, self._entities, self._access = channels, channels.entities, access

    def routes(self) -> list[Route]:
        return [
            Route("/tidegate/v1/entities", self.list_or_define, methods=["GET", "POST"]),
            Route("/tidegate/v1/entities/{entity}", self.show_or_delete, methods=["GET", "DELETE"]),
        ]

    async def list_or_define(self, request: Request) -> Response:
        user = session_of(request, self._access).user
        if request.method == "POST":
            user.require(Permission.CUSTOMIZE)
            return await self._define(await json_object(request))
        return json_response(
            [await self._shown(entity) for entity in await self._entities.all() if user.may_see(entity.event)]
        )

    async def show_or_delete(self, request: Request) -> Response:
        user = session_of(request, self._access).user
        entity = await self._entities.find(request.path_params["entity"])
        if request.method == "GET":
            if not user.may_see(entity.event):
                raise CannotRead(entity.event)
            return json_response(await self._shown(entity))
        user.require(Permission.CUSTOMIZE)
        members = [member for member in await self._channels.members() if member.event == entity.event]
        if custom := next((member for member in members if member.channel != STANDARD_CHANNEL), None):
            raise InvalidMetadata(
                f"Channel {custom.channel} has the member {custom.name} of {entity.event}; delete it first"
            )
        for member in members:
            await self._channels.delete_member(member.name)
        await self._entities.delete(entity.name)
        return Response(status_code=204)

    async def _define(self, definition: dict[str, Any]) -> Response:
        known = {entity.name.lower() for entity in await self._entities.all()}
        made = await self._entities.define(definition)
        if made.name.lower() not in known:
            name = f"{STANDARD_CHANNEL}_{made.event.replace('__', '_')}"
            await self._channels.define_member(name, {"eventChannel": STANDARD_CHANNEL, "selectedEntity": made.event})
        return json_response(await self._shown(made), 201)

    async def _shown(self, entity: ChangeEntity) -> dict[str, Any]:
        schema = await self._entities.schema(entity)
        return entity.described | {"schemaId": None if schema is None else schema.id}
