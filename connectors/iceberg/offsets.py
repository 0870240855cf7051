"""How far a table has a connector's records: offsets in the summaries of the table's snapshots.

Each commit of a sink adds rows and states, in the same snapshot, the next offset of every partition of the connector. So
whoever reads the newest of these snapshots knows which records the table has, whatever was killed between the commit and
the consumer group's. A commit is only made on top of the snapshot whose offsets were read (compare and set), so a task
whose partition was taken over can neither repeat rows nor take offsets back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from connect.api import TopicPartition
from connectors.tables.offsets import Mark, offsets_of_text

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

__all__ = ["offsets_of_all", "offsets_property", "stored_offsets"]

_PREFIX: Final = "tidegate.offsets."


def offsets_property(connector: str) -> str:
    """The property of summaries with a connector's offsets.

    The table has it too, for a table whose snapshots with it were all expired by others.
    """
    return f"{_PREFIX}{connector}"


def stored_offsets(table: Table, branch: str, connector: str) -> dict[TopicPartition, Mark]:
    """The offsets in the newest snapshot of the branch that has some."""
    metadata, name = table.metadata, offsets_property(connector)
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    snapshot = metadata.snapshot_by_name(branch) or metadata.current_snapshot()
    while snapshot is not None:
        if text := _property(snapshot, name):
            return offsets_of_text(text)
        snapshot = by_id.get(snapshot.parent_snapshot_id or -1)
    if any(_property(other, name) for other in metadata.snapshots):
        return {}  # rolled back to before the first of them
    return offsets_of_text(metadata.properties.get(name, "{}"))


def offsets_of_all(table: Table, branch: str) -> dict[str, str]:
    """The properties with the offsets of all connectors that stand in the branch's snapshots: a snapshot that says them
    again keeps them when older ones are expired.
    """
    metadata, made = table.metadata, dict[str, str]()
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    snapshot = metadata.snapshot_by_name(branch)
    while snapshot is not None:
        summary = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        made = {name: text for name, text in summary.items() if name.startswith(_PREFIX)} | made
        snapshot = by_id.get(snapshot.parent_snapshot_id or -1)
    return made


def _property(snapshot: Snapshot, name: str) -> str | None:
    return snapshot.summary.get(name) if snapshot.summary is not None else None
