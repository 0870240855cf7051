"""The code that ADBC connections share: running statements and ending transactions."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any

from connectors.jdbc.writers.writer import Writer

__all__ = ["AdbcWriter"]


class AdbcWriter(Writer):
    """The driver is in autocommit mode, and transactions are started with BEGIN: its own transactions would always be
    open, and servers close connections that are idle in a transaction.
    """

    _connection: Any
    _begun = False
    begin = "BEGIN"

    def _begin(self) -> None:
        if not self._begun:
            with closing(self._connection.cursor()) as cursor:
                cursor.execute(self.begin)
            self._begun = True

    def _end(self, word: str) -> None:
        if self._begun:
            self._begun = False
            with self.errors("writing to"), closing(self._connection.cursor()) as cursor:
                cursor.execute(word)

    def run(self, sql: str) -> int:
        with self.errors("writing to"), closing(self._connection.cursor()) as cursor:
            self._begin()
            cursor.execute(sql)
            return int(cursor.rowcount)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with self.errors("asking"), closing(self._connection.cursor()) as cursor:
            self._begin()
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()]

    def commit(self) -> None:
        self._end("COMMIT")

    def rollback(self) -> None:
        self._end("ROLLBACK")

    def cancel(self) -> None:
        with suppress(Exception):  # the statement may have ended already
            self._connection.adbc_cancel()

    def close(self) -> None:
        with suppress(Exception):  # closing fails on a lost connection
            self._connection.close()
