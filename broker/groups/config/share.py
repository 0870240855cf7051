"""The configuration keys of share groups (KIP-932), under Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Iterator

from broker.groups.config.bounds import bounds
from tidegate.kit.config import KeyType, at_least, between, config, key
from tidegate.kit.errors import Problem

__all__ = ["ShareGroupConfig"]


def _assignors(values: list[str]) -> str | None:
    return None if values == ["simple"] else "there is one assignor of share groups: simple"


@config
class ShareGroupConfig:
    """The broker's keys for share groups, including the bounds for what single groups can set."""

    share_session_timeout_ms: int = key(
        "group.share.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long a member of a share group may be silent before it is taken to have failed, in milliseconds.",
    )
    share_min_session_timeout_ms: int = key(
        "group.share.min.session.timeout.ms",
        default=45_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The shortest session timeout that can be set for a share group, in milliseconds.",
    )
    share_max_session_timeout_ms: int = key(
        "group.share.max.session.timeout.ms",
        default=60_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The longest session timeout that can be set for a share group, in milliseconds.",
    )
    share_heartbeat_interval_ms: int = key(
        "group.share.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How often members of a share group are told to send heartbeats, in milliseconds.",
    )
    share_min_heartbeat_interval_ms: int = key(
        "group.share.min.heartbeat.interval.ms",
        default=5000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The shortest heartbeat interval that can be set for a share group, in milliseconds.",
    )
    share_max_heartbeat_interval_ms: int = key(
        "group.share.max.heartbeat.interval.ms",
        default=15_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="The longest heartbeat interval that can be set for a share group, in milliseconds.",
    )
    share_assignment_interval_ms: int = key(
        "group.share.assignment.interval.ms",
        default=1000,
        type=KeyType.INT,
        check=at_least(0),
        doc="A share group gets a new target assignment at most this often, in milliseconds.",
    )
    share_min_assignment_interval_ms: int = key(
        "group.share.min.assignment.interval.ms",
        default=0,
        type=KeyType.INT,
        check=at_least(0),
        doc="The shortest assignment interval that can be set for a share group, in milliseconds.",
    )
    share_max_assignment_interval_ms: int = key(
        "group.share.max.assignment.interval.ms",
        default=15_000,
        type=KeyType.INT,
        check=at_least(0),
        doc="The longest assignment interval that can be set for a share group, in milliseconds.",
    )
    share_max_size: int = key(
        "group.share.max.size",
        default=200,
        type=KeyType.INT,
        check=between(1, 1000),
        doc="How many members a share group may have.",
    )
    share_assignors: list[str] = key(
        "group.share.assignors", default=["simple"], check=_assignors, doc="The assignor of share groups: simple."
    )
    share_initialize_retry_interval_ms: int = key(
        "group.share.initialize.retry.interval.ms",
        default=30_000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How long to wait before the state of share-partitions is initialised again where that failed, in milliseconds.",
    )
    share_partition_max_record_locks: int = key(
        "group.share.partition.max.record.locks",
        default=2000,
        type=KeyType.INT,
        check=between(100, 10_000),
        doc="How many records of a share-partition may be acquired at one time.",
    )
    share_max_partition_max_record_locks: int = key(
        "group.share.max.partition.max.record.locks",
        default=4000,
        type=KeyType.INT,
        check=between(2000, 10_000),
        doc="The largest limit of acquired records that can be set for a share group.",
    )
    share_min_partition_max_record_locks: int = key(
        "group.share.min.partition.max.record.locks",
        default=100,
        type=KeyType.INT,
        check=between(100, 2000),
        doc="The smallest limit of acquired records that can be set for a share group.",
    )
    share_delivery_count_limit: int = key(
        "group.share.delivery.count.limit",
        default=5,
        type=KeyType.INT,
        check=between(2, 10),
        doc="How often a record is delivered before it is given up.",
    )
    share_max_delivery_count_limit: int = key(
        "group.share.max.delivery.count.limit",
        default=10,
        type=KeyType.INT,
        check=between(5, 25),
        doc="The largest number of deliveries that can be set for a share group.",
    )
    share_min_delivery_count_limit: int = key(
        "group.share.min.delivery.count.limit",
        default=2,
        type=KeyType.INT,
        check=between(2, 5),
        doc="The smallest number of deliveries that can be set for a share group.",
    )
    share_record_lock_duration_ms: int = key(
        "group.share.record.lock.duration.ms",
        default=30_000,
        type=KeyType.INT,
        check=between(1000, 3_600_000),
        doc="How long a record stays acquired, in milliseconds.",
    )
    share_min_record_lock_duration_ms: int = key(
        "group.share.min.record.lock.duration.ms",
        default=15_000,
        type=KeyType.INT,
        check=between(1000, 30_000),
        doc="The shortest lock that can be set for a share group, in milliseconds.",
    )
    share_max_record_lock_duration_ms: int = key(
        "group.share.max.record.lock.duration.ms",
        default=60_000,
        type=KeyType.INT,
        check=between(30_000, 3_600_000),
        doc="The longest lock that can be set for a share group, in milliseconds.",
    )
    share_max_share_sessions: int = key(
        "group.share.max.share.sessions",
        default=2000,
        type=KeyType.INT,
        check=at_least(1),
        doc="How many share sessions there may be at one time.",
    )

    def problems(self) -> Iterator[Problem]:
        yield from bounds(self, "share")
