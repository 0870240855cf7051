"""The progress of snapshots, as ``status`` and ``top`` show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tidegate.kit.texts import duration

__all__ = ["PART_COLUMNS", "is_unfinished", "part_rows", "summary_of"]

PART_COLUMNS: Final = ["table", "state", "rows", "of", "percent", "left"]


def is_unfinished(progress: Mapping[str, Any]) -> bool:
    """Whether the work consists of parts, as a snapshot of tables, and some of them remain."""
    parts = progress.get("parts") or ()
    return any(part["state"] in ("waiting", "reading") for part in parts)


def summary_of(progress: Mapping[str, Any]) -> str:
    """One line: ``snapshot: 57 of 100 tables, 1,200,000 of about 4,000,000 rows, 12 min left``."""
    done, total, unit = progress["done"], progress["total"], progress["unit"]
    texts = [progress["note"], f"{done:,}" + (f" of about {total:,}" if total is not None else "") + f" {unit}"]
    if (left := progress.get("seconds_left")) is not None:
        texts.append(f"{duration(left)} left")
    return ", ".join(texts)


def part_rows(progress: Mapping[str, Any]) -> Iterable[list[Any]]:
    """A row of the table for each part."""
    for part in progress.get("parts") or ():
        percent, left = part.get("percent"), part.get("seconds_left")
        yield [
            part["name"],
            part["state"],
            part.get("done"),
            part.get("total"),
            None if percent is None else f"{percent:.0f} %",
            None if left is None else duration(left),
        ]
