"""Incremental snapshots: chunks of tables delivered among streamed changes.

A chunk is read while changes stream. What was committed up to the time of its reading is in it already, and what of that is yet to
come from the log would be overtaken by an older row: so a chunk waits as a window until the stream has passed the time of its
reading, and rows whose keys come by are dropped from it. Watching the whole of each poll, not from mark to mark, drops a few rows
more whose changes were delivered just before; what is delivered last of each key is the same.
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
    """What a database gives. ConnectError or DataError: this table cannot be read; others end the task."""

    def captured(self) -> Sequence[str]:
        """Whole names of the tables that are captured, but that of signals."""
        ...

    def maximum(self, part: TablePart) -> tuple[Any, ...] | None:
        """The greatest key that fulfils the condition; None where no row does."""
        ...

    def read(self, part: TablePart, after: tuple[Any, ...] | None, maximum: tuple[Any, ...], size: int) -> Chunk | None:
        """The next rows, at most ``size``, after a key and up to another; None where there are none."""
        ...

    def behind(self, part: TablePart) -> tuple[int | None] | None:
        """After a table could not be read: what to try again after (as a chunk's ``reached``), where the stream may be behind an
        alteration of it; None where that is not the cause."""
        ...

    def mark(self, mark_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """Begin or end of a chunk into the table of signals, where the stream brings it by; else nothing is to be done."""
        ...

    def whole(
        self, tables: Sequence[str], request: SnapshotRequest, offset: Mapping[str, Any]
    ) -> Iterator[list[RecordBatch]]:
        """A blocking snapshot of tables: its batches, all at ``offset``; an empty list from time to time while it waits."""
        ...

    def close(self) -> None: ...


class _State(NamedTuple):
    """What a poll moves, as it was before it."""

    progress: Progress
    rows: int
    paused: bool
    blocking: list[tuple[SnapshotRequest, list[str]]]
    handed: list[Mapping[str, Any]] | None
    safe: list[Mapping[str, Any]] | None


class IncrementalSnapshots:
    """What signals ask for, done between the polls of one task. A call that raises has done nothing: it is as before."""

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
        """``signal_topic`` is the topic of the table of signals, None where the table is not listened to."""
        self._chunks, self._channels, self._notifications = chunks, channels, notifications
        self._partition, self._topic = dict(partition), signal_topic
        self._size, self._interval_s = chunk_size, channel_interval_s
        self._next_look = 0.0
        self._handed: list[Mapping[str, Any]] | None = None
        """Positions handed out since signals were acted upon; None: they need no more."""
        self._safe: list[Mapping[str, Any]] | None = None
        self._progress = Progress()
        self._rows = 0
        """Read of the table in hand by this task."""
        self._window: Window | None = None
        self._paused = False
        self._blocking: list[tuple[SnapshotRequest, list[str]]] = []
        """What is asked for and not done; the first is being read while there are ``_pieces``."""
        self._pieces: Iterator[list[RecordBatch]] | None = None
        self._looked_at: list[Signal] = []
        """Signals that channels gave and that a poll which failed did not act upon for good."""

    def resume(self, offset: Mapping[str, Any]) -> dict[str, Any]:
        """Go on where a position says; returns it without what is said of this. Raises DataError."""
        self._progress = Progress.of(offset)
        self._window = None
        return without_members(offset)

    @property
    def running(self) -> bool:
        return bool(self._progress.parts)

    def blocked(self, offset: Mapping[str, Any]) -> list[RecordBatch] | None:
        """The next batches of a blocking snapshot; None while there is none, and the stream may go on."""
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
        """What a poll of the stream brought, with what comes in between; ``offset`` and ``position`` are the stream's after it,
        ``now`` the monotonic clock."""
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
        self._window = None  # its chunk is read again, from what was delivered last

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
        """These positions outlive a crash, and with them what signals asked for before. From any thread."""
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
        """No records, but a position."""
        none = pa.array([], pa.string())
        return RecordBatch("signals", none, None, source_partition=self._partition, source_offset=dict(offset))

    # signals

    def _rows_of_signals(self, batch: RecordBatch) -> bool:
        """Act on inserts into the table of signals; whether the window's end came by."""
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
        """At the other channels, when it is time; whether anything came."""
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
            # a name of no table goes along, as with the original, and ends as a table that is not known
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
        """The first table is done, however it went; it goes from the list."""
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
        """The next of the first table; None where it is done, and gone from the list."""
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
            if (later := self._chunks.behind(part)) is not None:
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
        """Let go of the database; progress stays."""
        self._window = self._pieces = None
        self._chunks.close()

    def close_channels(self) -> None:
        for channel in self._channels:
            channel.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _text(key: tuple[Any, ...] | None) -> str:
    return ",".join("<null>" if value is None else str(value) for value in key or ())
