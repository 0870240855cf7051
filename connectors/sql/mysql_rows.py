"""Rows of MySQL's text protocol as Arrow, without a Python call per cell.

A row is one packet (a length of three bytes, a number, the payload), and its payload each column as a text with its length
before it (dev.mysql.com, "Text Resultset Row"). Only the packets' lengths are followed one by one; then each column is
found in all rows at once, and its texts become an Arrow array over the very bytes that came.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Packets", "StreamedRows", "columns_of_rows", "texts_over"]

_READ_BYTES: Final = 256 * 1024

_WHOLE = 0xFFFFFF
"""The length of a packet whose payload continues in the next packet."""


class Packets:
    """Collects the bytes of a result and splits them between rows. ``read`` returns the next bytes, none at the end."""

    def __init__(self, read: Callable[[], bytes], *, chunk_bytes: int) -> None:
        self._read, self._chunk_bytes = read, chunk_bytes
        self._bytes = bytearray()
        self.last: bytes | None = None
        """The payload of the packet after the rows, once it has arrived: an EOF or an ERR packet."""

    def next(self) -> tuple[bytes, list[int]]:
        """The bytes of some whole rows, and the start of each payload in them; no rows at the end.

        Raises EOFError where the stream ends within the rows.
        """
        starts: list[int] = []
        buffer, at = self._bytes, 0
        length_of = struct.Struct("<I").unpack_from
        while self.last is None and at < self._chunk_bytes:
            size = len(buffer)
            while at + 4 <= size:
                length = length_of(buffer, at)[0] & _WHOLE
                following = at + 4 + length
                if following > size:
                    break
                if length == _WHOLE and (following := self._joined(following)) < 0:
                    break
                size = len(buffer)  # joining removed headers
                first = buffer[at + 4] if length else 0
                if first >= 0xFE and (first == 0xFF or length < 9):
                    self.last = bytes(buffer[at + 4 : following])
                    break
                starts.append(at + 4)
                at = following
            if self.last is None and at < self._chunk_bytes:
                more = self._read()
                if not more:
                    raise EOFError
                buffer += more
        block = bytes(memoryview(buffer)[:at])
        del buffer[:at]
        return block, starts

    def _joined(self, end: int) -> int:
        """Remove the headers of a row's further packets. Returns the row's new end, or -1 while it is incomplete."""
        headers, at = [], end
        while True:
            if at + 4 > len(self._bytes):
                return -1
            length = int.from_bytes(self._bytes[at : at + 3], "little")
            headers.append(at)
            at += 4 + length
            if at > len(self._bytes):
                return -1
            if length < _WHOLE:
                break
        for header in reversed(headers):
            del self._bytes[header : header + 4]
        return at - 4 * len(headers)


class StreamedRows:
    """A SELECT run over a PyMySQL connection, whose rows are read from the stream. Must be closed before the next
    statement.

    If a statement is not read to its end, the rest stays in the stream, and its connection is abandoned.
    """

    def __init__(self, connection: Any, statement: str, *, chunk_bytes: int) -> None:
        """Raises PyMySQL's errors."""
        import pymysql.cursors

        self._connection = connection
        self._cursor = connection.cursor(pymysql.cursors.SSCursor)  # a discarded cursor would read the rows itself
        self._cursor.execute(statement)
        self._result = self._cursor._result
        self.fields = self._result.fields
        self._packets = Packets(lambda: bytes(connection._rfile.read1(_READ_BYTES)), chunk_bytes=chunk_bytes)

    @property
    def ended(self) -> bool:
        """Whether all rows were delivered."""
        return self._packets.last is not None

    def next(self) -> list[pa.Array] | None:
        """The columns of the next rows, as bytes; None at the end. Raises PyMySQL's errors."""
        from pymysql.err import OperationalError, raise_mysql_exception

        if self.ended:
            return None
        try:
            block, starts = self._packets.next()
        except (EOFError, OSError) as error:
            self._connection._force_close()
            raise OperationalError(2013, "the server closed the connection during the query") from error
        if (last := self._packets.last) is not None:
            self._forget()
            if last[0] == 0xFF:
                raise_mysql_exception(last)
        return columns_of_rows(block, starts, len(self.fields))

    def _forget(self) -> None:
        """The result was read to its end: inform PyMySQL, which has not seen that."""
        self._result.unbuffered_active = False
        self._result.connection = None

    def close(self) -> None:
        if not self.ended:
            self._forget()
            self._connection._force_close()


def columns_of_rows(block: bytes, starts: list[int], count: int) -> list[pa.Array]:
    """Each of ``count`` columns as an array of binaries. Raises ValueError for invalid bytes."""
    data = np.frombuffer(block, np.uint8)
    at = np.array(starts, np.int64)
    memory = pa.py_buffer(block)
    made = []
    try:
        for _ in range(count):
            begins, ends, null = _texts(data, at)
            if len(ends) and int(ends.max()) > len(block):
                raise ValueError("a text that goes beyond its row")
            made.append(texts_over(memory, begins, ends, null))
            at = ends
    except IndexError:
        raise ValueError("a row with fewer columns than its result") from None
    return made


_Numbers = npt.NDArray[np.int64]


def _texts(data: npt.NDArray[np.uint8], at: _Numbers) -> tuple[_Numbers, _Numbers, npt.NDArray[np.bool_]]:
    """Start and end of the texts at these positions, and which are NULL."""
    first = data[at]
    lengths = first.astype(np.int64)
    begins = at + 1
    null = first == 0xFB
    if (first >= 0xFB).any():
        lengths[null] = 0
        for mark, width in ((0xFC, 2), (0xFD, 3), (0xFE, 8)):
            positions = np.flatnonzero(first == mark)
            if len(positions):
                long = np.zeros(len(positions), np.int64)
                for i in range(width):
                    long |= data[at[positions] + 1 + i].astype(np.int64) << (8 * i)
                lengths[positions] = long
                begins[positions] += width
    ends = begins + lengths
    if (lengths < 0).any():
        raise ValueError("a text of negative length")
    return begins, ends, null


def texts_over(memory: pa.Buffer, begins: _Numbers, ends: _Numbers, null: npt.NDArray[np.bool_]) -> pa.Array:
    """The texts between these positions, which ascend, as binaries over ``memory``.

    The texts and the bytes between them are the elements of one array; every second element is a text.
    """
    count = len(begins)
    if not count:
        return pa.array([], pa.binary())
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2], offsets[1::2] = begins, ends
    validity = None
    if null.any():
        valid = np.ones(2 * count, np.bool_)
        valid[0::2] = ~null
        validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
    with_gaps = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [validity, pa.py_buffer(offsets), memory])
    return with_gaps.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int64)))
