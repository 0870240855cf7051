"""Connectors in short for the pages: state, counts, error."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.clients.counts import error_of, totals_of
from tidegate.console.listing import Listed
from tidegate.console.remedies import first_sentence, remedy
from tidegate.console.samples import History, Sampler

__all__ = ["ConnectorSummary", "summaries"]

_RANK: Final = {"FAILED": 0, "UNASSIGNED": 2, "RESTARTING": 2, "RUNNING": 3, "PAUSED": 4, "STOPPED": 5}
_NO_TOTALS: Final = totals_of(())


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
    connectors: Mapping[str, Listed], totals: Mapping[str, Mapping[str, Any]], sampler: Sampler | None
) -> list[ConnectorSummary]:
    """In the order of trouble."""
    made = []
    for name, listed in connectors.items():
        made.append(
            ConnectorSummary(
                name=name,
                type=listed.type,
                plugin=listed.plugin,
                state="FAILED" if "FAILED" in (listed.state, *listed.tasks) else listed.state,
                tasks=dict(Counter(listed.tasks)),
                totals=totals.get(name, _NO_TOTALS),
                error=error_of(listed.trace) if listed.trace else "",
                queue=listed.queue,
                history=sampler.history(name) if sampler is not None else None,
            )
        )
    return sorted(made, key=lambda summary: summary.rank)
