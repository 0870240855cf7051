"""The configuration of single groups is checked against the broker's limits and kept within them."""

from __future__ import annotations

import pytest

from broker.errors import InvalidConfiguration
from broker.groups import GroupConfig, SettingsOfGroups
from tidegate.kit.config import keys_of, parse
from tidegate.kit.errors import ConfigError


def test_a_group_goes_by_the_brokers_settings_unless_it_has_its_own() -> None:
    broker = parse(GroupConfig, {"group.consumer.heartbeat.interval.ms": "6000"})
    groups = {"special": {"consumer.heartbeat.interval.ms": "7000", "share.isolation.level": "read_committed"}}
    settings = SettingsOfGroups(broker, lambda group: groups.get(group, {}))
    assert settings("any").consumer_heartbeat_interval_ms == 6_000
    assert settings("special").consumer_heartbeat_interval_ms == 7_000
    assert settings("special").share_isolation_level == "read_committed"
    assert settings("special").streams_session_timeout_ms == 45_000
    assert settings("special") is settings("special")


def test_values_stay_within_bounds_that_were_narrowed_since() -> None:
    broker = parse(GroupConfig, {"group.streams.max.standby.replicas": "1"})
    group_settings = {"consumer.session.timeout.ms": "1", "streams.num.standby.replicas": "5"}
    settings = SettingsOfGroups(broker, lambda group: group_settings)
    assert settings("g").consumer_session_timeout_ms == 45_000
    assert settings("g").streams_num_standby_replicas == 1


@pytest.mark.parametrize(
    ("settings_given", "problem"),
    [
        ({"no.such.key": "1"}, "Unknown group config name: no.such.key"),
        ({"consumer.session.timeout.ms": "1000"}, "greater than or equal to group.consumer.min.session.timeout.ms"),
        ({"share.delivery.count.limit": "11"}, "less than or equal to group.share.max.delivery.count.limit"),
        ({"streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas"),
        ({"consumer.heartbeat.interval.ms": "x"}, "consumer.heartbeat.interval.ms"),
        ({"share.auto.offset.reset": "by_duration:-PT1H"}, "share.auto.offset.reset"),
        ({"share.isolation.level": "serializable"}, "share.isolation.level"),
    ],
)
def test_what_does_not_fit_is_refused(settings_given: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidConfiguration, match=problem):
        SettingsOfGroups(parse(GroupConfig, {})).check(settings_given)


def test_good_values_are_taken() -> None:
    for reset in ("earliest", "latest", "by_duration:P1DT2H", "by_duration:PT0.5S"):
        SettingsOfGroups(parse(GroupConfig, {})).check({"share.auto.offset.reset": reset})


@pytest.mark.parametrize(
    "overrides",
    [
        {"group.consumer.session.timeout.ms": "1000"},
        {"group.share.min.session.timeout.ms": "70000"},
        {"group.consumer.assignors": "uniform,best"},
        {"group.consumer.migration.policy": "sometimes"},
        {"group.streams.heartbeat.interval.ms": "50000", "group.streams.max.heartbeat.interval.ms": "50000"},
    ],
)
def test_a_broker_is_not_started_with_settings_that_contradict_each_other(overrides: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        parse(GroupConfig, overrides)


def test_every_key_has_kafkas_name() -> None:
    names = {key.name for key in keys_of(GroupConfig)}
    assert len([name for name in names if name.startswith("group.consumer.")]) == 13
