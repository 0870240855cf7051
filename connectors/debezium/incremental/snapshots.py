"""Incremental snapshots: chunks of tables delivered between streamed changes.

A chunk is read while changes are streaming. It already contains everything committed before it was read. The stream may
still have to deliver some of those changes, and a chunk row delivered after a newer change would replace it with an
older state. So a chunk is held back as a window until the stream has passed the moment of reading, and rows whose keys
appear in the stream are dropped from it.

The window covers whole polls rather than the exact range between two marks. That drops a few more rows, whose changes
were delivered just before; the last value delivered for each key is the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from connect.api import ConnectError, DataError, JavaRegex, RecordBatch, get_logger
from connectors.debezium.events import bounded
from connectors.debezium.incremental.progress import Progress, TablePart, Unreadable, without_members
from connectors.debezium.incremental.windows import Behind, Chunk, Window
from connectors.debezium.notifications import Notifications
from connectors.debezium.signals.channels import Channel
from connectors.debezium.signals.signal import Signal, SnapshotRequest, signal_of_row, stop_patterns

__all__ = ["Chunks", "IncrementalSnapshots"]

logger = get_logger(__name__)
_OPEN, _CLOSE = "snapshot-window-open", "snapshot-window-close"


class Chunks(Protocol):
    """The interface that each database has to implement.

    ConnectError and DataError mean that this table cannot be read; other errors end the task.
    """

    def captured(self) -> Sequence[str]:
        """Full names of the captured tables, without the signal table."""
        ...

    def maximum(self, part: TablePart) -> tuple[Any, ...] | None:
        """The greatest key among the rows that fulfil the condition; None where there are none."""
        ...

    def read(self, part: TablePart, after: tuple[Any, ...] | None, maximum: tuple[Any, ...], size: int) -> Chunk | None:
        """The next rows, at most ``size``, with keys after ``after`` and up to ``maximum``; None where there are none."""
        ...

    def retry_position(self, part: TablePart) -> tuple[int | None] | None:
        """Called after a table could not be read.

        If the cause may be that the stream has not reached an ALTER of the table yet, returns a position after which to
        try again (as a chunk's ``reached``); else None.
        """
        ...

    def mark(self, mark_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """Write the begin or end of a chunk into the signal table, so that the stream shows it; nothing to do where no
        marks are used.
        """
        ...

    def whole(
        self, tables: Sequence[str], request: SnapshotRequest, offset: Mapping[str, Any]
    ) -> Iterator[list[RecordBatch]]:
        """A blocking snapshot of tables: yields its batches, all at ``offset``, and an empty list now and then while it
        waits.
        """
        ...

    def close(self) -> None: ...


class _State(NamedTuple):
    """The state that a poll changes, saved before the poll."""

    progress: Progress
    rows: int
    paused: bool
    blocking: list[tuple[SnapshotRequest, list[str]]]
    handed: list[Mapping[str, Any]] | None
    safe: list[Mapping[str, Any]] | None


class IncrementalSnapshots:
    """Carries out signals between the polls of one task. A call that raises leaves the state unchanged."""

    def __init__(
        self,
        chunks: Chunks,
        channels: Sequence[Channel],
        notifications: Notifications,
        *,
        partition: Mapping[str, Any],
        signal_topic: str | None,
        chunk_size: int,
        channel_interval_s: float,
    ) -> None:
        """``signal_topic`` is the topic of the signal table's events; None where the signal table is not used."""
        self._chunks, self._channels, self._notifications = chunks, channels, notifications
        self._partition, self._topic = dict(partition), signal_topic
        self._size, self._interval_s = chunk_size, channel_interval_s
        self._next_look = 0.0
        self._handed: list[Mapping[str, Any]] | None = None
        """Offsets handed out since the last signals were carried out, waiting to be committed; None: nothing is
        waiting.
        """
        self._safe: list[Mapping[str, Any]] | None = None
        self._progress = Progress()
        self._rows = 0
        """Rows of the current table read by this task."""
        self._window: Window | None = None
        self._paused = False
        self._blocking: list[tuple[SnapshotRequest, list[str]]] = []
        """Blocking snapshots still to be done; the first is in progress while ``_pieces`` is set."""
        self._pieces: Iterator[list[RecordBatch]] | None = None
        self._looked_at: list[Signal] = []
        """Signals from channels that a failed poll did not complete."""

    def resume(self, offset: Mapping[str, Any]) -> dict[str, Any]:
        """Continue from a stored offset. Returns the offset without the members that belong here. Raises DataError."""
        self._progress = Progress.of(offset)
        self._window = None
        return without_members(offset)

    @property
    def running(self) -> bool:
        return bool(self._progress.parts)

    def blocked(self, offset: Mapping[str, Any]) -> list[RecordBatch] | None:
        """The next batches of a blocking snapshot; None where there is none, so the stream may continue."""
        if self._pieces is None:
            if not self._blocking:
                return None
            request, tables = self._blocking[0]
            self._pieces = self._chunks.whole(tables, request, {**offset, **self._progress.members()})
        piece = next(self._pieces, None)
        if piece is None:
            self._pieces = None
            del self._blocking[0]
            logger.info("the blocking snapshot is complete")
            return []
        return piece

    def streamed(
        self, batches: Sequence[RecordBatch], offset: Mapping[str, Any], position: int, now: float
    ) -> list[RecordBatch]:
        """The batches of one poll of the stream, with snapshot rows added.

        ``offset`` and ``position`` are the stream's after the poll; ``now`` is the monotonic clock.
        """
        if not self._looked_at and (self._handed is None or self._safe is self._handed):
            self._handed = self._safe = None
            for channel in self._channels:
                channel.done()
        before = self._state()
        try:
            made = self._streamed(batches, offset, position, now)
        except BaseException:
            self._go_back(before)
            raise
        self._looked_at = []
        if self._handed is not None:
            self._handed += [batch.source_offset for batch in made if batch.source_offset is not None]
        return made

    def _state(self) -> _State:
        progress = replace(self._progress, parts=list(self._progress.parts))
        return _State(progress, self._rows, self._paused, list(self._blocking), self._handed, self._safe)

    def _go_back(self, state: _State) -> None:
        self._progress, self._rows, self._paused, self._blocking, self._handed, self._safe = state
        self._window = None  # its chunk is read again, after the last row that was delivered

    def _streamed(
        self, batches: Sequence[RecordBatch], offset: Mapping[str, Any], position: int, now: float
    ) -> list[RecordBatch]:
        told = self._progress.members()
        closed = False
        for batch in batches:
            if batch.topic == self._topic:
                closed = self._rows_of_signals(batch) or closed
        asked = self._look(now)
        made = [self._placed(batch, told) for batch in batches]
        members = self._progress.members()
        if made:
            made[-1] = self._placed(batches[-1], members)
        elif asked:
            made.append(self._nothing({**offset, **members}))
        window = self._window
        if window is not None:
            window.drop(batches)
            if closed or (window.position_reached is not None and position >= window.position_reached):
                self._window = None
                if (chunk := window.ended()) is not None:
                    made += self._delivered(chunk, offset)
        if self.running and self._window is None and not self._paused:
            self._next_chunk()
            if not self.running:
                made.append(self._nothing(offset))
        return made

    def committed(self, offsets: Sequence[Mapping[str, Any]]) -> None:
        """These offsets are stored durably, and so are the effects of earlier signals.

        May be called from any thread.
        """
        handed = self._handed
        if handed is not None and any(offset in handed for offset in offsets):
            self._safe = handed

    def _delivered(self, chunk: Chunk, offset: Mapping[str, Any]) -> list[RecordBatch]:
        before = {**offset, **self._progress.members()}
        self._progress.sent = chunk.last
        after = {**offset, **self._progress.members()}
        pieces = bounded(chunk.batch.replace(source_partition=self._partition, source_offset=before))
        return [*pieces[:-1], pieces[-1].replace(source_offset=after)]

    def _placed(self, batch: RecordBatch, members: Mapping[str, Any]) -> RecordBatch:
        if batch.source_offset is None or not members:
            return batch
        return batch.replace(source_offset={**batch.source_offset, **members})

    def _nothing(self, offset: Mapping[str, Any]) -> RecordBatch:
        """A batch that has no records and only moves the offset."""
        none = pa.array([], pa.string())
        return RecordBatch("signals", none, None, source_partition=self._partition, source_offset=dict(offset))

    # signals

    def _rows_of_signals(self, batch: RecordBatch) -> bool:
        """Carry out signals inserted into the signal table. Returns whether the window's end mark was among them."""
        closed = False
        for record in batch.records():
            event = record.value
            if event is None or event["op"] not in ("c", "d"):
                continue
            row = event["after"] if event["op"] == "c" else event["before"]
            try:
                row_id = next(iter((row or {}).values()), None)
                ends = "-close" if event["op"] == "c" else "-open"
                if self._window is not None and row_id == f"{self._window.id}{ends}":
                    closed = True
                elif event["op"] == "c":
                    self._act(signal_of_row(row))
            except DataError as error:
                logger.warning("a signal cannot be acted upon", channel="source", problem=str(error))
        return closed

    def _look(self, now: float) -> bool:
        """Read the other channels if it is time. Returns whether they had signals."""
        if not self._looked_at and (not self._channels or now < self._next_look):
            return False
        self._next_look = now + self._interval_s
        self._looked_at += [signal for channel in self._channels for signal in channel.read()]
        seen = self._looked_at
        for signal in seen:
            try:
                self._act(signal)
            except DataError as error:
                logger.warning("a signal cannot be acted upon", id=signal.id, type=signal.type, problem=str(error))
        if seen:
            self._handed = []
        return bool(seen)

    def _act(self, signal: Signal) -> None:
        match signal.type:
            case "execute-snapshot":
                self._execute(signal)
            case "stop-snapshot":
                self._stop(stop_patterns(signal.data))
            case "pause-snapshot":
                self._pause(True)
            case "resume-snapshot":
                self._pause(False)
            case "log":
                logger.info(str(signal.data.get("message", "")).replace("{}", str(self._progress)), signal=signal.id)
                return
            case kind if kind in (_OPEN, _CLOSE):
                return
            case _:
                logger.warning("a signal of unknown type", id=signal.id, type=signal.type)
                return
        logger.info(
            "a signal was acted upon", id=signal.id, type=signal.type, tables=[p.table for p in self._progress.parts]
        )

    def _execute(self, signal: Signal) -> None:
        request = SnapshotRequest.of(signal.data)
        known = self._chunks.captured()
        tables: list[str] = []
        for pattern in request.tables:
            chosen = [name for name in known if JavaRegex(pattern, ignore_case=True).fullmatch(name)]
            # a pattern that matches no table is kept, as in the original, and later reported as an unknown table
            tables += chosen or ([] if request.blocking else [pattern])
        if missing := [
            p for p in request.tables if not any(JavaRegex(p, ignore_case=True).fullmatch(name) for name in known)
        ]:
            logger.warning("no captured table has a name that was asked for", signal=signal.id, tables=missing)
        tables = list(dict.fromkeys(tables))
        if request.blocking:
            self._blocking.append((request, tables))
            return
        begins = bool(tables) and not self.running
        self._progress.add(
            [TablePart(name, request.condition(name), request.surrogate_key, signal.id) for name in tables]
        )
        if begins:
            self._tell("STARTED", data_collections=self._collections())

    def _pause(self, paused: bool) -> None:
        if self.running and paused is not self._paused:
            self._tell("PAUSED" if paused else "RESUMED", data_collections=self._collections())
        self._paused = paused

    def _stop(self, patterns: Sequence[str]) -> None:
        parts = self._progress.parts
        kept = [
            part for part in parts if not any(JavaRegex(p, ignore_case=True).fullmatch(part.table) for p in patterns)
        ]
        if parts and kept[:1] != parts[:1]:
            self._window = None
            self._rows = 0
            self._progress.sent = self._progress.maximum = None
        stopped = ",".join(part.table for part in parts if part not in kept)
        if stopped:
            self._tell("ABORTED", data_collections=stopped)
        self._progress.parts = kept

    # notifications

    def _tell(self, kind: str, **more: str) -> None:
        parts = self._progress.parts
        self._notifications.tell("Incremental Snapshot", kind, parts[-1].correlation if parts else "", **more)

    def _collections(self) -> str:
        return ",".join(part.table for part in self._progress.parts)

    def _tell_progress(self, chunk: Chunk) -> None:
        progress = self._progress
        self._tell(
            "IN_PROGRESS",
            data_collections=self._collections(),
            current_collection_in_progress=progress.parts[0].table,
            maximum_key=_text(progress.maximum),
            last_processed_key=_text(chunk.last),
        )

    def _over(self, status: str) -> None:
        """Finish the first table, with this status, and remove it from the list."""
        progress = self._progress
        about = {"data_collections": self._collections(), "scanned_collection": progress.parts[0].table}
        self._tell("TABLE_SCAN_COMPLETED", **about, total_rows_scanned=str(self._rows), status=status)
        self._rows = 0
        correlation = progress.parts[-1].correlation
        progress.next_table()
        if not progress.parts:
            self._notifications.tell("Incremental Snapshot", "COMPLETED", correlation)

    # chunks

    def _next_chunk(self) -> None:
        chunk_id = str(uuid.uuid4())
        progress = self._progress
        about = {"openWindowTimestamp": _now()}
        chunk = None
        try:
            self._chunks.mark(f"{chunk_id}-open", _OPEN, about)
            while progress.parts and chunk is None:
                chunk = self._chunk()
            self._chunks.mark(f"{chunk_id}-close", _CLOSE, about | {"closeWindowTimestamp": _now()})
        except (ConnectError, DataError) as error:
            logger.warning(
                "incremental snapshots cannot be marked, so they end",
                tables=[p.table for p in progress.parts],
                problem=str(error),
            )
            self._tell("ABORTED", data_collections=self._collections())
            self._rows = 0
            progress.parts.clear()
            progress.sent = progress.maximum = None
            return
        if chunk is not None:
            self._window = Window(chunk_id, chunk)

    def _chunk(self) -> Chunk | Behind | None:
        """The next chunk of the first table; None where the table is done and was removed from the list."""
        progress = self._progress
        part = progress.parts[0]
        chunk, status = None, "SUCCEEDED"
        try:
            if progress.maximum is None:
                progress.maximum = self._chunks.maximum(part)
            if progress.maximum is not None:
                chunk = self._chunks.read(part, progress.sent, progress.maximum, self._size)
            else:
                status = "EMPTY"
        except (ConnectError, DataError) as error:
            if (later := self._chunks.retry_position(part)) is not None:
                return Behind(*later)
            logger.warning(
                "a table cannot be read by an incremental snapshot, it is passed over",
                table=part.table,
                problem=str(error),
            )
            known = "SKIPPED" if isinstance(error, DataError) else "SQL_EXCEPTION"
            status = error.status if isinstance(error, Unreadable) else known
        if chunk is None:
            self._over(status)
            logger.info("an incremental snapshot of a table is over", table=part.table)
        else:
            self._rows += len(chunk.batch)
            self._tell_progress(chunk)
        return chunk

    def close(self) -> None:
        """Close the database connections; progress is kept."""
        self._window = self._pieces = None
        self._chunks.close()

    def close_channels(self) -> None:
        for channel in self._channels:
            channel.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _text(key: tuple[Any, ...] | None) -> str:
    return ",".join("<null>" if value is None else str(value) for value in key or ())
