"""Topics: the list, and a page for each with its partitions, settings and groups."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.topics import is_internal, naming_topics
from tidegate.console.console import Console, Visit
from tidegate.console.numbers import page_of, whole_number
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.records.group_offsets import group_lags
from tidegate.records.positions import chosen_partitions, parse_position, resolve

if TYPE_CHECKING:
    from broker.client import Admin, ConfigEntry, TopicDescription

__all__ = ["routes", "topic_admin", "topic_path"]

_MOST_GROUPS: Final = 200
_MOST_PRODUCERS: Final = 200
_OWN: Final = "DYNAMIC_TOPIC_CONFIG"


def routes(console: Console) -> list[Route]:
    return [
        console.route("/topics", _list),
        console.route("/topics", _create, ["POST"]),
        console.route("/topics/{name}", _show),
        console.route("/topics/{name}/groups", _groups),
        console.route("/topics/{name}/producers", _producers),
        console.route("/topics/{name}/configs", _set_config, ["POST"]),
        console.route("/topics/{name}/partitions", _add_partitions, ["POST"]),
        console.route("/topics/{name}/delete-records", _delete_records, ["POST"]),
        console.route("/topics/{name}/delete", _delete, ["POST"]),
    ]


def topic_path(name: str, *parts: str, **query: str) -> str:
    """The page of a topic, or one below it."""
    path = "/".join(["/topics", *(quote(part, safe="") for part in (name, *parts))])
    return f"{path}?{urlencode(query)}" if query else path


async def _list(visit: Visit) -> Response:
    from broker.client import Admin

    words, internal = visit.query.get("q", "").strip(), visit.query.get("internal") == "yes"
    names = await visit.faces.topics()
    async with Admin(visit.faces.kafka) as admin:
        chosen = sorted(
            name for name in names if (internal or not is_internal(name)) and words.casefold() in name.casefold()
        )
        part = page_of(chosen, visit.query.get("page", ""))
        rows = await _counted(admin, part.entries)
    return visit.page(
        "topics.html",
        rows=rows,
        words=words,
        internal=internal,
        found=len(chosen),
        page_number=part.number,
        pages=part.pages,
        may_create=visit.may_some("manage", "topic"),
    )


async def _counted(admin: Admin, names: Sequence[str]) -> list[dict[str, Any]]:
    """For each topic its partitions, and how many offsets they hold."""
    from broker.client import TopicPartition

    if not names:
        return []
    described = await admin.describe_topics(names)
    everything = [TopicPartition(name, p.partition) for name in names for p in described[name].partitions]
    starts, ends = await asyncio.gather(admin.beginning_offsets(everything), admin.end_offsets(everything))
    offsets = dict.fromkeys(names, 0)
    for partition, end in ends.items():
        offsets[partition.topic] += end - starts[partition]
    return [{"name": name, "partitions": len(described[name].partitions), "offsets": offsets[name]} for name in names]


async def _create(visit: Visit) -> Response:
    from broker.client import Admin, NewTopic

    form = await visit.form()
    name = form.get("name", "").strip()
    partitions = _number(form.get("partitions", "1"), "partitions")
    configs = dict(_setting(line) for line in form.get("configs", "").splitlines() if line.strip())
    async with Admin(visit.faces.kafka) as admin:
        await admin.create_topics([NewTopic(name, partitions, -1, configs)])
    visit.faces.forget()
    visit.audit("create topic", topic=name, partitions=partitions, configs=configs)
    return visit.redirect(topic_path(name))


def _setting(line: str) -> tuple[str, str]:
    name, equals, value = line.strip().partition("=")
    if not equals:
        raise UsageError(f"{line.strip()!r} is no setting: give NAME=VALUE, such as retention.ms=86400000")
    return name.strip(), value.strip()


async def _show(visit: Visit) -> Response:
    name = visit.parameters["name"]
    async with topic_admin(visit) as admin:
        described = (await admin.describe_topics([name]))[name]
        partitions = await _partitions(admin, described)
        configs = await _configs(admin, name)
        sizes = await _sizes(admin, name)
    own = [entry for entry in configs if entry.source == _OWN]
    return visit.page(
        "topic.html",
        name=name,
        has_connectors=visit.faces.has_connect,
        topic_id=described.topic_id,
        partitions=partitions,
        offsets=sum(row["end"] - row["start"] for row in partitions),
        sizes=sizes,
        own=own,
        others=[entry for entry in configs if entry.source != _OWN],
        may_change=visit.may("manage", "topic", name),
        may_write=visit.may("write", "topic", name),
        is_compacted=any(entry.name == "cleanup.policy" and "compact" in (entry.value or "") for entry in configs),
    )


async def _partitions(admin: Admin, described: TopicDescription) -> list[dict[str, Any]]:
    everything = chosen_partitions(described, [])
    starts, ends = await asyncio.gather(admin.beginning_offsets(everything), admin.end_offsets(everything))
    about = {p.partition: p for p in described.partitions}
    return [
        {
            "number": where.partition,
            "leader": about[where.partition].leader,
            "isr": about[where.partition].isr,
            "replicas": about[where.partition].replicas,
            "start": starts[where],
            "end": ends[where],
        }
        for where in everything
    ]


async def _sizes(admin: Admin, name: str) -> dict[int, int]:
    """The bytes of each partition; nothing if the user may not see them, or the broker tells none."""
    try:
        return await admin.sizes(name)
    except TidegateError:
        return {}


async def _configs(admin: Admin, name: str) -> list[ConfigEntry]:
    """The settings of a topic, or none if the user may not see them."""
    from broker.client.errors import ClusterAuthorizationFailed, TopicAuthorizationFailed

    try:
        return sorted((await admin.describe_configs(name)).values(), key=lambda entry: entry.name)
    except (ClusterAuthorizationFailed, TopicAuthorizationFailed):
        return []


async def _groups(visit: Visit) -> Response:
    """The part of a topic's page with the groups that read it: to look through all groups takes longer than the rest."""
    name = visit.parameters["name"]
    async with topic_admin(visit) as admin:
        listed = await visit.faces.groups()
        looked_at = [group.group_id for group in listed][:_MOST_GROUPS]
        described = await asyncio.gather(*(admin.describe_group(group) for group in looked_at), return_exceptions=True)
        known = [group for group in described if not isinstance(group, BaseException)]
        lags = await asyncio.gather(*(group_lags(admin, group, [name]) for group in known))
    rows = [
        {
            "group": group.group_id,
            "state": group.state,
            "members": len(group.members),
            "lag": sum(row["lag"] for row in rows),
        }
        for group, rows in zip(known, lags, strict=True)
        if rows
    ]
    return visit.page("topic_groups.html", rows=rows, left_out=len(listed) - len(looked_at))


