"""The demo's output: two tables from the Parquet files, and the ledger of all movements, checked count by count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from tidegate.demo.faces import DemoFailed

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ledger", "show_airlines", "show_routes"]


@dataclass
class Ledger:
    """Counts with the values they were checked against, and movements with their rates."""

    _counts: list[tuple[str, int, Mapping[str, int]]] = field(default_factory=list)
    _moves: list[tuple[str, str, int, float]] = field(default_factory=list)

    def count(self, what: str, expected: int, counted: Mapping[str, int]) -> None:
        """Record a count and the same count from other sources."""
        self._counts.append((what, expected, counted))

    def moved(self, source: str, target: str, rows: int, seconds: float) -> None:
        self._moves.append((source, target, rows, seconds))

    def show(self, console: Console) -> None:
        moves = _table("from", "to", "rows", "seconds", "rows/s")
        for source, target, rows, seconds in self._moves:
            moves.add_row(source, target, f"{rows:,}", f"{seconds:.1f}", f"{rows / max(seconds, 1e-9):,.0f}")
        console.print(moves)
        counts = _table("count", "rows", "checked against", "")
        for what, expected, counted in self._counts:
            agrees = all(value == expected for value in counted.values())
            words = ", ".join(f"{name} {value:,}" for name, value in counted.items())
            counts.add_row(what, f"{expected:,}", words, "[green]agrees" if agrees else "[red]DIFFERS")
        console.print(counts)

    def require_agreement(self) -> None:
        """Raise DemoFailed that names every count that another source contradicts."""
        wrong = [
            f"{what}: {expected:,} but {name} {value:,}"
            for what, expected, counted in self._counts
            for name, value in counted.items()
            if value != expected
        ]
        if wrong:
            raise DemoFailed("counts differ: " + "; ".join(wrong))


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right" if column in _NUMBERS else "left")
    return table


_NUMBERS = frozenset({"rows", "seconds", "rows/s", "flights", "average delay", "over 2 h late", "cancelled"})


def _flights(folder: Path) -> pa.Table:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    columns = ["airline", "origin", "dest", "arr_delay", "dep_time"]
    table = ds.dataset(folder, format="parquet", partitioning="hive").to_table(columns=columns)
    table = table.append_column("late", pc.greater(pc.fill_null(table["arr_delay"], 0), 120).cast("int64"))
    return table.append_column("cancelled", pc.is_null(table["dep_time"]).cast("int64"))


def _grouped(folder: Path, keys: list[str]) -> list[dict[str, Any]]:
    sums = [("arr_delay", "mean"), ("late", "sum"), ("cancelled", "sum"), ("late", "count")]
    rows: list[dict[str, Any]] = _flights(folder).group_by(keys).aggregate(sums).to_pylist()
    return rows


def show_airlines(console: Console, folder: Path) -> None:
    """Delays per airline."""
    table = _table("airline", "flights", "average delay", "over 2 h late", "cancelled")
    table.title, table.title_justify = "Delays per airline (arrival, minutes)", "left"
    for row in sorted(_grouped(folder, ["airline"]), key=lambda r: -(r["arr_delay_mean"] or 0)):
        table.add_row(row["airline"], *_figures(row))
    console.print(table)


def show_routes(console: Console, folder: Path, most: int = 10) -> None:
    """The routes with the worst average delay, of those flown at least weekly."""
    table = _table("route", "flights", "average delay", "over 2 h late", "cancelled")
    table.title, table.title_justify = "Worst routes (flown at least weekly)", "left"
    rows = [row for row in _grouped(folder, ["origin", "dest"]) if row["late_count"] >= 52]
    for row in sorted(rows, key=lambda r: -(r["arr_delay_mean"] or 0))[:most]:
        table.add_row(f"{row['origin']} to {row['dest']}", *_figures(row))
    console.print(table)


def _figures(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    flights = row["late_count"]
    late, cancelled = row["late_sum"] / flights, row["cancelled_sum"] / flights
    return f"{flights:,}", f"{row['arr_delay_mean'] or 0:.1f}", f"{late:.1%}", f"{cancelled:.1%}"
