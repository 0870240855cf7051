"""The configuration keys of streams groups (KIP-1071), under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Iterator

from broker.groups.config.bounds import bounds
from tidegate.kit.config import KeyType, at_least, config, key
from tidegate.kit.errors import Problem

__all__ = ["StreamsGroupConfig"]


@config
class StreamsGroupConfig:
    """The broker's keys for streams groups, including the bounds for what single groups can set."""

    streams_session_timeout_ms: int = key(
        "group.streams.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a member of a streams group may be silent before it is taken to have failed, in milliseconds.",
    )
    streams_min_session_timeout_ms: int = key(
        "group.streams.min.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The shortest session timeout that can be set for a streams group, in milliseconds.",
    )
    streams_max_session_timeout_ms: int = key(
        "group.streams.max.session.timeout.ms",
        default=60_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The longest session timeout that can be set for a streams group, in milliseconds.",
    )
    streams_heartbeat_interval_ms: int = key(
        "group.streams.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often members of a streams group are told to send heartbeats, in milliseconds.",
    )
    streams_min_heartbeat_interval_ms: int = key(
        "group.streams.min.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The shortest heartbeat interval that can be set for a streams group, in milliseconds.",
    )
    streams_max_heartbeat_interval_ms: int = key(
        "group.streams.max.heartbeat.interval.ms",
        default=15_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The longest heartbeat interval that can be set for a streams group, in milliseconds.",
    )
    streams_assignment_interval_ms: int = key(
        "group.streams.assignment.interval.ms",
        default=1000,
        type=KeyType.INT,
        check=at_least(0),
        doc="A streams group gets a new target assignment at most this often, in milliseconds.",
    )
    streams_min_assignment_interval_ms: int = key(
        "group.streams.min.assignment.interval.ms",
        default=0,
        type=KeyType.INT,
        check=at_least(0),
        doc="The shortest assignment interval that can be set for a streams group, in milliseconds.",
    )
    streams_max_assignment_interval_ms: int = key(
        "group.streams.max.assignment.interval.ms",
        default=15_000,
        type=KeyType.INT,
        check=at_least(0),
        doc="The longest assignment interval that can be set for a streams group, in milliseconds.",
    )
    streams_max_size: int = key(
        "group.streams.max.size",
        default=(1 << 31) - 1,
        type=KeyType.INT,
        check=at_least(1),
        doc="How many members a streams group may have.",
    )
    streams_num_standby_replicas: int = key(
        "group.streams.num.standby.replicas",
        default=0,
        type=KeyType.INT,
        check=at_least(0),
        doc="How many standby replicas each task with state has.",
    )
    streams_max_standby_replicas: int = key(
        "group.streams.max.standby.replicas",
        default=2,
        type=KeyType.INT,
        check=at_least(0),
        doc="The most standby replicas that can be set for a streams group.",
    )
    streams_initial_rebalance_delay_ms: int = key(
        "group.streams.initial.rebalance.delay.ms",
        default=3000,
        type=KeyType.INT,
        check=at_least(0),
        doc="How long the first assignment of an empty streams group waits for more members, in milliseconds.",
    )

    def problems(self) -> Iterator[Problem]:
        yield from bounds(self, "streams")
