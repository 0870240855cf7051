"""Blocks of bytes split into lines and lines joined: whole columns, no Python call per line."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["join_lines", "split_lines", "whole_lines"]

_LF, _CR = 10, 13


def whole_lines(block: bytes) -> int:
    """The number of bytes in whole lines.

    A carriage return ends a line too, unless it is the last byte of the block: it may then be the first half of
    ``\\r\\n``.
    """
    end = block.rfind(b"\n") + 1
    return max(end, block.rfind(b"\r", end, max(len(block) - 1, end)) + 1)


def split_lines(block: bytes) -> tuple[pa.StringArray, npt.NDArray[np.int64]]:
    """The lines of a block of whole lines without their ends (``\\n``, ``\\r\\n`` or ``\\r``), and the position after each
    line's end. Bytes that are not UTF-8 become U+FFFD, as in Java."""
    ends = _ends(block)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        text = pa.array([block[:-1]], pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        text = pa.array([block[:-1].decode(errors="replace")])
    return pc.split_pattern(text, "\n").flatten(), ends


def _ends(block: bytes) -> npt.NDArray[np.int64]:
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == _LF)
    if b"\r" in block:
        returns = np.flatnonzero(data == _CR)
        following = data[np.minimum(returns + 1, len(data) - 1)]
        ends = np.sort(np.concatenate([ends, returns[following != _LF]]))
    positions: npt.NDArray[np.int64] = ends + 1
    return positions


def join_lines(lines: pa.StringArray) -> bytes:
    """The lines, each followed by a newline; a null becomes the word null, as Java prints it."""
    if not len(lines):
        return b""
    present = lines.fill_null("null") if lines.null_count else lines
    every = pa.LargeListArray.from_arrays([0, len(present)], present.cast(pa.large_string()))
    joined: bytes = pc.binary_join(every, pa.scalar("\n", pa.large_string()))[0].as_buffer().to_pybytes()
    return joined + b"\n"
