"""A table of Iceberg: its rows at a snapshot, then what later snapshots add or change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from connectors.spark.inputs.changes import newest
from connectors.spark.inputs.planned import Planned
from connectors.spark.load import Load
from connectors.spark.tables.iceberg import loaded, parts_of
from connectors.spark.tables.sql import literal, quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["after_snapshot", "whole"]

_VIEW: Final = "tidegate_changelog"
_KEEPS_ROWS: Final = ("append", "replace")
"""Operations that change no row: the second one writes files anew."""


def whole(spark: SparkSession, load: Load) -> DataFrame:
    return spark.read.options(**load.options).table(quoted(*_parts(spark, load)))


def after_snapshot(spark: SparkSession, load: Load, position: Mapping[str, Any] | None) -> Planned | None:
    """The rows of the current snapshot, or what came after the one that was loaded. None where there is nothing new.

    Raises UsageError where that snapshot is no ancestor of the current one: it has expired, or the table was made anew.
    """
    parts = _parts(spark, load)
    name = quoted(*parts)
    table = loaded(spark, name)
    current = table.currentSnapshot()
    if current is None:
        return None
    now = int(current.snapshotId())
    after = {"snapshot": now}
    if not position:
        frame = spark.read.options(**load.options).option("versionAsOf", now).table(name)
        return Planned(frame, after, f"snapshot {now}")
    since = int(position["snapshot"])
    later = _later(table, since, load)
    if not later:
        return None
    changing = [snapshot for snapshot in later if snapshot.operation() not in _KEEPS_ROWS]
    note = f"{len(later)} snapshots to {now}"
    if load.changes == "send":
        _require_rewritten(load, later)
        return Planned(_changes(spark, load, parts, since, now), after, note)
    if changing and load.changes == "fail":
        first = changing[-1]
        raise UsageError(
            f"the snapshot {first.snapshotId()} of {'.'.join(parts)} changes or deletes rows ({first.operation()}): set "
            "spark.input.changes to 'send', with spark.output.key.columns, or to 'skip'"
        )
    ranged = spark.read.options(**load.options).option("start-snapshot-id", since).option("end-snapshot-id", now)
    return Planned(ranged.table(name), after, note)


def _parts(spark: SparkSession, load: Load) -> list[str]:
    return parts_of(spark, load.table, load.path, key="spark.input.table")


def _later(table: Any, since: int, load: Load) -> Sequence[Any]:
    """The snapshots after one, newest first."""
    later, snapshot = [], table.currentSnapshot()
    while snapshot is not None and int(snapshot.snapshotId()) != since:
        later.append(snapshot)
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    if snapshot is None:
        raise UsageError(
            f"the snapshot {since}, which was loaded last, is not in the history of {load.table or load.path}: it has expired, or the "
            "table was rolled back or made anew. Reset the offsets of the connector to load the table again"
        )
    return later


def _require_rewritten(load: Load, snapshots: Sequence[Any]) -> None:
    """Raises UsageError for a snapshot that Iceberg has no changelog of."""
    for snapshot in snapshots:
        if int(snapshot.summary().get("added-delete-files") or 0):
            raise UsageError(
                f"the snapshot {snapshot.snapshotId()} of {load.table or load.path} has delete files (merge-on-read), of which Iceberg "
                "gives no changelog: set write.delete.mode, write.update.mode and write.merge.mode of the table to copy-on-write, and "
                "reset the offsets of the connector"
            )


def _changes(spark: SparkSession, load: Load, parts: Sequence[str], since: int, now: int) -> DataFrame:
    """The newest state of each row that changed."""
    catalog, table = quoted(parts[0]), ".".join(quoted(part) for part in parts[1:])
    spark.sql(
        f"CALL {catalog}.system.create_changelog_view(table => {literal(table)}, changelog_view => {literal(_VIEW)}, "
        f"options => map('start-snapshot-id', '{since}', 'end-snapshot-id', '{now}'))"
    )
    frame = spark.table(_VIEW)
    return newest(
        frame.drop("_commit_snapshot_id"),
        load.key_columns,
        order="_change_ordinal",
        kind="_change_type",
        gone=("DELETE",),
    )
