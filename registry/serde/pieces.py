"""The encoded pieces of rows, and how they are joined into one byte string per row.

Short pieces, up to eight bytes, are stored as words with the first byte lowest; adjacent ones that fit into one word
are merged. They are written with one scatter each. Longer pieces stay in place until the end, when one ``take`` copies
the short bytes and the long pieces between them into position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from registry.serde.cursor import Bytes, Ints, Mask, Words, words_at
from registry.serde.errors import UnencodableValue

__all__ = ["Long", "Piece", "Short", "constant", "fixed", "join", "masked", "text", "varints"]

_MOST_BYTES: Final = (1 << 31) - 1
_WIDE: Final = 64
"""The size of a fixed value from which on it is copied instead of scattered."""

_SPREADING: Final = tuple(
    (bits, np.uint64(keep), np.uint64(move), np.uint64(by))
    for bits, keep, move, by in (
        (28, 0x000000000FFFFFFF, 0x00FFFFFFF0000000, 4),
        (14, 0x00003FFF00003FFF, 0x0FFFC0000FFFC000, 2),
        (7, 0x007F007F007F007F, 0x3F803F803F803F80, 1),
    )
)
_HIGH: Final = np.uint64(0x8080808080808080)
_ONE: Final = np.uint64(1)
_FIRST_BYTES: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


@dataclass(slots=True)
class Short:
    """At most eight bytes per row, of which the lowest ``lengths`` are valid; the others are zero."""

    words: Words
    lengths: int | Ints
    least: int
    most: int


@dataclass(slots=True)
class Long:
    """Any number of bytes per row, none where the mask says so: Arrow's offsets (one more than rows) and data."""

    offsets: npt.NDArray[np.int32]
    data: pa.Buffer
    mask: Mask | None = None

    def lengths(self) -> Ints:
        """The length of each row in bytes, regardless of the mask."""
        return np.diff(self.offsets).astype(np.int64)


Piece: TypeAlias = "Short | Long"


def masked(piece: Short, present: Mask | None) -> Short:
    """The piece in the present rows, nothing in the others."""
    if present is None:
        return piece
    return Short(piece.words * present, piece.lengths * present, 0, piece.most)


def constant(data: bytes, rows: int, present: Mask | None = None) -> list[Short]:
    """The same bytes in every row."""
    pieces = []
    for start in range(0, len(data), 8):
        part = data[start : start + 8]
        word = np.uint64(int.from_bytes(part, "little"))
        pieces.append(masked(Short(np.full(rows, word), len(part), len(part), len(part)), present))
    return pieces


def varints(numbers: Ints, present: Mask | None = None) -> list[Short]:
    """Numbers in Avro's encoding: zigzag, seven bits per byte."""
    words = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    if present is not None:
        words *= present
    bits = int(words.max()).bit_length() if len(words) else 0
    if bits <= 7:
        return [masked(Short(words, 1, 1, 1), present)]
    lengths = np.ones(len(words), np.int64)
    for shift in range(7, bits, 7):
        lengths += words >= np.uint64(1 << shift)
    pieces = []
    if bits > 56:
        # The ninth and tenth bytes are a separate piece.
        over = words >> np.uint64(56)
        rest = (
            (over & np.uint64(0x7F))
            | ((over & np.uint64(0x80)) << _ONE)
            | ((lengths == 10).astype(np.uint64) << np.uint64(7))
        )
        pieces.append(Short(rest, np.maximum(lengths - 8, 0), 0, 2))
        words &= np.uint64((1 << 56) - 1)
        first = np.minimum(lengths, 8)
    else:
        first = lengths
    for above, keep, move, by in _SPREADING:
        if bits > above:
            moved = words & move
            moved <<= by
            words &= keep
            words |= moved
    # A high bit in each byte except a number's last.
    more = _ONE << ((lengths - 1) << 3).view(np.uint64)
    more -= _ONE
    more &= _HIGH
    words |= more
    most = min(-(-bits // 7), 8)
    return [masked(Short(words, first, 1, most), present), *(masked(piece, present) for piece in pieces)]


def fixed(data: Bytes, present: Mask | None) -> list[Piece]:
    """The rows of a matrix."""
    rows, width = data.shape
    if width > _WIDE:
        if rows * width > _MOST_BYTES:
            raise _too_much(rows * width)
        offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
        return [Long(offsets, pa.py_buffer(np.ascontiguousarray(data)), present)]
    padded = np.zeros((rows, -(-width // 8) * 8), np.uint8)
    padded[:, :width] = data
    words = padded.view(np.uint64)
    sizes = [min(8, width - start) for start in range(0, width, 8)]
    return [
        masked(Short(np.ascontiguousarray(words[:, start]), size, size, size), present)
        for start, size in enumerate(sizes)
    ]


def text(offsets: npt.NDArray[np.int32], data: pa.Buffer, present: Mask | None) -> list[Piece]:
    """Byte strings, each after its length."""
    piece = Long(offsets, data, present)
    lengths = piece.lengths()
    if present is not None:
        lengths *= present
    most = int(lengths.max()) if len(lengths) else 0
    if most > 8:
        return [*varints(lengths, present), piece]
    plain = np.frombuffer(data, np.uint8) if data.size else np.zeros(8, np.uint8)
    words = words_at(plain, offsets[:-1].astype(np.int64))
    words &= _FIRST_BYTES.take(lengths)
    return [*varints(lengths, present), Short(words, lengths, 0, most)]


def join(pieces: Sequence[Piece], rows: int) -> pa.Array:
    """The concatenated pieces of every row, as a BinaryArray without nulls."""
    merged = _merged(pieces)
    longs = [piece for piece in merged if isinstance(piece, Long)]
    shorts, bounds = _scattered(merged, rows, len(longs) + 1)
    if not longs:
        return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(bounds), shorts])
    # All segments in sequence: the short bytes row by row, then each long piece, then an empty one.
    count = len(longs) + 1
    parts = [pa.Array.from_buffers(pa.binary(), rows * count, [None, pa.py_buffer(bounds), shorts])]
    order = np.empty((rows, 2 * count - 1), np.int32)
    order[:, 0::2] = np.arange(rows * count, dtype=np.int32).reshape(rows, count)
    base, empty, size = rows * count, rows * (2 * count - 1), int(bounds[-1])
    for index, piece in enumerate(longs):
        parts.append(pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(piece.offsets), piece.data]))
        indexes = np.arange(base, base + rows, dtype=np.int32)
        order[:, 2 * index + 1] = indexes if piece.mask is None else np.where(piece.mask, indexes, np.int32(empty))
        base += rows
        size += int(piece.lengths().sum() if piece.mask is None else (piece.lengths() * piece.mask).sum())
    if size > _MOST_BYTES:
        raise _too_much(size)
    parts.append(pa.array([b""]))
    try:
        segments = pa.concat_arrays(parts)
    except pa.ArrowInvalid as error:  # rows that are not present can have more data than the rest
        raise _too_much(sum(part.nbytes for part in parts)) from error
    taken = pc.take(segments, pa.array(order.ravel()), boundscheck=False)
    offsets = np.frombuffer(taken.buffers()[1], np.int32)[:: 2 * count - 1]
    return pa.Array.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(np.ascontiguousarray(offsets[: rows + 1])), taken.buffers()[2]]
    )


