"""The overview: what is wrong, what runs, and how much moves."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from tidegate.console.console import Console, Visit
from tidegate.console.platform import certificate_days, components, disk_of
from tidegate.console.summaries import ConnectorSummary, summaries
from tidegate.console.troubles import troubles_of
from tidegate.kit.errors import TidegateError

__all__ = ["routes"]

_MOST_TROUBLES: Final = 50
_MOST_QUEUES: Final = 10
"""The most queues that are looked into at one time; other connectors keep what their tasks have counted."""
_QUEUE_S: Final = 2.0


def routes(console: Console) -> list[Route]:
    page = _OverviewPage(console)
    return [console.route("/", page.show), console.route("/overview/live", page.live)]


class _OverviewPage:
    def __init__(self, console: Console) -> None:
        self._console, self._config = console, console.config

    async def show(self, visit: Visit) -> Response:
        return visit.page("overview.html", **await self._values(visit))

    async def live(self, visit: Visit) -> Response:
        """The part that refreshes itself."""
        return visit.page("overview_live.html", **await self._values(visit))

    async def _values(self, visit: Visit) -> dict[str, Any]:
        silent: list[tuple[str, str]] = []
        data = self._console.data if visit.may("read", "platform", "*") else None
        connectors, subjects, lines = await asyncio.gather(
            self._connectors(visit, silent),
            self._registry(visit, silent),
            asyncio.to_thread(components, data) if data else _nothing(),
        )
        disk = disk_of(data) if data else None
        keys = self._config.ssl_keystore_location
        days = certificate_days(Path(keys)) if keys and self._config.ssl_keystore_type.upper() == "PEM" else None
        behind = self._console.groups.falling_behind if self._console.groups is not None else {}
        groups = {name: lag for name, lag in behind.items() if visit.may("read", "group", name)}
        settled = await self._settled(visit, connectors or ())
        troubles = troubles_of(connectors or (), lines or (), silent, disk, days, groups, settled)
        rates = [summary.rate for summary in connectors or () if summary.rate is not None]
        lags = [summary.totals["lag"] for summary in connectors or () if summary.totals["lag"] is not None]
        return {
            "troubles": troubles[:_MOST_TROUBLES],
            "more_troubles": max(0, len(troubles) - _MOST_TROUBLES),
            "connectors": connectors,
            "states": Counter(summary.state for summary in connectors or ()),
            "tasks": sum((Counter(summary.tasks) for summary in connectors or ()), Counter()),
            "components": lines or [],
            "disk": disk,
            "rate": sum(rates) if rates else None,
            "lag": sum(lags) if lags else None,
            "records": self._console.sampler.records if self._console.sampler is not None else [],
            "subjects": subjects,
        }

    async def _settled(self, visit: Visit, connectors: Iterable[ConnectorSummary]) -> set[str]:
        """The connectors whose dead letters were all sent back: their tasks count them until they start anew."""
        if not self._config.bootstrap_servers:
            return set()
        asked = [s for s in connectors if s.queue and s.totals["dead_letters"]][:_MOST_QUEUES]
        are_open = await asyncio.gather(*(self._has_letters(visit, summary) for summary in asked))
        return {summary.name for summary, is_open in zip(asked, are_open, strict=True) if not is_open}

    async def _has_letters(self, visit: Visit, summary: ConnectorSummary) -> bool:
        async def ask() -> bool:
            from broker.client import Admin
            from tidegate.dead_letters.letter_queue import Queue

            queue = Queue(visit.faces.kafka, summary.name, summary.queue)
            try:
                async with (
                    asyncio.timeout(_QUEUE_S),
                    Admin(visit.faces.kafka) as admin,
                    aclosing(queue.open_letters(admin)) as letters,
                ):
                    async for _ in letters:
                        return True
            except (TidegateError, TimeoutError):
                return True  # not for this user, or too many to look through
            return False

        return await visit.faces.kept(("open letters", summary.name), ask)

    async def _connectors(self, visit: Visit, silent: list[tuple[str, str]]) -> Any:
        """Their summaries; None without a worker or if it does not answer."""
        if not self._config.connect_url:
            return None
        try:
            listed, counted = await asyncio.gather(visit.faces.connectors(), visit.faces.totals())
        except TidegateError as error:
            silent.append(("Connect", str(error)))
            return None
        return summaries(listed, counted, self._console.sampler)

    async def _registry(self, visit: Visit, silent: list[tuple[str, str]]) -> int | None:
        """How many subjects there are."""
        if not self._config.registry_url:
            return None
        try:
            subjects = await visit.faces.kept("subjects", lambda: visit.faces.registry.call("GET", "/subjects"))
        except TidegateError as error:
            silent.append(("The schema registry", str(error)))
            return None
        return len(subjects)


async def _nothing() -> None:
    return None
