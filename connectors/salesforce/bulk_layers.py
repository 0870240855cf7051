"""Rows waiting for a job, in layers: each has one operation and no record twice, because a job processes its rows in
any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from connect.api import Record, RecordBatch

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Layer", "Layers", "Part"]


class Part(NamedTuple):
    """Some rows of a batch as cells; ``rows`` are their indices in the batch."""

    cells: pa.Table
    batch: RecordBatch
    rows: Sequence[int]

    def take(self, rows: Sequence[int]) -> Part:
        return Part(self.cells.take(list(rows)), self.batch, [self.rows[row] for row in rows])

    def record(self, row: int) -> Record:
        return next(self.batch.slice(self.rows[row], 1).records())


@dataclass(slots=True)
class Layer:
    """Rows of one operation."""

    operation: str
    parts: list[Part] = field(default_factory=list)

    def next_parts(self, max_rows: int, max_bytes: int) -> list[Part]:
        """Remove and return the first rows, within these limits but at least one."""
        taken: list[Part] = []
        while self.parts and max_rows > 0 and max_bytes > 0:
            part = self.parts.pop(0)
            each = max(1, part.cells.nbytes // len(part.rows))
            count = min(len(part.rows), max_rows, max(0 if taken else 1, max_bytes // each))
            if count < len(part.rows):
                self.parts.insert(0, part.take(range(count, len(part.rows))))
                part = part.take(range(count))
                max_rows = 0
            if count:
                taken.append(part)
            max_rows -= count
            max_bytes -= part.cells.nbytes
        return taken


class Layers:
    """All layers, in the order in which they have to be written."""

    def __init__(self) -> None:
        self._layers: list[Layer] = []
        self._removed = 0
        self._last: dict[str, int] = {}
        """The number of the layer with a record's latest row, counted from the first layer ever created."""

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self.parts())

    def parts(self) -> Iterator[Part]:
        for layer in self._layers:
            yield from layer.parts

    def first(self) -> Layer | None:
        """The next layer to be written; empty layers are removed."""
        while self._layers and not self._layers[0].parts:
            self._layers.pop(0)
            self._removed += 1
        if not self._layers:
            self._last.clear()
        return self._layers[0] if self._layers else None

    def add(self, batch: RecordBatch, cells: Mapping[str, pa.Table], rows: Sequence[tuple[int, str, str]]) -> None:
        """Add rows of a batch: (index, operation, identity). The identity is empty where a row cannot affect another
        row's record.

        ``cells`` contains all rows of the batch, in the form that each operation writes.
        """
        chosen: dict[int, tuple[str, list[int]]] = {}
        for row, operation, identity in rows:
            number = self._layer_number(operation, identity)
            chosen.setdefault(number, (operation, []))[1].append(row)
        for number, (operation, rows_) in chosen.items():
            part = Part(cells[operation].take(rows_), batch, rows_)
            self._layers[number - self._removed].parts.append(part)

    def _layer_number(self, operation: str, identity: str) -> int:
        after = max(self._last.get(identity, -1) - self._removed, -1) if identity else -1
        for index in range(after + 1, len(self._layers)):
            if self._layers[index].operation == operation:
                break
        else:
            index = len(self._layers)
            self._layers.append(Layer(operation))
        if identity:
            self._last[identity] = self._removed + index
        return self._removed + index

    def put_back(self, layer: Layer, parts: Sequence[Part]) -> None:
        """Return rows that were taken from the first layer and have to be written again."""
        layer.parts[:0] = parts

    def drop(self, origins: Sequence[Any]) -> None:
        """Remove the rows of these origins."""
        for layer in self._layers:
            layer.parts = [part for part in layer.parts if part.batch.origin not in origins]
