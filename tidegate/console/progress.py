"""The progress of long work, as pages show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.kit.texts import duration

__all__ = ["shown_progress"]

_PARTS: Final = {"reading": 0, "running": 0, "waiting": 1, "read": 2, "read before": 3}
"""The order of parts, such as tables of a snapshot, by their state."""
_PARTS_SHOWN: Final = 50


def shown_progress(task: int | None, told: Mapping[str, Any]) -> dict[str, Any]:
    """The progress of a task (``TaskContext.progress``) as templates take it; of many parts 50, those under way first, and ``more``."""
    parts = sorted(told.get("parts", ()), key=lambda part: _PARTS.get(part.get("state"), 1))
    return {
        "task": task,
        "note": told.get("note", ""),
        "done": told["done"],
        "total": told.get("total"),
        "unit": told.get("unit", ""),
        "left": _left(told),
        "parts": [
            {
                "name": part["name"],
                "state": part.get("state", ""),
                "done": part.get("done"),
                "total": part.get("total"),
                "left": _left(part),
            }
            for part in parts[:_PARTS_SHOWN]
        ],
        "more": max(0, len(parts) - _PARTS_SHOWN),
    }


def _left(told: Mapping[str, Any]) -> str:
    """How long something takes yet; empty where that is not known."""
    return "" if told.get("seconds_left") is None else duration(told["seconds_left"])
