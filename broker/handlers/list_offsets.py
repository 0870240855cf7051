"""ListOffsets and OffsetForLeaderEpoch: offsets by time, by position, by epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from broker.api.parts import Common, WithPartitions, WithRecordWorker
from broker.api.routes import Context, Pending, Routes
from broker.errors import BrokerError, InvalidRequest, UnsupportedVersion
from broker.log.files import storage_errors
from broker.log.partition import PartitionLog
from broker.log.time_search import TimeSearch, search_all
from broker.protocol.api import ApiKey
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from broker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from broker.security.access import CLUSTER_NAME, Operation, ResourceType
from broker.storage.partitions import READ_COMMITTED
from broker.work import ON_THE_LOOP, Allowance, TooMuchWork

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithPartitions, WithRecordWorker, Protocol):
    """The parts of a broker that these handlers use."""


_NONE: Final = (-1, -1)
_EARLIEST: Final = -2
_SEARCH_BYTES: Final = 1024
"""About the memory of a search that waits for its turn."""
_LATEST: Final = -1
_NEWEST: Final = -3

Position = tuple[int, int]
"""(timestamp, offset); -1 means none."""

_POSITIONS: Final[Mapping[int, Callable[[PartitionLog], Position]]] = {
    _EARLIEST: lambda partition: (-1, partition.log_start_offset),
    -4: lambda partition: (-1, partition.log_start_offset),
    -5: lambda _: _NONE,
    -6: lambda _: _NONE,
}
"""Negative timestamps besides the latest and (-3) the largest timestamp (KIP-734): earliest and earliest local, and
(KIP-1005, KIP-1023) the latest tiered and the earliest pending upload, which never exist here.
"""


_NEVER: Final = 1 << 15
_SINCE: Final[Mapping[int, int]] = {_LATEST: 0, _EARLIEST: 0, _NEWEST: 7, -4: 8, -5: 9, -6: 11}
"""The version that introduced a negative timestamp."""


@routes.handles(ApiKey.LIST_OFFSETS, versions=range(1, 12))
def list_offsets(context: Context[_Parts], request: ListOffsetsRequest) -> ListOffsetsResponse | Pending:
    """Find offsets by timestamp, or the ends of a partition (-1 latest, -2 earliest, -3 largest timestamp, -4, -5, -6).

    v2 isolation level · v4 leader epochs · v6 flexible · v7 -3 · v8 -4 · v9 -5 · v10 timeout · v11 -6
    """
    allowance, long = Allowance(ON_THE_LOOP), list[_Search]()
    response = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _find(context, request.isolation_level, topic.name, partition, times, allowance, long)
                    for partition, times in _each_once(topic.partitions)
                ],
            )
            for topic in request.topics
        ]
    )
    return _answered_later(context, response, long) if long else response


class _Search(NamedTuple):
    """A search that is too long for the event loop, and the part of the answer that gets its result."""

    partition: PartitionLog
    timestamp: int
    isolation_level: int
    answer: ListOffsetsPartitionResponse


def _answered_later(context: Context[_Parts], response: ListOffsetsResponse, long: Sequence[_Search]) -> Pending:
    """Answer when all searches are done. Meanwhile nothing else is read from the connection."""
    searches = [_search(search.partition, search.timestamp).settled() for search in long]
    task = context.broker.record_worker.run(
        search_all,
        searches,
        size=_SEARCH_BYTES * len(searches),
        records=sum(search.partition.log_end_offset - search.partition.log_start_offset for search in long),
    )
    if context.connection is not None:
        context.connection.mute_until(task)

    def answered(positions: Sequence[Position | BrokerError | None]) -> ListOffsetsResponse:
        for search, position in zip(long, positions, strict=True):
            if isinstance(position, BrokerError):
                search.answer.error_code = position.code
            else:
                end = _end(search.partition, search.isolation_level)
                _tell(search.answer, search.partition, *_before(end, position))
        return response

    def failed(error: BrokerError) -> ListOffsetsResponse:
        return answered([error] * len(long))

    return Pending(task, answered, failed)


def _each_once(partitions: Sequence[ListOffsetsPartition]) -> Iterable[tuple[ListOffsetsPartition, int]]:
    """The partitions, each with the number of times that it was requested."""
    times = Counter(partition.partition_index for partition in partitions)
    return [
        (offset_partition, times[index])
        for index, offset_partition in {partition.partition_index: partition for partition in partitions}.items()
    ]


def _find(
    context: Context[_Parts],
    isolation_level: int,
    topic: str,
    offset_partition: ListOffsetsPartition,
    times: int,
    allowance: Allowance,
    long: list[_Search],
) -> ListOffsetsPartitionResponse:
    index = offset_partition.partition_index
    answer = ListOffsetsPartitionResponse(partition_index=index)
    try:
        context.require_topic(Operation.DESCRIBE, topic)
        if times > 1:
            raise InvalidRequest(f"Partition {index} of topic {topic!r} is asked for {times} times in one request.")
        since = _SINCE.get(offset_partition.timestamp, _NEVER) if offset_partition.timestamp < 0 else 0
        if context.version < since:
            raise UnsupportedVersion(
                f"ListOffsets v{context.version} does not know timestamp {offset_partition.timestamp}."
            )
        partition = context.broker.partitions.find(topic, index, offset_partition.current_leader_epoch)
        with storage_errors(f"look up an offset of {topic}-{index}"):
            _tell(answer, partition, *_position(partition, offset_partition.timestamp, isolation_level, allowance))
    except TooMuchWork:
        long.append(_Search(partition, offset_partition.timestamp, isolation_level, answer))
    except BrokerError as error:
        answer.error_code = error.code
    return answer


def _tell(answer: ListOffsetsPartitionResponse, partition: PartitionLog, timestamp: int, offset: int) -> None:
    answer.timestamp, answer.offset = timestamp, offset
    answer.leader_epoch = partition.leader_epoch if offset >= 0 else -1


def _position(partition: PartitionLog, timestamp: int, isolation_level: int, allowance: Allowance) -> Position:
    """Raises TooMuchWork."""
    end = _end(partition, isolation_level)
    if timestamp == _LATEST:
        return -1, end
    named = _POSITIONS.get(timestamp)
    if named is not None:
        return named(partition)
    return _before(end, _search(partition, timestamp).run(allowance))


def _search(partition: PartitionLog, timestamp: int) -> TimeSearch:
    return partition.reader.search_time(None if timestamp == _NEWEST else timestamp)


def _end(partition: PartitionLog, isolation_level: int) -> int:
    return partition.last_stable_offset if isolation_level == READ_COMMITTED else partition.log_end_offset


def _before(end: int, position: Position | None) -> Position:
    return position if position is not None and position[1] < end else _NONE


@routes.handles(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=range(2, 5))
def offset_for_leader_epoch(
    context: Context[_Parts], request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Return the end offset of a leader epoch, by which a client notices a truncated log.

    A partition stays in one epoch forever, unless an Apache Kafka led it before.

    v3 replica id · v4 flexible
    """
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_epoch_end(context, topic.topic, partition) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _epoch_end(context: Context[_Parts], topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        if not context.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
            context.require_topic(Operation.DESCRIBE, topic)
        partition = context.broker.partitions.find(topic, asked.partition, asked.current_leader_epoch)
    except BrokerError as error:
        return EpochEndOffset(error_code=error.code, partition=asked.partition)
    epoch, end_offset = partition.reader.end_of_epoch(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
