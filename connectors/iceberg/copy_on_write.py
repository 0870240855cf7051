"""Changes of rows by key: the data files that have the keys are written anew without them, and no other file is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import from_bytes

from connectors.iceberg.client import iceberg_errors
from connectors.iceberg.data_files import DataFileWriter, read_rows

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.types import NestedField

__all__ = ["Rewriter"]

_ROW = "\0row"


class Rewriter:
    """Removes the rows of some keys from a table's files.

    The result for a file depends on nothing but the file, so it is kept: when a commit has to be repeated on top of
    another one, only files that came since are looked at.
    """

    def __init__(self, keys: pa.Table, write_props: Mapping[str, str]) -> None:
        """``keys`` has a column for each id column, in its type; no row is there twice."""
        self._keys, self._write_props = keys.combine_chunks(), write_props
        self._known: dict[str, list[DataFile] | None] = {}
        self._writers: list[DataFileWriter] = []

    def changes(self, table: Table, branch: str) -> tuple[list[DataFile], list[DataFile]]:
        """The files to remove from the branch, and those that replace them."""
        removed, added = [], []
        columns = [table.schema().find_field(name) for name in self._keys.column_names]
        with iceberg_errors("read the files of", ".".join(table.name())):
            scan = table.scan()
            tasks = list((scan.use_ref(branch) if branch in table.metadata.refs else scan).plan_files())
        for task in tasks:
            path = task.file.file_path
            if path not in self._known:
                self._known[path] = (
                    self._rewritten(table, task, columns) if self._may_have(task.file, columns) else None
                )
            replacement = self._known[path]
            if replacement is not None:
                removed.append(task.file)
                added += replacement
        return removed, added

    def discard(self, *, delete: bool) -> None:
        for writer in self._writers:
            writer.discard(delete=delete)
        self._known, self._writers = {}, []

    def _may_have(self, file: DataFile, columns: Sequence[NestedField]) -> bool:
        """Whether a key lies between the bounds of the file's columns."""
        within: Any = None
        for column in columns:
            keys = self._keys.column(column.name)
            for bounds, compare in ((file.lower_bounds, pc.greater_equal), (file.upper_bounds, pc.less_equal)):
                data = (bounds or {}).get(column.field_id)
                if data is None:
                    continue
                try:
                    bound = pa.scalar(from_bytes(column.field_type, data), keys.type)  # type: ignore[arg-type]
                except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeDecodeError, ValueError):
                    continue
                right = compare(keys, bound)
                within = right if within is None else pc.and_(within, right)
        return within is None or bool(pc.any(within).as_py())

    def _rewritten(self, table: Table, task: FileScanTask, columns: Sequence[NestedField]) -> list[DataFile] | None:
        """The files with the rows that stay; None if all do."""
        if not any(self._found(rows).any() for rows in read_rows(table, task, columns)):
            return None
        writer = DataFileWriter(table, self._write_props)
        self._writers.append(writer)
        waiting: list[pa.Table] = []
        for rows in read_rows(table, task, table.schema().fields):
            waiting.append(rows.filter(pa.array(~self._found(rows.select(self._keys.column_names)))))
            if sum(each.nbytes for each in waiting) >= 64 * 1024 * 1024:
                _write(writer, waiting)
                waiting = []
        _write(writer, waiting)
        return writer.finish()

    def _found(self, rows: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which rows have one of the keys."""
        names = self._keys.column_names
        if len(names) == 1:
            made: np.ndarray[Any, np.dtype[np.bool_]] = (
                pc.is_in(rows.column(names[0]), value_set=self._keys.column(names[0]).combine_chunks())
                .combine_chunks()
                .to_numpy(zero_copy_only=False)
            )
            return made
        numbered = rows.append_column(_ROW, pa.array(np.arange(len(rows))))
        joined = numbered.join(self._keys, keys=names, join_type="left semi")
        mask = np.zeros(len(rows), np.bool_)
        mask[joined.column(_ROW).to_numpy()] = True
        return mask


def _write(writer: DataFileWriter, waiting: Sequence[pa.Table]) -> None:
    rows = pa.concat_tables(waiting) if waiting else None
    if rows is not None and len(rows):
        writer.write(rows.combine_chunks())
