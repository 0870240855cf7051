"""Chunks of tables, and the windows that hold them back until the stream has passed the moment they were read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from connect.api import RecordBatch

__all__ = ["Behind", "Chunk", "Window"]


def _always() -> bool:
    return True


class Chunk(NamedTuple):
    """Rows of one table (op ``r``, ``snapshot`` = incremental, without offsets), ordered by the key they were read by;
    ``last`` is the last row's key.

    The window ends once the stream has passed ``position_reached``, or, where that is None, once the stream shows the
    end mark. Then ``stands`` is called: false means that the table was altered meanwhile, and the chunk is read again.
    """

    batch: RecordBatch
    last: tuple[Any, ...]
    position_reached: int | None
    stands: Callable[[], bool] = _always


class Behind(NamedTuple):
    """Returned instead of a chunk that could not be read: try again once the stream has reached the position where the
    log ended.
    """

    position_reached: int | None


class Window:
    """A chunk that is held back; rows are removed from it by key."""

    def __init__(self, chunk_id: str, chunk: Chunk | Behind) -> None:
        self.id, self._chunk, self.position_reached = chunk_id, chunk, chunk.position_reached
        keys = chunk.batch.keys if isinstance(chunk, Chunk) else None
        rows = [] if keys is None else keys.to_pylist()
        self._rows = {tuple(key.values()): at for at, key in enumerate(rows)}
        self._dropped: set[int] = set()

    def drop(self, batches: Sequence[RecordBatch]) -> None:
        if not self._rows or not isinstance(self._chunk, Chunk):
            return
        for batch in batches:
            if batch.topic != self._chunk.batch.topic or batch.keys is None:
                continue
            for key in batch.keys.to_pylist():
                if key is None:  # the table was truncated
                    self._dropped.update(self._rows.values())
                    self._rows.clear()
                elif (at := self._rows.pop(tuple(key.values()), None)) is not None:
                    self._dropped.add(at)

    def ended(self) -> Chunk | None:
        """The chunk with its remaining rows; None where it has to be read again."""
        chunk = self._chunk
        if isinstance(chunk, Behind) or not chunk.stands():
            return None
        if not self._dropped:
            return chunk
        left = pa.array([at not in self._dropped for at in range(len(chunk.batch))], pa.bool_())
        return chunk._replace(batch=chunk.batch.filter(left))
