"""The facts that lists show of thousands of connectors, read from a worker's large answers piece by piece."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tidegate.clients.counts import counts_of, totals_of
from tidegate.clients.json_members import members
from tidegate.clients.rest import NotThere, Rest
from tidegate.kit.errors import TidegateError

__all__ = ["QUEUE", "Listed", "listed_connectors", "listed_of", "task_statistics", "totals"]

QUEUE: Final = "errors.deadletterqueue.topic.name"
_OTHER_WORKER_S: Final = 10.0
_STATISTICS: Final = "/tidegate/v1/connectors"


class Listed(NamedTuple):
    """A connector of ``GET /connectors``, without its configuration and traces of tasks that run."""

    type: str
    plugin: str
    """The simple name of its class."""
    queue: str
    """The topic of its dead letters; empty without one."""
    state: str
    """The connector's own."""
    tasks: tuple[str, ...]
    """The states of its tasks."""
    workers: tuple[str, ...]
    trace: str
    """Of the first failure; empty without one."""


def listed_connectors(rest: Rest) -> dict[str, Listed]:
    """Every connector that the user may see."""
    content = rest.content("GET", "/connectors", expand=["info", "status"])
    return {sys.intern(name): listed_of(entry) for name, entry in _members(rest, content)}


def listed_of(entry: Mapping[str, Any]) -> Listed:
    """Of ``{"info": ..., "status": ...}``; either may be missing for a moment."""
    info, status = entry.get("info") or {}, entry.get("status") or {}
    config, connector = info.get("config") or {}, status.get("connector") or {"state": "UNASSIGNED", "worker_id": ""}
    parts = [connector, *status.get("tasks", ())]
    return Listed(
        sys.intern(str(info.get("type") or status.get("type") or "unknown")),
        sys.intern(str(config.get("connector.class") or "").rpartition(".")[2]),
        str(config.get(QUEUE) or ""),
        sys.intern(connector["state"]),
        tuple(sys.intern(part["state"]) for part in parts[1:]),
        tuple(sys.intern(part["worker_id"]) for part in parts),
        next((part["trace"] for part in parts if part["state"] == "FAILED" and part.get("trace")), ""),
    )


def totals(rest: Rest, workers: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The sums of the counts of each connector's tasks, as ``tidegate.clients.counts.totals_of`` has them, over the asked
    worker and ``workers``; empty for Kafka Connect's, which tell them to JMX only.
    """
    made: dict[str, dict[str, Any]] = {}
    for name, tasks in _statistics(rest, workers):
        counts = [counts_of(task) for task in tasks]
        made[name] = totals_of([made[name], *counts] if name in made else counts)
    return made


def task_statistics(rest: Rest, workers: Iterable[str], connector: str) -> dict[int, dict[str, Any]]:
    """All that the workers count of one connector's tasks."""
    return {task["id"]: task for name, tasks in _statistics(rest, workers) if name == connector for task in tasks}


def _statistics(rest: Rest, workers: Iterable[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    try:
        content = rest.content("GET", _STATISTICS)
    except NotThere:
        return
    asked = next((value for name, value in _members(rest, content) if name == "worker_id"), "")
    yield from _members(rest, content, "connectors")
    del content
    for worker in sorted({*workers} - {asked, ""}):
        other = rest.at(worker, timeout_s=_OTHER_WORKER_S)
        try:
            yield from _members(other, other.content("GET", _STATISTICS), "connectors")
        except TidegateError:
            continue  # its tasks have no counts then; the list shows that


def _members(rest: Rest, content: bytes, within: str | None = None) -> Iterator[tuple[str, Any]]:
    try:
        yield from members(content.decode(), within)
    except ValueError as error:
        raise TidegateError(f"what answers at {rest.url} is no {rest.what}: its answer is no JSON object") from error
