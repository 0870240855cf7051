"""A registry's listeners over real sockets: HTTPS, client certificates, a key store that changes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509.oid import NameOID
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp

from registry.server.config import RegistryConfig
from registry.server.security.faces import Faces
from registry.server.security.users import guards
from tests.support.certificates import Authority
from tidegate.kit.config import parse, validate
from tidegate.kit.errors import ConfigError

APP: ASGIApp = PlainTextResponse("here")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def pkcs12_store(pem: Path, password: bytes) -> Path:
    key, certificate = load_pem_private_key(pem.read_bytes(), None), x509.load_pem_x509_certificate(pem.read_bytes())
    path = pem.with_suffix(".p12")
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(b"k", key, certificate, None, BestAvailableEncryption(password))
    )
    return path


def served(keys: dict[str, str], ask: Callable[[dict[str, str]], Any]) -> Any:
    async def run() -> Any:
        faces = Faces(parse(RegistryConfig, keys))
        addresses = dict(await faces.start(APP))
        try:
            return await asyncio.to_thread(ask, addresses)
        finally:
            await faces.stop()

    return asyncio.run(run())


def test_http_and_https_side_by_side_from_a_java_key_store(authority: Authority) -> None:
    store = pkcs12_store(authority.issue((NameOID.COMMON_NAME, "registry")), b"store-pw")
    keys = {
        "listeners": "http://127.0.0.1:0,https://127.0.0.1:0",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "store-pw",
    }
    trusting = ssl.create_default_context(cafile=str(authority.certificate))

    def ask(addresses: dict[str, str]) -> None:
        assert addresses["registry"].startswith("http://")
        secure = addresses["registry-https"]
        assert secure.startswith("https://")
        assert httpx.get(addresses["registry"]).text == "here"
        assert httpx.get(secure, verify=trusting).text == "here"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(secure)
        with pytest.raises(httpx.HTTPError):
            httpx.get(secure.replace("https", "http"))

    served(keys, ask)


@pytest.mark.parametrize("key", [{"ssl.client.authentication": "REQUIRED"}, {"ssl.client.auth": "true"}])
def test_clients_show_a_certificate_where_it_is_asked_for(authority: Authority, key: dict[str, str]) -> None:
    keys = {
        "listeners": "INTERNAL://127.0.0.1:0",
        "listener.protocol.map": "INTERNAL:https",
        "listener.name.internal.ssl.keystore.location": str(authority.issue((NameOID.COMMON_NAME, "registry"))),
        "listener.name.internal.ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.truststore.type": "PEM",
        **key,
    }
    client = authority.issue((NameOID.COMMON_NAME, "client"))

    def ask(addresses: dict[str, str]) -> None:
        trusting = ssl.create_default_context(cafile=str(authority.certificate))
        with pytest.raises(httpx.HTTPError):
            httpx.get(addresses["registry"], verify=trusting)
        trusting.load_cert_chain(client)
        assert httpx.get(addresses["registry"], verify=trusting).text == "here"

    served(keys, ask)


def test_a_new_certificate_comes_into_use(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.kit.tls._LOOK_S", 0.01)
    pem = authority.issue((NameOID.COMMON_NAME, "renewed"))
    keys = {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": str(pem),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.reload": "true",
    }

    def ask(addresses: dict[str, str]) -> None:
        port = int(addresses["registry"].rpartition(":")[2])
        before = ssl.get_server_certificate(("127.0.0.1", port))
        pem.write_text("no certificate")
        assert ssl.get_server_certificate(("127.0.0.1", port)) == before
        authority.issue((NameOID.COMMON_NAME, "renewed"))
        while ssl.get_server_certificate(("127.0.0.1", port)) == before:
            pass

    served(keys, ask)


@pytest.mark.parametrize(
    ("keys", "wrong", "told"),
    [
        ({"listeners": "ftp://h:1"}, "listeners", "must be an address"),
        ({"listeners": "http://h:99999"}, "listeners", "must be an address"),
        ({"listeners": ""}, "listeners", "give at least one"),
        ({"listeners": "https://127.0.0.1:0"}, "ssl.keystore.location", "needs a key store"),
        ({"authentication.method": "BASIC"}, "authentication.method", "needs users"),
        ({"authentication.method": "BEARER"}, "authentication.method", "String must be one of"),
        (
            {"registry_authfile": "a", "java.security.auth.login.config": "b"},
            "registry_authfile",
            "both name users",
        ),
    ],
)
def test_wrong_keys_are_named(keys: dict[str, str], wrong: str, told: str) -> None:
    errors = {value.key.name: value.errors for value in validate(RegistryConfig, keys) if value.errors}
    assert list(errors) == [wrong]
    assert told in errors[wrong][0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Other { a.PropertyFileLoginModule required; };", "no entry 'Registry'"),
        ("Registry { a.LdapLoginModule required; };", "one PropertyFileLoginModule"),
        ("Registry { a.PropertyFileLoginModule required; };", "does not say file="),
        ('Registry { a.PropertyFileLoginModule required file="none"; };', "cannot read"),
        ("Registry {", "not closed"),
    ],
)
def test_a_jaas_file_that_names_no_users_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "jaas").write_text(text)
    keys = {
        "authentication.method": "BASIC",
        "authentication.realm": "Registry",
        "java.security.auth.login.config": str(tmp_path / "jaas"),
    }
    with pytest.raises(ConfigError, match=told):
        guards(parse(RegistryConfig, keys))