async def _producers(visit: Visit) -> Response:
    """The part of a topic's page with its producers."""
    from broker.client.errors import TopicAuthorizationFailed, UnsupportedVersion

    async with topic_admin(visit) as admin:
        try:
            rows, refused = await admin.producers(visit.parameters["name"]), ""
        except (TopicAuthorizationFailed, UnsupportedVersion) as error:
            rows, refused = [], error.message
    return visit.page("topic_producers.html", rows=rows[:_MOST_PRODUCERS], found=len(rows), refused=refused)


async def _set_config(visit: Visit) -> Response:
    name, form = visit.parameters["name"], await visit.form()
    setting, value = form.get("name", "").strip(), form.get("value", "").strip()
    if not setting:
        raise UsageError("Name the setting, such as retention.ms")
    reset = form.get("reset") == "yes"
    if not reset and not value:
        raise UsageError(f"Give {setting} a value, or set it to its default")
    async with topic_admin(visit) as admin:
        await admin.alter_configs(name, {setting: None if reset else value})
    visit.audit("alter topic", topic=name, setting=setting, value=None if reset else value)
    return visit.redirect(topic_path(name))


async def _add_partitions(visit: Visit) -> Response:
    name, form = visit.parameters["name"], await visit.form()
    total = _number(form.get("total", ""), "partitions")
    async with topic_admin(visit) as admin:
        await admin.create_partitions(name, total)
    visit.audit("add partitions", topic=name, partitions=total)
    return visit.redirect(topic_path(name))


async def _delete_records(visit: Visit) -> Response:
    name, form = visit.parameters["name"], await visit.form()
    position = parse_position(form.get("before", ""))
    async with topic_admin(visit) as admin:
        described = (await admin.describe_topics([name]))[name]
        found = await resolve(admin, position, chosen_partitions(described, []))
        before = {partition: offset for partition, (start, offset, _) in found.items() if offset > start}
        if before:
            await admin.delete_records(before)
    deleted = sum(found[partition][1] - found[partition][0] for partition in before)
    visit.audit("delete records", topic=name, before=form.get("before", ""), offsets=deleted)
    return visit.redirect(topic_path(name))


async def _delete(visit: Visit) -> Response:
    name, form = visit.parameters["name"], await visit.form()
    if form.get("name") != name:
        raise UsageError(f"Type the topic's name, {name}, to delete it with all its records")
    async with topic_admin(visit) as admin:
        await admin.delete_topics([name])
    visit.faces.forget()
    visit.audit("delete topic", topic=name)
    return visit.redirect("/topics")


class NoSuchTopic(UsageError):
    """Kafka knows no topic by that name."""

    http_status = 404


@asynccontextmanager
async def topic_admin(visit: Visit) -> AsyncIterator[Admin]:
    """An Admin for the topic of the page. Raises NoSuchTopic with the nearest name."""
    from broker.client import Admin
    from broker.client.errors import UnknownTopicOrPartition

    try:
        async with Admin(visit.faces.kafka) as admin, naming_topics(admin, [visit.parameters["name"]]):
            yield admin
    except UnknownTopicOrPartition as error:
        raise NoSuchTopic(error.message) from error


def _number(text: str, what: str) -> int:
    if (number := whole_number(text.strip())) is None:
        raise UsageError(f"{what}: {text[:50]!r} is no number")
    return number
