"""Platform events: definitions with their fields, publishing by a form, and triggers with their state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import Route

from tidegate.console.console import Console, Visit
from tidegate.console.schema_form import FormField, form_fields, form_value
from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from events.client import EventsClient

__all__ = ["routes"]

T = TypeVar("T")

_OF_SERVICE: Final = ("CreatedDate", "CreatedById")
"""Fields that the service fills."""
_LIMITS: Final = {
    "HourlyPublishedPlatformEvents": "Events published in the last hour",
    "DailyDeliveredPlatformEvents": "Events delivered in the last 24 hours",
    "DailyApiRequests": "REST and SOAP requests in the last 24 hours",
    "StreamingApiConcurrentClients": "CometD clients now",
}
_UNLIMITED: Final = (1 << 31) - 1


def routes(console: Console) -> list[Route]:
    return [
        console.route("/events", _list),
        console.route("/events/{name}", _show),
        console.route("/events/{name}/publish", _publish, ["POST"]),
        console.route("/triggers/{name}/{action}", _change_trigger, ["POST"]),
    ]


async def _ask(visit: Visit, question: Callable[[EventsClient], T]) -> T:
    """The answer of the service's client, which blocks and runs in a thread."""
    return await asyncio.to_thread(lambda: question(visit.faces.events_client()))


async def _list(visit: Visit) -> Response:
    words = visit.query.get("q", "").strip()
    events = await _ask(visit, lambda client: client.events())
    chosen = [event for event in events if words.casefold() in f"{event['name']} {event['label']}".casefold()]
    subscribers, problems, managed, usage, refused = [], {}, [], [], ""
    try:
        answer, records, limits = await asyncio.gather(
            _ask(visit, lambda client: client.triggers()),
            _ask(visit, lambda client: client.tooling_records("ManagedEventSubscription")),
            _ask(visit, lambda client: client.limits()),
        )
        subscribers, problems = answer["subscribers"], answer["problems"]
        managed = [{"name": record["FullName"], **record["Metadata"]} for record in records]
        usage = _usage(limits)
    except TidegateError as error:  # not for this user, or no service of ours
        refused = error.message
    subscribers.sort(key=lambda row: (row["Status"] != "Error", row["Name"]))
    return visit.page(
        "events.html",
        events=sorted(chosen, key=lambda event: event["name"]),
        words=words,
        subscribers=subscribers,
        problems=problems,
        managed=sorted(managed, key=lambda each: each["name"]),
        usage=usage,
        refused=refused,
        may_change=visit.may("manage", "event", "*"),
        may_define=visit.may_some("manage", "event"),
    )


def _usage(limits: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    """Of each limit its text, how much is used and the maximum, None where there is none."""
    rows = []
    for name, text in _LIMITS.items():
        if (limit := limits.get(name)) is not None:
            most = limit["Max"]
            rows.append({"text": text, "used": most - limit["Remaining"], "most": None if most == _UNLIMITED else most})
    return rows


async def _show(visit: Visit) -> Response:
    return await _page(visit, {})


async def _page(visit: Visit, values: dict[str, str], error: str = "") -> Response:
    name = visit.parameters["name"]
    described = await _ask(visit, lambda client: client.describe(name))
    return visit.page(
        "event.html",
        400 if error else 200,
        event=described,
        fields=_fields(described),
        of_service=_OF_SERVICE,
        values=values,
        error=error,
        published=visit.query.get("published", ""),
        may_publish=visit.may("write", "event", name),
    )


def _fields(described: dict[str, Any]) -> list[FormField]:
    schema = described["schema"] if isinstance(described["schema"], dict) else json.loads(described["schema"])
    return form_fields(schema)


async def _publish(visit: Visit) -> Response:
    """Publish an event of a form; what is wrong is shown beside what was typed."""
    name, form = visit.parameters["name"], await visit.form()
    try:
        described = await _ask(visit, lambda client: client.describe(name))
        typed = form_value([field for field in _fields(described) if field.name not in _OF_SERVICE], form)
        # Salesforce's REST API takes JSON, whose numbers are floats there.
        values = {name: float(value) if isinstance(value, Decimal) else value for name, value in typed.items()}
        uuid = await _ask(visit, lambda client: client.publish(name, values))
    except TidegateError as error:
        return await _page(visit, form, error.message)
    visit.audit("publish event", platform_event=name, uuid=uuid)
    return visit.redirect(f"/events/{quote(name, safe='')}?published={quote(uuid, safe='')}")


async def _change_trigger(visit: Visit) -> Response:
    name, action = visit.parameters["name"], visit.parameters["action"]
    changes = {
        "resume": {"status": "Running", "replay": "processed"},
        "resume-latest": {"status": "Running", "replay": "latest"},
        "suspend": {"status": "Suspended"},
    }
    if action not in changes:
        raise UsageError(f"{action!r} can't be done to a trigger; there are {', '.join(changes)}")
    await _ask(visit, lambda client: client.change_trigger(name, changes[action]))
    visit.audit(f"{action} trigger", trigger=name)
    return visit.redirect("/events")
