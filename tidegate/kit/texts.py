"""Numbers and times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["counted", "duration", "time_text"]


def counted(count: int, noun: str) -> str:
    """``1 record``, ``2,000 records``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def time_text(at_ms: int) -> str:
    """A time in UTC, given in milliseconds since 1970."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: float) -> str:
    """About how long, as ``45 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
