"""Counts of a connector's tasks (``GET /tidegate/v1/connectors``), and the message of a trace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

__all__ = ["counts_of", "error_of", "totals_of"]

_SUMMED: Final = ("rows", "rows_per_s", "lag", "errors", "skipped", "dead_letters", "memory_bytes")


def counts_of(task: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a task since it started.

    ``lag`` is None for a source. ``memory_bytes`` is the task's share of its host's memory. ``missing_topics`` are those that a sink
    waits for.
    """
    sink, source = task.get("sink-task-metrics"), task.get("source-task-metrics")
    errors = task.get("task-error-metrics", {})
    total, rate = 0.0, 0.0
    if sink is not None:
        total, rate = sink.get("sink-record-send-total", 0), sink.get("sink-record-send-rate", 0)
    elif source is not None:
        total, rate = source.get("source-record-write-total", 0), source.get("source-record-write-rate", 0)
    lost = errors.get("deadletterqueue-produce-failures", 0)
    last_ms = errors.get("last-error-timestamp", 0)
    memory = task.get("host_memory_bytes")
    return {
        "rows": int(total),
        "rows_per_s": round(rate, 3),
        "lag": sum(entry["lag"] for entry in task.get("lags", ())) if sink is not None else None,
        "errors": int(errors.get("total-record-failures", 0)),
        "skipped": int(errors.get("total-records-skipped", 0)),
        "dead_letters": int(errors.get("deadletterqueue-produce-requests", 0) - lost),
        "last_error_ms": int(last_ms) or None,
        "memory_bytes": None if memory is None else round(memory / max(1, task.get("tasks_in_host", 1))),
        "missing_topics": task.get("missing_topics", []),
    }


def totals_of(counts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums over tasks, None for what no task has; and the topics that any of them waits for."""
    listed = list(counts)
    made: dict[str, Any] = {}
    for name in _SUMMED:
        known = [count[name] for count in listed if count[name] is not None]
        made[name] = round(sum(known), 3) if known else None
    made["last_error_ms"] = max((c["last_error_ms"] for c in listed if c["last_error_ms"] is not None), default=None)
    made["missing_topics"] = sorted({topic for count in listed for topic in count["missing_topics"]})
    return made


_CLASS: Final = re.compile(r"^(?:Caused by: )?(?:[A-Za-z_$][\w$]*\.)*[A-Za-z_$][\w$]*: (?=\S)")


def error_of(trace: str) -> str:
    """The message of a trace that says what went wrong: Java's innermost cause; of our own traces the first, which has
    the position and the advice.
    """
    blocks: list[str] = []
    java = False
    for line in trace.strip().splitlines():
        if line.startswith(("\t", "    at ")):
            java = True
        elif line.startswith("Caused by: ") or not blocks:
            blocks.append(line)
        else:
            blocks[-1] += "\n" + line
    if not blocks:
        return ""
    return _CLASS.sub("", blocks[-1] if java else blocks[0], count=1).strip()
