"""The last lines that a connector wrote to the worker's log, where that is on this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

__all__ = ["last_lines"]

_MOST_READ: Final = 4 << 20
"""Only the end of a long log is searched, in bytes."""
_SHOWN: Final = ("time", "level", "task", "event")


def last_lines(data: Path, connector: str, count: int) -> list[dict[str, Any]] | None:
    """The newest lines of a connector, oldest first: time, level, task, event and the ``rest``; None without a log."""
    path = data / "logs" / "connect.log"
    try:
        with path.open("rb") as log:
            end = log.seek(0, 2)
            log.seek(max(0, end - _MOST_READ))
            lines = log.read().splitlines()
    except OSError:
        return None
    needle, newest = json.dumps(connector).encode(), []
    for line in reversed(lines):
        if needle not in line:
            continue
        try:
            parsed = json.loads(line)
        except ValueError:
            continue
        if not isinstance(parsed, dict) or parsed.get("connector") != connector:
            continue
        rest = {k: v for k, v in parsed.items() if k not in (*_SHOWN, "connector", "logger")}
        newest.append({name: parsed.get(name, "") for name in _SHOWN} | {"rest": rest})
        if len(newest) == count:
            break
    return newest[::-1]
