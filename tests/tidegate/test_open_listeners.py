"""Listeners without authentication: their components log a warning when other machines can reach them."""

from __future__ import annotations

import pytest

from broker.config import BrokerConfig
from connect.config.rest import RestConfig
from events.config import EventsConfig
from registry.server.config import RegistryConfig
from tidegate.kit.addresses import warn_of_open
from tidegate.kit.config import parse, validate

HTTP = "http://0.0.0.0:80,http://127.0.0.1:81,http://localhost:82"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, ["PLAINTEXT://0.0.0.0:9092"]),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, []),
        ({"listeners": "SASL_PLAINTEXT://0.0.0.0:9092"}, []),
        (
            {"listeners": "A://0.0.0.0:1,B://[::]:2", "listener.security.protocol.map": "A:SASL_SSL,B:SSL"},
            ["B://[::]:2"],
        ),
        ({"listeners": "SSL://0.0.0.0:9092", "ssl.client.auth": "required"}, []),
        (
            {
                "listeners": "PLAINTEXT://0.0.0.0:9092",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            },
            [],
        ),
    ],
)
def test_listeners_of_a_broker(keys: dict[str, str], expected: list[str]) -> None:
    config = BrokerConfig(**_values(BrokerConfig, {"log.dirs": "/nowhere", **keys}))
    assert config.open_listeners == expected


def _values(cls: type, keys: dict[str, str]) -> dict[str, object]:
    """The values of keys without what only a start needs, such as key stores."""
    return {entry.key.attribute: entry.value for entry in validate(cls, keys)}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"listeners": HTTP}, ["http://0.0.0.0:80"]),
        ({"listeners": HTTP, "users.file": "users.json"}, []),
        ({"listeners": HTTP, "authentication.method": "BASIC", "java.security.auth.login.config": "x"}, []),
        ({"listeners": "http://127.0.0.1:1"}, []),
    ],
)
def test_listeners_of_a_registry(keys: dict[str, str], expected: list[str]) -> None:
    config = parse(RegistryConfig, {"kafkastore.bootstrap.servers": "127.0.0.1:1", **keys})
    assert config.open_listeners == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"listeners": HTTP, "admin.listeners": "http://0.0.0.0:90"}, ["http://0.0.0.0:80", "http://0.0.0.0:90"]),
        ({"listeners": HTTP, "users.file": "users.json"}, []),
        ({"listeners": "https://0.0.0.0:1", "ssl.client.auth": "required"}, []),
        ({"listeners": "https://0.0.0.0:1"}, ["https://0.0.0.0:1"]),
    ],
)
def test_listeners_of_a_worker(keys: dict[str, str], expected: list[str]) -> None:
    assert parse(RestConfig, keys).open_listeners == expected


@pytest.mark.parametrize("settings", [{}, {"events.password": "", "events.client.secret": "s"}])
def test_the_events_service_does_not_listen_to_others_with_a_password_that_is_known(settings: dict[str, str]) -> None:
    def errors(keys: dict[str, str]) -> str:
        keys = {"schema.registry.url": "http://127.0.0.1:1", "http.listen": "0.0.0.0:8090", **keys}
        return " ".join(error for checked in validate(EventsConfig, keys) for error in checked.errors)

    assert "empty or the published default" in errors(settings)
    assert "published" not in errors({"events.password": "p", "events.client.secret": "s"})


def test_the_log_names_address_and_remedy(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_open("broker", ["PLAINTEXT://0.0.0.0:9092"], "authorizer.class.name")
    line = caplog.text
    assert "anybody who reaches this address may do everything" in line
    assert "PLAINTEXT://0.0.0.0:9092" in line
    assert "authorizer.class.name" in line
