"""Schemas: subjects, their versions with what changed, and a schema tried before it is registered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.schemas import checked, compared, pretty_schema
from tidegate.console.console import Console, Visit
from tidegate.console.graph import drawn, short_label
from tidegate.console.numbers import page_of, whole_number
from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from registry.client import Reference, RegisteredSchema, RegistryClient

__all__ = ["routes"]

T = TypeVar("T")
_Node: TypeAlias = tuple[str, int]
_MOST_REFERENCES: Final = 100

_TYPES: Final = ("AVRO", "JSON", "PROTOBUF")
_LEVELS: Final = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)


def routes(console: Console) -> list[Route]:
    return [
        console.route("/schemas", _list),
        console.route("/new-schema", _new),
        console.route("/new-schema/try", _try, ["POST"]),
        console.route("/new-schema", _register, ["POST"]),
        console.route("/schemas/{subject:path}/level", _set_level, ["POST"]),
        console.route("/schemas/{subject:path}/delete", _delete, ["POST"]),
        console.route("/schemas/{subject:path}", _show),
    ]


def _path(subject: str) -> str:
    return f"/schemas/{quote(subject, safe='')}"


async def _ask(visit: Visit, question: Callable[[RegistryClient], T]) -> T:
    """The answer of the registry's client, which blocks and runs in a thread."""

    def ask() -> T:
        with visit.faces.registry_client() as client:
            return question(client)

    return await asyncio.to_thread(ask)


async def _list(visit: Visit) -> Response:
    words = visit.query.get("q", "").strip()
    subjects = await visit.faces.kept("subjects", lambda: visit.faces.registry.call("GET", "/subjects"))
    chosen = sorted(subject for subject in subjects if words.casefold() in subject.casefold())
    part = page_of(chosen, visit.query.get("page", ""))

    def newest(client: RegistryClient) -> list[dict[str, Any]]:
        rows = []
        for subject in part.entries:
            try:
                version = client.version(subject)
            except TidegateError as error:  # deleted since, or not for this user
                rows.append({"subject": subject, "error": error.message})
                continue
            rows.append(
                {
                    "subject": subject,
                    "version": version.version,
                    "id": version.id,
                    "type": version.schema_type,
                    "error": "",
                }
            )
        return rows

    rows = await _ask(visit, newest)
    return visit.page(
        "schemas.html",
        rows=rows,
        words=words,
        found=len(chosen),
        page_number=part.number,
        pages=part.pages,
        may_register=visit.may_some("write", "subject"),
    )


async def _show(visit: Visit) -> Response:
    subject, query = visit.parameters["subject"], visit.query

    def look(client: RegistryClient) -> dict[str, Any]:
        numbers = client.versions(subject)
        version = client.version(subject, whole_number(query.get("version", "")) or "latest")
        before = [number for number in numbers if number < version.version]
        asked = whole_number(query.get("with", ""))
        older = str(asked) if asked in numbers else (str(before[-1]) if before else "")
        change = compared(client, subject, older, str(version.version)) if older else None
        return {
            "versions": list(reversed(numbers)),
            "version": version,
            "text": pretty_schema(version),
            "change": change,
            "level": client.compatibility(subject),
        }

    found = await _ask(visit, look)
    version = found["version"]
    edges = await _ask(visit, lambda client: _references_of(client, version))
    node = (version.subject, version.version)
    topic, _, part = subject.rpartition("-")
    return visit.page(
        "schema.html",
        subject=subject,
        topic=topic if part in ("key", "value") else "",
        has_connectors=visit.faces.has_connect,
        levels=_LEVELS,
        users=[user for start, user in edges if start == node],
        picture=drawn(edges) if edges else None,
        node=node,
        link=lambda node: f"{_path(node[0])}?version={node[1]}",
        label=short_label,
        may_register=visit.may("write", "subject", subject),
        may_change=visit.may("write", "subject", subject),
        **found,
    )


def _references_of(client: RegistryClient, version: RegisteredSchema) -> list[tuple[_Node, _Node]]:
    """The references from and to a version, over any number of steps: pairs of a subject's version and one that refers to it."""
    edges: dict[tuple[_Node, _Node], None] = {}
    start = (version.subject, version.version)
    for up in (False, True):
        seen, waiting = {start}, [start]
        while waiting and len(edges) < _MOST_REFERENCES:
            node = waiting.pop()
            others = client.referencing(*node) if up else _referenced(client, node)
            for other in others:
                edges[(node, other) if up else (other, node)] = None
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
    return list(edges)


