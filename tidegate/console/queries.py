"""Queries over topics that users run from a page: each in a Spark of its own, with a deadline, its result kept for a while."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["MOST_ROWS", "MOST_S", "Queries", "RunningQuery"]

MOST_ROWS: Final = 1000
MOST_S: Final = 300
_AT_ONCE: Final = 2
_KEPT: Final = 20
_MOST_BYTES: Final = 1_000_000
"""Of a result: those that are kept stay in the console's memory."""


@dataclass
class RunningQuery:
    """A query and, when it is over, its rows or what was wrong."""

    id: str
    session_id: str
    sql: str
    began: float = field(default_factory=time.monotonic)
    stopping: threading.Event = field(default_factory=threading.Event)
    seconds: float = 0.0
    """How long it took; 0 while it runs."""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    more: bool = False
    """Whether the result has more rows than these."""
    notes: Sequence[str] = ()
    error: str = ""

    def end(self) -> None:
        self.seconds = self.seconds or max(time.monotonic() - self.began, 0.001)

    @property
    def is_over(self) -> bool:
        return self.seconds > 0

    @property
    def age_s(self) -> float:
        return self.seconds or time.monotonic() - self.began


class Queries:
    """One for each session at a time, and two in all: each has a Java machine. Used from the event loop."""

    def __init__(self) -> None:
        self._queries: OrderedDict[str, RunningQuery] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, session_id: str, sql: str, kafka: Mapping[str, str], registry: Mapping[str, str]) -> RunningQuery:
        """Begin a query as the user of these client settings. Raises UsageError where another has to end before."""
        running = [query for query in self._queries.values() if not query.is_over]
        if any(query.session_id == session_id for query in running):
            raise UsageError("A query of yours is running: wait for its end, or stop it")
        if len(running) >= _AT_ONCE:
            raise UsageError(
                f"{_AT_ONCE} queries are running, and each has a Spark of its own: try it again in a while"
            )
        query = RunningQuery(secrets.token_urlsafe(16), session_id, sql)
        self._queries[query.id] = query
        while len(self._queries) > _KEPT:
            self._queries.popitem(last=False)
        task = asyncio.create_task(self._run(query, kafka, registry))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return query

    def look(self, session_id: str, name: str) -> RunningQuery:
        """Raises UsageError for a query that is gone or another session's."""
        query = self._queries.get(name)
        if query is None or query.session_id != session_id:
            raise UsageError("This query's result is not there any more: run it again")
        return query

    def latest(self, session_id: str) -> RunningQuery | None:
        """The query of a session that began last."""
        own = (query for query in reversed(self._queries.values()) if query.session_id == session_id)
        return next(own, None)

    async def stop(self) -> None:
        """End all that run."""
        for query in self._queries.values():
            query.stopping.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, query: RunningQuery, kafka: Mapping[str, str], registry: Mapping[str, str]) -> None:
        deadline = asyncio.get_running_loop().call_later(MOST_S, query.stopping.set)
        try:
            await asyncio.to_thread(_run, query, kafka, registry)
        finally:
            deadline.cancel()
            query.end()


def _run(query: RunningQuery, kafka: Mapping[str, str], registry: Mapping[str, str]) -> None:
    from connectors.spark.query import Query, run_query

    asked = Query(query.sql, MOST_ROWS, True, kafka, registry, most_bytes=_MOST_BYTES)
    try:
        with run_query(asked, query.stopping) as result:
            query.columns, query.rows, query.more = result.columns, result.rows, result.more
            query.notes = result.notes
            query.end()  # Spark may go on for a while: see ``run_query``
    except TidegateError as error:
        late = time.monotonic() - query.began >= MOST_S
        query.error = f"It was stopped after {MOST_S} s: ask for less" if late else str(error)
    except Exception as error:  # noqa: BLE001 - a page says so
        query.error = f"{type(error).__name__}: {error}"
