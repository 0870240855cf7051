"""Secured listeners with the same settings on Apache Kafka and on our broker: our client, credentials and delegation
tokens.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Self

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from broker.client import Admin, BatchProducer, ClientConfig, NewTopic
from broker.client.errors import NotReachable, SaslAuthenticationFailed
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from broker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from broker.protocol.schema import Request, decode, encode
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.process import free_ports, wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.certificates import write_certificate
from tests.support.wire import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.servers]

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=[KafkaBroker, TidegateBroker], ids=["apache", "tidegate"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses by security protocol, and the certificate under ``pem``."""
    folder = tmp_path_factory.mktemp("secured")
    pem = write_certificate(folder / "broker.pem")
    ports = dict(zip(("PLAINTEXT", "CONTROLLER", "SSL", "SASL_SSL"), free_ports(4), strict=True))
    listeners = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items()}
    broker: KafkaBroker | TidegateBroker = or_skip(
        lambda: request.param(
            folder / "data",
            {
                "listeners": ",".join(listeners.values()),
                "advertised.listeners": ",".join(v for k, v in listeners.items() if k != "CONTROLLER"),
                "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
                "listener.security.protocol.map": ",".join(
                    f"{name}:{'PLAINTEXT' if name == 'CONTROLLER' else name}" for name in ports
                ),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(pem),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(pem),
                "listener.name.ssl.ssl.client.auth": "required",
                "controller.listener.names": "CONTROLLER",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
                "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
                "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{OAUTH};",
                "delegation.token.secret.key": "secret",
                "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{LOGIN} user_tide="gate";',
            },
        )
    )
    broker.port = ports["PLAINTEXT"]
    broker.start()
    set_password(f"127.0.0.1:{ports['PLAINTEXT']}")
    yield {"pem": str(pem), **{name: f"127.0.0.1:{port}" for name, port in ports.items()}}
    broker.stop()


def set_password(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        change = UserScramCredentialUpsertion("tide", ScramCredentialInfo(mechanism, 4096), b"gate", b"salt")
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(60)
    expected = {(ScramMechanism.SCRAM_SHA_256, 4096), (ScramMechanism.SCRAM_SHA_512, 4096)}

    def known() -> bool:
        try:
            told = admin.describe_user_scram_credentials(["tide"])["tide"].result(60)
        except KafkaException:
            return False  # Apache Kafka's brokers hear of it some time after its controller
        return {(info.mechanism, info.iterations) for info in told.scram_credential_infos} == expected

    wait_until(known, "the credentials")


def certificate(secured: dict[str, str]) -> str:
    return "-----BEGIN CERTIFICATE" + Path(secured["pem"]).read_text().partition("-----BEGIN CERTIFICATE")[2]


async def works(config: ClientConfig, topic: str) -> bool:
    async with Admin(config) as admin, BatchProducer(config) as producer:
        await admin.create_topics([NewTopic(topic)])
        return (await producer.send(topic, None, b"v")).offset == 0


async def test_tls_with_a_client_certificate(secured: dict[str, str]) -> None:
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.location": secured["pem"],
        "ssl.keystore.location": secured["pem"],
    }
    assert await works(ClientConfig(secured["SSL"], settings), "tls")


async def test_sasl_over_tls(secured: dict[str, str]) -> None:
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.certificates": certificate(secured),
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN} username="tide" password="gate";',
    }
    config = ClientConfig(secured["SASL_SSL"], settings)
    assert await works(config, "sasl")
    wrong = config.with_properties({"sasl.jaas.config": f'{LOGIN} username="tide" password="wrong";'})
    with pytest.raises(SaslAuthenticationFailed, match=secured["SASL_SSL"]):
        await Admin(wrong).start()


@pytest.mark.parametrize(
    ("mechanism", "jaas"),
    [
        ("SCRAM-SHA-256", f'{SCRAM} username="tide" password="gate";'),
        ("SCRAM-SHA-512", f'{SCRAM} username="tide" password="gate";'),
        ("OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_sub="tide";'),
    ],
)
async def test_every_sasl_mechanism_works_over_tls(secured: dict[str, str], mechanism: str, jaas: str) -> None:
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.certificates": certificate(secured),
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
    }
    assert await works(ClientConfig(secured["SASL_SSL"], settings), f"sasl-{mechanism}")


async def test_a_wrong_password_is_refused(secured: dict[str, str]) -> None:
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.certificates": certificate(secured),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{SCRAM} username="tide" password="wrong";',
    }
    with pytest.raises(SaslAuthenticationFailed, match="invalid credentials with SASL mechanism SCRAM-SHA-512"):
        await Admin(ClientConfig(secured["SASL_SSL"], settings)).start()


