"""Connectors in short for the pages: state, counts, error."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.clients.counts import counts_of, error_of, totals_of
from tidegate.console.remedies import first_sentence, remedy
from tidegate.console.samples import History, Sampler

__all__ = ["ConnectorSummary", "summaries"]

_RANK: Final = {"FAILED": 0, "UNASSIGNED": 2, "RESTARTING": 2, "RUNNING": 3, "PAUSED": 4, "STOPPED": 5}
QUEUE: Final = "errors.deadletterqueue.topic.name"


@dataclass(frozen=True)
class ConnectorSummary:
    """A connector as a line of a list. Counts are None for Kafka Connect's workers, which tell them to JMX only."""

    name: str
    type: str
    plugin: str
    """The simple name of its class."""
    state: str
    """FAILED if the connector or one of its tasks has failed, otherwise the connector's state."""
    tasks: Mapping[str, int]
    """How many tasks have each state."""
    totals: Mapping[str, Any]
    error: str = ""
    """The message of its failure; empty if nothing failed."""
    queue: str = ""
    """The topic of its dead letters."""
    history: History | None = field(default=None, compare=False)

    @property
    def rank(self) -> tuple[int, int, str]:
        """Sorts by trouble: failed first, then with dead letters or growing lag, then the others by name."""
        rank = _RANK.get(self.state, 2)
        return (rank, 0 if self.is_troubled else 1, self.name) if rank else (0, 0, self.name)

    @property
    def is_troubled(self) -> bool:
        return self.state == "FAILED" or bool(self.totals["skipped"]) or self.lag_grows

    @property
    def lag_grows(self) -> bool:
        return self.history is not None and self.history.lag_grows

    @property
    def sentence(self) -> str:
        return first_sentence(self.error) if self.error else ""

    @property
    def remedy(self) -> str:
        return remedy(self.error) if self.error else ""

    @property
    def rate(self) -> float | None:
        """Rows per second, now."""
        if self.history is not None and self.history.rates and not math.isnan(self.history.rates[-1]):
            return self.history.rates[-1]
        rate: float | None = self.totals["rows_per_s"]
        return rate


def summaries(
    connectors: Mapping[str, Any], statistics: Mapping[str, Mapping[int, Any]], sampler: Sampler | None
) -> list[ConnectorSummary]:
    """In the order of trouble. ``connectors`` is ``GET /connectors?expand=info&expand=status``."""
    made = []
    for name, entry in connectors.items():
        info, status = entry.get("info") or {}, entry.get("status") or {}
        config = info.get("config") or {}
        parts = [status.get("connector") or {"state": "UNASSIGNED"}, *status.get("tasks", ())]
        states = [part["state"] for part in parts]
        trace = next((part["trace"] for part in parts if part["state"] == "FAILED" and part.get("trace")), "")
        counted = statistics.get(name, {})
        made.append(
            ConnectorSummary(
                name=name,
                type=str(info.get("type") or status.get("type") or "unknown"),
                plugin=str(config.get("connector.class", "")).rpartition(".")[2],
                state="FAILED" if "FAILED" in states else states[0],
                tasks=dict(Counter(states[1:])),
                totals=totals_of(counts_of(task) for task in counted.values()),
                error=error_of(trace) if trace else "",
                queue=str(config.get(QUEUE) or ""),
                history=sampler.history(name) if sampler is not None else None,
            )
        )
    return sorted(made, key=lambda summary: summary.rank)
