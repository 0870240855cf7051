"""The part of Salesforce's Tooling API for setting up subscriptions: ``/services/data/vNN.0/tooling``.

Records are created, read, changed and deleted at ``sobjects/{type}``, and queried by ``query`` with a SELECT over one
type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Permission, Session, User
from events.channels.channels import Channels
from events.errors import InvalidMetadata, MalformedBody, ResourceNotFound
from events.fronts.requests import check_version, json_object, session_of
from events.fronts.rest.soql import parse_select
from events.subscriptions.managed import ManagedSubscription, ManagedSubscriptions
from tidegate.kit.http import json_response

__all__ = ["ChannelMemberRecords", "ChannelRecords", "ManagedSubscriptionRecords", "ToolingFront", "ToolingRecords"]

_MOST: Final = 2000
"""The most records in one answer."""


class ToolingRecords(Protocol):
    """The records of one type. A record is an object with Id, DeveloperName, FullName and Metadata."""

    async def all(self, user: User) -> Sequence[Mapping[str, Any]]:
        """The records that the user may see: of events and channels visible to the user."""
        ...

    def require(self, user: User, full_name: str, metadata: Mapping[str, Any]) -> None:
        """Raises AccessError unless the user may create, change or delete such a record."""
        ...

    async def create(self, full_name: str, metadata: Mapping[str, Any]) -> str:
        """Create a record and return its id. Raises InvalidMetadata, also if one of this name exists."""
        ...

    async def update(self, full_name: str, metadata: Mapping[str, Any]) -> None: ...

    async def delete(self, full_name: str) -> None: ...


class ToolingFront:
    """The routes; ``types`` maps type names to their records."""

    def __init__(self, access: Access, types: Mapping[str, ToolingRecords]) -> None:
        self._access, self._types = access, {name.lower(): (name, records) for name, records in types.items()}

    def routes(self) -> list[Route]:
        base = "/services/data/v{version}/tooling"
        return [
            Route(path + slash, handler, methods=methods)
            for path, handler, methods in (
                (f"{base}/query", self.query, ["GET"]),
                (f"{base}/sobjects/{{type}}", self.create, ["POST"]),
                (f"{base}/sobjects/{{type}}/{{id}}", self.record, ["GET", "PATCH", "DELETE"]),
            )
            for slash in ("", "/")
        ]

    async def query(self, request: Request) -> Response:
        user = self._enter(request).user
        asked = parse_select(request.query_params.get("q", ""))
        name, records = self._of_type(asked.type)
        selected = asked.of(await records.all(user))[:_MOST]
        base = f"/services/data/v{request.path_params['version']}/tooling/sobjects/{name}"
        shown = [{"attributes": {"type": name, "url": f"{base}/{row.get('Id', '')}"}} | row for row in selected]
        answer = {"size": len(selected), "totalSize": len(selected), "done": True, "queryLocator": None}
        return json_response(answer | {"entityTypeName": name, "records": shown if asked.fields else []})

    async def create(self, request: Request) -> Response:
        user = self._enter(request).user
        user.require_define_some()
        _, records = self._of_type(request.path_params["type"])
        body = await json_object(request)
        full_name = body.get("FullName", body.get("DeveloperName"))
        if not isinstance(full_name, str):
            raise InvalidMetadata("Required fields are missing: [FullName]", fields=("FullName",))
        metadata = _metadata(body)
        records.require(user, full_name, metadata)
        made = await records.create(full_name, metadata)
        return json_response({"id": made, "success": True, "errors": [], "warnings": [], "infos": []}, 201)

    async def record(self, request: Request) -> Response:
        user = self._enter(request).user
        if request.method != "GET":
            user.require_define_some()
        name, records = self._of_type(request.path_params["type"])
        record_id = request.path_params["id"]
        record = next((row for row in await records.all(user) if record_id in (row["Id"], row["Id"][:15])), None)
        if record is None:
            raise ResourceNotFound
        if request.method != "GET":
            records.require(user, record["FullName"], record["Metadata"])
        if request.method == "DELETE":
            await records.delete(record["FullName"])
            return Response(status_code=204)
        if request.method == "PATCH":
            await records.update(record["FullName"], _metadata(await json_object(request)))
            return Response(status_code=204)
        return json_response({"attributes": {"type": name, "url": request.scope["path"]}} | dict(record))

    def _enter(self, request: Request) -> Session:
        session = session_of(request, self._access)
        check_version(request.path_params["version"])
        return session

    def _of_type(self, name: str) -> tuple[str, ToolingRecords]:
        records = self._types.get(name.lower())
        if records is None:
            raise ResourceNotFound
        return records


class ManagedSubscriptionRecords:
    """ManagedEventSubscription."""

    def __init__(self, subscriptions: ManagedSubscriptions) -> None:
        self._subscriptions = subscriptions

    def require(self, user: User, full_name: str, metadata: Mapping[str, Any]) -> None:
        user.require_define(full_name)

    async def all(self, user: User) -> Sequence[Mapping[str, Any]]:
        every = await self._subscriptions.all()
        return [_managed_record(subscription) for subscription in every if user.may_see(subscription.topic)]

    async def create(self, full_name: str, metadata: Mapping[str, Any]) -> str:
        if any(existing.name.lower() == full_name.lower() for existing in await self._subscriptions.all()):
            raise InvalidMetadata(f"A ManagedEventSubscription {full_name} exists already", fields=("FullName",))
        return (await self._subscriptions.define(full_name, metadata)).id

    async def update(self, full_name: str, metadata: Mapping[str, Any]) -> None:
        await self._subscriptions.define(full_name, metadata)

    async def delete(self, full_name: str) -> None:
        await self._subscriptions.delete(full_name)


class ChannelRecords:
    """PlatformEventChannel."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def require(self, user: User, full_name: str, metadata: Mapping[str, Any]) -> None:
        user.require_define(full_name)

    async def all(self, user: User) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "Id": channel.id,
                "DeveloperName": channel.name.removesuffix("__chn"),
                "FullName": channel.name,
                "MasterLabel": channel.label,
                "ChannelType": channel.type,
                "Metadata": channel.metadata,
            }
            for channel in await self._channels.all()
            if user.may_see(channel.name)
        ]

    async def create(self, full_name: str, metadata: Mapping[str, Any]) -> str:
        if await self._channels.find(full_name) is not None:
            raise InvalidMetadata(f"A PlatformEventChannel {full_name} exists already", fields=("FullName",))
        return (await self._channels.define(full_name, metadata)).id

    async def update(self, full_name: str, metadata: Mapping[str, Any]) -> None:
        await self._channels.define(full_name, metadata)

    async def delete(self, full_name: str) -> None:
        await self._channels.delete(full_name)