def _referenced(client: RegistryClient, node: _Node) -> list[_Node]:
    return [(each.subject, each.version) for each in client.version(*node).references]


async def _new(visit: Visit) -> Response:
    """The form; of a subject that exists with its newest schema, to be changed."""
    subject = visit.query.get("subject", "").strip()
    values = {"subject": subject, "type": "AVRO", "schema": "", "references": ""}
    if subject:
        version = await _ask(visit, lambda client: client.version(subject))
        references = "\n".join(f"{each.name}={each.subject}@{each.version}" for each in version.references)
        values |= {"type": version.schema_type, "schema": pretty_schema(version), "references": references}
    return visit.page("schema_new.html", values=values, types=_TYPES, error="")


def _asked(form: dict[str, str], client: RegistryClient) -> Any:
    """The schema of a form. Raises UsageError that names the field."""
    from registry.client import RegisteredSchema

    kind = form.get("type", "AVRO")
    if kind not in _TYPES:
        raise UsageError(f"Type: {kind!r} is none; there are {', '.join(_TYPES)}")
    if not form.get("schema", "").strip():
        raise UsageError("Schema: it is empty")
    references = tuple(_references(form.get("references", ""), client))
    return RegisteredSchema("", 0, 0, form["schema"].replace("\r\n", "\n"), kind, references)


def _references(text: str, client: RegistryClient) -> list[Reference]:
    from registry.client import Reference

    made = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, target = line.partition("=")
        subject, _, version = target.rpartition("@") if "@" in target else (target, "", "")
        if not (equals and name and subject) or (version and not whole_number(version)):
            raise UsageError(f"References: {line!r}; give NAME=SUBJECT or NAME=SUBJECT@VERSION in each line")
        made.append(Reference(name, subject, int(version) if version else client.version(subject).version))
    return made


async def _try(visit: Visit) -> Response:
    """Whether a schema may be registered, and if not why and what would help. A part of the form's page."""
    form = await visit.form()
    subject = _subject(form)
    verdict = await _ask(visit, lambda client: checked(client, subject, _asked(form, client)))
    return visit.page("schema_verdict.html", subject=subject, verdict=verdict)


async def _register(visit: Visit) -> Response:
    form = await visit.form()

    def register(client: RegistryClient) -> int:
        asked = _asked(form, client)
        return client.register(subject, asked.text, references=asked.references, schema_type=asked.schema_type)

    try:
        subject = _subject(form)
        schema_id = await _ask(visit, register)
    except TidegateError as error:
        values = {name: form.get(name, "") for name in ("subject", "type", "schema", "references")}
        return visit.page("schema_new.html", error.http_status, values=values, types=_TYPES, error=error.message)
    visit.faces.forget()
    visit.audit("register schema", subject=subject, id=schema_id)
    return visit.redirect(_path(subject))


def _subject(form: dict[str, str]) -> str:
    subject = form.get("subject", "").strip()
    if not subject:
        raise UsageError("Subject: it is empty; give for example orders-value")
    return subject


async def _set_level(visit: Visit) -> Response:
    subject, form = visit.parameters["subject"], await visit.form()
    level = form.get("level", "")
    if level and level not in _LEVELS:
        raise UsageError(f"{level!r} is no compatibility level; there are {', '.join(_LEVELS)}")
    if level:
        await _ask(visit, lambda client: client.set_compatibility(level, subject))
    else:
        await _ask(visit, lambda client: client.reset_compatibility(subject))
    visit.audit("set compatibility", subject=subject, level=level or "global")
    return visit.redirect(_path(subject))


async def _delete(visit: Visit) -> Response:
    """A version, or all; records with their ids stay readable."""
    subject, form = visit.parameters["subject"], await visit.form()
    version = form.get("version", "")
    if version:
        await _ask(visit, lambda client: client.delete_version(subject, version))
    elif form.get("subject") == subject:
        await _ask(visit, lambda client: client.delete_subject(subject))
    else:
        raise UsageError(f"Type the subject's name, {subject}, to delete all its versions")
    visit.faces.forget()
    visit.audit("delete schema", subject=subject, version=version or "all")
    left = await visit.faces.kept("subjects", lambda: visit.faces.registry.call("GET", "/subjects"))
    return visit.redirect(_path(subject) if subject in left else "/schemas")
