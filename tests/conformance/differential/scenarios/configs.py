"""Configuration of topics, brokers, loggers and groups, and the location of logs."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, Step, ask
from tests.conformance.differential.scenarios.common import create_topic, written

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def shown(kind: int, name: str, *keys: str, synonyms: bool = True, documentation: bool = True) -> Step:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    return ask(
        ApiKey.DESCRIBE_CONFIGS,
        {"resources": [resource], "include_synonyms": synonyms, "include_documentation": documentation},
    )


def replaced(kind: int, name: str, settings: dict[str, str | None], *, validate_only: bool = False) -> Step:
    configs = [{"name": key, "value": value} for key, value in settings.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    return ask(ApiKey.ALTER_CONFIGS, {"resources": [resource], "validate_only": validate_only}, once=True)


def changed(kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False) -> Step:
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    resource: dict[str, Any] = {"resource_type": kind, "resource_name": name, "configs": configs}
    return ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [resource], "validate_only": validate_only}, once=True)


def after(kind: int, name: str, *keys: str) -> Step:
    """Reads the configuration after a change."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys)}
    return ask(ApiKey.DESCRIBE_CONFIGS, {"resources": [resource], "include_synonyms": True}, version=4)


SCENARIOS: Final = (
    Scenario(
        "topic configs",
        ApiKey.DESCRIBE_CONFIGS,
        (
            *create_topic(configs={"retention.ms": "86400000", "cleanup.policy": "compact,delete"}),
            shown(TOPIC, "$u"),
            shown(TOPIC, "$u", "retention.ms", "no.such.key", synonyms=False, documentation=False),
            shown(TOPIC, "$u-absent"),
            shown(TOPIC, "no/name"),
            shown(TOPIC, ""),
            shown(0, "$u"),
            shown(99, "$u"),
        ),
    ),
    Scenario(
        "broker configs",
        ApiKey.DESCRIBE_CONFIGS,
        (shown(BROKER, "1"), shown(BROKER, ""), shown(BROKER, "7"), shown(BROKER, "one")),
    ),
    Scenario(
        "loggers",
        ApiKey.DESCRIBE_CONFIGS,
        (
            shown(LOGGER, "1", "root"),
            shown(LOGGER, "1", "root", "no.such.logger"),
            shown(LOGGER, "7"),
            shown(LOGGER, ""),
        ),
    ),
    Scenario(
        "other configs",
        ApiKey.DESCRIBE_CONFIGS,
        (shown(METRICS, "$u"), shown(METRICS, ""), shown(GROUP, "$u"), shown(GROUP, "")),
    ),
    Scenario(
        "replace configs",
        ApiKey.ALTER_CONFIGS,
        (
            *create_topic(configs={"segment.ms": "1000000"}),
            replaced(TOPIC, "$u", {"retention.ms": "5000"}, validate_only=True),
            replaced(TOPIC, "$u", {"retention.ms": "4000", "max.message.bytes": "100000"}),
            after(TOPIC, "$u", "retention.ms", "max.message.bytes", "segment.ms"),
            replaced(TOPIC, "$u", {"retention.ms": "never"}),
            replaced(TOPIC, "$u", {"no.such.key": "1"}),
            replaced(TOPIC, "$u", {"retention.ms": None}),
            replaced(TOPIC, "$u-absent", {"retention.ms": "4000"}),
            replaced(TOPIC, "", {"retention.ms": "4000"}),
            replaced(TOPIC, "$u", {}),
            after(TOPIC, "$u", "retention.ms", "max.message.bytes", "segment.ms"),
            replaced(BROKER, "7", {}, validate_only=True),
            replaced(BROKER, "1", {"log.cleaner.threads": "2"}, validate_only=True),
            replaced(BROKER, "1", {"node.id": "2"}, validate_only=True),
            replaced(99, "$u", {}),
        ),
    ),
    Scenario(
        "change configs",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (
            *create_topic(),
            changed(TOPIC, "$u", ("retention.ms", SET, "5000"), validate_only=True),
            changed(TOPIC, "$u", ("retention.ms", SET, "4000"), ("cleanup.policy", APPEND, "compact")),
            after(TOPIC, "$u", "retention.ms", "cleanup.policy"),
            changed(TOPIC, "$u", ("cleanup.policy", SUBTRACT, "delete")),
            after(TOPIC, "$u", "cleanup.policy"),
            changed(TOPIC, "$u", ("cleanup.policy", APPEND, "compact")),
            after(TOPIC, "$u", "cleanup.policy"),
            changed(TOPIC, "$u", ("retention.ms", DELETE, None), ("cleanup.policy", DELETE, None)),
            after(TOPIC, "$u", "retention.ms", "cleanup.policy"),
            changed(TOPIC, "$u", ("retention.ms", APPEND, "1")),
            changed(TOPIC, "$u", ("retention.ms", SET, "often")),
            changed(TOPIC, "$u", ("retention.ms", SET, None)),
            changed(TOPIC, "$u", ("retention.ms", 9, "1")),
            changed(TOPIC, "$u", ("no.such.key", SET, "1")),
            changed(TOPIC, "$u", ("no.such.key", DELETE, None)),
            changed(TOPIC, "$u", ("no.such.key", APPEND, "1")),
            changed(TOPIC, "$u", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
            changed(TOPIC, "$u", ("cleanup.policy", SET, "shred")),
            changed(TOPIC, "$u-absent", ("retention.ms", SET, "1")),
            changed(TOPIC, "", ("retention.ms", SET, "1")),
            changed(TOPIC, "$u"),
            changed(BROKER, "7", ("log.cleaner.threads", SET, "1"), validate_only=True),
            changed(BROKER, "1", ("node.id", SET, "3"), validate_only=True),
            changed(BROKER, "", ("log.retention.ms", SET, "x"), validate_only=True),
            changed(BROKER, "", ("no.such.key", SET, "x"), validate_only=True),
            changed(BROKER, "one", ("log.retention.ms", SET, "1"), validate_only=True),
            changed(99, "$u", ("retention.ms", SET, "1")),
            changed(0, "$u", ("retention.ms", SET, "1")),
            ask(
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                {"resources": [{"resource_type": TOPIC, "resource_name": "$u"}] * 2},
                once=True,
            ),
        ),
    ),
    Scenario(
        "change the broker's configs",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (
            changed(BROKER, "", ("log.retention.ms", SET, "8640000000"), ("log.segment.bytes", SET, "104857600")),
            after(BROKER, "", "log.retention.ms", "log.segment.bytes"),
            after(BROKER, "1", "log.retention.ms", "log.segment.bytes"),
            changed(BROKER, "1", ("log.retention.ms", SET, "8650000000")),
            after(BROKER, "1", "log.retention.ms"),
            *create_topic(),
            after(TOPIC, "$u", "retention.ms", "segment.bytes"),
            changed(BROKER, "1", ("log.retention.ms", DELETE, None)),
            changed(BROKER, "", ("log.retention.ms", DELETE, None), ("log.segment.bytes", DELETE, None)),
            after(BROKER, "1", "log.retention.ms", "log.segment.bytes"),
        ),
    ),
    Scenario(
        "change log levels",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        (
            changed(LOGGER, "1", ("root", SET, "ERROR"), validate_only=True),
            changed(LOGGER, "1", ("root", SET, "LOUD")),
            changed(LOGGER, "1", ("root", DELETE, None)),
            changed(LOGGER, "1", ("root", APPEND, "INFO")),
            changed(LOGGER, "1", ("no.such.logger", SET, "INFO")),
            changed(LOGGER, "7", ("root", SET, "INFO")),
            changed(LOGGER, "", ("root", SET, "INFO")),
            changed(LOGGER, "one", ("root", SET, "INFO")),
        ),
    ),
    Scenario(
        "log directories",
        ApiKey.DESCRIBE_LOG_DIRS,
        (
            *create_topic(),
            written(),
            ask(ApiKey.DESCRIBE_LOG_DIRS, {"topics": [{"topic": "$u", "partitions": [0, 1]}]}),
            ask(ApiKey.DESCRIBE_LOG_DIRS, {"topics": [{"topic": "$u-absent", "partitions": [0]}]}),
            ask(ApiKey.DESCRIBE_LOG_DIRS, {"topics": []}),
        ),
    ),
    Scenario(
        "move logs",
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        (
            *create_topic(),
            ask(ApiKey.DESCRIBE_LOG_DIRS, {"topics": []}, version=4, keep={"dir": "results.0.log_dir"}),
            ask(
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                {"dirs": [{"path": "$dir", "topics": [{"name": "$u", "partitions": [0, 1]}]}]},
            ),
            ask(
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                {"dirs": [{"path": "$dir", "topics": [{"name": "$u-absent", "partitions": [0]}]}]},
            ),
            ask(
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                {"dirs": [{"path": "/nowhere", "topics": [{"name": "$u", "partitions": [0]}]}]},
            ),
            ask(
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                {"dirs": [{"path": "nowhere", "topics": [{"name": "$u", "partitions": [0, 9]}]}]},
            ),
        ),
    ),
    Scenario(
        "which resources have configs",
        ApiKey.LIST_CONFIG_RESOURCES,
        (
            ask(ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": [BROKER, LOGGER]}),
            ask(ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": [METRICS]}),
            ask(ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": [GROUP]}),
            ask(ApiKey.LIST_CONFIG_RESOURCES, {"resource_types": [99]}),
        ),
    ),
)
