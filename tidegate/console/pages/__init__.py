"""The pages. ``PAGES`` has them in the order of the navigation; what needs a face that is not configured is left out."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.routing import Route

from tidegate.console.console import Console

__all__ = ["PAGES", "Page"]


@dataclass(frozen=True)
class Page:
    """A page, or several that share one entry of the navigation."""

    title: str
    """In the navigation; empty for pages below another's."""
    path: str
    module: str
    """The module with ``def routes(console: Console) -> list[Route]``."""
    needs: tuple[str, ...] = ()
    """Attributes of ConsoleConfig that must not be empty: ``connect_url``, ``bootstrap_servers``, ``registry_url``, ``events_url``."""

    def is_configured(self, console: Console) -> bool:
        return all(getattr(console.config, name) for name in self.needs)

    def routes(self, console: Console) -> Sequence[Route]:
        made: Sequence[Route] = importlib.import_module(self.module).routes(console)
        return made


_KAFKA: Final = ("bootstrap_servers",)
PAGES: Final = (
    Page("Overview", "/", "tidegate.console.pages.overview"),
    Page("Connectors", "/connectors", "tidegate.console.pages.connectors", needs=("connect_url",)),
    Page("", "/loggers", "tidegate.console.pages.loggers", needs=("connect_url",)),
    Page(
        "Dead letters",
        "/dead-letters",
        "tidegate.console.pages.dead_letters",
        needs=("connect_url", "bootstrap_servers"),
    ),
    Page("Jobs", "/jobs", "tidegate.console.pages.jobs", needs=("connect_url",)),
    Page("Topics", "/topics", "tidegate.console.pages.topics", _KAFKA),
    Page("", "/topics", "tidegate.console.pages.records", _KAFKA),
    Page("Query", "/query", "tidegate.console.pages.query", _KAFKA),
    Page("Groups", "/groups", "tidegate.console.pages.groups", _KAFKA),
    Page("Schemas", "/schemas", "tidegate.console.pages.schemas", ("registry_url",)),
    Page("Lineage", "/lineage", "tidegate.console.pages.lineage", needs=("connect_url",)),
    Page("Events", "/events", "tidegate.console.pages.events", ("events_url",)),
)
