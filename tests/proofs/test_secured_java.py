"""Java's tools and clients on secured listeners: every mechanism plain and under TLS, credentials, tokens, sessions that end."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.security.conftest import (
    MECHANISMS,
    OID,
    PASSWORD,
    USER,
    Doors,
    Issuer,
    doors_settings,
    jaas_text,
    set_passwords,
)
from tests.proofs import effort
from tests.servers.kafka import kafka_tool
from tests.support.broker import BrokerThread
from tests.support.certificates import Authority

pytestmark = [pytest.mark.servers, pytest.mark.proof]

WAYS = [(mechanism, listener) for mechanism in MECHANISMS for listener in ("SASL_PLAINTEXT", "SASL_SSL")]
SECURITY = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    directory = tmp_path_factory.mktemp("java")
    authority, issuer = Authority(directory / "authority"), Issuer(directory)
    certificate = authority.issue((OID.ORGANIZATIONAL_UNIT_NAME, "ops"), (OID.COMMON_NAME, "Carol"))
    more = {"connections.max.reauth.ms": "1500"}
    with BrokerThread(doors_settings(directory / "data", authority, issuer, **more)) as broker:
        made = Doors(broker, authority, issuer, certificate)
        set_passwords(made.address("PLAINTEXT"))
        yield made


def module(mechanism: str, user: str = USER, password: str = PASSWORD, more: str = "") -> str:
    if mechanism == "OAUTHBEARER":
        return f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{user}";'
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    return f"{SECURITY}.{kind}LoginModule required username={jaas_text(user)} password={jaas_text(password)}{more};"


@pytest.fixture
def config(doors: Doors, tmp_path: Path) -> Callable[..., str]:
    """Writes a client's properties file."""

    def write(listener: str, mechanism: str | None, jaas: str = "") -> str:
        settings = {
            "security.protocol": "SSL" if listener == "MUTUAL" else listener,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(doors.authority.certificate),
        }
        if mechanism is not None:
            settings |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas or module(mechanism)}
        else:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(doors.client_certificate)}
        file = tmp_path / f"{listener}-{mechanism}.properties"
        file.write_text("".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in settings.items()))
        return str(file)

    return write


@pytest.mark.parametrize(("mechanism", "listener"), WAYS[: effort(1, len(WAYS))] + WAYS[effort(7, 8) :])
def test_records_go_in_and_out(doors: Doors, config: Callable[..., str], mechanism: str, listener: str) -> None:
    where = ["--bootstrap-server", doors.address(listener), "--topic", f"{mechanism}-{listener}"]
    file = config(listener, mechanism)
    kafka_tool("kafka-console-producer", *where, "--command-config", file, stdin="one\ntwo\n")
    options = ["--from-beginning", "--max-messages", "2", "--timeout-ms", "20000", "--command-config", file]
    assert kafka_tool("kafka-console-consumer", *where, *options).split() == ["one", "two"]


def test_a_client_certificate_of_a_java_client(doors: Doors, config: Callable[..., str]) -> None:
    where = ["--bootstrap-server", doors.address("MUTUAL"), "--command-config", config("MUTUAL", None)]
    assert "Created topic" in kafka_tool("kafka-topics", *where, "--create", "--topic", "by-certificate")


def test_a_java_producer_authenticates_again_while_it_writes(doors: Doors, config: Callable[..., str]) -> None:
    records = effort(4_000, 20_000)
    options = ["--topic", "again", "--num-records", str(records), "--record-size", "100", "--throughput", "800"]
    brokers = ["--bootstrap-server", doors.address("SASL_SSL"), "--command-config", config("SASL_SSL", "SCRAM-SHA-512")]
    said = kafka_tool("kafka-producer-perf-test", *options, *brokers)
    assert f"{records} records sent" in said
    assert "rror" not in said


def test_credentials_by_kafka_configs(doors: Doors, config: Callable[..., str]) -> None:
    where = ["--bootstrap-server", doors.address("PLAINTEXT"), "--entity-type", "users"]
    change = "SCRAM-SHA-256=[iterations=8192,password=java-secret]"
    kafka_tool("kafka-configs", *where, "--alter", "--entity-name", "dora", "--add-config", change)
    assert "'dora' are SCRAM-SHA-256=iterations=8192" in kafka_tool("kafka-configs", *where, "--describe")
    jaas = module("SCRAM-SHA-256", "dora", "java-secret")
    options = ["--bootstrap-server", doors.address("SASL_SSL"), "--list"]
    kafka_tool("kafka-topics", *options, "--command-config", config("SASL_SSL", "SCRAM-SHA-256", jaas))
    kafka_tool("kafka-configs", *where, "--alter", "--entity-name", "dora", "--delete-config", "SCRAM-SHA-256")
    with pytest.raises(AssertionError, match="invalid credentials with SASL mechanism SCRAM-SHA-256"):
        kafka_tool("kafka-topics", *options, "--command-config", config("SASL_SSL", "SCRAM-SHA-256", jaas))


def test_tokens_by_kafka_delegation_tokens(doors: Doors, config: Callable[..., str]) -> None:
    where = ["--bootstrap-server", doors.address("SASL_SSL"), "--command-config", config("SASL_SSL", "SCRAM-SHA-512")]
    made = kafka_tool("kafka-delegation-tokens", *where, "--create", "--max-life-time-period", "-1")
    match = re.search(r"^(\S{22})\s+(\S{88})\s+User:alice", made, re.MULTILINE)
    assert match is not None, made
    token_id, secret = match[1], match[2]
    assert len(base64.b64decode(secret)) == 64
    jaas = module("SCRAM-SHA-256", token_id, secret, ' tokenauth="true"')
    options = ["--bootstrap-server", doors.address("SASL_PLAINTEXT"), "--list"]
    kafka_tool("kafka-topics", *options, "--command-config", config("SASL_PLAINTEXT", "SCRAM-SHA-256", jaas))
    said = kafka_tool("kafka-delegation-tokens", *where, "--expire", "--expiry-time-period", "-1", "--hmac", secret)
    assert "Completed expire operation" in said
