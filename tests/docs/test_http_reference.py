"""The HTTP reference lists each call under /tidegate/v1, and no other."""

from __future__ import annotations

import re
from types import SimpleNamespace
from unittest.mock import MagicMock

from connect.rest.routes import all_routes
from events.fronts.admin.definitions import DefinitionsFront
from events.fronts.admin.entities import EntitiesFront
from events.fronts.admin.subscribers import SubscribersFront
from tests.support.pages import ROOT

PAGE = ROOT / "docs/reference/http-api.md"


def served() -> set[tuple[str, str]]:
    routes = [
        *DefinitionsFront(MagicMock(), MagicMock(), 0).routes(),
        *EntitiesFront(SimpleNamespace(entities=None), MagicMock()).routes(),
        *SubscribersFront(MagicMock(), MagicMock()).routes(),
        *all_routes(MagicMock(), MagicMock(), MagicMock()),
    ]
    return {
        (method, route.path)
        for route in routes
        for method in route.methods - {"HEAD"}
        if route.path.startswith("/tidegate/v1/")
    }


def test_each_http_call_is_listed() -> None:
    listed = set(re.findall(r"^\| `([A-Z]+) (/tidegate/v1/[^`]*)` \|", PAGE.read_text(), re.MULTILINE))
    assert len(listed) >= 12
    assert listed == served()


def test_the_source_has_no_other_route() -> None:
    """A front that is new has to come into the list above."""
    named = {
        path
        for package in ("broker", "connect", "events", "registry", "tidegate")
        for source in (ROOT / package).rglob("*.py")
        for path in re.findall(r"[\"'](/tidegate/v1[/\w]*)", source.read_text())
        if "Route(" in source.read_text()
    }
    assert {path for path in named if not any(route.startswith(path) for _, route in served())} == set()
