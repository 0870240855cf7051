"""Levels of the loggers of a Connect worker, changed until it ends."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.rest import NotThere
from tidegate.console.console import Console, Visit
from tidegate.console.numbers import page_of
from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["routes"]

_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_PATH: Final = "/admin/loggers"


def routes(console: Console) -> list[Route]:
    return [console.route("/loggers", _list), console.route("/loggers", _set, ["POST"])]


async def _list(visit: Visit) -> Response:
    words = visit.query.get("q", "").strip()
    try:
        known: dict[str, dict[str, Any]] = await visit.faces.connect.call("GET", _PATH)
    except NotThere as error:
        raise TidegateError(
            "This worker does not tell its loggers here: with admin.listeners of its own it tells them at that address"
        ) from error
    chosen = [(name, entry["level"]) for name, entry in sorted(known.items()) if words.casefold() in name.casefold()]
    part = page_of(chosen, visit.query.get("page", ""))
    return visit.page(
        "loggers.html",
        rows=part.entries,
        found=len(chosen),
        words=words,
        levels=_LEVELS,
        page_number=part.number,
        pages=part.pages,
        may_change=visit.faces.is_admin,
    )


async def _set(visit: Visit) -> Response:
    form = await visit.form()
    name, level, words = (form.get(field, "").strip() for field in ("name", "level", "q"))
    if not name:
        raise UsageError("Name the logger, such as connectors.jdbc")
    if level not in _LEVELS:
        raise UsageError(f"{level!r} is no level; there are {', '.join(_LEVELS)}")
    await visit.faces.connect.call("PUT", f"{_PATH}/{quote(name, safe='')}", {"level": level}, scope="cluster")
    visit.audit("set level", logger=name, level=level)
    return visit.redirect("/loggers?" + urlencode({"q": words or name}))
