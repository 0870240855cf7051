"""Follows one channel of the Streaming API through connection failures."""

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
"""Salesforce's replay ids for the start options."""
_BATCH_ROWS: Final = 500


class Placed(NamedTuple):
    """A record and the offset after it."""

    record: Record
    offset: Mapping[str, Any]


def replay_id_of(event: Mapping[str, Any]) -> int:
    """Raises KeyError and similar for an invalid event."""
    return int(event["event"]["replayId"])


def batches_of(partition: Mapping[str, Any], rows: Sequence[Placed]) -> Iterator[RecordBatch]:
    """Batches with one topic and schema each, in order, limited to the recommended size."""
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
    """The batch in slices of about half the recommended size. It has an offset for each row."""
    step = max(1, len(batch) * MAX_BATCH_BYTES // (2 * max(batch.nbytes, MAX_BATCH_BYTES // 2, 1)))
    for first in range(0, len(batch), step):
        yield batch.slice(first, step)


class Follower:
    """Follows ``channel`` from the replay id after ``position``, else from ``start``; ``feed`` is meant for a
    ``Feeder``.

    ``read`` converts events to batches, given the replay id from which they would be read again; it may be called twice
    with the same events. From the first ``feed`` on, only its thread uses ``client``.
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
        """``when_gone`` says where to continue when the org no longer keeps the position: ``all``, ``latest``, or None,
        with which ``feed`` raises ReplayIdGone.
        """
        self._client, self._version, self._channel, self._read = client, version, channel, read
        self._replay_id = int(position[OFFSET]) if position is not None else START[start]
        self._when_gone = when_gone
        self._stream: StreamingClient | None = None

    def feed(self) -> Iterator[Sequence[RecordBatch]]:
        """Subscribe and yield events as they arrive; called again, it continues after the last event."""
        self._stream = StreamingClient(self._client, self._version, self._channel)
        try:
            self._subscribe(self._stream)
            while True:
                events = self._stream.events()
                yield []
                if events:
                    # without an offset, all events that the org keeps are read again, not only new ones
                    yield from self._read(events, self._replay_id if self._replay_id >= 0 else START["all"])
                    self._replay_id = replay_id_of(events[-1])
        finally:
            self._stream.close()

    def go_to(self, start: str) -> None:
        """Start the next ``feed`` with ``all`` or ``latest``."""
        self._replay_id = START[start]

    def abort(self) -> None:
        """May be called from any thread: makes a waiting call end with an error."""
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
