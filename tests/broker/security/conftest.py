"""One broker with a listener for every security protocol, shared by all tests in a test process."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.broker import BrokerThread, settings
from tests.support.certificates import Authority

OID = x509.NameOID
USER, PASSWORD = "alice", 'secret "1", \\ and ='
LISTENERS = ("PLAINTEXT", "SSL", "MUTUAL", "SASL_PLAINTEXT", "SASL_SSL", "SIGNED")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def jaas_text(text: str) -> str:
    """A value as JAAS quotes it."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Issuer:
    """Signs tokens; ``key_set`` is the file of its public keys."""

    def __init__(self, directory: Path) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "k1", "use": "sig", "alg": "RS256", "n": number(numbers.n), "e": number(numbers.e)}
        self.key_set = directory / "jwks.json"
        self.key_set.write_text(json.dumps({"keys": [{"kty": "oct", "k": "AAAA"}, key]}))

    def token(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        signed = f"{part({'alg': 'RS256', 'kid': 'k1', **(header or {})})}.{part(usual(claims))}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{encoded(signature)}"


def unsecured(**claims: Any) -> str:
    return f"{part({'alg': 'none'})}.{part(usual(claims))}."


def usual(claims: dict[str, Any]) -> dict[str, Any]:
    now = int(time.time())
    return {"sub": USER, "iat": now - 5, "exp": now + 600, **claims}


def part(value: dict[str, Any]) -> str:
    return encoded(json.dumps(value).encode())


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def number(value: int) -> str:
    return encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


@dataclass
class Doors:
    """A broker with all kinds of listeners; ``address`` finds one."""

    broker: BrokerThread
    authority: Authority
    issuer: Issuer
    client_certificate: Path

    def address(self, listener: str) -> str:
        return f"127.0.0.1:{self.port(listener)}"

    def port(self, listener: str) -> int:
        return self.broker.server.broker.advertised[listener].port

    def seen(self) -> dict[str, str]:
        """The principals of open connections, by listener."""
        return {connection.listener: str(connection.principal) for connection in list(self.broker.server._connections)}


def doors_settings(directory: Path, authority: Authority, issuer: Issuer, **more: str) -> dict[str, str]:
    server_certificate = authority.issue((OID.COMMON_NAME, "localhost"))
    users = f'user_{USER}={jaas_text(PASSWORD)} user_bob="bob\'s"'
    plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
    oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    prefix = "listener.name."
    return settings(directory) | {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MUTUAL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,"
        "SASL_SSL:SASL_SSL,SIGNED:SASL_PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(server_certificate),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        f"{prefix}mutual.ssl.client.auth": "required",
        f"{prefix}mutual.ssl.principal.mapping.rules": "RULE:^CN=([^,]+),OU=ops.*$/$1/L,DEFAULT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{prefix}sasl_plaintext.plain.sasl.jaas.config": plain,
        f"{prefix}sasl_ssl.plain.sasl.jaas.config": plain,
        f"{prefix}sasl_plaintext.oauthbearer.sasl.jaas.config": f'{oauth} unsecuredValidatorRequiredScope="";',
        f"{prefix}signed.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}signed.oauthbearer.sasl.server.callback.handler.class": "org.apache.kafka.common.security."
        "oauthbearer.OAuthBearerValidatorCallbackHandler",
        f"{prefix}signed.sasl.oauthbearer.jwks.endpoint.url": issuer.key_set.as_uri(),
        f"{prefix}signed.sasl.oauthbearer.expected.audience": "kafka",
        f"{prefix}signed.sasl.oauthbearer.expected.issuer": "https://issuer",
        "delegation.token.secret.key": "a key",
        "connection.failed.authentication.delay.ms": "10",
        **more,
    }


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    directory = tmp_path_factory.mktemp("doors")
    authority, issuer = Authority(directory / "authority"), Issuer(directory)
    certificate = authority.issue(
        (OID.ORGANIZATION_NAME, "Acme, Inc"), (OID.ORGANIZATIONAL_UNIT_NAME, "ops"), (OID.COMMON_NAME, "Carol")
    )
    with BrokerThread(doors_settings(directory / "data", authority, issuer)) as broker:
        made = Doors(broker, authority, issuer, certificate)
        set_passwords(made.address("PLAINTEXT"))
        yield made


def set_passwords(bootstrap_servers: str) -> None:
    from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        change = UserScramCredentialUpsertion(
            USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode(), b"salt of a user"
        )
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(60)


@pytest.fixture
def topic(doors: Doors) -> Callable[[], str]:
    return lambda: f"t-{time.time_ns()}"
