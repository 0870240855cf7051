"""Changes of connectors: configuration with review, offsets, start, stop, pause, restart, delete, and new ones."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.rest import NotAllowed, NotThere
from tidegate.clients.worker import declared_passwords, path_of
from tidegate.console.connector_config import (
    PREFIX,
    changes,
    config_of_fields,
    config_of_json,
    form_groups,
    shown_config,
)
from tidegate.console.console import Console, Visit
from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["change_routes"]

_ACTIONS: Final[Mapping[str, tuple[str, str, dict[str, str]]]] = {
    "start": ("PUT", "/resume", {}),
    "pause": ("PUT", "/pause", {}),
    "stop": ("PUT", "/stop", {}),
    "restart": ("POST", "/restart", {"includeTasks": "true", "onlyFailed": "false"}),
    "restart-failed": ("POST", "/restart", {"includeTasks": "true", "onlyFailed": "true"}),
}
"""The call to the worker for each action."""


def change_routes(console: Console) -> list[Route]:
    page = _ChangesPage(console)
    return [
        console.route("/new-connector", page.new),
        console.route("/new-connector/verdict", page.verdict, ["POST"]),
        console.route("/new-connector/fields", page.fields, ["POST"]),
        console.route("/new-connector/review", page.review, ["POST"]),
        console.route("/new-connector/preview", page.preview, ["POST"]),
        console.route("/new-connector/apply", page.apply, ["POST"]),
        console.route("/connectors/{name}/config", page.edit),
        console.route("/connectors/{name}/config/verdict", page.verdict, ["POST"]),
        console.route("/connectors/{name}/config/fields", page.fields, ["POST"]),
        console.route("/connectors/{name}/config/review", page.review, ["POST"]),
        console.route("/connectors/{name}/config/preview", page.preview, ["POST"]),
        console.route("/connectors/{name}/config/apply", page.apply, ["POST"]),
        console.route("/connectors/{name}/offsets", page.offsets),
        console.route("/connectors/{name}/offsets", page.change_offsets, ["POST"]),
        console.route("/connectors/{name}/delete", page.delete, ["POST"]),
        console.route("/connectors/{name}/tasks/{task:int}/restart", page.restart_task, ["POST"]),
        console.route("/connectors/{name}/do/{action}", page.act, ["POST"]),
    ]


@dataclass(frozen=True)
class _Draft:
    """A reviewed change; ``name`` is None for a connector that is not there yet."""

    name: str | None
    before: Mapping[str, str]
    after: Mapping[str, str]


class _ChangesPage:
    def __init__(self, console: Console) -> None:
        self._console = console

    # A form or JSON, its verdict, its review

    async def new(self, visit: Visit) -> Response:
        """Without a class the plugins to choose from, otherwise the form."""
        plugin = visit.query.get("class", "")
        if not plugin:
            listed = await visit.faces.connect.call("GET", "/connector-plugins")
            return visit.page(
                "connector_plugins.html", plugins=sorted(listed, key=lambda p: p["class"].rpartition(".")[2].lower())
            )
        return await self._show_form(visit, None, {"connector.class": plugin}, visit.query.get("as", "form"), name="")

    async def edit(self, visit: Visit) -> Response:
        name = visit.parameters["name"]
        config = await self._running(visit, name)
        return await self._show_form(visit, name, config, visit.query.get("as", "form"), name=name)

    async def _show_form(
        self, visit: Visit, connector: str | None, config: Mapping[str, str], mode: str, *, name: str
    ) -> Response:
        base = "/new-connector" if connector is None else f"/connectors/{quote(connector, safe='')}/config"
        if mode == "json":
            secret = await self._secret(visit, config)
            shown = {key: value for key, value in shown_config(config, secret).items() if key != "name"}
            return visit.page(
                "connector_json.html",
                connector=connector,
                base=base,
                text=json.dumps(shown, indent=2, ensure_ascii=False),
                plugin=config.get("connector.class", ""),
                new_name=name,
            )
        groups, others, errors = await self._groups(visit, connector or name, config, config)
        return visit.page(
            "connector_form.html",
            connector=connector,
            base=base,
            groups=groups,
            others=others,
            plugin=config.get("connector.class", ""),
            new_name=name,
            errors=errors,
        )

    async def _groups(self, visit: Visit, name: str, config: Mapping[str, str], current: Mapping[str, str]) -> Any:
        verdict, secret = await asyncio.gather(self._validated(visit, name, config), self._secret(visit, config))
        groups, others = form_groups(verdict, {k: v for k, v in config.items() if k != "name"}, secret)
        return groups, others, verdict["error_count"]

    async def _read(self, visit: Visit) -> tuple[str | None, str, dict[str, str], dict[str, str]]:
        """The connector or None, its name, the configuration that runs, and the one of the form."""
        form = await visit.form()
        connector = visit.parameters.get("name")
        current = await self._running(visit, connector) if connector is not None else {}
        name = connector or form.get("name", "").strip()
        fields = {key.removeprefix(PREFIX): text for key, text in form.items() if key.startswith(PREFIX) and text}
        secret = await self._secret(visit, {**current, **fields, **_loosely(form.get("json", ""))})
        if form.get("mode") == "json":
            asked = config_of_json(form.get("json", ""), current, secret)
        else:
            asked = config_of_fields(form, current, secret)
        asked.pop("name", None)
        return connector, name, current, asked

    async def verdict(self, visit: Visit) -> Response:
        """The verdict of the worker on what is typed so far, with the errors of each field."""
        try:
            _, name, _, asked = await self._read(visit)
            answer = await self._validated(visit, name, asked)
        except NotAllowed:
            raise
        except TidegateError as error:
            return visit.page("connector_verdict.html", message=str(error), errors={}, keys=[])
        errors = {
            entry["definition"]["name"]: entry["value"]["errors"]
            for entry in answer["configs"]
            if entry["value"]["errors"]
        }
        form = await visit.form()
        shown = [key.removeprefix(PREFIX) for key in form if key.startswith(PREFIX)]
        return visit.page("connector_verdict.html", message="", errors=errors, keys=shown)

    async def fields(self, visit: Visit) -> Response:
        """The fields anew, after a value that decides which keys there are."""
        connector, name, current, asked = await self._read(visit)
        groups, others, errors = await self._groups(visit, name, asked, current)
        base = "/new-connector" if connector is None else f"/connectors/{quote(connector, safe='')}/config"
        return visit.page("connector_fields.html", groups=groups, others=others, base=base, errors=errors)

    async def review(self, visit: Visit) -> Response:
        connector, name, current, asked = await self._read(visit)
        if not name:
            raise UsageError("The connector needs a name")
        answer, secret = await asyncio.gather(
            self._validated(visit, name, asked), self._secret(visit, {**current, **asked})
        )
        errors = {
            entry["definition"]["name"]: entry["value"]["errors"]
            for entry in answer["configs"]
            if entry["value"]["errors"]
        }
        before = {key: value for key, value in current.items() if key != "name"}
        draft = self._console.drafts.put(visit.session.id, _Draft(connector, current, {**asked, "name": name}))
        base = "/new-connector" if connector is None else f"/connectors/{quote(connector, safe='')}/config"
        return visit.page(
            "connector_review.html",
            connector=connector,
            name=name,
            base=base,
            differences=changes(before, asked, secret),
            errors=errors,
            draft=draft,
        )

    async def preview(self, visit: Visit) -> Response:
        """Show the effects of a reviewed change: records, schemas and actions, beside those of the configuration that runs."""
        draft: _Draft = self._console.drafts.look(visit.session.id, (await visit.form()).get("draft", ""))
        try:
            told = await visit.faces.previewed(draft.after)
        except NotThere:
            return visit.page(
                "connector_preview.html", message="This worker has no previews: it is Kafka Connect's own."
            )
        except NotAllowed:
            raise
        except TidegateError as error:
            return visit.page("connector_preview.html", message=str(error))
        before = None
        if draft.name is not None:
            with contextlib.suppress(TidegateError):  # what runs may be what is repaired
                before = await visit.faces.previewed(draft.before)
        return visit.page(
            "connector_preview.html",
            message="",
            records=[{**r, "key": _json(r["key"]), "value": _json(r["value"])} for r in told["records"]],
            left_out=told["left_out"],
            differences=_differences(_effects(before) if before else None, _effects(told)),
            has_before=bool(before),
        )

    async def apply(self, visit: Visit) -> Response:
        form = await visit.form()
        draft: _Draft = self._console.drafts.take(visit.session.id, form.get("draft", ""))
        name = draft.after["name"]
        if draft.name is None:
            await visit.faces.connect.call("POST", "/connectors", {"name": name, "config": dict(draft.after)})
            visit.audit("connector created", connector=name)
        else:
            if await self._running(visit, name) != draft.before:
                raise UsageError(f"The configuration of {name} was changed meanwhile: edit it again")
            await visit.faces.connect.call("PUT", path_of(name, "/config"), dict(draft.after))
            keys = sorted(k for k in {*draft.before, *draft.after} if draft.before.get(k) != draft.after.get(k))
            visit.audit("connector changed", connector=name, keys=keys)
        visit.faces.forget()
        return visit.redirect(f"/connectors/{quote(name, safe='')}")

    async def _validated(self, visit: Visit, name: str, config: Mapping[str, str]) -> Any:
        plugin = config.get("connector.class", "")
        if not plugin:
            raise UsageError("connector.class is missing: it names the plugin")
        body = {**config, "name": name or "new-connector"}
        return await visit.faces.connect.call(
            "PUT", f"/connector-plugins/{quote(plugin, safe='')}/config/validate", body
        )

    async def _running(self, visit: Visit, name: str) -> dict[str, str]:
        config: dict[str, str] = await visit.faces.connect.call("GET", path_of(name, "/config"))
        return config

    async def _secret(self, visit: Visit, config: Mapping[str, str]) -> frozenset[str]:
        """The keys that the plugins of a configuration declare as passwords."""
        plugins = tuple(sorted((k, v) for k, v in config.items() if k.endswith((".class", ".converter", ".type"))))

        async def ask() -> frozenset[str]:
            rest = visit.faces.connect.blocking
            return frozenset(await asyncio.to_thread(lambda: set(declared_passwords(rest, dict(plugins)))))

        return await visit.faces.kept(("passwords", plugins), ask)

    # Offsets

    async def offsets(self, visit: Visit) -> Response:
        return await self._show_offsets(visit)

    async def _show_offsets(self, visit: Visit, text: str | None = None, message: str = "") -> Response:
        name = visit.parameters["name"]
        status, answer = await asyncio.gather(
            visit.faces.connect.call("GET", path_of(name, "/status")),
            visit.faces.connect.call("GET", path_of(name, "/offsets")),
        )
        return visit.page(
            "connector_offsets.html",
            400 if message else 200,
            name=name,
            segment=quote(name, safe=""),
            state=status["connector"]["state"],
            text=text if text is not None else json.dumps(answer, indent=2, ensure_ascii=False),
            message=message,
            may_change=visit.may("manage", "connector", name),
        )

    async def change_offsets(self, visit: Visit) -> Response:
        name, form = visit.parameters["name"], await visit.form()
        path = path_of(name, "/offsets")
        try:
            if form.get("what") == "reset":
                await visit.faces.connect.call("DELETE", path)
                visit.audit("offsets reset", connector=name)
            else:
                document = _offsets_of(form.get("json", ""))
                await visit.faces.connect.call("PATCH", path, document)
                visit.audit("offsets changed", connector=name, partitions=len(document["offsets"]))
        except TidegateError as error:
            return await self._show_offsets(visit, form.get("json"), str(error))
        visit.faces.forget()
        return visit.redirect(f"/connectors/{quote(name, safe='')}#offsets")

    # States

    async def act(self, visit: Visit) -> Response:
        name, action = visit.parameters["name"], visit.parameters["action"]
        if action not in _ACTIONS:
            raise HTTPException(404)
        method, path, query = _ACTIONS[action]
        await visit.faces.connect.call(method, path_of(name, path), **query)
        return self._done(visit, f"connector {action}", name)

    async def restart_task(self, visit: Visit) -> Response:
        name, task = visit.parameters["name"], visit.parameters["task"]
        await visit.faces.connect.call("POST", path_of(name, f"/tasks/{task}/restart"))
        return self._done(visit, "task restart", name, task=task)

    def _done(self, visit: Visit, action: str, name: str, **what: Any) -> Response:
        visit.audit(action, connector=name, **what)
        visit.faces.forget()
        return visit.redirect(f"/connectors/{quote(name, safe='')}")

    async def delete(self, visit: Visit) -> Response:
        name, form = visit.parameters["name"], await visit.form()
        if form.get("confirmed") != "yes":
            raise UsageError(f"{name} was not deleted: tick the box to confirm it")
        try:
            await visit.faces.connect.call("DELETE", path_of(name))
        except NotThere:
            raise UsageError(f"There is no connector {name} any more") from None
        visit.audit("connector deleted", connector=name)
        visit.faces.forget()
        return visit.redirect("/connectors")


def _effects(told: Mapping[str, Any]) -> list[str]:
    """The schemas and actions of a preview, a line each."""
    schemas = {
        f"schema of {s['subject']}, {'id ' + str(s['id']) if s['id'] else 'new'}: {s['schema']}"
        for s in told["schemas"]
    }
    return [*sorted(schemas), *told["actions"]]


def _differences(before: Sequence[str] | None, after: Sequence[str]) -> list[tuple[str, str]]:
    """Lines with ``-`` for what is only in ``before``, ``+`` for what is only in ``after``, and a blank for both."""
    if before is None:
        return [(" ", line) for line in after]
    lines = difflib.ndiff(list(before), list(after))
    return [(line[0], line[2:]) for line in lines if line[0] != "?"]


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _loosely(text: str) -> dict[str, str]:
    """The texts of a JSON object, for what its classes declare; nothing of what is no object."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return {k: v for k, v in document.items() if isinstance(v, str)} if isinstance(document, dict) else {}


def _offsets_of(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"This is not JSON: {error}") from error
    offsets = document.get("offsets") if isinstance(document, dict) else None
    if not isinstance(offsets, list) or not all(isinstance(entry, dict) and "partition" in entry for entry in offsets):
        raise UsageError(
            'Give {"offsets": [{"partition": {...}, "offset": {...}}]}; an offset of null forgets a partition'
        )
    return {"offsets": offsets}
