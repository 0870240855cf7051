"""Finds the values of many rows of the log at once, and builds columns from them.

A row in the log is the number of values, followed by the values: for each its type, and for a text its length and
bytes. The start of a value depends on the values before it, so rows are walked in parallel, one column after another,
without a Python call per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from connect.api import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Positions = NDArray[np.int64]
    Mask = NDArray[np.bool_]

__all__ = ["Messages", "Spans"]

_NULL: Final = ord("n")
_UNCHANGED: Final = ord("u")
_TEXT: Final = ord("t")
_PADDING: Final = bytes(8)
"""Padding, so that a word can be read at any byte."""


@dataclass(slots=True)
class Spans:
    """The values of one column: the start, length and type (null, unchanged, text) of each."""

    starts: Positions
    lengths: Positions
    kinds: NDArray[np.uint8]

    def take(self, rows: Positions) -> Spans:
        """The values of some rows; a negative row number gives null."""
        if len(self.starts) == 0:
            return _nothing(len(rows))
        made = Spans(self.starts[rows], self.lengths[rows], self.kinds[rows])
        absent = rows < 0
        if absent.any():
            made.kinds[absent], made.lengths[absent] = _NULL, 0
        return made

    def instead(self, mask: Mask, other: Spans) -> Spans:
        """The values, replaced by those of ``other`` where ``mask`` is set."""
        return Spans(
            np.where(mask, other.starts, self.starts),
            np.where(mask, other.lengths, self.lengths),
            np.where(mask, other.kinds, self.kinds),
        )

    @property
    def unchanged(self) -> Mask | None:
        """Marks the large values that the log omits because they did not change; None: there are none."""
        mask: Mask = self.kinds == _UNCHANGED
        return mask if mask.any() else None

    @property
    def null(self) -> Mask:
        mask: Mask = self.kinds == _NULL
        return mask


def _nothing(length: int) -> Spans:
    zeros = np.zeros(length, np.int64)
    return Spans(zeros, zeros.copy(), np.full(length, _NULL, np.uint8))


class Messages:
    """Concatenated messages. ``begins`` and ``ends`` are the positions of each."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self.ends: Positions = np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)))
        self.begins: Positions = np.concatenate((np.zeros(1, np.int64), self.ends[:-1]))
        self._raw = b"".join([*parts, _PADDING])
        self.bytes = np.frombuffer(self._raw, np.uint8)
        self._words: Any = np.ndarray((len(self._raw) - 3,), ">u4", self._raw, strides=(1,))
        self._longs: Any = np.ndarray((len(self._raw) - 7,), ">u8", self._raw, strides=(1,))

    def numbers(self, at: Positions) -> Positions:
        """The 64-bit numbers at these positions."""
        numbers: Positions = self._longs[at].astype(np.int64)
        return numbers

    def walk(self, at: Positions, ends: Positions, width: int) -> tuple[list[Spans], Positions]:
        """Walk rows of ``width`` columns, starting at their counts. Returns the values and the end of each row, which
        is at most its ``ends``.

        Raises DataError for invalid rows.
        """
        columns: list[Spans] = []
        if len(at) == 0:
            return [_nothing(0)] * width, at
        data, limit = self.bytes, ends
        counts = self._words[np.minimum(at, limit)] >> 16
        if (counts != width).any():
            raise DataError(f"pgoutput sent a row of {int(counts[counts != width][0])} columns, the table has {width}")
        position = at + 2
        for _ in range(width):
            inside = np.minimum(position, limit)  # rows that end too early are detected below
            kinds = data[inside]
            is_text = kinds == _TEXT
            if is_text.all():
                lengths = self._words[np.minimum(inside + 1, limit)].astype(np.int64)
                starts = position + 5
                position = starts + lengths
            else:
                strange = ~(is_text | (kinds == _NULL) | (kinds == _UNCHANGED)) & (position < limit)
                if strange.any():
                    kind = chr(int(kinds[strange][0]))
                    raise DataError(f"pgoutput sent a value of kind {kind!r}, which was not asked for")
                lengths = np.where(is_text, self._words[np.minimum(inside + 1, limit)].astype(np.int64), 0)
                starts = position + 5
                position = position + 1 + 4 * is_text + lengths
            columns.append(Spans(starts, lengths, kinds))
        if (position > limit).any():
            raise DataError("pgoutput sent a row that ends in the middle of a value")
        return columns, position

    def texts(self, spans: Spans) -> pa.Array:
        """A string column; null where the value is null or was not sent. Raises DataError for invalid UTF-8."""
        rows = len(spans.starts)
        if rows == 0:
            return pa.array([], pa.string())
        # The values of an Arrow column are contiguous. So the values and the gaps between them are treated as one
        # column over the unchanged bytes, of which every second element is then copied. This requires rows in the order
        # of the bytes.
        valid = spans.kinds == _TEXT
        starts = spans.starts if valid.all() else np.where(valid, spans.starts, 0)
        if not (starts[1:] >= starts[:-1]).all():
            starts = np.maximum.accumulate(starts)
        bounds = np.empty(2 * rows, np.int32)
        bounds[0::2] = starts
        bounds[1::2] = starts + np.where(valid, spans.lengths, 0)
        bitmap = None
        if not valid.all():
            both = np.ones(2 * rows, np.bool_)
            both[0::2] = valid
            bitmap = pa.py_buffer(np.packbits(both, bitorder="little"))
        column = pa.Array.from_buffers(
            pa.binary(), 2 * rows - 1, [bitmap, pa.py_buffer(bounds), pa.py_buffer(self._raw)]
        )
        taken = column.take(pa.array(np.arange(0, 2 * rows, 2, dtype=np.int32)))
        try:
            return taken.cast(pa.string())
        except pa.ArrowInvalid as error:
            raise DataError(f"pgoutput sent text that is not UTF-8: {error}") from error
