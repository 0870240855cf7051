"""Log lines that come by the thousand are counted instead of written."""

from __future__ import annotations

import logging
from typing import Any

from tidegate.kit.log_throttle import Throttle


class Lines:
    def __init__(self) -> None:
        self.now = 0.0
        self.throttle = Throttle(burst=3, window_s=10, clock=lambda: self.now)

    def log(self, message: Any, level: int = logging.WARNING, name: str = "broker") -> logging.LogRecord | None:
        record = logging.LogRecord(name, level, __file__, 1, message, None, None)
        return record if self.throttle.filter(record) else None


def test_a_flood_of_one_kind_is_counted() -> None:
    lines = Lines()
    written = [lines.log({"event": "bad record", "offset": n}) for n in range(1000)]
    assert sum(record is not None for record in written) == 3
    lines.now = 10
    after = lines.log({"event": "bad record", "offset": 1000})
    assert after is not None and after.msg["suppressed"] == 997
    following = lines.log({"event": "bad record", "offset": 1001})
    assert following is not None and "suppressed" not in following.msg


def test_a_flood_from_one_connector_does_not_hide_another() -> None:
    lines = Lines()
    for n in range(100):
        lines.log({"event": "task failed", "connector": "a", "error": str(n)})
    assert lines.log({"event": "task failed", "connector": "b"}) is not None


def test_lines_of_libraries_are_told_apart_by_their_words() -> None:
    lines = Lines()
    written = [lines.log("Invalid HTTP request received.", name="uvicorn.error") for _ in range(10)]
    assert sum(record is not None for record in written) == 3
    assert lines.log("another", name="uvicorn.error") is not None
    lines.now = 20
    after = lines.log("Invalid HTTP request received.", name="uvicorn.error")
    assert after is not None and "7 lines like this were suppressed" in after.getMessage()


def test_entries_below_warning_are_always_written() -> None:
    lines = Lines()
    assert all(lines.log({"event": "task started"}, logging.INFO) for _ in range(100))


def test_kinds_are_bounded() -> None:
    lines = Lines()
    for n in range(20_000):
        lines.log({"event": f"kind {n}"})
    assert len(lines.throttle._kinds) <= 5000
