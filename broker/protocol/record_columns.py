"""The records of a batch as columns: the end of each record, and fields read from all records at once.

Finding the ends is the only loop over records, because each length determines the next record's start. It makes no
calls per record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from broker.errors import CorruptMessage
from broker.protocol.records import BatchHeader

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Heads", "add_edges", "heads", "varints"]

_LONGEST: Final = 10
_LONGEST_SHIFT: Final = 28


def add_edges(edges: list[int], data: bytes, end: int, header: BatchHeader) -> None:
    """Append the end positions in ``data`` of another batch's records. The batch begins at the last of ``edges`` and
    must end at ``end``.

    Raises CorruptMessage.
    """
    position, first, count = edges[-1], len(edges), header.record_count
    if not 0 <= count <= end - position:  # a record has at least one byte, whatever the header claims
        raise _wrong_count(header)
    edges += [0] * count
    try:
        for index in range(first, first + count):  # a length is never negative, so zigzag only doubles it
            byte = data[position]
            if byte < 0x80:
                position += 1 + (byte >> 1)
            elif (second := data[position + 1]) < 0x80:
                position += (byte >> 1) + (second << 6) - (0x40 - 2)
            else:
                position += 2
                length, shift = byte & 0x7F | (second & 0x7F) << 7, 14
                while second >= 0x80 and shift <= _LONGEST_SHIFT:
                    second = data[position]
                    position += 1
                    length |= (second & 0x7F) << shift
                    shift += 7
                position += length >> 1
            edges[index] = position
    except IndexError:
        position = -1
    if position != end:
        raise _wrong_count(header)


def _wrong_count(header: BatchHeader) -> CorruptMessage:
    return CorruptMessage(
        f"the batch at offset {header.base_offset} does not hold the {header.record_count} records it says"
    )


class Heads(NamedTuple):
    """The fields before the keys of records. A key length of -1 is null; ``key_starts`` are where the keys begin."""

    time_deltas: NDArray[np.int64]
    offset_deltas: NDArray[np.int64]
    key_lengths: NDArray[np.int64]
    key_starts: NDArray[np.int64]


def heads(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> Heads:
    """The heads of the records that begin, with their lengths, at ``starts``.

    Raises CorruptMessage for one that exceeds ``data``.
    """
    _, bodies = varints(data, starts)
    time_deltas, at = varints(data, bodies + 1)
    offset_deltas, at = varints(data, at)
    return Heads(time_deltas, offset_deltas, *varints(data, at))


def varints(data: NDArray[np.uint8], positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Kafka's zigzag number at each position, and the position after it. Raises CorruptMessage for an unterminated
    number.

    Takes one round per byte of the longest number, over the numbers that continue.
    """
    if len(positions) == 0:
        return np.zeros(0, np.int64), positions
    if int(positions.min()) < 0 or int(positions.max()) >= len(data):
        raise CorruptMessage("a field of a record lies outside its batch")
    first = data[positions]
    zigzag = (first & 0x7F).astype(np.uint64)
    behind = positions + 1
    going = np.flatnonzero(first & 0x80)
    for count in range(1, _LONGEST):
        if len(going) == 0:
            break
        at = positions[going] + count
        if int(at.max()) >= len(data):
            raise CorruptMessage("a number in a record goes on behind the end of its batch")
        byte = data[at]
        zigzag[going] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * count)
        behind[going] += 1
        going = going[(byte & 0x80) != 0]
    if len(going):
        raise CorruptMessage(f"a number in a record has more than {_LONGEST} bytes")
    return (zigzag >> np.uint64(1)).view(np.int64) ^ -(zigzag & np.uint64(1)).view(np.int64), behind