def _too_much(size: int) -> UnencodableValue:
    return UnencodableValue(f"the rows encode to {size} bytes; at most 2 GiB go into one batch")


def _merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Adjacent short pieces that fit into eight bytes, merged."""
    made: list[Piece] = []
    for piece in pieces:
        last = made[-1] if made else None
        if isinstance(piece, Short) and isinstance(last, Short) and last.most + piece.most <= 8:
            made[-1] = _side_by_side(last, piece)
        elif not isinstance(piece, Short) or piece.most:
            made.append(piece)
    return made


def _side_by_side(first: Short, two: Short) -> Short:
    if isinstance(first.lengths, int):
        moved = two.words << np.uint64(8 * first.lengths)
    else:
        moved = two.words << (first.lengths << 3).view(np.uint64)
    moved |= first.words
    return Short(moved, first.lengths + two.lengths, first.least + two.least, first.most + two.most)


def _scattered(pieces: Sequence[Piece], rows: int, regions: int) -> tuple[pa.Buffer, npt.NDArray[np.int32]]:
    """The short bytes of all rows, and the start of each of a row's regions between long pieces; the end comes last."""
    shorts = [piece for piece in pieces if isinstance(piece, Short)]
    sizes: Any = sum((piece.lengths for piece in shorts), 0)
    ends = np.cumsum(np.broadcast_to(sizes, rows), dtype=np.int64)
    total = int(ends[-1]) if rows else 0
    if total > _MOST_BYTES:
        raise _too_much(total)
    out = np.zeros(total + 8, np.uint8)
    bounds = np.empty(rows * regions + 1, np.int32)
    bounds[-1] = total
    position, region, after = ends - sizes, 1, sum(piece.least for piece in shorts)
    bounds[:-1:regions] = position
    for piece in pieces:
        if isinstance(piece, Long):
            bounds[region:-1:regions] = position
            region += 1
            continue
        _scatter(out, position, piece, after)
        after -= piece.least
        position = position + piece.lengths
    return pa.py_buffer(out), bounds


def _scatter(out: Bytes, position: Ints, piece: Short, after: int) -> None:
    """Write a piece in every row.

    At least ``after`` bytes of the row, including its own, follow from its position on.
    """
    kind: type[np.unsignedinteger[Any]]
    if piece.most == 1:
        kind = np.uint8
    elif piece.most == 2:
        kind = np.uint16
    else:
        kind = np.uint32 if piece.most <= 4 else np.uint64
    words = piece.words.astype(kind, copy=False)
    # Numpy copies items to any position if it is told that the items overlap.
    items: npt.NDArray[Any] = np.ndarray((len(out) - words.itemsize + 1,), kind, buffer=out, strides=(1,))
    if after < words.itemsize:
        # The zeros after the piece would overwrite the next row, which may have been written already.
        words = words | items[position]
    items[position] = words
