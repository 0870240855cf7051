"""Keys of the SQLite source: its own, and those that all change data capture connectors share."""

from __future__ import annotations

import re
from collections.abc import Iterable

from connect.api import KeyType, Problem, at_least, config, key
from connectors.debezium.config import CaptureConfig

__all__ = ["SqliteConfig"]


def _log_name(value: str) -> str | None:
    return None if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,40}", value) else "Must be letters, digits and underscores"


@config
class SqliteConfig(CaptureConfig):
    """How a SQLite database is followed."""

    path: str = key(
        "database.path",
        doc="The database's file. The worker must be able to write it and its folder.",
        importance="high",
        group="Database",
    )
    busy_timeout_ms: int = key(
        "database.busy.timeout.ms",
        default=5000,
        doc="How long to wait for a lock that another process holds.",
        group="Database",
        check=at_least(0),
        type=KeyType.INT,
    )
    log: str = key(
        "change.log.name",
        default="tidegate_changes",
        doc="The table in the same database that triggers write changes to, and first part of the names of the triggers and of "
        "two tables beside it. One for each connector.",
        group="Change log",
        check=_log_name,
    )
    log_enabled: bool = key(
        "change.log.enabled",
        default=True,
        doc="Whether the task makes the triggers and the change log. Without, it changes nothing in the database, and can only read the "
        "tables once: snapshot.mode=initial_only.",
        group="Change log",
    )
    log_drop: bool = key(
        "change.log.drop.on.stop",
        default=False,
        doc="Remove the triggers and the change log when the task stops. What is written until it starts again is then read by "
        "a new snapshot.",
        group="Change log",
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.transaction_metadata:
            yield Problem(
                "provide.transaction.metadata",
                "triggers do not see which changes are one transaction: take it out",
            )
        if not self.log_enabled and self.snapshot_mode.lower() != "initial_only":
            yield Problem(
                "change.log.enabled",
                f"without a change log there are no changes to read: with snapshot.mode={self.snapshot_mode}, it should be true",
            )
        if self.path == ":memory:" or self.path.startswith("file:"):
            yield Problem("database.path", f"{self.path!r} should be the path of a file")
