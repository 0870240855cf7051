"""Transactions that the server sends in pieces before they end (``streaming 'on'``): kept until their commit, so that
readers of the log see whole transactions in the order of their commits.

Source: PostgreSQL documentation, "Logical Streaming Replication Protocol", protocol version 2.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from typing import IO, Final, Protocol

from connect.api import DataError
from connectors.postgres.pgoutput import HEAD

__all__ = ["WholeTransactions"]

_MEMORY_BYTES: Final = 1024 * 1024
"""Bytes per transaction kept in memory; larger ones go to a temporary file."""
_START, _STOP, _COMMIT, _ABORT = b"SEcA"
_UNWANTED: Final = b"OY"
"""Origins and types: they are not used, and origins contain no transaction number."""
_KEPT: Final = struct.Struct(">II")
_ENDED: Final = struct.Struct(">IBQQq")
_PAIR: Final = struct.Struct(">II")
_BEGIN_BODY: Final = struct.Struct(">cQqI")
_COMMIT_BODY: Final = struct.Struct(">cBQQq")


class Stream(Protocol):
    """A source of messages."""

    def next(self) -> bytes | None:
        """The next message with replication's header; None when none is available."""
        ...


class _Kept:
    """The messages of a transaction that has not ended, each with the number of its subtransaction."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self._aborted: set[int] = set()
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_MEMORY_BYTES)  # noqa: SIM115 - closed with its transaction

    def add(self, message: bytes) -> None:
        (number,) = struct.unpack_from(">I", message, HEAD + 1)
        self._file.write(_KEPT.pack(number, len(message) - 4))
        self._file.write(message[: HEAD + 1])
        self._file.write(message[HEAD + 5 :])

    def abort(self, subtransaction: int) -> None:
        self._aborted.add(subtransaction)

    def messages(self) -> Iterator[bytes]:
        """The messages, except those of subtransactions that were rolled back."""
        self._file.seek(0)
        while head := self._file.read(_KEPT.size):
            number, length = _KEPT.unpack(head)
            message = self._file.read(length)
            if number not in self._aborted:
                yield message

    def close(self) -> None:
        self._file.close()


class WholeTransactions:
    """A stream without pieces: ``next`` returns messages as in protocol version 1.

    Must be closed, because it may have open files.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._transactions: dict[int, _Kept] = {}
        self._current: _Kept | None = None
        self._replayed: Iterator[bytes] | None = None

    def next(self) -> bytes | None:
        """The next message; None when none is available. Raises DataError for an invalid message."""
        while True:
            if self._replayed is not None:
                batch = next(self._replayed, None)
                if batch is not None:
                    return batch
                self._replayed = None
            message = self._stream.next()
            if message is None:
                return None
            try:
                kind = message[HEAD]
                if self._current is None and kind not in b"SEcA":
                    return message
                self._piece(kind, message)
            except (struct.error, IndexError, KeyError) as error:
                raise DataError(f"pgoutput sent a piece of a transaction that cannot be read: {error!r}") from error

    def _piece(self, kind: int, message: bytes) -> None:
        if kind == _START:
            (number,) = struct.unpack_from(">I", message, HEAD + 1)
            if number not in self._transactions:
                self._transactions[number] = _Kept(message[:HEAD])
            self._current = self._transactions[number]
        elif kind == _STOP:
            self._current = None
        elif kind == _COMMIT:
            self._replayed = self._whole(message)
        elif kind == _ABORT:
            number, subtransaction = _PAIR.unpack_from(message, HEAD + 1)
            if number == subtransaction:
                self._transactions.pop(number).close()
            elif number in self._transactions:
                self._transactions[number].abort(subtransaction)
        elif kind not in _UNWANTED and self._current is not None:
            self._current.add(message)

    def _whole(self, message: bytes) -> Iterator[bytes]:
        number, flags, commit, end, micros = _ENDED.unpack_from(message, HEAD + 1)
        kept = self._transactions.pop(number)

        def messages() -> Iterator[bytes]:
            yield kept.head + _BEGIN_BODY.pack(b"B", commit, micros, number)
            yield from kept.messages()
            kept.close()
            yield message[:HEAD] + _COMMIT_BODY.pack(b"C", flags, commit, end, micros)

        return messages()

    def close(self) -> None:
        for kept in self._transactions.values():
            kept.close()
