"""A whole registry over our broker, with HTTPS and passwords: Confluent's client and ours get access, others do not."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from cryptography.x509.oid import NameOID

from registry.client import RegistryClient
from registry.server.config import RegistryConfig
from registry.server.security.authfile import password_hash
from registry.server.service import RegistryServer
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.certificates import Authority
from tidegate.kit.config import parse

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def url(
    authority: Authority, tidegate_broker: TidegateBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    file = tmp_path_factory.mktemp("registry") / "auth.json"
    hashed = {"algorithm": "sha256", "salt": "s", "password_hash": password_hash("sha256", "s", "secret")}
    users = [{"username": name, **hashed} for name in ("alice", "bob")]
    permissions = [
        {"username": "alice", "operation": "Write", "resource": "Subject:.*"},
        {"username": "bob", "operation": "Read", "resource": "Subject:orders-.*"},
    ]
    file.write_text(json.dumps({"users": users, "permissions": permissions}))
    keys = {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": str(authority.issue((NameOID.COMMON_NAME, "registry"))),
        "ssl.keystore.type": "PEM",
        "registry_authfile": str(file),
        "access.control.allow.origin": "https://ui.example.org",
        "request.max.bytes": "100000",
        "kafkastore.bootstrap.servers": tidegate_broker.bootstrap_servers,
        "kafkastore.topic": f"_schemas-{uuid.uuid4().hex[:8]}",
        "schema.registry.group.id": f"registry-{uuid.uuid4().hex[:8]}",
    }
    started, address = threading.Event(), dict[str, Any]()

    async def run() -> None:
        ending = asyncio.Event()
        server = RegistryServer(parse(RegistryConfig, keys))
        address.update(await server.start(), stop=ending.set, loop=asyncio.get_running_loop())
        started.set()
        await ending.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert started.wait(60)
    yield address["registry"]
    address["loop"].call_soon_threadsafe(address["stop"])
    thread.join(60)


def confluents(url: str, authority: Authority, user: str) -> SchemaRegistryClient:
    settings = {"url": url, "ssl.ca.location": str(authority.certificate), "basic.auth.user.info": f"{user}:secret"}
    return SchemaRegistryClient(settings)


def test_each_user_has_the_rights_in_the_file(url: str, authority: Authority) -> None:
    with confluents(url, authority, "alice") as alice, confluents(url, authority, "bob") as bob:
        schema_id = alice.register_schema("orders-value", Schema('"string"', "AVRO"))
        alice.register_schema("salaries-value", Schema('"long"', "AVRO"))
        assert alice.get_subjects() == ["orders-value", "salaries-value"]
        assert bob.get_subjects() == ["orders-value"]
        assert bob.get_schema(schema_id).schema_str == '"string"'
        with pytest.raises(SchemaRegistryError) as caught:
            bob.register_schema("orders-value", Schema('["null","string"]', "AVRO"))
        assert (caught.value.http_status_code, caught.value.error_code) == (403, 40301)
        with confluents(url, authority, "mallory") as mallory, pytest.raises(SchemaRegistryError) as caught:
            mallory.get_subjects()
        assert caught.value.http_status_code == 401


def test_our_client_comes_in_by_confluents_keys(url: str, authority: Authority) -> None:
    keys = {
        "schema.registry.url": url,
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": "alice:secret",
        "schema.registry.ssl.truststore.location": str(authority.certificate),
        "schema.registry.ssl.truststore.type": "PEM",
    }
    with RegistryClient.from_properties(keys) as client:
        assert client.versions("orders-value") == [1]


def test_pages_and_large_bodies_are_answered_as_the_keys_say(url: str, authority: Authority) -> None:
    trusting = ssl.create_default_context(cafile=str(authority.certificate))
    with httpx.Client(base_url=url, verify=trusting) as http:
        asked = {"Origin": "https://ui.example.org", "Access-Control-Request-Method": "GET"}
        assert http.options("/subjects", headers=asked).headers["access-control-allow-origin"] == asked["Origin"]
        refused = http.get("/subjects", headers={"Origin": asked["Origin"]})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, asked["Origin"])
        assert refused.headers["www-authenticate"].startswith("Basic")
        large = http.post("/subjects/s/versions", json={"schema": "x" * 200_000}, auth=("alice", "secret"))
        assert (large.status_code, large.json()["error_code"]) == (413, 413)