@pytest.mark.parametrize("password", ["gate", "wrong"])
async def test_a_client_that_stopped_or_was_refused_leaves_no_socket(secured: dict[str, str], password: str) -> None:
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.certificates": certificate(secured),
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN} username="tide" password="{password}";',
    }
    admin = Admin(ClientConfig(secured["SASL_SSL"], settings))
    with nullcontext() if password == "gate" else pytest.raises(SaslAuthenticationFailed):
        await admin.start()
        await admin.stop()
    port = int(secured["SASL_SSL"].rpartition(":")[2])
    assert [
        connection
        for connection in psutil.Process().net_connections()
        if connection.raddr and connection.raddr.port == port
    ] == []


async def test_a_certificate_nobody_trusts_is_refused(secured: dict[str, str]) -> None:
    with pytest.raises(NotReachable, match=f"{secured['SSL']}: .*certificate verify failed"):
        await Admin(ClientConfig(secured["SSL"], {"security.protocol": "SSL"})).start()


class Caller:
    """A client on a socket, logged in over TLS: by PLAIN as ``tide``, or by SCRAM with a delegation token."""

    def __init__(self, secured: dict[str, str], token: tuple[str, bytes] | None = None) -> None:
        context = ssl.create_default_context(cafile=secured["pem"])
        host, _, port = secured["SASL_SSL"].rpartition(":")
        self._socket = context.wrap_socket(socket.create_connection((host, int(port)), 20), server_hostname=host)
        mechanism = "PLAIN" if token is None else "SCRAM-SHA-256"
        assert self.call(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, 1).error_code == 0
        if token is None:
            assert self._authenticate(b"\0tide\0gate").error_code == 0
        else:
            self._by_token(*token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, request: Request, answer: type[Any], version: int) -> Any:
        flexible = version >= request.FLEXIBLE_SINCE
        out = bytearray(struct.pack(">hhih", request.API_KEY, version, 7, -1)) + (b"\0" if flexible else b"")
        received = exchange(self._socket, bytes(encode(request, version, out)))
        assert received, f"{type(request).__name__}: the connection was closed"
        return decode(answer, memoryview(received), version, 4 + flexible)

    def _authenticate(self, message: bytes) -> Any:
        return self.call(SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse, 2)

    def _by_token(self, token_id: str, secret: bytes) -> None:
        first = f"n={token_id},r=abc,tokenauth=true"
        challenge = bytes(self._authenticate(f"n,,{first}".encode()).auth_bytes).decode()
        fields = dict(field.split("=", 1) for field in challenge.split(","))
        salted = hashlib.pbkdf2_hmac(
            "sha256", base64.b64encode(secret), base64.b64decode(fields["s"]), int(fields["i"])
        )
        key = hmac.digest(salted, b"Client Key", "sha256")
        final = f"c=biws,r={fields['r']}"
        signature = hmac.digest(hashlib.sha256(key).digest(), f"{first},{challenge},{final}".encode(), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        told = self._authenticate(f"{final},p={proof}".encode())
        assert (told.error_code, told.session_lifetime_ms > 0) == (0, True), told.error_message

    def create(self, *renewers: tuple[str, str], owner: str | None = None, lifetime_ms: int = -1) -> Any:
        request = CreateDelegationTokenRequest(
            owner_principal_type="User" if owner else None,
            owner_principal_name=owner,
            renewers=[CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in renewers],
            max_lifetime_ms=lifetime_ms,
        )
        return self.call(request, CreateDelegationTokenResponse, 3)

    def describe(self, *owners: str) -> Any:
        asked = [DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners] or None
        return self.call(DescribeDelegationTokenRequest(owners=asked), DescribeDelegationTokenResponse, 3)

    def renew(self, secret: bytes, period_ms: int) -> Any:
        request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
        return self.call(request, RenewDelegationTokenResponse, 2)

    def expire(self, secret: bytes, period_ms: int) -> Any:
        request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
        return self.call(request, ExpireDelegationTokenResponse, 2)


DAY = 86_400_000
NOT_FOUND, OWNER_MISMATCH, NOT_ALLOWED, PRINCIPAL_TYPE = 62, 63, 64, 67


def test_a_delegation_token_is_made_used_and_ended(secured: dict[str, str]) -> None:
    with Caller(secured) as caller:
        made = caller.create(("User", "bob"))
        assert (made.error_code, made.principal_name, made.token_requester_principal_name) == (0, "tide", "tide")
        assert made.expiry_timestamp_ms - made.issue_timestamp_ms == DAY
        assert made.max_timestamp_ms - made.issue_timestamp_ms == 7 * DAY
        assert (len(made.token_id), len(made.hmac)) == (22, 64)

        def known() -> list[Any]:
            return [token for token in caller.describe().tokens if token.token_id == made.token_id]

        wait_until(lambda: len(known()) == 1, "the token")  # Apache Kafka's brokers hear of it after its controller
        (described,) = known()
        assert (described.hmac, described.principal_name) == (made.hmac, "tide")
        assert [(renewer.principal_type, renewer.principal_name) for renewer in described.renewers] == [("User", "bob")]
        assert [renewer.token_id for renewer in caller.describe("bob").tokens] == [made.token_id]
        assert not caller.describe("eve").tokens
        with Caller(secured, (made.token_id, bytes(made.hmac))) as bearer:
            assert bearer.create().error_code == NOT_ALLOWED
            told = bearer.renew(bytes(made.hmac), -1)
            assert (told.error_code, told.expiry_timestamp_ms) == (NOT_ALLOWED, -1)
            assert bearer.describe().error_code == NOT_ALLOWED
        renewed = caller.renew(bytes(made.hmac), 60_000)
        assert renewed.error_code == 0
        assert renewed.expiry_timestamp_ms < made.expiry_timestamp_ms
        assert caller.renew(b"unknown", -1).error_code == NOT_FOUND
        assert caller.expire(b"unknown", -1).error_code == NOT_FOUND
        ended = caller.expire(bytes(made.hmac), -1)
        assert (ended.error_code, ended.expiry_timestamp_ms > made.issue_timestamp_ms) == (0, True)
        wait_until(lambda: not known(), "the token's end")
        assert caller.renew(bytes(made.hmac), -1).error_code == NOT_FOUND


def test_impossible_token_requests_are_refused(secured: dict[str, str]) -> None:
    with Caller(secured) as caller:
        refused = caller.create(("Group", "g"))
        assert (refused.error_code, refused.token_id, refused.expiry_timestamp_ms) == (PRINCIPAL_TYPE, "", -1)
        short = caller.create(lifetime_ms=5_000)
        assert short.max_timestamp_ms == short.expiry_timestamp_ms == short.issue_timestamp_ms + 5_000
        other = caller.create(owner="carol")
        assert (other.error_code, other.principal_name, other.token_requester_principal_name) == (0, "carol", "tide")
        wait_until(lambda: caller.renew(bytes(other.hmac), -1).error_code == OWNER_MISMATCH, "the token")
        assert caller.expire(bytes(other.hmac), -1).error_code == OWNER_MISMATCH


def scram_change(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"p" * 32
    )


def test_credentials_that_cannot_be_are_told_by_user(secured: dict[str, str]) -> None:
    with Caller(secured) as caller:
        request = AlterUserScramCredentialsRequest(
            deletions=[
                ScramCredentialDeletion(name="nobody", mechanism=1),
                ScramCredentialDeletion(name="odd", mechanism=0),
            ],
            upsertions=[
                scram_change(""),
                scram_change("few", iterations=4095),
                scram_change("many", iterations=16385),
                scram_change("strange", 3),
                scram_change("twice"),
                scram_change("twice", 2),
                scram_change("right"),
            ],
        )
        told = caller.call(request, AlterUserScramCredentialsResponse, 0)
        assert {result.user: (result.error_code, result.error_message) for result in told.results} == {
            "nobody": (91, "Attempt to delete a user credential that does not exist"),
            "odd": (33, "Unknown SCRAM mechanism"),
            "": (93, "Username must not be empty"),
            "few": (93, "Too few iterations"),
            "many": (93, "Too many iterations"),
            "strange": (33, "Unknown SCRAM mechanism"),
            "twice": (92, "A user credential cannot be altered twice in the same request"),
            "right": (0, None),
        }

        def described() -> dict[str, Any]:
            asked = DescribeUserScramCredentialsRequest(
                users=[UserName(name=user) for user in ("right", "no", "tide", "tide")]
            )
            answer = caller.call(asked, DescribeUserScramCredentialsResponse, 0)
            return {
                user.user: (user.error_code, [(info.mechanism, info.iterations) for info in user.credential_infos])
                for user in answer.results
            }

        wait_until(lambda: described()["right"][0] == 0, "the credential")
        assert described() == {"right": (0, [(1, 4096)]), "no": (91, []), "tide": (92, [])}
