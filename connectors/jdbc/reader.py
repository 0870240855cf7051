"""Reads one table or query repeatedly: when to run the next statement, which one, and how far it got."""

from __future__ import annotations

import time
from collections.abc import Iterator

from connect.api import ConnectError, RecordBatch, RetriableConnectError, get_logger
from connectors.jdbc.batches import Chunk, cut, with_following
from connectors.jdbc.config import JdbcSourceConfig
from connectors.jdbc.drivers import RowReader, Rows
from connectors.jdbc.offsets import Position
from connectors.jdbc.queries import Plan, Source, plan
from connectors.sql.dialects import Dialect
from connectors.sql.engines import database_errors
from connectors.sql.urls import Database

__all__ = ["SourceReader"]

logger = get_logger(__name__)


class SourceReader:
    """The state of reading one table or query. ``due`` is the time (``time.monotonic``) of the next statement.

    Call ``next`` with a connection on which this reader has no other statement open; another reader may.
    """

    def __init__(
        self, config: JdbcSourceConfig, database: Database, dialect: Dialect, source: Source, position: Position
    ) -> None:
        self.source = source
        self.due = 0.0
        self._config, self._database, self._dialect = config, database, dialect
        self._position = position
        self._rows: Rows | None = None
        self._chunks: Iterator[tuple[Chunk, int | None]] | None = None
        self._plan: Plan | None = None
        self._described = False
        self._skipped_told = False

    @property
    def reading(self) -> bool:
        """Whether a statement is open and has more rows."""
        return self._chunks is not None

    def next(self, connection: RowReader) -> list[RecordBatch]:
        """The next batches; an empty list once all current rows were delivered."""
        if self._chunks is None:
            self._begin(connection)
        assert self._chunks is not None and self._plan is not None
        chunk, following = next(self._chunks, (None, None))
        if chunk is None:
            self._finish()
            connection.rest()
            return []
        made = list(cut(self._plan, chunk, self._position, following))
        if made:
            self._position = made[-1][1]
        self._described = True
        return [batch for batch, _ in made]

    def abandon(self) -> None:
        """Drop the open statement, for example after an error; the next one starts after the last batch delivered."""
        rows, self._rows, self._chunks = self._rows, None, None
        if rows is not None:
            rows.close()

    def _begin(self, connection: RowReader) -> None:
        self._plan = self._planned(connection)
        self._tell_skipped(self._plan)
        if self._position == Position():
            self._position = self._initial(connection)
        until = self._until(connection)
        made, at = self._plan, self._position
        try:
            self._rows = connection.read(made.statement(at, until), made.likeness(), made.widest(at, until))
        except RetriableConnectError:
            raise
        except ConnectError as error:
            if self._planned(connection).schema != made.schema:
                raise RetriableConnectError(f"{self.source} was altered just now: {error}") from error
            raise
        self._chunks = with_following(self._plan, self._rows)
        self._described = False

    def _planned(self, connection: RowReader) -> Plan:
        with database_errors(self._database, "describing tables of"):
            return plan(self._config, self._dialect, connection.describing, self.source)

    def _finish(self) -> None:
        """Wait poll.interval.ms after all rows were read."""
        self.abandon()
        again_at_once = self._described and self._config.effective_mode != "bulk"
        self.due = 0.0 if again_at_once else time.monotonic() + self._config.poll_interval_ms / 1000

    def _initial(self, connection: RowReader) -> Position:
        stamp = self._config.timestamp_initial if self._config.by_timestamp else None
        number = self._config.incrementing_initial if self._config.by_incrementing else None
        if stamp == -1:
            return Position(self._now(connection), number)
        return Position(stamp * 1000 if stamp is not None else None, number)

    def _until(self, connection: RowReader) -> int | None:
        if not self._config.by_timestamp:
            return None
        return self._now(connection) - self._config.delay_ms * 1000

    def _now(self, connection: RowReader) -> int:
        return self._dialect.micros(connection.value(self._dialect.now))

    def _tell_skipped(self, made: Plan) -> None:
        if made.skipped and not self._skipped_told:
            logger.warning(
                "columns have no place in Connect's types and are left out",
                table=str(self.source),
                columns=made.skipped,
            )
            self._skipped_told = True
