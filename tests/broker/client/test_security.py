"""Encrypted and authenticated connections to a real Apache Kafka, and to our broker by the same settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from broker.client import Admin, BatchProducer, ClientConfig, NewTopic
from broker.client.errors import NotReachable, SaslAuthenticationFailed
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.process import free_ports, wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.certificates import write_certificate

pytestmark = pytest.mark.anyio

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


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
            future.result(30)
    wanted = [(ScramMechanism.SCRAM_SHA_256, 4096), (ScramMechanism.SCRAM_SHA_512, 4096)]

    def known() -> bool:
        try:
            told = admin.describe_user_scram_credentials(["tide"])["tide"].result(30)
        except KafkaException:
            return False  # Apache Kafka's brokers hear of it some time after its controller
        return [(one.mechanism, one.iterations) for one in told.scram_credential_infos] == wanted

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
async def test_other_mechanisms_over_tls(secured: dict[str, str], mechanism: str, jaas: str) -> None:
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


async def test_a_certificate_nobody_trusts_is_refused(secured: dict[str, str]) -> None:
    with pytest.raises(NotReachable, match=f"{secured['SSL']}: .*certificate verify failed"):
        await Admin(ClientConfig(secured["SSL"], {"security.protocol": "SSL"})).start()
