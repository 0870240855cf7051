"""What a driver gives the source: a connection to read rows over, chunk by chunk, as Arrow."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, Protocol

import pyarrow as pa

from connectors.sql.engines import database_errors
from connectors.sql.urls import Database

__all__ = ["CHUNK_BYTES", "Chunks", "RowReader", "Rows"]

CHUNK_BYTES = 4 * 1024 * 1024
"""About what a driver that counts bytes gathers before it hands on: for PostgreSQL the fastest of 1, 4 and 16 MiB here."""


class Chunks(Protocol):
    """A running statement. ``read_next_batch`` raises StopIteration at the end."""

    def read_next_batch(self) -> pa.RecordBatch: ...

    def close(self) -> None: ...


class Rows:
    """The result of one statement, chunk by chunk. Close it before the next statement.

    With ``ahead`` a thread reads the next chunk while one is in use: drivers that let go of the interpreter's lock then work
    beside what becomes of the rows. The statement is used by one thread at a time all the same.
    """

    def __init__(self, database: Database, chunks: Chunks, *, ahead: bool = True) -> None:
        self._database, self._chunks, self._ahead = database, chunks, ahead
        self._following: Future[pa.RecordBatch | None] | None = None
        self._requests: SimpleQueue[Future[pa.RecordBatch | None] | None] | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        chunk = self._read()
        while chunk is not None:
            if self._ahead:
                self._following = self._in_background()
            if len(chunk):
                yield chunk
            chunk = self._following.result() if self._following is not None else self._read()

    def _read(self) -> pa.RecordBatch | None:
        with database_errors(self._database, "reading from"):
            try:
                return self._chunks.read_next_batch()
            except StopIteration:
                return None

    def _in_background(self) -> Future[pa.RecordBatch | None]:
        """Ask the thread for the next chunk. It begins with the first: most statements of a table at rest find nothing."""
        if self._requests is None:
            self._requests = SimpleQueue()
            threading.Thread(target=self._serve, args=(self._requests,), name="rows ahead", daemon=True).start()
        future: Future[pa.RecordBatch | None] = Future()
        self._requests.put(future)
        return future

    def _serve(self, requests: SimpleQueue[Future[pa.RecordBatch | None] | None]) -> None:
        while (future := requests.get()) is not None:
            try:
                future.set_result(self._read())
            except BaseException as error:  # noqa: BLE001 - it is raised where the chunk is asked for
                future.set_exception(error)

    def close(self) -> None:
        """Let go of the statement, once nothing is being read ahead."""
        if self._following is not None:
            wait([self._following])
        if self._requests is not None:
            self._requests.put(None)
        self._chunks.close()


class RowReader(ABC):
    """A connection for reading, in autocommit so that no transaction outlives a statement. One statement at a time.

    Made from one thread; only ``cancel`` comes from another. What goes wrong is raised as ``database_errors`` has it.
    """

    @property
    @abstractmethod
    def describing(self) -> Any:
        """What the dialect of this database describes tables over."""

    @abstractmethod
    def value(self, statement: str) -> Any:
        """The one value that a statement delivers."""

    @abstractmethod
    def read(self, statement: str, likeness: str, widest: str | None) -> Rows:
        """Run a SELECT. ``likeness`` selects one row of constants of the types wanted; ``widest`` one row of the most bytes
        that the columns' values have, where that is quickly known."""

    @abstractmethod
    def cancel(self) -> None:
        """Make a statement that runs in another thread end with an error; nothing happens when none runs."""

    def rest(self) -> None:
        """Nothing is asked for a while: let go of what others may wait for."""

    @abstractmethod
    def close(self) -> None: ...
