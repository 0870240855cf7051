"""Pairs of measurements, ours and theirs in turn, and the table of their median ratios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

__all__ = ["Case", "Measured", "measure", "show"]

Measured = Mapping[str, float]
"""Figures by name, e.g. records/s and CPU µs/record."""


@dataclass(frozen=True)
class Case:
    """One thing done to both sides."""

    name: str
    ours: Callable[[], Measured]
    theirs: Callable[[], Measured]


def measure(case: Case, runs: int, console: Console) -> list[tuple[Measured, Measured]]:
    """``runs`` pairs, ours first in even ones and theirs first in odd ones."""
    pairs = []
    for run in range(runs):
        with console.status(f"{case.name}: run {run + 1} of {runs}"):
            if run % 2:
                theirs = case.theirs()
                ours = case.ours()
            else:
                ours = case.ours()
                theirs = case.theirs()
        pairs.append((ours, theirs))
    return pairs


def show(title: str, results: Mapping[str, list[tuple[Measured, Measured]]], console: Console) -> None:
    """A row per case and figure: both medians and the median of the ratios, pair by pair."""
    table = Table(title=title, title_justify="left", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("case", "figure", "ours", "theirs", "ours/theirs"):
        table.add_column(column, justify="left" if column in ("case", "figure") else "right")
    for name, pairs in results.items():
        for figure in pairs[0][0]:
            ours = statistics.median(pair[0][figure] for pair in pairs)
            theirs = statistics.median(pair[1][figure] for pair in pairs)
            ratio = statistics.median(pair[0][figure] / pair[1][figure] for pair in pairs if pair[1][figure])
            table.add_row(
                name,
                figure,
                f"{ours:,.3g}" if ours < 1000 else f"{ours:,.0f}",
                f"{theirs:,.3g}" if theirs < 1000 else f"{theirs:,.0f}",
                f"{ratio:.2f}x",
            )
    console.print(table)
