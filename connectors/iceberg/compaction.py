"""Small data files put together into larger ones, beside the sink: on a thread of its own, with tables of its own.

A commit of it is made on top of a snapshot in which all of its input files are live and have the same deletes as when
they were read, or not at all. So a sink that commits meanwhile neither waits nor loses rows; what it has changed by key
is left for the next time.
"""

from __future__ import annotations

import threading
import time
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

__all__ = ["Compaction", "compact"]

logger = get_logger(__name__)

_SMALL: Final = 0.75
"""Files from this part of the target size on stay as they are, as with Iceberg's own ``rewrite_data_files``."""
_COMMIT_BYTES: Final = 1024 * 1024 * 1024
"""Files are committed once so many bytes of them were put together, so that little is lost if one was changed."""
_TRIES: Final = 20


class Compaction:
    """Puts files together every ``tidegate.compact.interval.ms``."""

    def __init__(self, config: IcebergSinkConfig, connector: str) -> None:
        self._config, self._connector = config, connector
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._began = time.monotonic()

    def start_if_due(self) -> None:
        """Start in the background once the interval is over, unless the last time still goes on."""
        due = (time.monotonic() - self._began) * 1000 >= self._config.compact_interval_ms
        if due and (self._thread is None or not self._thread.is_alive()):
            self._began = time.monotonic()
            self._thread = threading.Thread(target=self._run, name=f"compact-{self._connector}", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Wait for the end of what goes on; it ends before its next batch of rows."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with closing(Tables(self._config, creates=False)) as tables:
            try:
                names = self._config.tables or list(tables.names())
            except TidegateError as error:
                logger.warning("tables are not compacted", connector=self._connector, reason=str(error))
                return
            for name in names:
                if self._stopping.is_set():
                    return
                try:
                    self._compact(tables, name)
                except Exception as error:  # noqa: BLE001 - rows are committed without it, and the next time may succeed
                    logger.warning("table is not compacted", table=name, reason=str(error))

    def _compact(self, tables: Tables, name: str) -> None:
        table = tables.load(name)
        if table is None or (self._config.dynamic and offsets_property(self._connector) not in table.properties):
            return
        branch = self._config.settings(name).branch
        compact(table, branch, self._config.write_props, self._config.compact_min_files, self._stopping)


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
