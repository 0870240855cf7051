"""Small data files put together into larger ones, beside the sink.

A commit of it is made on top of a snapshot in which all of its input files are live and have the same deletes as when
they were read, or not at all. So a sink that commits meanwhile neither waits nor loses rows; what it has changed by key
is left for the next time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from connect.api import RetriableConnectError, TidegateError, get_logger
from connectors.iceberg.client import Tables, iceberg_errors
from connectors.iceberg.commits import FileChanges, Outcome, commit_files
from connectors.iceberg.config import IcebergSinkConfig
from connectors.iceberg.data_files import DataFileWriter, read_rows, target_bytes
from connectors.iceberg.offsets import offsets_of_all, offsets_property
from connectors.tables.errors import CommitConflict

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table

__all__ = ["compact", "compact_tables"]

logger = get_logger(__name__)

_SMALL: Final = 0.75
"""Files from this part of the target size on stay as they are, as with Iceberg's own ``rewrite_data_files``."""
_COMMIT_BYTES: Final = 1024 * 1024 * 1024
"""Files are committed once so many bytes of them were put together, so that little is lost if one was changed."""
_TRIES: Final = 20


def compact_tables(config: IcebergSinkConfig, connector: str, stopping: threading.Event) -> None:
    """Compact all tables of a configuration. A failure is logged: the next time may succeed."""
    with closing(Tables(config, creates=False)) as tables:
        try:
            names = config.tables or list(tables.names())
        except TidegateError as error:
            logger.warning("tables are not compacted", connector=connector, reason=str(error))
            return
        for name in names:
            if stopping.is_set():
                return
            try:
                table = tables.load(name)
                if table is not None and (not config.dynamic or offsets_property(connector) in table.properties):
                    branch = config.settings(name).branch
                    compact(table, branch, config.write_props, config.compact_min_files, stopping)
            except Exception as error:  # noqa: BLE001 - rows are committed without it
                logger.warning("table is not compacted", table=name, reason=str(error))


@dataclass(slots=True)
class _Bin:
    """Files of a partition that are put together, and those that they become."""

    tasks: Sequence[FileScanTask]
    writer: DataFileWriter | None = None
    made: list[DataFile] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(task.file.file_size_in_bytes for task in self.tasks)

    def is_live(self, live: Mapping[str, frozenset[str]]) -> bool:
        return all(live.get(task.file.file_path) == _deletes(task) for task in self.tasks)


def _deletes(task: FileScanTask) -> frozenset[str]:
    return frozenset(file.file_path for file in task.delete_files)


def compact(
    table: Table, branch: str, write_props: Mapping[str, str], min_files: int, stopping: threading.Event
) -> None:
    """Put the small files of each partition together."""
    target = target_bytes(table, write_props)
    waiting: list[_Bin] = []
    outcome = Outcome()
    try:
        for each in _bins(_planned(table, branch), target, min_files):
            each.writer = DataFileWriter(table, write_props)
            waiting.append(each)
            if not _write(table, each, stopping):
                return
            if sum(done.bytes for done in waiting) >= _COMMIT_BYTES:
                _commit(table, branch, waiting, stopping, outcome)
                waiting, outcome = [], Outcome()
        _commit(table, branch, waiting, stopping, outcome)
        waiting = []
    finally:
        if not outcome.uncertain:
            for unused in waiting:
                _discard(unused)


def _planned(table: Table, branch: str) -> list[FileScanTask]:
    with iceberg_errors("read the files of", ".".join(table.name())):
        scan = table.scan()
        return list((scan.use_ref(branch) if branch in table.metadata.refs else scan).plan_files())


def _bins(tasks: Sequence[FileScanTask], target: int, min_files: int) -> Iterator[_Bin]:
    partitions: dict[tuple[int, Any], list[FileScanTask]] = {}
    for task in tasks:
        if task.delete_files or task.file.file_size_in_bytes < _SMALL * target:
            partitions.setdefault((task.file.spec_id, task.file.partition), []).append(task)
    for some in partitions.values():
        filling: list[FileScanTask] = []
        size = 0
        for task in some:
            filling.append(task)
            size += task.file.file_size_in_bytes
            if size >= target:
                yield _Bin(filling)
                filling, size = [], 0
        if len(filling) >= min_files or any(task.delete_files for task in filling):
            yield _Bin(filling)


def _write(table: Table, each: _Bin, stopping: threading.Event) -> bool:
    """Write a bin's rows anew. False if it was stopped before the end."""
    assert each.writer is not None
    for task in each.tasks:
        for rows in read_rows(table, task, each.writer.schema.fields):
            if stopping.is_set():
                return False
            each.writer.write(rows)
    each.made = each.writer.finish()
    return True


def _discard(each: _Bin) -> None:
    if each.writer is not None:
        each.writer.discard(delete=True)


def _commit(table: Table, branch: str, bins: list[_Bin], stopping: threading.Event, outcome: Outcome) -> None:
    """Commit all bins whose files nobody has changed; the others are dropped.

    Raises what prevents it. If the outcome is uncertain then, the files may be the table's.
    """
    name = ".".join(table.name())
    for attempt in range(_TRIES):
        with iceberg_errors("load", name):
            table = table.refresh()
        if outcome.landed(table):
            return
        live = {task.file.file_path: _deletes(task) for task in _planned(table, branch)}
        spec = table.spec().spec_id
        for each in list(bins):
            assert each.writer is not None
            if each.writer.spec.spec_id != spec or not each.is_live(live):
                bins.remove(each)
                if not outcome.uncertain:
                    _discard(each)
        if not bins:
            return
        removed = [task.file for each in bins for task in each.tasks]
        added = [file for each in bins for file in each.made]
        try:
            commit_files(table, branch, FileChanges(added, removed, True), offsets_of_all(table, branch), outcome)
        except RetriableConnectError as error:
            pause_s = 0.05 * (attempt + 1) if isinstance(error, CommitConflict) else 0.5
            if attempt + 1 == _TRIES or stopping.wait(pause_s):
                raise
        else:
            logger.info("files were put together", table=name, files=len(removed), into=len(added))
            return
