"""Following one channel of the Streaming API, whatever breaks on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from connect.api import MAX_BATCH_BYTES, Record, RecordBatch, get_logger
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.errors import ReplayIdGone
from connectors.salesforce.streaming import StreamingClient

__all__ = ["OFFSET", "START", "Follower", "Placed", "batches_of", "replay_id_of", "within_bounds"]

logger = get_logger(__name__)

OFFSET: Final = "replayId"
START: Final = {"latest": -1, "all": -2}
"""Salesforce's replay ids for where to begin."""
_BATCH_ROWS: Final = 500


class Placed(NamedTuple):
    """A record and the position after it."""

    record: Record
    offset: Mapping[str, Any]


def replay_id_of(event: Mapping[str, Any]) -> int:
    """Raises KeyError and such for what is no event."""
    return int(event["event"]["replayId"])


def batches_of(partition: Mapping[str, Any], rows: Sequence[Placed]) -> Iterator[RecordBatch]:
    """Batches of one topic and schema each, in order, within the size that a source keeps to."""
    for _, same in groupby(rows, key=lambda row: (row.record.topic, id(row.record.value_schema))):
        run = list(same)
        for start in range(0, len(run), _BATCH_ROWS):
            part = run[start : start + _BATCH_ROWS]
            offsets = [row.offset for row in part]
            batch = RecordBatch.from_records(
                [row.record for row in part],
                source_partition=partition,
                source_offset=offsets[-1],
                source_offsets=offsets,
            )
            yield from within_bounds(batch)


def within_bounds(batch: RecordBatch) -> Iterator[RecordBatch]:
    """The batch in slices of about half of what a source keeps under. It has the position of each row."""
    step = max(1, len(batch) * MAX_BATCH_BYTES // (2 * max(batch.nbytes, MAX_BATCH_BYTES // 2, 1)))
    for first in range(0, len(batch), step):
        yield batch.slice(first, step)


class Follower:
    """Follows ``channel`` from the replay id after ``position``, else from ``start``; ``feed`` is for a ``Feeder``.

    ``read`` makes batches of events, given the replay id from which these are read again: it may be called again with the same.
    From the first ``feed`` on, its thread is the only one that uses ``client``.
    """

    def __init__(
        self,
        client: SalesforceClient,
        version: str,
        channel: str,
        read: Callable[[Sequence[Mapping[str, Any]], int], Iterable[Sequence[RecordBatch]]],
        *,
        position: Mapping[str, Any] | None,
        start: str,
        when_gone: str | None,
    ) -> None:
        """``when_gone`` says where to go on when the org does not keep the position: ``all``, ``latest``, or None, which
        lets ``feed`` raise ReplayIdGone."""
        self._client, self._version, self._channel, self._read = client, version, channel, read
        self._replay_id = int(position[OFFSET]) if position is not None else START[start]
        self._when_gone = when_gone
        self._stream: StreamingClient | None = None

    def feed(self) -> Iterator[Sequence[RecordBatch]]:
        """Subscribe and yield what comes; begins anew after the last event when it is called again."""
        self._stream = StreamingClient(self._client, self._version, self._channel)
        try:
            self._subscribe(self._stream)
            while True:
                events = self._stream.events()
                yield []
                if events:
                    # Without a position yet, all that is kept is read again rather than only what is new.
                    yield from self._read(events, self._replay_id if self._replay_id >= 0 else START["all"])
                    self._replay_id = replay_id_of(events[-1])
        finally:
            self._stream.close()

    def go_to(self, start: str) -> None:
        """Let the next ``feed`` begin with ``all`` or the ``latest``."""
        self._replay_id = START[start]

    def abort(self) -> None:
        """From any thread: have a call that waits end with an error."""
        if (stream := self._stream) is not None:
            stream.abort()
        self._client.abort()

    def _subscribe(self, stream: StreamingClient) -> None:
        try:
            stream.subscribe(self._replay_id)
        except ReplayIdGone as error:
            where = self._when_gone
            if where is None:
                raise
            logger.warning(
                "the position is not kept any more", channel=self._channel, goes_on_with=where, error=str(error)
            )
            self.go_to(where)
            stream.subscribe(self._replay_id)
