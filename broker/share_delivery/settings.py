"""The settings of a group's share-partitions, from the group's configuration."""

from __future__ import annotations

from functools import lru_cache

from broker.groups.config.group_settings import GroupSettings
from broker.share_delivery.values import ShareSettings

__all__ = ["share_settings"]


def share_settings(group: GroupSettings) -> ShareSettings:
    return _settings(
        group.share_delivery_count_limit,
        group.share_partition_max_record_locks,
        group.share_record_lock_duration_ms,
        group.share_isolation_level == "read_committed",
        group.share_auto_offset_reset,
        group.share_renew_acknowledge_enable,
    )


@lru_cache(64)
def _settings(
    limit: int, locks: int, lock_ms: int, read_committed: bool, reset: str, renew_enabled: bool
) -> ShareSettings:
    return ShareSettings(limit, locks, lock_ms, read_committed, reset, renew_enabled)
