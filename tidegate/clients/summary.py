"""Connectors in short: states, sums of counts, and what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.clients.counts import counts_of, error_of, totals_of
from tidegate.clients.worker import statistics_of

if TYPE_CHECKING:
    from tidegate.clients.rest import Rest

__all__ = ["summaries_of", "troubles"]


def summaries_of(rest: Rest, tell: Callable[[str], object] = lambda _: None) -> list[dict[str, Any]]:
    """Each connector with the states of its tasks and the sums of their counts, which are None for Apache Kafka's
    workers.
    """
    answer = rest.call("GET", "/connectors", expand="status")
    statuses = [entry["status"] for _, entry in sorted(answer.items())]
    workers = {task["worker_id"] for status in statuses for task in status["tasks"]}
    counted = statistics_of(rest, workers, tell) if statuses else {}
    made = []
    for status in statuses:
        parts = [status["connector"], *status["tasks"]]
        tasks = counted.get(status["name"], {})
        here = [counts_of(tasks[task["id"]]) for task in status["tasks"] if task["id"] in tasks]
        trace = next((part["trace"] for part in parts if part.get("trace")), None)
        made.append(
            {
                "name": status["name"],
                "type": status["type"],
                "state": status["connector"]["state"],
                "tasks": dict(Counter(task["state"] for task in status["tasks"])),
                **totals_of(here),
                "error": None if trace is None else error_of(trace),
                "progress": [
                    told for task in status["tasks"] if (told := tasks.get(task["id"], {}).get("progress")) is not None
                ],
            }
        )
    return made


def troubles(summaries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """A line for each connector that failed or left records out: a state of RUNNING does not tell the second."""
    for summary in summaries:
        name = summary["name"]
        if "FAILED" in (summary["state"], *summary["tasks"]):
            message = " ".join((summary["error"] or "it gave no reason").split())
            shown = message if len(message) <= _LONGEST else message[:_LONGEST] + "..."
            yield f"connector {name} has failed: {shown} (tidegate connectors show {name})"
        if summary["skipped"]:
            letters = summary["dead_letters"]
            kept = (
                f"{letters:,} of them in its dead letter queue (tidegate dlq show {name})"
                if letters
                else "none kept in a dead letter queue"
            )
            yield f"connector {name} has left out {summary['skipped']:,} records since its tasks started, {kept}"


_LONGEST = 300
