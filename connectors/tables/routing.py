"""Which table a record belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from connectors.tables.config import TableSinkConfig
from connectors.tables.records import texts_at

if TYPE_CHECKING:
    import pyarrow as pa

    from connect.api import RecordBatch

__all__ = ["Router"]


class Router:
    def __init__(self, config: TableSinkConfig) -> None:
        self._config = config
        self._regexes = {table: config.settings(table).route_regex for table in config.tables}
        self._matching: dict[str, tuple[str, ...]] = {}

    @property
    def is_single(self) -> bool:
        """Whether there is one table that gets every record."""
        return len(self._config.tables) == 1 and not self._config.route_field

    def routes(self, batch: RecordBatch) -> Iterator[tuple[str, pa.Array | None]]:
        """Tables, each with the mask of its rows; None for all."""
        if not self._config.route_field:
            for table in self._config.tables:
                yield table, None
            return
        texts = texts_at(batch, self._config.route_field)
        by_table: dict[str, list[str]] = {}
        for text in pc.unique(texts).to_pylist():
            if text is not None:
                for table in self._tables_of(text):
                    by_table.setdefault(table, []).append(text)
        for table, values in by_table.items():
            mask = pc.is_in(texts, value_set=pa_array(values))
            yield table, None if mask.true_count == len(batch) else mask

    def _tables_of(self, text: str) -> tuple[str, ...]:
        if self._config.dynamic:
            return (text.lower(),)
        if text not in self._matching:
            if len(self._matching) > 10_000:
                self._matching.clear()
            self._matching[text] = tuple(
                table for table, regex in self._regexes.items() if regex is not None and regex.fullmatch(text)
            )
        return self._matching[text]


def pa_array(values: list[str]) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.string())