class ChannelMemberRecords:
    """PlatformEventChannelMember."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def require(self, user: User, full_name: str, metadata: Mapping[str, Any]) -> None:
        """The user needs the right to define the channel, and to see the event."""
        user.require_define(str(metadata.get("eventChannel", "")))
        event = str(metadata.get("selectedEntity", ""))
        if not user.may(Permission.CUSTOMIZE):
            user.require_read(event)

    async def all(self, user: User) -> Sequence[Mapping[str, Any]]:
        """A filter reveals the event's fields, so both its channel and its event must be visible to the user."""
        return [
            {
                "Id": member.id,
                "DeveloperName": member.name,
                "FullName": member.name,
                "EventChannel": member.channel,
                "SelectedEntity": member.event,
                "FilterExpression": member.filter or None,
                "Metadata": member.metadata,
            }
            for member in await self._channels.members()
            if user.may_see(member.channel) and user.may_see(member.event)
        ]

    async def create(self, full_name: str, metadata: Mapping[str, Any]) -> str:
        if any(existing.name.lower() == full_name.lower() for existing in await self._channels.members()):
            raise InvalidMetadata(f"A PlatformEventChannelMember {full_name} exists already", fields=("FullName",))
        return (await self._channels.define_member(full_name, metadata)).id

    async def update(self, full_name: str, metadata: Mapping[str, Any]) -> None:
        await self._channels.define_member(full_name, metadata)

    async def delete(self, full_name: str) -> None:
        await self._channels.delete_member(full_name)


def _managed_record(subscription: ManagedSubscription) -> dict[str, Any]:
    return {
        "Id": subscription.id,
        "DeveloperName": subscription.name,
        "FullName": subscription.name,
        "MasterLabel": subscription.label,
        "TopicName": subscription.topic_name,
        "State": subscription.state,
        "Metadata": subscription.metadata,
    }


def _metadata(body: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = body.get("Metadata")
    if not isinstance(metadata, dict):
        raise MalformedBody("'Metadata' is an object with the fields of the record")
    return metadata
