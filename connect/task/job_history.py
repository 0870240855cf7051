"""The last runs of a job since its task started, for people who look at it."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Final

__all__ = ["JobHistory"]

_KEPT: Final = 20


class JobHistory:
    """Written on the task's thread, read on any."""

    def __init__(self) -> None:
        self._runs: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._due_ms: int | None = None

    def waits(self, due_s: float) -> None:
        """The next run is due at this time, in seconds since the epoch."""
        self._due_ms = round(due_s * 1000)

    def begins(self, run_id: str, *, records: int, partitions: int, repeated: bool) -> None:
        self._due_ms = None
        self._runs.appendleft(
            {
                "id": run_id,
                "state": "running",
                "began_ms": round(time.time() * 1000),
                "ended_ms": None,
                "records": records,
                "partitions": partitions,
                "repeated": repeated,
                "error": None,
            }
        )

    def reads(self, *, records: int, partitions: int) -> None:
        """The run that is under way has done so much: one that plans its own ranges begins with nothing."""
        self._runs[0] = {**self._runs[0], "records": records, "partitions": partitions}

    def ends(self, state: str, error: BaseException | None = None) -> None:
        """The run that is under way is ``done``, has ``failed``, or is to be repeated at once (``retried``) or at the time of the next
        one (``cancelled``)."""
        ended = round(time.time() * 1000)
        said = None if error is None else str(error)
        self._runs[0] = {**self._runs[0], "state": state, "ended_ms": ended, "error": said}

    def had_nothing(self) -> None:
        """The run that is under way looked for something new and there was nothing: it is none."""
        self._runs.popleft()

    def as_json(self) -> dict[str, Any]:
        """``next_run_ms`` is None while a run is under way; ``runs`` are the last 20, newest first."""
        return {"next_run_ms": self._due_ms, "runs": list(self._runs)}
