"""Writes whole columns of Kafka's zigzag varints; ``broker.protocol.record_columns`` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Varints"]


class Varints:
    """A column of encoded numbers: a matrix with one row per number, whose first ``lengths`` bytes are valid."""

    __slots__ = ("lengths", "matrix")

    def __init__(self, matrix: NDArray[np.uint8], lengths: NDArray[np.int64]) -> None:
        self.matrix, self.lengths = matrix, lengths

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Varints:
        """Zigzag and encode 64-bit numbers."""
        wide = np.asarray(values, dtype=np.int64)
        zigzag = ((wide << 1) ^ (wide >> 63)).view(np.uint64)
        width = max(1, -(-int(zigzag.max(initial=0)).bit_length() // 7))
        if width <= 4:
            zigzag = zigzag.astype(np.uint32)  # half as many bytes to process
        number = zigzag.dtype.type
        matrix = np.empty((len(wide), width), np.uint8)
        lengths = np.ones(len(wide), np.int64)
        for column in range(width):
            byte = ((zigzag >> number(7 * column)) & number(0x7F)).astype(np.uint8)
            if column < width - 1:
                more = (zigzag >> number(7 * (column + 1))) != 0
                lengths += more
                byte |= more.view(np.uint8) << np.uint8(7)
            matrix[:, column] = byte
        return cls(matrix, lengths)

    @classmethod
    def zeros(cls, rows: int) -> Varints:
        """A column of single zero bytes."""
        return cls(np.zeros((rows, 1), dtype=np.uint8), np.ones(rows, dtype=np.int64))

    @staticmethod
    def joined(parts: Sequence[Varints]) -> Any:
        """The parts side by side, as one large-binary column."""
        used = [np.arange(part.matrix.shape[1]) < part.lengths[:, None] for part in parts]
        data = np.concatenate([part.matrix for part in parts], axis=1)[np.concatenate(used, axis=1)]
        ends = np.concatenate(([0], np.cumsum(sum(part.lengths for part in parts))))
        return pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, [None, pa.py_buffer(ends), pa.py_buffer(data)])
