"""Describing and changing configuration: the value in effect, its source, refused changes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.errors import InvalidConfiguration, InvalidRequest, UnknownTopicOrPartition
from broker.log.config import topic_defaults
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata
from broker.resources.entries import ConfigEntry, Operation, Source
from broker.resources.resources import BROKER, GROUP, LOGGER, TOPIC, Resources
from tidegate.kit.config import parse


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[ClusterMetadata]:
    directory = LogDirectory(tmp_path)
    directory.open()
    yield ClusterMetadata.open(directory)
    directory.close()


@pytest.fixture
def resources(metadata: ClusterMetadata) -> Resources:
    config = parse(BrokerConfig, {"log.dirs": "/nowhere", "log.retention.hours": "1", "message.max.bytes": "2000000"})
    made = Resources(config, metadata)
    metadata.create_topic("t", configs={"segment.bytes": "2097152"})
    return made


def entry(resources: Resources, name: str, key: str, resource_type: int = TOPIC) -> ConfigEntry:
    (described,) = resources.describe(resource_type, name, [key])
    return described


def test_the_nearest_setting_holds(resources: Resources, metadata: ClusterMetadata) -> None:
    assert (entry(resources, "t", "segment.bytes").value, entry(resources, "t", "segment.bytes").source) == (
        "2097152",
        Source.TOPIC,
    )
    retention = entry(resources, "t", "retention.ms")
    # As Kafka shows it: of the broker's keys only the one of the same unit is looked at, though the hours hold.
    assert (retention.value, retention.source, list(retention.synonyms)) == ("3600000", Source.DEFAULT, [])
    resources.alter(BROKER, "", [("log.retention.ms", Operation.SET, "5000")], validate_only=False)
    assert entry(resources, "t", "retention.ms").source is Source.BROKER_DEFAULT
    resources.alter(BROKER, "1", [("log.retention.ms", Operation.SET, "6000")], validate_only=False)
    assert entry(resources, "t", "retention.ms").value == "6000"
    assert metadata.topic_config("t").retention_ms == 6000
    resources.alter(TOPIC, "t", [("retention.ms", Operation.SET, "7000")], validate_only=False)
    assert metadata.topic_config("t").retention_ms == 7000


def test_broker_settings_outlive_a_restart(tmp_path: Path) -> None:
    config = parse(BrokerConfig, {"log.dirs": str(tmp_path)})
    for round_ in range(2):
        directory = LogDirectory(tmp_path)
        directory.open()
        metadata = ClusterMetadata.open(directory, topic_defaults=topic_defaults(config.topic_settings))
        resources = Resources(config, metadata)
        if round_ == 0:
            metadata.create_topic("t")
            resources.alter(BROKER, "", [("log.retention.ms", Operation.SET, "5000")], validate_only=False)
        assert metadata.topic_config("t").retention_ms == 5000
        directory.close()


def test_lists_grow_and_shrink(resources: Resources) -> None:
    resources.alter(TOPIC, "t", [("cleanup.policy", Operation.APPEND, "compact")], validate_only=False)
    assert entry(resources, "t", "cleanup.policy").value == "delete,compact"
    resources.alter(TOPIC, "t", [("cleanup.policy", Operation.APPEND, "compact")], validate_only=False)
    assert entry(resources, "t", "cleanup.policy").value == "delete,compact"
    resources.alter(TOPIC, "t", [("cleanup.policy", Operation.SUBTRACT, "delete")], validate_only=False)
    assert entry(resources, "t", "cleanup.policy").value == "compact"


def test_replacing_removes_what_is_not_named(resources: Resources) -> None:
    resources.replace(TOPIC, "t", {"retention.ms": "1000"}, validate_only=False)
    assert entry(resources, "t", "segment.bytes").source is Source.DEFAULT
    assert entry(resources, "t", "retention.ms").value == "1000"


@pytest.mark.parametrize(
    ("resource_type", "name", "change", "error", "text"),
    [
        (TOPIC, "no", ("retention.ms", 0, "1"), UnknownTopicOrPartition, "'no'"),
        (TOPIC, "t", ("retention.ms", 0, "soon"), InvalidConfiguration, "retention.ms"),
        (TOPIC, "t", ("retention.mss", 0, "1"), InvalidConfiguration, "did you mean retention.ms"),
        (TOPIC, "t", ("retention.ms", 2, "1"), InvalidConfiguration, "not a list"),
        (TOPIC, "t", ("retention.ms", 9, "1"), InvalidRequest, "0 to 3"),
        (TOPIC, "t", ("retention.ms", 0, None), InvalidRequest, "no value"),
        (BROKER, "9", ("log.retention.ms", 0, "1"), InvalidRequest, "no broker '9'"),
        (BROKER, "1", ("node.id", 0, "2"), InvalidRequest, "cannot be changed"),
        (BROKER, "", ("ssl.keystore.type", 0, "PEM"), InvalidRequest, "not for all"),
        (BROKER, "1", ("log.retention.ms", 0, "soon"), InvalidRequest, "retention.ms"),
        (BROKER, "1", ("num.io.threads", 0, "many"), InvalidRequest, "num.io.threads"),
        (BROKER, "1", ("min.insync.replicas", 0, "1"), InvalidConfiguration, "one for all brokers"),
        (BROKER, "", ("min.insync.replicas", 1, None), InvalidConfiguration, "cannot be removed"),
        (BROKER, "1", ("listeners", 0, "OTHER://127.0.0.1:0"), InvalidRequest, "where it is started"),
        (BROKER, "1", ("config.providers", 0, "file"), InvalidRequest, "not looked up"),
        (BROKER, "1", ("cordoned.log.dirs", 0, "/elsewhere"), InvalidRequest, "/elsewhere"),
        (BROKER, "", ("cordoned.log.dirs", 0, "*"), InvalidRequest, "not for all"),
        (LOGGER, "1", ("root", 0, "LOUD"), InvalidConfiguration, "LOUD is no level"),
        (LOGGER, "1", ("root", 1, None), InvalidRequest, "root logger cannot be deleted"),
        (LOGGER, "1", ("root", 2, "INFO"), InvalidRequest, "not changed by 2"),
        (LOGGER, "1", ("no.such", 0, "INFO"), InvalidConfiguration, "no logger 'no.such'"),
        (LOGGER, "2", ("root", 0, "INFO"), InvalidRequest, "no broker '2'"),
        (LOGGER, "", ("root", 0, "INFO"), InvalidRequest, "not of all"),
        (99, "1", ("x", 0, "1"), InvalidRequest, "type 99"),
    ],
)
def test_an_invalid_change_is_refused_and_changes_nothing(
    resources: Resources,
    metadata: ClusterMetadata,
    resource_type: int,
    name: str,
    change: tuple[str, int, str | None],
    error: type[Exception],
    text: str,
) -> None:
    before = dict(metadata.topic("t").configs)
    with pytest.raises(error, match=text):
        resources.alter(resource_type, name, [change], validate_only=False)
    assert metadata.topic("t").configs == before


def test_validating_changes_nothing(resources: Resources, metadata: ClusterMetadata) -> None:
    resources.alter(TOPIC, "t", [("retention.ms", Operation.SET, "1")], validate_only=True)
    assert "retention.ms" not in metadata.topic("t").configs
    with pytest.raises(InvalidConfiguration):
        resources.alter(TOPIC, "t", [("retention.ms", Operation.SET, "x")], validate_only=True)


def test_a_key_may_be_changed_once_in_a_request(resources: Resources) -> None:
    twice = [("retention.ms", Operation.SET, "1"), ("retention.ms", Operation.DELETE, None)]
    with pytest.raises(InvalidRequest, match="twice"):
        resources.alter(TOPIC, "t", twice, validate_only=False)


def test_levels_of_loggers_can_be_changed_and_given_back(resources: Resources) -> None:
    logger = logging.getLogger("a.logger.of.this.test")
    (before,) = resources.describe(LOGGER, "1", [logger.name])
    resources.alter(LOGGER, "1", [(logger.name, Operation.SET, "ERROR")], validate_only=False)
    assert not logger.isEnabledFor(logging.WARNING)
    (changed,) = resources.describe(LOGGER, "1", [logger.name])
    assert (changed.value, changed.source, changed.type_code) == ("ERROR", Source.LOGGER, 0)
    resources.alter(LOGGER, "1", [(logger.name, Operation.DELETE, None)], validate_only=False)
    assert resources.describe(LOGGER, "1", [logger.name]) == [before]


def test_keys_without_effect_are_kept_and_shown(resources: Resources) -> None:
    assert (
        entry(resources, "1", "num.io.threads", BROKER).value,
        entry(resources, "1", "num.io.threads", BROKER).source,
    ) == (
        "8",
        Source.DEFAULT,
    )
    resources.alter(BROKER, "1", [("num.io.threads", Operation.SET, "3")], validate_only=False)
    assert entry(resources, "1", "num.io.threads", BROKER).value == "3"


def test_the_broker_shows_what_it_was_started_with(resources: Resources) -> None:
    assert entry(resources, "1", "message.max.bytes", BROKER).source is Source.STATIC
    assert entry(resources, "1", "num.partitions", BROKER).read_only
    assert not entry(resources, "1", "log.retention.ms", BROKER).read_only


def test_a_key_set_while_the_broker_runs_takes_effect(resources: Resources) -> None:
    followed: list[BrokerConfig] = []
    resources.follow(followed.append)
    changes = {
        "producer.id.expiration.ms": "5000",
        "log.cleaner.backoff.ms": "7",
        "group.consumer.assignment.interval.ms": "9",
    }
    resources.alter(BROKER, "1", [(key, Operation.SET, value) for key, value in changes.items()], validate_only=False)
    assert [partition_log.producer_id_expiration_ms for partition_log in followed] == [86_400_000, 5000]
    assert (followed[-1].cleaner_backoff_ms, followed[-1].consumer_assignment_interval_ms) == (7, 9)
    assert entry(resources, "g", "consumer.assignment.interval.ms", GROUP).value == "9"
    resources.alter(BROKER, "1", [("producer.id.expiration.ms", Operation.DELETE, None)], validate_only=False)
    assert followed[-1].producer_id_expiration_ms == 86_400_000
