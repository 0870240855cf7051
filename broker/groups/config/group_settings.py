"""The configuration of single groups: resources of type GROUP (KIP-848, KIP-932, KIP-1071)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from broker.errors import InvalidConfiguration
from broker.groups.config.group_config import GroupConfig
from tidegate.kit.config import KeyType, at_least, config, key, keys_of, one_of, parse
from tidegate.kit.errors import ConfigError

__all__ = ["GroupSettings", "SettingsOfGroups"]

_DURATION: Final = re.compile(r"P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?", re.IGNORECASE)


def _offset_reset(value: str) -> str | None:
    if value in ("earliest", "latest"):
        return None
    prefix, _, duration = value.partition(":")
    if prefix == "by_duration" and _DURATION.fullmatch(duration):
        return None
    return "give `earliest`, `latest` or `by_duration:` with an ISO 8601 duration that is not negative (PnDTnHnMn.nS)"


@config
class GroupSettings:
    """The keys that can be set for one group.

    Unset keys have the value of the broker's ``group.*`` key of the same name.
    """

    consumer_session_timeout_ms: int = key(
        "consumer.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a member of the consumer group may be silent before it is taken to have failed, in milliseconds.",
    )
    consumer_heartbeat_interval_ms: int = key(
        "consumer.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often members of the consumer group are told to send heartbeats, in milliseconds.",
    )
    consumer_assignment_interval_ms: int = key(
        "consumer.assignment.interval.ms",
        default=1000,
        type=KeyType.INT,
        check=at_least(0),
        doc="The consumer group gets a new target assignment at most this often, in milliseconds.",
    )
    share_session_timeout_ms: int = key(
        "share.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a member of the share group may be silent before it is taken to have failed, in milliseconds.",
    )
    share_heartbeat_interval_ms: int = key(
        "share.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often members of the share group are told to send heartbeats, in milliseconds.",
    )
    share_assignment_interval_ms: int = key(
        "share.assignment.interval.ms",
        default=1000,
        type=KeyType.INT,
        check=at_least(0),
        doc="The share group gets a new target assignment at most this often, in milliseconds.",
    )
    share_record_lock_duration_ms: int = key(
        "share.record.lock.duration.ms",
        default=30_000,
        type=KeyType.INT,
        check=at_least(1000),
        doc="How long a record stays acquired, in milliseconds.",
    )
    share_delivery_count_limit: int = key(
        "share.delivery.count.limit",
        default=5,
        type=KeyType.INT,
        check=at_least(2),
        doc="How often a record is delivered before it is given up.",
    )
    share_partition_max_record_locks: int = key(
        "share.partition.max.record.locks",
        default=2000,
        type=KeyType.INT,
        check=at_least(100),
        doc="How many records of a share-partition may be acquired at one time.",
    )
    share_auto_offset_reset: str = key(
        "share.auto.offset.reset",
        default="latest",
        check=_offset_reset,
        doc="Where a share-partition begins: `earliest`, `latest`, or `by_duration:` and an ISO 8601 duration before now.",
    )
    share_isolation_level: str = key(
        "share.isolation.level",
        default="read_uncommitted",
        check=one_of("read_committed", "read_uncommitted"),
        doc="Whether records of transactions that did not commit are delivered.",
    )
    share_renew_acknowledge_enable: bool = key(
        "share.renew.acknowledge.enable",
        default=True,
        doc="Whether consumers may renew the lock of a record.",
    )
    streams_session_timeout_ms: int = key(
        "streams.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a member of the streams group may be silent before it is taken to have failed, in milliseconds.",
    )
    streams_heartbeat_interval_ms: int = key(
        "streams.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often members of the streams group are told to send heartbeats, in milliseconds.",
    )
    streams_assignment_interval_ms: int = key(
        "streams.assignment.interval.ms",
        default=1000,
        type=KeyType.INT,
        check=at_least(0),
        doc="The streams group gets a new target assignment at most this often, in milliseconds.",
    )
    streams_num_standby_replicas: int = key(
        "streams.num.standby.replicas",
        default=0,
        type=KeyType.INT,
        check=at_least(0),
        doc="How many standby replicas each task with state has.",
    )
    streams_initial_rebalance_delay_ms: int = key(
        "streams.initial.rebalance.delay.ms",
        default=3000,
        type=KeyType.INT,
        check=at_least(0),
        doc="How long the first assignment of the empty group waits for more members, in milliseconds.",
    )


_BOUNDED: Final = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.assignment.interval.ms",
)
_KINDS: Final = ("consumer", "share", "streams")
_ATTRIBUTES: Final = {declared.name: declared.attribute for declared in keys_of(GroupSettings)}


class SettingsOfGroups:
    """The settings of each group: its own values, limited to the broker's bounds, then the broker's values."""

    def __init__(self, broker: GroupConfig, overrides: Callable[[str], Mapping[str, str]] | None = None) -> None:
        self._overrides = overrides
        self._parsed: dict[str, tuple[Mapping[str, str], GroupSettings]] = {}
        self.go_by(broker)

    def go_by(self, broker: GroupConfig) -> None:
        """Take defaults and bounds from this broker configuration from now on."""
        self._broker = broker
        self._defaults = parse(GroupSettings, self.broker_values())
        self._parsed.clear()

    def broker_values(self) -> dict[str, str]:
        """The broker's values of all keys that exist for brokers too."""
        return {
            name: str(getattr(self._broker, attribute))
            for name, attribute in _ATTRIBUTES.items()
            if hasattr(self._broker, attribute)
        }

    def __call__(self, group_id: str) -> GroupSettings:
        configs = self._overrides(group_id) if self._overrides is not None else {}
        if not configs:
            return self._defaults
        cached = self._parsed.get(group_id)
        if cached is None or cached[0] is not configs:
            self._parsed[group_id] = cached = (configs, parse(GroupSettings, self._within_bounds(configs)))
        return cached[1]

    def _within_bounds(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Limit stored values to the bounds; the broker may have been restarted with other bounds since they were
        checked.
        """
        values = {**self.broker_values(), **configs}
        for name in _BOUNDED:
            if name in configs:
                low, high = self._bounds(name)
                values[name] = str(min(max(int(configs[name]), low), high))
        most = self._broker.streams_max_standby_replicas
        values["streams.num.standby.replicas"] = str(min(int(values["streams.num.standby.replicas"]), most))
        return values

    def _bounds(self, name: str) -> tuple[int, int]:
        kind, _, rest = _ATTRIBUTES[name].partition("_")
        return getattr(self._broker, f"{kind}_min_{rest}"), getattr(self._broker, f"{kind}_max_{rest}")

    def check(self, configs: Mapping[str, str]) -> None:
        """Validate the complete settings of a group. Raises InvalidConfiguration."""
        for name in configs:
            if name not in _ATTRIBUTES:
                raise InvalidConfiguration(f"Unknown group config name: {name}")
        try:
            settled = parse(GroupSettings, {**self.broker_values(), **configs})
        except ConfigError as error:
            raise InvalidConfiguration(error.message) from error
        for name in _BOUNDED:
            low, high = self._bounds(name)
            value: int = getattr(settled, _ATTRIBUTES[name])
            kind, _, rest = name.partition(".")
            if name in configs and value < low:
                raise InvalidConfiguration(f"{name} must be greater than or equal to group.{kind}.min.{rest}")
            if name in configs and value > high:
                raise InvalidConfiguration(f"{name} must be less than or equal to group.{kind}.max.{rest}")
        if settled.streams_num_standby_replicas > self._broker.streams_max_standby_replicas:
            raise InvalidConfiguration(
                "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas"
            )
        for kind in _KINDS:
            if getattr(settled, f"{kind}_session_timeout_ms") <= getattr(settled, f"{kind}_heartbeat_interval_ms"):
                raise InvalidConfiguration(
                    f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"
                )
