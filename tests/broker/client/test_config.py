"""Java's client keys and the library arguments that they are converted to."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from broker.client import BatchConsumer, ClientConfig
from tests.support.certificates import write_certificate
from tidegate.kit.errors import ConfigError


def arguments(**properties: str) -> dict[str, Any]:
    config = ClientConfig("b:1", {name.replace("_", "."): value for name, value in properties.items()})
    return config.library_arguments(config.connection())


def test_java_names_reach_the_library() -> None:
    made = arguments(client_id="me", request_timeout_ms="1234", metadata_max_age_ms="5")
    assert (made["bootstrap_servers"], made["client_id"]) == ("b:1", "me")
    assert (made["request_timeout_ms"], made["metadata_max_age_ms"]) == (1234, 5)


def test_one_config_serves_producers_and_consumers() -> None:
    config = ClientConfig("b:1", {"acks": "1", "group.id": "g", "nobody.knows": "x"})
    assert config.producer().acks == "1"
    assert not config.producer().idempotent
    assert config.consumer().group_id == "g"


@pytest.mark.parametrize(
    "line",
    [
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p\\"w";',
        'a.B required\n  password = "p\\"w"\n  username="u" ;',
    ],
)
def test_a_jaas_line_gives_user_and_password(line: str) -> None:
    made = arguments(security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=line)
    assert (made["sasl_plain_username"], made["sasl_plain_password"]) == ("u", 'p"w')
    assert made["sasl_mechanism"] == "SCRAM-SHA-512"


def test_user_and_password_have_keys_of_their_own() -> None:
    made = arguments(security_protocol="sasl_plaintext", sasl_username="u", sasl_password="p")
    assert (made["sasl_plain_username"], made["sasl_plain_password"]) == ("u", "p")


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism=PLAIN needs a user and a password"),
        ({"security.protocol": "TLS"}, "Invalid value TLS for configuration security.protocol"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/no/such"}, "cannot read"),
        ({"ssl.truststore.type": "BKS"}, "Invalid value BKS for configuration ssl.truststore.type"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"},
            "unsecuredLoginStringClaim_sub",
        ),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": "a b"}, "Invalid login module control flag"),
    ],
)
def test_wrong_values_are_named(properties: dict[str, str], message: str) -> None:
    config = ClientConfig("b:1", properties)
    with pytest.raises(ConfigError, match=message):
        config.library_arguments(config.connection())


def test_settings_that_cannot_go_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="acks"):
        ClientConfig("b:1", {"acks": "1", "enable.idempotence": "true"}).producer()
    with pytest.raises(ConfigError, match=r"transactional\.id"):
        ClientConfig("b:1", {"acks": "0", "transactional.id": "t"}).producer()


def test_javas_assignor_names_are_understood() -> None:
    name = "org.apache.kafka.clients.consumer.RoundRobinAssignor"
    BatchConsumer(ClientConfig("b:1", {"partition.assignment.strategy": f"{name}, range"}))
    with pytest.raises(ConfigError, match="CooperativeStickyAssignor"):
        BatchConsumer(ClientConfig("b:1", {"partition.assignment.strategy": "CooperativeStickyAssignor"}))


def test_pem_files_make_a_context(tmp_path: Path) -> None:
    pem = str(write_certificate(tmp_path / "c.pem"))
    context = arguments(
        security_protocol="SSL",
        ssl_truststore_location=pem,
        ssl_keystore_location=pem,
        ssl_endpoint_identification_algorithm="",
    )["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert not context.check_hostname
    assert context.cert_store_stats()["x509"] == 1


def test_a_file_that_is_no_pem_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.pem").write_text("tea")
    with pytest.raises(ConfigError, match=r"c\.pem holds no certificates"):
        arguments(security_protocol="SSL", ssl_truststore_location=str(tmp_path / "c.pem"))


def test_a_token_is_read_from_its_file_at_each_login_and_has_extensions(tmp_path: Path) -> None:
    file = tmp_path / "token"
    login = 'o.LoginModule required extension_logicalCluster="lkc-1" extension_identityPoolId="pool-1";'
    provider = arguments(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config=login,
        sasl_oauthbearer_token_endpoint_url=file.as_uri(),
    )["sasl_oauth_token_provider"]
    for token in ("signed-url-1", "signed-url-2"):
        file.write_text(f"{token}\n")
        assert asyncio.run(provider.token()) == token
    assert provider.extensions() == {"logicalCluster": "lkc-1", "identityPoolId": "pool-1"}
