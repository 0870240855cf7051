"""Key stores written by Java's keytool, and TLS contexts from every type of store."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.security.config import ListenerConfig, SecurityProtocol
from broker.security.tls import tls_context
from tests.support.certificates import write_certificate
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError
from tidegate.kit.keystores import KeyStoreError, read_store

STORES = Path(__file__).with_name("stores")


@pytest.mark.parametrize(
    ("file", "kind", "key_password"),
    [("key.jks", "JKS", "key-pw"), ("key.p12", "PKCS12", None), ("key.p12", "jks", None)],
)
def test_a_key_store_gives_key_and_chain(file: str, kind: str, key_password: str | None) -> None:
    store = read_store(STORES / file, kind, "store-pw", key_password)
    assert store.key is not None
    assert store.key.startswith(b"-----BEGIN PRIVATE KEY")
    assert store.chain.count(b"BEGIN CERTIFICATE") == 1
    assert store.trusted == b""


@pytest.mark.parametrize(("file", "kind"), [("trust.jks", "JKS"), ("trust.p12", "PKCS12")])
def test_a_trust_store_gives_certificates(file: str, kind: str) -> None:
    store = read_store(STORES / file, kind, "store-pw", None)
    assert (store.key, store.trusted.count(b"BEGIN CERTIFICATE")) == (None, 1)


@pytest.mark.parametrize(
    ("file", "password", "key_password", "told"),
    [
        ("key.jks", "wrong", "key-pw", "another password"),
        ("key.jks", "store-pw", None, "private key has another password"),
        ("key.jks", None, None, "needs ssl.keystore.password"),
        ("key.p12", "wrong", None, "no PKCS12 store, or has another password"),
    ],
)
def test_a_wrong_password_is_told(file: str, password: str | None, key_password: str | None, told: str) -> None:
    with pytest.raises(KeyStoreError, match=told):
        read_store(STORES / file, "JKS", password, key_password)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_store_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray((STORES / data.draw(st.sampled_from(["key.jks", "trust.jks"]))).read_bytes())
    at = data.draw(st.integers(4, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(4, len(content)))
    file = tmp_path_factory.mktemp("damaged") / "store"
    file.write_bytes(content[:cut])
    with pytest.raises(KeyStoreError):
        read_store(file, "JKS", "store-pw", "key-pw")
    try:
        read_store(file, "JKS", None, "key-pw")  # without a password nothing tells of damage, as in Java
    except ValueError:
        pass


def listener(**properties: str) -> ListenerConfig:
    return parse(ListenerConfig, {name.replace("_", "."): value for name, value in properties.items()})


def context(**properties: str) -> ssl.SSLContext:
    return tls_context(listener(**properties), SecurityProtocol.SSL, client_auth_is_own=False)


JKS = {
    "ssl_keystore_location": str(STORES / "key.jks"),
    "ssl_keystore_password": "store-pw",
    "ssl_key_password": "key-pw",
}


def test_client_authentication_needs_what_is_trusted() -> None:
    trust = {"ssl_truststore_location": str(STORES / "trust.p12"), "ssl_truststore_password": "store-pw"}
    assert context(**JKS).verify_mode is ssl.CERT_NONE
    made = context(**JKS, **trust, ssl_client_auth="required")
    assert (made.verify_mode, made.cert_store_stats()["x509"]) == (ssl.CERT_REQUIRED, 1)
    assert context(**JKS, **trust, ssl_client_auth="requested").verify_mode is ssl.CERT_OPTIONAL
    over_sasl = listener(**JKS, **trust, ssl_client_auth="required")
    assert tls_context(over_sasl, SecurityProtocol.SASL_SSL, client_auth_is_own=False).verify_mode is ssl.CERT_NONE
    assert tls_context(over_sasl, SecurityProtocol.SASL_SSL, client_auth_is_own=True).verify_mode is ssl.CERT_REQUIRED


def test_pem_comes_as_file_or_as_text(tmp_path: Path) -> None:
    pem = write_certificate(tmp_path / "own.pem")
    context(ssl_keystore_type="PEM", ssl_keystore_location=str(pem))
    key, _, chain = pem.read_text().partition("-----BEGIN CERTIFICATE")
    context(
        ssl_keystore_type="PEM", ssl_keystore_key=key, ssl_keystore_certificate_chain="-----BEGIN CERTIFICATE" + chain
    )


def test_versions_and_cipher_suites_are_those_asked_for() -> None:
    made = context(**JKS, ssl_enabled_protocols="TLSv1.3")
    assert (made.minimum_version, made.maximum_version) == (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)
    made = context(
        **JKS, ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384"
    )
    assert made.maximum_version is ssl.TLSVersion.TLSv1_2
    old = [cipher["name"] for cipher in made.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert old == ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-SHA384"]
    made = context(**JKS, ssl_cipher_suites="TLS_AES_128_GCM_SHA256")
    assert made.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({}, "ssl.keystore.location: TLS needs a key store"),
        ({"ssl_keystore_location": "/no/such"}, "cannot read /no/such"),
        (
            {"ssl_keystore_location": str(STORES / "trust.jks"), "ssl_keystore_password": "store-pw"},
            "has no private key",
        ),
        ({"ssl_keystore_key": "x"}, "it goes with ssl.keystore.key"),
        ({"ssl_keystore_key": "x", "ssl_keystore_certificate_chain": "y"}, "no PEM private key with its certificates"),
        ({**JKS, "ssl_enabled_protocols": "SSLv3"}, "SSLv3: one of TLSv1"),
        ({**JKS, "ssl_cipher_suites": "TLS_NO_SUCH"}, "none of TLS_NO_SUCH can be had"),
        (
            {**JKS, "ssl_client_auth": "required", "ssl_truststore_location": __file__, "ssl_truststore_type": "PEM"},
            "holds no certificates",
        ),
    ],
)
def test_an_invalid_key_is_named(properties: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        context(**properties)
