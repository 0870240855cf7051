"""Consumer groups: their members, lag and offsets, which can be moved after a look at what that means."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import Route

from tidegate.console.console import Console, Visit
from tidegate.console.numbers import page_of
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.records.group_offsets import group_lags, moved_group
from tidegate.records.positions import chosen_partitions, parse_position

__all__ = ["routes"]


class NoSuchGroup(UsageError):
    """Kafka knows no group by that name."""

    http_status = 404


def routes(console: Console) -> list[Route]:
    return [
        console.route("/groups", _list),
        console.route("/groups/{name:path}/lag", _lag),
        console.route("/groups/{name:path}/reset", _reset, ["POST"]),
        console.route("/groups/{name:path}/delete", _delete, ["POST"]),
        console.route("/groups/{name:path}", _show),
    ]


async def _list(visit: Visit) -> Response:
    from broker.client import Admin

    words = visit.query.get("q", "").strip()
    listed = [group for group in await visit.faces.groups() if words.casefold() in group.group_id.casefold()]
    part = page_of(listed, visit.query.get("page", ""))

    async def row(admin: Admin, name: str, kind: str) -> dict[str, Any]:
        """A group that vanishes, or that the user may not see, has no numbers."""
        try:
            described = await admin.describe_group(name)
            lag = sum(each["lag"] for each in await group_lags(admin, described))
        except TidegateError as error:
            return {"name": name, "type": kind, "state": "", "members": None, "lag": None, "error": error.message}
        members = len(described.members)
        return {"name": name, "type": kind, "state": described.state, "members": members, "lag": lag, "error": ""}

    async with Admin(visit.faces.kafka) as admin:
        rows = await asyncio.gather(
            *(row(admin, each.group_id, each.type or each.protocol_type) for each in part.entries)
        )
    return visit.page(
        "groups.html", rows=rows, words=words, found=len(listed), page_number=part.number, pages=part.pages
    )


async def _described(visit: Visit) -> dict[str, Any]:
    """A group with its members and its lag by partition. Raises NoSuchGroup."""
    from broker.client import Admin

    name = visit.parameters["name"]
    async with Admin(visit.faces.kafka) as admin:
        group = await admin.describe_group(name)
        if group.state == "Dead":  # Kafka's answer for an unknown group
            near = nearest_name(name, [listing.group_id for listing in await visit.faces.groups()])
            raise NoSuchGroup(f"There is no group {name}" + (f"; did you mean {near}?" if near else ""))
        lags = await group_lags(admin, group)
    holders = {partition: member for member in group.members for partition in member.partitions}
    by_partition = {(partition.topic, partition.partition): member for partition, member in holders.items()}
    rows = [row | {"member": by_partition.get((row["topic"], row["partition"]))} for row in lags]
    sampler = visit.console.groups
    return {
        "group": group,
        "rows": rows,
        "lag": sum(row["lag"] for row in lags),
        "history": sampler.opened(name) if sampler is not None else None,
        "may_change": visit.may("manage", "group", name),
    }


async def _show(visit: Visit) -> Response:
    return visit.page("group.html", **await _described(visit))


async def _lag(visit: Visit) -> Response:
    """The part that refreshes itself."""
    return visit.page("group_lag.html", **await _described(visit))


async def _reset(visit: Visit) -> Response:
    """The offsets before and after the move; with ``execute`` they are moved."""
    from broker.client import Admin

    name, form = visit.parameters["name"], await visit.form()
    execute = form.get("execute") == "yes"
    to, topic = form.get("to", ""), form.get("topic", "").strip()
    position = parse_position(to)
    async with Admin(visit.faces.kafka) as admin:
        partitions = chosen_partitions((await admin.describe_topics([topic]))[topic], []) if topic else None
        moves = await moved_group(admin, name, position, partitions, execute=execute)
    if execute:
        visit.audit("reset group", group=name, to=to, topic=topic or None)
        return visit.redirect(f"/groups/{quote(name, safe='')}")
    changes = [move.to - move.committed for move in moves if move.committed is not None]
    again, skipped = -sum(change for change in changes if change < 0), sum(change for change in changes if change > 0)
    return visit.page("group_reset.html", name=name, moves=moves, to=to, topic=topic, again=again, skipped=skipped)


async def _delete(visit: Visit) -> Response:
    from broker.client import Admin

    name = visit.parameters["name"]
    async with Admin(visit.faces.kafka) as admin:
        await admin.delete_groups([name])
    visit.faces.forget()
    visit.audit("delete group", group=name)
    return visit.redirect("/groups")
