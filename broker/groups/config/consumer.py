"""The configuration keys of consumer groups (KIP-848), under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Iterator

from broker.groups.config.bounds import bounds
from tidegate.kit.config import KeyType, at_least, config, key
from tidegate.kit.errors import Problem

__all__ = ["ConsumerGroupConfig"]

_ASSIGNORS = ("uniform", "range")
_POLICIES = ("bidirectional", "disabled", "downgrade", "upgrade")


def _assignors(values: list[str]) -> str | None:
    unknown = [value for value in values if value not in _ASSIGNORS]
    if unknown:
        return f"there is no assignor {', '.join(unknown)}: there are {' and '.join(_ASSIGNORS)}"
    if not values or len(set(values)) < len(values):
        return "name each assignor once, one at least"
    return None


def _policy(value: str) -> str | None:
    return None if value.lower() in _POLICIES else f"String must be one of (case insensitive): {', '.join(_POLICIES)}"


@config
class ConsumerGroupConfig:
    """The broker's keys for consumer groups, including the bounds for what single groups can set."""

    consumer_session_timeout_ms: int = key(
        "group.consumer.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a member of a consumer group may be silent before it is taken to have failed, in milliseconds.",
    )
    consumer_min_session_timeout_ms: int = key(
        "group.consumer.min.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The shortest session timeout that can be set for a consumer group, in milliseconds.",
    )
    consumer_max_session_timeout_ms: int = key(
        "group.consumer.max.session.timeout.ms",
        default=60_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The longest session timeout that can be set for a consumer group, in milliseconds.",
    )
    consumer_heartbeat_interval_ms: int = key(
        "group.consumer.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often members of a consumer group are told to send heartbeats, in milliseconds.",
    )
    consumer_min_heartbeat_interval_ms: int = key(
        "group.consumer.min.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The shortest heartbeat interval that can be set for a consumer group, in milliseconds.",
    )
    consumer_max_heartbeat_interval_ms: int = key(
        "group.consumer.max.heartbeat.interval.ms",
        default=15_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The longest heartbeat interval that can be set for a consumer group, in milliseconds.",
    )
    consumer_assignment_interval_ms: int = key(
        "group.consumer.assignment.interval.ms",
        default=1000,
        type=KeyType.INT,
        check=at_least(0),
        doc="A consumer group gets a new target assignment at most this often, in milliseconds.",
    )
    consumer_min_assignment_interval_ms: int = key(
        "group.consumer.min.assignment.interval.ms",
        default=0,
        type=KeyType.INT,
        check=at_least(0),
        doc="The shortest assignment interval that can be set for a consumer group, in milliseconds.",
    )
    consumer_max_assignment_interval_ms: int = key(
        "group.consumer.max.assignment.interval.ms",
        default=15_000,
        type=KeyType.INT,
        check=at_least(0),
        doc="The longest assignment interval that can be set for a consumer group, in milliseconds.",
    )
    consumer_max_size: int = key(
        "group.consumer.max.size",
        default=(1 << 31) - 1,
        type=KeyType.INT,
        check=at_least(1),
        doc="How many members a consumer group may have. Classic groups go by group.max.size.",
    )
    consumer_assignors: list[str] = key(
        "group.consumer.assignors",
        default=["uniform", "range"],
        check=_assignors,
        doc="The assignors members may ask for, uniform and range; the first is for members that ask for none.",
    )
    consumer_migration_policy: str = key(
        "group.consumer.migration.policy",
        default="bidirectional",
        check=_policy,
        doc="Whether groups with members may turn from classic to consumer groups (upgrade), back (downgrade), both "
        "(bidirectional) or neither (disabled). Empty groups always may.",
    )
    consumer_regex_refresh_interval_ms: int = key(
        "group.consumer.regex.refresh.interval.ms",
        default=600_000,
        type=KeyType.INT,
        check=at_least(10_000),
        doc="How often the topics that regular expressions match are looked up again, in milliseconds. New topics are noticed sooner.",
    )

    def problems(self) -> Iterator[Problem]:
        yield from bounds(self, "consumer")
