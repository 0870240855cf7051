"""Undecoded batches through aiokafka's consumer. This file has all hooks into its private parts.

aiokafka's fetcher keeps one answer per partition as a ``FetchResult`` around an iterator of records with the attribute
``next_fetch_offset``. Ours iterates over one item: the undecoded batches of that answer. aiokafka still does positions,
seeks, pauses, rebalances and commits. tests/broker/client/test_fetcher.py tests these names.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any, Final

import aiokafka.errors as library
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import Fetcher, FetchResult, OffsetResetStrategy
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.structs import TopicPartition

from broker.client.batches import Batch, split
from broker.client.fetched import FetchedBatches
from broker.errors import MessageTooLarge, NotLeaderOrFollower, OffsetOutOfRange, UnknownTopicOrPartition, error_for
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["BatchingConsumer"]

logger = get_logger(__name__)

_READ_COMMITTED: Final = 1
_STALE: Final = (NotLeaderOrFollower.code, UnknownTopicOrPartition.code, 74, 76, 100)
"""Error codes that mean that metadata is outdated, including those for leader epochs and topic ids."""

_resetting: ContextVar[Any] = ContextVar("_resetting", default=None)
"""In the task that asks for positions: the assignment that they are for."""


class _Answer:
    """One partition's part of a fetch answer, shaped as aiokafka's FetchResult expects: an iterator of one item."""

    def __init__(self, fetched: FetchedBatches) -> None:
        self.next_fetch_offset = fetched.offset
        self.size = fetched.size
        self._items = self._single(fetched)

    def _single(self, fetched: FetchedBatches) -> Iterator[FetchedBatches]:
        self.next_fetch_offset = fetched.next_offset
        yield fetched

    def __iter__(self) -> Iterator[FetchedBatches]:
        return self

    def __next__(self) -> FetchedBatches:
        return next(self._items)


class _BatchFetcher(Fetcher):  # type: ignore[misc]
    async def close(self) -> None:
        """aiokafka 0.14 cancels running tasks and awaits them, so that the caller of close is cancelled too."""
        self._fetch_task.cancel()
        await asyncio.gather(self._fetch_task, return_exceptions=True)
        for task in self._pending_tasks:
            task.cancel()
        await asyncio.gather(*self._pending_tasks, return_exceptions=True)
        self._pending_tasks.clear()
        await super().close()

    async def _update_fetch_positions(self, assignment: Any, node_id: int, tps: Any) -> bool:
        """aiokafka 0.14 uses the answer for the end of the log to satisfy a later request for its beginning."""
        token = _resetting.set(assignment)
        try:
            return bool(await super()._update_fetch_positions(assignment, node_id, tps))
        finally:
            _resetting.reset(token)

    async def _proc_offset_request(self, node_id: int, topic_data: Any) -> Any:
        result = await super()._proc_offset_request(node_id, topic_data)
        assignment = _resetting.get()
        if assignment is not None:
            for topic, asked in topic_data.items():
                for partition, strategy in asked:
                    state = assignment.state_value(TopicPartition(topic, partition))
                    if state.awaiting_reset and state.reset_strategy != strategy:
                        raise library.StaleMetadata(f"{topic}-{partition} was sought to elsewhere meanwhile")
        return result

    @property
    def _held_bytes(self) -> int:
        """Bytes fetched and not returned yet."""
        return sum(record._partition_records.size for record in self._records.values() if type(record) is FetchResult)

    def _get_actions_per_node(self, assignment: Any) -> Any:
        """aiokafka's plan of the next fetches; empty while more than one whole answer is buffered.

        aiokafka buffers one answer per partition, which is too much for a slow reader of many partitions.
        """
        fetches, *others = super()._get_actions_per_node(assignment)
        return ([] if self._held_bytes >= self._fetch_max_bytes else fetches, *others)

    async def _proc_fetch_request(self, assignment: Any, node_id: int, request: Any) -> bool:
        """Send one fetch and keep the answer; True if ``fetched_records`` has something to return."""
        try:
            response = await self._client.send(node_id, request)
        except asyncio.CancelledError:
            return False
        except library.KafkaError as error:
            logger.warning("fetch failed, trying again", node=node_id, error=str(error))
            self._invalidate_preferred_read_replica_for_node(node_id, request)
            await asyncio.sleep(self._retry_backoff)
            return False
        if not assignment.active:
            return False
        asked = {
            TopicPartition(topic, partition): offset
            for topic, partitions in request.topics
            for partition, offset, _ in partitions
        }
        something = troubled = False
        for topic, partitions in response.topics:
            for answer in partitions:
                tp = TopicPartition(topic, answer[0])
                state = assignment.state_value(tp)
                if not state.has_valid_position or state.position != asked[tp]:
                    continue  # there was a seek meanwhile
                if answer[1] == 0:
                    something |= self._keep(tp, assignment, asked[tp], answer, response.API_VERSION)
                else:
                    troubled = True
                    something |= self._fail(tp, state, asked[tp], answer[1])
        if troubled:
            await asyncio.sleep(self._retry_backoff)
        return something

    def _keep(self, tp: TopicPartition, assignment: Any, asked: int, answer: Any, version: int) -> bool:
        state = assignment.state_value(tp)
        high_watermark, stable, data = answer[2], answer[3], answer[-1]
        aborted = answer[-3 if version >= 11 else -2] or ()
        if version >= 11 and self._client_rack:
            self._update_preferred_read_replica(tp, answer[-2])
        state.highwater, state.lso, state.timestamp = high_watermark, stable, int(time.time() * 1000)
        if not data:
            return False
        try:
            fetched = self._fetched(tp, asked, high_watermark, aborted, data)
        except TidegateError as error:
            self._set_error(tp, error)
            return True
        self._records[tp] = FetchResult(
            tp, partition_records=_Answer(fetched), assignment=assignment, backoff=self._prefetch_backoff
        )
        return True

    def _fetched(
        self, tp: TopicPartition, asked: int, high_watermark: int, aborted: Sequence[tuple[int, int]], data: bytes
    ) -> FetchedBatches:
        where = f"{tp.topic}-{tp.partition}"
        batches = [
            b for b in split(memoryview(data), check_crc=self._check_crcs, where=where) if b.header.last_offset >= asked
        ]
        if not batches:
            raise MessageTooLarge(
                f"{where}: the batch at offset {asked} is larger than max.partition.fetch.bytes="
                f"{self._max_partition_fetch_bytes}, and the broker sent only a part of it"
            )
        following = batches[-1].header.last_offset + 1
        if self._isolation_level == _READ_COMMITTED:
            batches = list(_committed(batches, aborted))
        data_batches = tuple(batch for batch in batches if not batch.header.is_control)
        return FetchedBatches(tp.topic, tp.partition, asked, following, high_watermark, data_batches)

    def _fail(self, tp: TopicPartition, state: Any, asked: int, code: int) -> bool:
        """Handle an error code of a partition; True if the caller of fetch should see it."""
        self._preferred_read_replica.pop(tp, None)
        if code in _STALE:
            self._client.force_metadata_update()
            return False
        if code == OffsetOutOfRange.code and self._default_reset_strategy != OffsetResetStrategy.NONE:
            logger.warning(
                "offset is out of range, beginning anew", partition=f"{tp.topic}-{tp.partition}", offset=asked
            )
            state.await_reset(self._default_reset_strategy)
            return False
        error = error_for(code)
        if error.retriable:
            logger.info(
                "fetch answered with an error, trying again", topic=tp.topic, partition=tp.partition, error=str(error)
            )
            return False
        self._set_error(tp, error_for(code, f"{tp.topic}-{tp.partition} at offset {asked}: {error}"))
        return True


def _committed(batches: Sequence[Batch], aborted: Sequence[tuple[int, int]]) -> Iterator[Batch]:
    """Skip the batches of aborted transactions: those of a producer from a first offset to its abort marker."""
    waiting = sorted(aborted, key=lambda entry: entry[1])
    aborting: set[int] = set()
    for batch in batches:
        while waiting and waiting[0][1] <= batch.header.last_offset:
            aborting.add(waiting.pop(0)[0])
        if batch.header.is_control:
            if batch.header.producer_id in aborting and _is_abort(batch):
                aborting.discard(batch.header.producer_id)
        elif batch.header.is_transactional and batch.header.producer_id in aborting:
            continue
        yield batch


def _is_abort(batch: Batch) -> bool:
    marker = next(iter(DefaultRecordBatch(bytes(batch.data))))
    return bool(ControlRecord.parse(marker.key) == ABORT_MARKER)


class BatchingConsumer(AIOKafkaConsumer):  # type: ignore[misc]
    """aiokafka's consumer with our fetcher instead of its own."""

    async def start(self) -> None:
        """Connect. Call it before assigning or subscribing, so that our fetcher is installed before the first fetch."""
        await super().start()
        theirs: Fetcher = self._fetcher
        await theirs.close()
        self._fetcher: Fetcher = _BatchFetcher(
            self._client,
            self._subscription,
            fetch_min_bytes=self._fetch_min_bytes,
            fetch_max_bytes=self._fetch_max_bytes,
            fetch_max_wait_ms=self._fetch_max_wait_ms,
            max_partition_fetch_bytes=self._max_partition_fetch_bytes,
            check_crcs=self._check_crcs,
            fetcher_timeout=self._consumer_timeout,
            retry_backoff_ms=self._retry_backoff_ms,
            auto_offset_reset=self._auto_offset_reset,
            isolation_level=self._isolation_level,
            client_rack=self._client_rack,
        )

    async def stop(self) -> None:
        """Leave the group and disconnect. Cancelled, it disconnects without leaving: heartbeats that went on would keep the place of
        a member that never joins again, and the whole group would wait for it as long as max.poll.interval.ms.
        """
        try:
            await super().stop()
        except asyncio.CancelledError:
            async with AsyncExitStack() as ends:  # each of them, whatever another one raises
                ends.push_async_callback(self._client.close)
                if self._fetcher is not None:
                    ends.push_async_callback(self._fetcher.close)
                if isinstance(self._coordinator, GroupCoordinator):
                    ends.push_async_callback(self._coordinator._stop_commit_offsets_refresh_task)
                    ends.push_async_callback(self._coordinator._stop_heartbeat_task)
                    self._coordinator._coordination_task.cancel()
            raise
