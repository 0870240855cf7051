"""A transform that refuses one row, like an unforeseen record; a plugin in the fault suites' worker."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from connect.api import (
    DataError,
    Header,
    Plugin,
    PluginType,
    Record,
    RecordBatch,
    Transformation,
    config,
    hookimpl,
    key,
    one_of,
)

__all__ = ["RefuseRow", "register_plugins"]

_TOO_LARGE: Final = 2 * 1024 * 1024


@config
class RefuseConfig:
    """Selects the row, and for how long it is refused."""

    row: int = key("row", doc="The number of the row that is refused, counted from 0 as rows come by.")
    by: str = key(
        "by",
        default="transform",
        check=one_of("transform", "log"),
        doc="Who refuses it: this transform, or the log, since the row is larger than it takes.",
    )
    file: str = key("while.exists", doc="Refuse it as long as this file is there.")


class RefuseRow(Transformation):
    """Raises DataError for a batch with the row, or gives the row a header that the log refuses."""

    config_class = RefuseConfig

    def __init__(self, config: RefuseConfig) -> None:
        super().__init__(config)
        self._seen = 0
        self._refused: str | None = None
        self._too_large: Iterator[bool] = iter(())

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        first, self._seen = self._seen, self._seen + len(batch)
        if not Path(self.config.file).exists():
            return [batch]
        if self._refused is None and first <= self.config.row < self._seen:
            self._refused = _shown(batch, self.config.row - first)
        # The runtime retries rows one by one to find the invalid one.
        refused = [self._refused is not None and _shown(batch, row) == self._refused for row in range(len(batch))]
        if any(refused):
            if self.config.by == "log":
                self._too_large = iter(refused)
                return super().apply(batch)
            raise DataError(f"row {self.config.row} is refused while {self.config.file} is there")
        return [batch]

    def apply_record(self, record: Record) -> Record:
        if not next(self._too_large):
            return record
        return replace(record, headers=(*record.headers, Header("large", os.urandom(_TOO_LARGE))))


def _shown(batch: RecordBatch, row: int) -> str:
    key = None if batch.keys is None else batch.keys[row].as_py()
    return repr((batch.topic, key, batch.values[row].as_py()))


@hookimpl
def register_plugins() -> list[Plugin]:
    path = f"{__name__}:RefuseRow"
    return [Plugin(PluginType.TRANSFORMATION, path, ("tidegate.testing.RefuseRow",), "1")]
