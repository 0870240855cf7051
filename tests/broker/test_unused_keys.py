"""Every configuration key of Apache Kafka's brokers is either applied or has a reason why it is not."""

from __future__ import annotations

import pytest

from broker.config import BrokerConfig
from broker.kafka_keys import KAFKA_KEYS
from broker.log.config import BROKER_SYNONYMS
from broker.unused_keys import REFUSED, UNUSED
from tidegate.kit.config import keys_of, parse
from tidegate.kit.errors import ConfigError

APPLIED = {name for key in keys_of(BrokerConfig) for name in (key.name, *key.aliases)} | {
    name for names in BROKER_SYNONYMS.values() for name, _ in names
}


def test_every_key_of_kafka_is_applied_or_has_its_reason() -> None:
    assert KAFKA_KEYS.keys() - APPLIED == UNUSED.keys() | (REFUSED.keys() & KAFKA_KEYS.keys())
    assert not UNUSED.keys() & REFUSED.keys()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("create.topic.policy.class.name", "com.example.Policy"),
        ("alter.config.policy.class.name", "com.example.Policy"),
        ("client.quota.callback.class", "com.example.Quotas"),
        ("config.providers", "file"),
        ("remote.log.storage.system.enable", "true"),
        ("listener.name.plaintext.ssl.engine.factory.class", "com.example.Engine"),
        ("process.roles", "controller"),
        ("cordoned.log.dirs", "/elsewhere"),
        ("group.coordinator.rebalance.protocols", "consumer"),
        ("group.coordinator.rebalance.protocols", "classic,other"),
    ],
)
def test_keys_that_must_not_be_ignored_are_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        parse(BrokerConfig, {"log.dirs": "/nowhere", key: value})


def test_common_settings_of_kafkas_files_are_accepted() -> None:
    broker_settings = {
        "process.roles": "broker,controller",
        "remote.log.storage.system.enable": "false",
        "create.topic.policy.class.name": "",
        "cordoned.log.dirs": "*",
        "num.network.threads": "3",
    }
    assert (
        parse(BrokerConfig, {"log.dirs": "/nowhere", **broker_settings}).properties.items() >= broker_settings.items()
    )
