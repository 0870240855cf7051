"""Consistency rules for a group type's settings: a default lies within its bounds, a session is longer than a
heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.kit.errors import Problem

__all__ = ["bounds"]

_BOUNDED = {
    "session_timeout_ms": "session.timeout.ms",
    "heartbeat_interval_ms": "heartbeat.interval.ms",
    "assignment_interval_ms": "assignment.interval.ms",
    "record_lock_duration_ms": "record.lock.duration.ms",
    "delivery_count_limit": "delivery.count.limit",
    "partition_max_record_locks": "partition.max.record.locks",
}


def bounds(settings: object, kind: str) -> Iterator[Problem]:
    """Every violated rule of ``group.<kind>.*``."""
    for attribute, name in _BOUNDED.items():
        if not hasattr(settings, f"{kind}_{attribute}"):
            continue
        least: int = getattr(settings, f"{kind}_min_{attribute}")
        most: int = getattr(settings, f"{kind}_max_{attribute}")
        value: int = getattr(settings, f"{kind}_{attribute}")
        key = f"group.{kind}.{name}"
        if least > most:
            yield Problem(
                f"group.{kind}.max.{name}",
                f"group.{kind}.max.{name} is {most}; it must not be below group.{kind}.min.{name}, which is {least}",
            )
        elif not least <= value <= most:
            yield Problem(key, f"{key} is {value}; it must be from {least} to {most} (group.{kind}.min/max.{name})")
    if getattr(settings, f"{kind}_session_timeout_ms") <= getattr(settings, f"{kind}_heartbeat_interval_ms"):
        yield Problem(
            f"group.{kind}.session.timeout.ms",
            f"group.{kind}.session.timeout.ms must be longer than group.{kind}.heartbeat.interval.ms",
        )
