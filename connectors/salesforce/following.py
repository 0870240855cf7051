"""A thread that follows one channel of the Streaming API and hands over batches, whatever breaks on the way."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from connect.api import MAX_BATCH_BYTES, Record, RecordBatch, RetriableConnectError, SourceTaskContext
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.errors import ReplayIdGone
from connectors.salesforce.streaming import StreamingClient
from connectors.salesforce.streaming_config import StreamingConfig
from tidegate.kit.logs import logger

__all__ = ["OFFSET", "START", "Follower", "Placed", "batches_of"]

log = logger(__name__)

OFFSET: Final = "replayId"
START: Final = {"latest": -1, "all": -2}
"""Salesforce's replay ids for where to begin."""
_BATCH_ROWS: Final = 500


class Placed(NamedTuple):
    """A record and the position after it."""

    record: Record
    offset: Mapping[str, Any]


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
            step = max(1, len(part) * MAX_BATCH_BYTES // (2 * max(batch.nbytes, MAX_BATCH_BYTES // 2)))
            for first in range(0, len(part), step):
                yield batch.slice(first, step)


class Follower:
    """Follows ``channel`` from the replay id after ``position``.

    A thread waits for events, since a connect holds for as long as the server likes; it makes batches by ``read``, and
    is the only one that uses ``client`` from ``start`` on. ``next_batches`` hands out what came.
    """

    def __init__(
        self,
        context: SourceTaskContext,
        client: SalesforceClient,
        config: StreamingConfig,
        channel: str,
        read: Callable[[Sequence[Mapping[str, Any]]], Sequence[RecordBatch]],
    ) -> None:
        self._context, self._client, self._config = context, client, config
        self._channel, self._read = channel, read
        self._arrived: queue.Queue[Sequence[RecordBatch] | Exception] = queue.Queue(maxsize=64)
        self._stream: StreamingClient | None = None
        self._thread = threading.Thread(target=self._follow, name=f"follow {channel}", daemon=True)
        self._replay_id = START[config.initial_start]

    def start(self, position: Mapping[str, Any] | None) -> None:
        if position is not None:
            self._replay_id = int(position[OFFSET])
        self._thread.start()

    def next_batches(self) -> Sequence[RecordBatch]:
        """What has come; waits for half a second. Raises what ended the thread."""
        try:
            arrived = self._arrived.get(timeout=0.5)
        except queue.Empty:
            return []
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._client.close()

    def _follow(self) -> None:
        """Subscribe, hand over what comes, subscribe anew from the last event after every break."""
        wait_s = 0.5
        while not self._context.stopping.is_set():
            self._stream = StreamingClient(self._client, self._config.api_version, self._channel)
            try:
                self._subscribe(self._stream)
                while not self._context.stopping.is_set():
                    events = self._stream.events()
                    wait_s = 0.5
                    if events:
                        self._hand_over(self._read(events))
                        self._replay_id = int(events[-1]["event"]["replayId"])
            except RetriableConnectError as error:
                log.info("subscribing anew", channel=self._channel, error=str(error))
                self._context.stopping.wait(wait_s)
                wait_s = min(wait_s * 2, 30.0)
            except Exception as error:  # noqa: BLE001 - the task's thread raises it
                self._hand_over(error)
                return
            finally:
                self._stream.close()

    def _subscribe(self, stream: StreamingClient) -> None:
        try:
            stream.subscribe(self._replay_id)
        except ReplayIdGone as error:
            where = self._config.invalid_replay_id
            log.warning(
                "the position is not kept any more", channel=self._channel, goes_on_with=where, error=str(error)
            )
            self._replay_id = START[where]
            stream.subscribe(self._replay_id)

    def _hand_over(self, what: Sequence[RecordBatch] | Exception) -> None:
        while not self._context.stopping.is_set():
            try:
                self._arrived.put(what, timeout=0.5)
            except queue.Full:
                continue
            return
