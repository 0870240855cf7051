"""The table of APIs is complete and documented, and contains only APIs and versions that Kafka has."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from broker.api.routes import Route
from broker.handlers import ROUTES, advertised
from broker.protocol.api import ApiKey

DOCS = Path(__file__).parents[3] / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_handlers_stand_under_their_api_keys() -> None:
    assert list(ROUTES) == sorted(ROUTES)
    assert set(ROUTES) <= set(ApiKey)


def test_the_reference_page_is_fresh() -> None:
    page = generator().kafka_apis_page().rstrip() + "\n"
    assert (DOCS / "reference" / "kafka-apis.md").read_text() == page, "run: make docs"


@pytest.mark.parametrize("route", ROUTES.values(), ids=lambda route: route.key.title)
def test_versions_are_those_of_kafka_and_the_request_is_its_own(route: Route) -> None:
    index = pytest.importorskip("kio.schema.index")
    name = index.api_key_map[route.key]
    known = sorted(index.schema_name_map[name])
    assert set(route.versions) <= set(known)
    assert route.versions.start == known[0], "old versions that Kafka serves are served"
    assert route.request.__name__ == f"{route.key.title}Request"
    assert route.notes


def test_only_produce_advertises_what_it_does_not_serve() -> None:
    differing = [route.key for route in ROUTES.values() if route.advertised != route.versions]
    assert differing == [ApiKey.PRODUCE]
    assert (
        next(
            advertised_route for advertised_route in advertised(ROUTES) if advertised_route.api_key == ApiKey.PRODUCE
        ).min_version
        == 0
    )
