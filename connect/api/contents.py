"""Both sides of a sink, for a comparison: the rows that records become in its target, and the rows that are there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from connect.data.batch import RecordBatch, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RowAction", "SinkContents", "TargetRows"]

RowAction = Literal["append", "insert", "replace", "delete", "truncate"]
"""``append`` adds rows that may be alike; the others find rows by key: ``insert`` leaves a row that is there, ``replace``
changes the columns that it has. ``truncate`` removes all rows.
"""


def _listed(rows: pa.RecordBatch) -> Mapping[str, Sequence[Any]]:
    return {name: column.to_pylist() for name, column in zip(rows.schema.names, rows.columns, strict=True)}


@dataclass(frozen=True, slots=True)
class TargetRows:
    """Rows of a table, or of the files of a topic partition, in their order.

    Equal values on both sides have equal ``repr``. ``keys`` are the columns that identify a row, with ``append`` none. Many rows
    are compared at once where ``columns`` is an Arrow batch; ``listed`` turns that into columns of Python's values.
    """

    target: str
    action: RowAction
    columns: Mapping[str, Sequence[Any]] | pa.RecordBatch
    keys: Sequence[str] = ()
    listed: Callable[[pa.RecordBatch], Mapping[str, Sequence[Any]]] = _listed

    def __len__(self) -> int:
        if isinstance(self.columns, Mapping):
            return len(next(iter(self.columns.values()), ()))
        return len(self.columns)

    def values(self) -> Mapping[str, Sequence[Any]]:
        """The columns as Python's values."""
        return self.columns if isinstance(self.columns, Mapping) else self.listed(self.columns)

    def filter(self, mask: pa.Array) -> TargetRows:
        """The rows of an Arrow batch where ``mask`` is true."""
        assert not isinstance(self.columns, Mapping)
        return replace(self, columns=self.columns.filter(mask))


class SinkContents(ABC):
    """Reads the target and changes nothing in it. Used from one thread, in the order of these methods.

    Raises RetriableConnectError and ConnectError as a task does.
    """

    refused = 0
    """Records so far that the sink refuses, as ``expected`` finds without writing."""

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        """How far the target states that it has each partition, as of the rows that ``stored`` reads. ``expected`` leaves
        out what a target does not have yet.
        """
        del partitions
        return {}

    @abstractmethod
    def expected(self, batch: RecordBatch) -> Iterable[TargetRows]:
        """The rows that records become in the target. Records come in the order of their offsets in each partition."""

    def rest(self) -> Iterable[TargetRows]:
        """Rows that waited for more records."""
        return ()

    @abstractmethod
    def stored(self) -> Iterable[TargetRows]:
        """All rows of the targets that the configuration names, or that records so far went to."""

    def positions_after(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int] | None:
        """How far the target may have come until ``stored`` was over. None where only the log's end says that."""
        del partitions
        return None

    def restart(self) -> None:
        """Begin again: ``expected`` gets all records once more, up to the same positions, then ``stored`` is read again."""
        self.refused = 0

    def close(self) -> None:
        """Release connections."""
