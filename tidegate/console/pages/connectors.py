"""Connectors: the list by trouble, and one page each with tasks, offsets, configuration and what can be done."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.counts import counts_of, error_of, totals_of
from tidegate.clients.rest import NotThere
from tidegate.clients.worker import path_of
from tidegate.console.console import Console, Visit
from tidegate.console.listing import listed_of, task_statistics
from tidegate.console.numbers import page_of
from tidegate.console.pages.connector_changes import change_routes
from tidegate.console.progress import shown_progress
from tidegate.console.remedies import first_sentence, remedy, rest_of
from tidegate.console.summaries import ConnectorSummary, summaries
from tidegate.console.worker_log import last_lines
from tidegate.kit.errors import TidegateError

__all__ = ["routes"]

_LOG_LINES: Final = 40


def routes(console: Console) -> list[Route]:
    page = _ConnectorsPage(console)
    return [
        console.route("/connectors", page.show_list),
        *change_routes(console),
        console.route("/connectors/{name}", page.show),
    ]


class _ConnectorsPage:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def show_list(self, visit: Visit) -> Response:
        listed, sums = await asyncio.gather(visit.faces.connectors(), visit.faces.totals())
        every = summaries(listed, sums, self._console.sampler)
        text, state, kind = (visit.query.get(name, "").strip() for name in ("q", "state", "type"))
        chosen = [summary for summary in every if _matches(summary, text.lower(), state.upper(), kind)]
        part = page_of(chosen, visit.query.get("page", ""))
        filters = {name: value for name, value in (("q", text), ("state", state), ("type", kind)) if value}
        return visit.page(
            "connectors_rows.html" if visit.is_partial else "connectors.html",
            rows=part.entries,
            total=len(chosen),
            every=len(every),
            states=sorted({summary.state for summary in every}),
            counts=Counter(summary.state for summary in every),
            filters=filters,
            filter_query=urlencode(filters),
            page_number=part.number,
            page_count=part.pages,
            may_create=visit.may_some("manage", "connector"),
        )

    async def show(self, visit: Visit) -> Response:
        name = visit.parameters["name"]
        values = await self._about(visit, name)
        return visit.page("connector_live.html" if visit.is_partial else "connector.html", **values)

    async def _about(self, visit: Visit, name: str) -> dict[str, Any]:
        faces = visit.faces
        info, status, offsets, topics = await asyncio.gather(
            faces.connect.call("GET", path_of(name)),
            _or_none(faces.connect.call("GET", path_of(name, "/status"))),
            _or_none(faces.connect.call("GET", path_of(name, "/offsets"))),
            _or_none(faces.connect.call("GET", path_of(name, "/topics"))),
        )
        status = status or {"connector": {"state": "UNASSIGNED", "worker_id": ""}, "tasks": []}
        listed = listed_of({"info": info, "status": status})
        tasks = await faces.connect.run(lambda rest: task_statistics(rest, listed.workers, name))
        sums = {name: totals_of(counts_of(task) for task in tasks.values())}
        (summary,) = summaries({name: listed}, sums, self._console.sampler)
        lags = {(lag["topic"], lag["partition"]): lag["lag"] for task in tasks.values() for lag in task["lags"]}
        failed = summary.state == "FAILED"
        trace = next((part["trace"] for part in (status["connector"], *status["tasks"]) if part.get("trace")), "")
        values = {
            "name": name,
            "segment": quote(name, safe=""),
            "summary": summary,
            "worker": status["connector"]["worker_id"],
            "state": status["connector"]["state"],
            "tasks": [_task(task, tasks) for task in status["tasks"]],
            "progress": [
                shown_progress(number, task["progress"])
                for number, task in sorted(tasks.items())
                if task.get("progress")
            ],
            "trace": trace.strip() if failed else "",
            "message": rest_of(summary.error),
            "offsets": [_offset(entry, lags) for entry in (offsets or {}).get("offsets", ())],
            "topics": sorted((topics or {}).get(name, {}).get("topics", ())),
            "topics_have_pages": self._console.has_page("/topics"),
            "letters_have_pages": self._console.has_page("/dead-letters"),
            "may_change": visit.may("manage", "connector", name),
        }
        if not visit.is_partial:
            from tidegate.clients.worker import masked_config

            values["config"] = await asyncio.to_thread(masked_config, faces.connect.blocking, info["config"])
            data = self._console.data
            values["log"] = None if data is None else await asyncio.to_thread(last_lines, data, name, _LOG_LINES)
        return values


def _matches(summary: ConnectorSummary, text: str, state: str, kind: str) -> bool:
    return (
        (not text or text in summary.name.lower() or text in summary.plugin.lower())
        and (not state or state == summary.state or (state == "TROUBLE" and summary.is_troubled))
        and (not kind or kind == summary.type)
    )


def _task(task: Mapping[str, Any], counted: Mapping[int, Any]) -> dict[str, Any]:
    trace = task.get("trace", "") if task["state"] == "FAILED" else ""
    message = error_of(trace) if trace else ""
    return {
        "id": task["id"],
        "state": task["state"],
        "worker": task["worker_id"],
        "counts": counts_of(counted[task["id"]]) if task["id"] in counted else None,
        "sentence": first_sentence(message) if message else "",
        "remedy": remedy(message) if message else "",
        "trace": trace.strip(),
    }


def _offset(entry: Mapping[str, Any], lags: Mapping[tuple[str, int], int]) -> dict[str, Any]:
    partition = entry["partition"]
    return {
        "partition": _compact(partition),
        "offset": _compact(entry["offset"]),
        "lag": lags.get((partition.get("kafka_topic"), partition.get("kafka_partition"))),
    }


def _compact(value: Any) -> str:
    """A partition or an offset in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_compact(inner)}" for key, inner in value.items())
    return value if isinstance(value, str) else "-" if value is None else json.dumps(value)


async def _or_none(call: Any) -> Any:
    """None for what a worker does not have: a status that follows a moment later, or an older worker's offsets."""
    try:
        return await call
    except NotThere:
        return None
    except TidegateError:
        return None
