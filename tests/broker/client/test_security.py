"""Encrypted and authenticated connections to a real Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.client import Admin, BatchProducer, ClientConfig, NewTopic
from broker.client.errors import NotReachable, SaslAuthenticationFailed
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.process import free_ports
from tests.support.certificates import write_certificate

pytestmark = pytest.mark.anyio

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Addresses by security protocol, and the certificate under ``pem``."""
    folder = tmp_path_factory.mktemp("secured")
    pem = write_certificate(folder / "broker.pem")
    ports = dict(zip(("PLAINTEXT", "CONTROLLER", "SSL", "SASL_SSL"), free_ports(4), strict=True))
    listeners = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items()}
    broker: KafkaBroker = or_skip(
        lambda: KafkaBroker(
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
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{LOGIN} user_tide="gate";',
            },
        )
    )
    broker.port = ports["PLAINTEXT"]
    broker.start()
    yield {"pem": str(pem), **{name: f"127.0.0.1:{port}" for name, port in ports.items()}}
    broker.stop()


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
        "ssl.truststore.certificates": Path(secured["pem"]).read_text().partition("-----BEGIN CERTIFICATE")[2],
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{LOGIN} username="tide" password="gate";',
    }
    settings["ssl.truststore.certificates"] = "-----BEGIN CERTIFICATE" + settings["ssl.truststore.certificates"]
    config = ClientConfig(secured["SASL_SSL"], settings)
    assert await works(config, "sasl")
    wrong = config.with_properties({"sasl.jaas.config": f'{LOGIN} username="tide" password="wrong";'})
    with pytest.raises(SaslAuthenticationFailed, match=secured["SASL_SSL"]):
        await Admin(wrong).start()


async def test_a_certificate_nobody_trusts_is_refused(secured: dict[str, str]) -> None:
    with pytest.raises(NotReachable, match=f"{secured['SSL']}: .*certificate verify failed"):
        await Admin(ClientConfig(secured["SSL"], {"security.protocol": "SSL"})).start()
