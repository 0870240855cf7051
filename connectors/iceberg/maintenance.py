"""Work on tables beside the rows: snapshots that are too old, and offsets that a user changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from connect.api import TidegateError, TopicPartition, get_logger
from connectors.iceberg.client import iceberg_errors
from connectors.iceberg.commits import FileChanges, Outcome, commit_files, ensure_branch
from connectors.iceberg.offsets import offsets_property, stored_offsets
from connectors.tables.errors import CommitConflict
from connectors.tables.offsets import Mark, offsets_text

if TYPE_CHECKING:
    from pyiceberg.table import Table

__all__ = ["change_offsets", "expire_snapshots"]

logger = get_logger(__name__)

_TRIES: Final = 20


def expire_snapshots(table: Table, age_ms: int) -> None:
    """Remove old snapshots, except those that branches and tags need. A failure is logged: the next time may succeed."""
    before = datetime.now(UTC) - timedelta(milliseconds=age_ms)
    name = ".".join(table.name())
    try:
        with iceberg_errors("expire snapshots of", name):
            table.refresh()
            old = [each for each in table.snapshots() if each.timestamp_ms < before.timestamp() * 1000]
            if len(old) > 1 or (old and table.current_snapshot() not in old):
                table.maintenance.expire_snapshots().older_than(before).commit()
    except TidegateError as error:
        logger.warning("snapshots are not expired", table=name, reason=str(error))


def change_offsets(table: Table, branch: str, connector: str, changes: Mapping[TopicPartition, int | None]) -> None:
    """Set offsets on behalf of a user, in a snapshot without other changes; None deletes one."""
    for attempt in range(_TRIES):
        with iceberg_errors("load", ".".join(table.name())):
            table = table.refresh()
        stored = stored_offsets(table, branch, connector)
        made = {partition: mark for partition, mark in stored.items() if partition not in changes}
        made |= {partition: Mark(offset) for partition, offset in changes.items() if offset is not None}
        if made == stored:
            return
        ensure_branch(table, branch)
        try:
            commit_files(table, branch, FileChanges([]), {offsets_property(connector): offsets_text(made)}, Outcome())
        except CommitConflict:
            if attempt + 1 == _TRIES:
                raise
        else:
            return
