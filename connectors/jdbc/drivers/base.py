"""The interface of a driver for the source: a connection that reads rows in chunks of Arrow data."""

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
"""About how many bytes a driver collects for a chunk if it can limit bytes: the fastest of 1, 4 and 16 MiB, measured
with PostgreSQL.
"""


class Chunks(Protocol):
    """A running statement. ``read_next_batch`` raises StopIteration at the end."""

    def read_next_batch(self) -> pa.RecordBatch: ...

    def close(self) -> None: ...


class Rows:
    """The result of one statement, in chunks. Must be closed before the next statement.

    With ``ahead``, a thread reads the next chunk while one is being processed: drivers that release the GIL then run in
    parallel with the processing. Even so, only one thread uses the statement at a time.
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
        """Have the thread read the next chunk.

        It starts after the first chunk, because most statements on an unchanged table find no rows.
        """
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
        """Close the statement, after any reading ahead has ended."""
        if self._following is not None:
            wait([self._following])
        if self._requests is not None:
            self._requests.put(None)
        self._chunks.close()


class RowReader(ABC):
    """A connection for reading, in autocommit mode so that no transaction outlives a statement. Runs one statement at a
    time.

    Created by one thread; only ``cancel`` may be called from another. Errors are raised as ``database_errors`` converts
    them.
    """

    @property
    @abstractmethod
    def describing(self) -> Any:
        """The connection that this database's dialect uses to describe tables."""

    @abstractmethod
    def value(self, statement: str) -> Any:
        """The single value that a statement returns."""

    @abstractmethod
    def read(self, statement: str, likeness: str, widest: str | None) -> Rows:
        """Run a SELECT.

        ``likeness`` selects one row of constants with the types wanted. ``widest`` selects one row with the greatest
        size in bytes of each column, where this can be found quickly.
        """

    @abstractmethod
    def cancel(self) -> None:
        """Make a statement that runs in another thread end with an error; does nothing when none is running."""

    def rest(self) -> None:
        """Called when nothing will be read for a while: release what others may be waiting for."""

    @abstractmethod
    def close(self) -> None: ...
