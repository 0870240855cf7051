"""What a driver gives the source: a connection to read rows over, chunk by chunk, as Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
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
    """The result of one statement, chunk by chunk. Close it before the next statement."""

    def __init__(self, database: Database, chunks: Chunks) -> None:
        self._database, self._chunks = database, chunks

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with database_errors(self._database, "reading from"):
                try:
                    chunk = self._chunks.read_next_batch()
                except StopIteration:
                    return
            if len(chunk):
                yield chunk

    def close(self) -> None:
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
