"""How the client connects to registries: TLS, all kinds of credentials, several addresses; with the keys of Confluent's
client.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import responses
from cryptography.x509.oid import NameOID

from registry.client import Refused, RegistryClient, Unavailable
from registry.server.config import RegistryConfig
from registry.server.security.faces import Faces
from tests.registry.conftest import MemoryLog, serving
from tests.support.certificates import Authority
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def secure_url(authority: Authority) -> Iterator[str]:
    """A registry that wants a certificate of its clients."""
    keys = {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": str(authority.issue((NameOID.COMMON_NAME, "registry"))),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.truststore.type": "PEM",
        "ssl.client.authentication": "REQUIRED",
    }
    started, address = threading.Event(), dict[str, Any]()

    async def run() -> None:
        ending = asyncio.Event()
        faces = Faces(parse(RegistryConfig, keys))
        async with serving(MemoryLog()) as app:
            addresses = await faces.start(app)
            address.update(addresses, stop=ending.set, loop=asyncio.get_running_loop())
            started.set()
            await ending.wait()
            await faces.stop()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    assert started.wait(60)
    yield address["registry"]
    address["loop"].call_soon_threadsafe(address["stop"])
    thread.join(60)


def test_a_certificate_is_shown_where_it_is_asked_for(authority: Authority, secure_url: str) -> None:
    certificate = authority.issue((NameOID.COMMON_NAME, "client"))
    keys = {
        "schema.registry.url": secure_url,
        "schema.registry.ssl.truststore.location": str(authority.certificate),
        "schema.registry.ssl.truststore.type": "PEM",
        "max.retries": "0",
    }
    shown = {"schema.registry.ssl.keystore.location": str(certificate), "schema.registry.ssl.keystore.type": "PEM"}
    with RegistryClient.from_properties({**keys, **shown}) as client:
        assert client.subjects() == []
        assert client.register("s", '"string"') == 1
    with RegistryClient.from_properties(keys) as client, pytest.raises(Unavailable, match="cannot be reached"):
        client.subjects()
    strangers = {**keys, **shown, "schema.registry.ssl.truststore.location": str(certificate)}
    with RegistryClient.from_properties(strangers) as client, pytest.raises(Unavailable, match="CERTIFICATE_VERIFY"):
        client.subjects()


def test_names_are_checked_unless_that_is_switched_off(
    authority: Authority, secure_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = socket.getaddrinfo("127.0.0.1", int(secure_url.rpartition(":")[2]), type=socket.SOCK_STREAM)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    keys = {
        "schema.registry.url": secure_url.replace("127.0.0.1", "registry.example"),
        "schema.registry.ssl.ca.location": str(authority.certificate),
        "schema.registry.ssl.keystore.location": str(authority.issue((NameOID.COMMON_NAME, "client"))),
        "schema.registry.ssl.keystore.type": "PEM",
        "max.retries": "0",
    }
    with RegistryClient.from_properties(keys) as client, pytest.raises(Unavailable, match="CERTIFICATE_VERIFY"):
        client.subjects()
    anyone = {**keys, "schema.registry.ssl.endpoint.identification.algorithm": ""}
    with RegistryClient.from_properties(anyone) as client:
        assert client.versions("s") == [1]


@responses.activate
@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ({"schema.registry.url": "http://alice:p%40ss@r"}, "Basic YWxpY2U6cEBzcw=="),
        ({"basic.auth.credentials.source": "USER_INFO", "schema.registry.basic.auth.user.info": "u:p"}, "Basic dTpw"),
        (
            {
                "basic.auth.credentials.source": "SASL_INHERIT",
                "sasl.jaas.config": 'a.Plain required username="u" password="p";',
            },
            "Basic dTpw",
        ),
        ({"bearer.auth.token": "secret-token"}, "Bearer secret-token"),
    ],
)
def test_credentials_come_from_where_confluents_client_has_them(keys: dict[str, str], sent: str) -> None:
    responses.get("http://r/subjects", json=[], match=[responses.matchers.header_matcher({"Authorization": sent})])
    assert RegistryClient.from_properties({"schema.registry.url": "http://r", **keys}).subjects() == []


@responses.activate
def test_tokens_of_an_issuer_are_asked_for_once() -> None:
    form = {"grant_type": "client_credentials", "scope": "registry"}
    issued = responses.post(
        "http://issuer/token",
        json={"access_token": "t-1", "expires_in": 3600},
        match=[responses.matchers.urlencoded_params_matcher(form)],
    )
    expected = {"Authorization": "Bearer t-1", "target-sr-cluster": "lsrc-1", "X-Team": "shop"}
    responses.get("http://r/subjects", json=[], match=[responses.matchers.header_matcher(expected)])
    keys = {
        "schema.registry.url": "http://r",
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.issuer.endpoint.url": "http://issuer/token",
        "bearer.auth.client.id": "me",
        "bearer.auth.client.secret": "secret",
        "bearer.auth.scope": "registry",
        "bearer.auth.logical.cluster": "lsrc-1",
        "request.header.X-Team": "shop",
    }
    client = RegistryClient.from_properties(keys)
    assert client.subjects() == client.subjects() == []
    assert issued.call_count == 1
    responses.replace("POST", "http://issuer/token", json={"error": "invalid_client"}, status=401)
    with pytest.raises(Refused, match="answered 401"):
        RegistryClient.from_properties(keys).subjects()


@responses.activate
def test_the_url_that_answered_last_is_tried_first() -> None:
    responses.get("http://a/subjects", json={"error_code": 50003, "message": "forwarding"}, status=500)
    responses.get("http://b/subjects", json=["s"])
    client = RegistryClient("http://a,http://b")
    assert client.subjects() == client.subjects() == ["s"]
    assert [call.request.url for call in responses.calls] == [
        "http://a/subjects",
        "http://b/subjects",
        "http://b/subjects",
    ]


@responses.activate
def test_messages_hold_no_secret() -> None:
    for url in ("http://alice:hidden@r", "http://alice:hidden@r:x"):
        with pytest.raises((Refused, Unavailable)) as caught:
            RegistryClient(url, attempts=1).subjects()
        assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"basic.auth.credentials.source": "KEYRING"}, "basic.auth.credentials.source"),
        ({"basic.auth.credentials.source": "USER_INFO"}, "needs basic.auth.user.info"),
        ({"basic.auth.credentials.source": "SASL_INHERIT"}, "needs sasl.jaas.config"),
        ({"bearer.auth.credentials.source": "OAUTHBEARER"}, "needs bearer.auth.issuer.endpoint.url"),
        ({"proxy.host": "p"}, "needs proxy.port"),
        (
            {"schema.registry.ssl.truststore.location": "/no/such"},
            "schema.registry.ssl.truststore.location: cannot read /no/such",
        ),
    ],
)
def test_wrong_keys_are_named(keys: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        RegistryClient.from_properties({"schema.registry.url": "http://r", **keys})
