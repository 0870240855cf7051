"""The client against a registry's real HTTP server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import responses

from registry.client import (
    AvroSchema,
    Incompatible,
    NotFound,
    Reference,
    Refused,
    RegistryClient,
    Unavailable,
)
from registry.domain.registry import Registry
from registry.formats.compatibility import Level
from registry.log.store import Store
from registry.metrics import RegistryMetrics
from registry.server.app import application
from tidegate.kit.errors import ConfigError
from tidegate.kit.http import HttpServer


@pytest.fixture
def url(log: Any) -> Iterator[str]:
    """A registry on a port, in a thread with its own event loop."""
    started, ending = threading.Event(), asyncio.Event()
    address: dict[str, Any] = {}

    async def serve() -> None:
        metrics = RegistryMetrics()
        store = Store(log, metrics, timeout_ms=5000)
        await store.start()
        registry = Registry(store, metrics, default_level=Level.BACKWARD)
        server = HttpServer(application(registry, metrics, cluster_id="c", group_id="g"), "127.0.0.1", 0)
        await server.start()
        address.update(url=server.url, loop=asyncio.get_running_loop())
        started.set()
        await ending.wait()
        await server.stop()
        await store.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert started.wait(60)
    yield address["url"]
    address["loop"].call_soon_threadsafe(ending.set)
    thread.join(60)


@pytest.fixture
def client(url: str) -> Iterator[RegistryClient]:
    with RegistryClient(url) as made:
        yield made


def test_schemas_are_registered_and_found(client: RegistryClient) -> None:
    schema = AvroSchema.parse('{"type":"record","name":"a.R","fields":[{"name":"x","type":"int"}]}')
    schema_id = client.register("s/ü-value", schema)
    assert client.register("s/ü-value", schema.canonical) == schema_id
    assert client.id_of("s/ü-value", schema) == schema_id
    assert client.schema(schema_id) == schema
    assert client.schema(schema_id) is client.schema(schema_id)
    assert client.subjects() == ["s/ü-value"]
    assert client.versions("s/ü-value") == [1]
    assert client.version("s/ü-value").id == schema_id
    assert client.parsed(client.version("s/ü-value", 1)) == schema


def test_references_are_resolved(client: RegistryClient) -> None:
    client.register("inner", '{"type":"record","name":"n.Inner","fields":[{"name":"x","type":"int"}]}')
    refs = [Reference("n.Inner", "inner", 1)]
    outer = '{"type":"record","name":"n.Outer","fields":[{"name":"i","type":"Inner"}]}'
    schema_id = client.register("outer", outer, references=refs)
    client.register("outermost", '{"type":"array","items":"n.Outer"}', references=[Reference("n.Outer", "outer", 1)])
    resolved = json.loads(client.schema(schema_id).resolved)
    assert resolved["fields"][0]["type"]["fields"] == [{"name": "x", "type": "int"}]
    outermost = client.parsed(client.version("outermost"))
    assert json.loads(outermost.resolved)["items"] == resolved


def test_refusals_are_errors_by_kind(client: RegistryClient) -> None:
    client.register("s", '"int"')
    with pytest.raises(Incompatible, match="TYPE_MISMATCH") as caught:
        client.register("s", '"string"')
    assert caught.value.error_code == 40901
    assert "TYPE_MISMATCH" in client.problems("s", '"string"')[0]
    assert client.problems("s", '"long"', version=None) == []
    with pytest.raises(NotFound, match="Subject 'none' not found"):
        client.version("none")
    with pytest.raises(NotFound):
        client.schema(99)
    with pytest.raises(Refused, match="Undefined name"):
        client.register("s", '"Unknown"')
    client.set_compatibility("NONE", "s")
    assert (client.compatibility("s"), client.compatibility()) == ("NONE", "BACKWARD")
    assert client.delete_version("s", 1) == 1
    assert client.delete_version("s", 1, permanent=True) == 1
    client.register("s", '"string"')
    assert client.delete_subject("s") == [1]


def test_the_next_address_is_tried(url: str) -> None:
    with RegistryClient(f"http://127.0.0.1:1, {url}/") as client:
        assert client.subjects() == []


def test_an_unreachable_registry_is_unavailable() -> None:
    with (
        RegistryClient("http://127.0.0.1:1", attempts=2) as client,
        pytest.raises(Unavailable, match=r"127\.0\.0\.1:1"),
    ):
        client.subjects()


@responses.activate
def test_a_failing_store_is_tried_again() -> None:
    responses.get("http://r/subjects", json={"error_code": 50002, "message": "slow"}, status=500)
    responses.get("http://r/subjects", json=["s"])
    assert RegistryClient("http://r").subjects() == ["s"]
    responses.get("http://r/subjects", body="<html>", status=200)
    with pytest.raises(Refused, match="not JSON"):
        RegistryClient("http://r").subjects()
        RegistryClient("http://r").subjects()


@responses.activate
def test_properties_configure_the_client() -> None:
    responses.get(
        "http://r/subjects",
        json=[],
        match=[responses.matchers.header_matcher({"Authorization": "Basic dTpwOnE="})],
    )
    client = RegistryClient.from_properties({"schema.registry.url": "http://r", "basic.auth.user.info": "u:p:q"})
    assert client.subjects() == []
    with pytest.raises(ConfigError, match=r"schema\.registry\.url"):
        RegistryClient.from_properties({})
    with pytest.raises(Refused, match="no schema registry address"):
        RegistryClient("localhost:8081")
