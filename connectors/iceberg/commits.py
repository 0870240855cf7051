"""One commit of rows, deletes and offsets to a table: one snapshot, on top of the one that was read, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Transaction
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT

from connectors.iceberg.client import iceberg_errors

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

__all__ = ["FileChanges", "Outcome", "commit_files", "ensure_branch"]


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Files that a snapshot adds to a table and removes from it. With ``same_rows`` they have the same rows, so that
    whoever reads the table's changes passes over the snapshot.
    """

    added: Sequence[DataFile]
    removed: Sequence[DataFile] = field(default_factory=list)
    same_rows: bool = False


class _Replace(_OverwriteFiles):
    """pyiceberg 0.12 counts only what appends, overwrites and deletes, so it is called by its name afterwards."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        made = super()._summary(snapshot_properties)
        return Summary(Operation.REPLACE, **made.additional_properties)


class _SingleTry(Transaction):
    """A transaction that is not repeated by itself: after another commit, its offsets have to be read again."""

    def commit_transaction(self) -> Table:
        requirements = (*self._requirements, AssertTableUUID(uuid=self.table_metadata.table_uuid))
        try:
            self._table._do_commit(self._updates, requirements)
        except (CommitFailedException, ValidationException):
            for producer in self._snapshot_producers:
                producer._clean_all_uncommitted()
            raise
        return self._table


class Outcome:
    """The snapshots that were tried, to find out whether a commit whose answer was lost has succeeded."""

    def __init__(self) -> None:
        self._tried: set[int] = set()
        self.uncertain = False
        """Whether a try may have succeeded, or may succeed still."""

    def landed(self, table: Table) -> bool:
        return any(table.metadata.snapshot_by_id(tried) is not None for tried in self._tried)

    def try_(self, snapshot_id: int) -> None:
        self._tried.add(snapshot_id)


def commit_files(
    table: Table, branch: str, changes: FileChanges, properties: Mapping[str, str], outcome: Outcome
) -> None:
    """Commit once. The snapshot has the properties, and the table too unless its rows stay the same.

    Raises CommitConflict if another commit came first, and nothing was written.
    """
    name = ".".join(table.name())
    with iceberg_errors("commit to", name):
        transaction = _SingleTry(table)
        if not changes.same_rows:
            transaction.set_properties(dict(properties))
        producer = _producer(transaction, branch, changes, properties)
        if not changes.removed:
            merging = table.properties.get("commit.manifest-merge.enabled", "true")
            producer._merge_enabled = merging.lower() == "true"  # as Iceberg's default is, unlike pyiceberg's
        for file in changes.removed:
            producer.delete_data_file(file)
        for file in changes.added:
            producer.append_data_file(file)
        producer.commit()
        outcome.try_(producer.snapshot_id)
        outcome.uncertain, before = True, outcome.uncertain
        try:
            transaction.commit_transaction()
        except (CommitFailedException, ValidationException):
            outcome.uncertain = before
            raise


def _producer(transaction: Transaction, branch: str, changes: FileChanges, properties: Mapping[str, str]) -> Any:
    if changes.same_rows:
        io = transaction._table.io
        return _Replace(Operation.OVERWRITE, transaction, io, snapshot_properties=dict(properties), branch=branch)
    update = transaction.update_snapshot(snapshot_properties=dict(properties), branch=branch)
    return update.overwrite() if changes.removed else update.merge_append()


def ensure_branch(table: Table, branch: str) -> None:
    """Start a missing branch where main is."""
    metadata = table.metadata
    if branch == "main" or branch in metadata.refs or metadata.current_snapshot_id is None:
        return
    with iceberg_errors("create a branch of", ".".join(table.name())):
        table.manage_snapshots().create_branch(metadata.current_snapshot_id, branch).commit()
