"""ListOffsets and OffsetForLeaderEpoch: offsets by time, by position, by epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from broker.errors import BrokerError, InvalidRequest, UnsupportedVersion
from broker.handlers.routes import Context, Routes
from broker.log.files import storage_errors
from broker.log.partition import PartitionLog
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

__all__ = ["routes"]

routes = Routes()

_NONE: Final = (-1, -1)
_EARLIEST: Final = -2
_LATEST: Final = -1

Position = tuple[int, int]
"""(timestamp, offset); -1 stands for none."""

_POSITIONS: Final[Mapping[int, Callable[[PartitionLog], Position]]] = {
    _EARLIEST: lambda partition: (-1, partition.log_start_offset),
    -3: lambda partition: partition.max_timestamp() or _NONE,
    -4: lambda partition: (-1, partition.log_start_offset),
    -5: lambda _: _NONE,
    -6: lambda _: _NONE,
}
"""What the negative timestamps ask for: earliest, the largest timestamp (KIP-734), earliest on the local disk, and
(KIP-1005, KIP-1023) the latest in tiered storage and the earliest not yet there, of which there are none."""


_NEVER: Final = 1 << 15
_SINCE: Final[Mapping[int, int]] = {_LATEST: 0, _EARLIEST: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""The version that gave a negative timestamp its meaning."""


@routes.handles(ApiKey.LIST_OFFSETS, versions=range(1, 12))
def list_offsets(context: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Find offsets by timestamp, or the ends of a partition (-1 latest, -2 earliest, -3 largest timestamp, -4, -5, -6).

    v2 isolation level · v4 leader epochs · v6 flexible · v7 -3 · v8 -4 · v9 -5 · v10 timeout · v11 -6
    """
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _find(context, request.isolation_level, topic.name, one, times)
                    for one, times in _each_once(topic.partitions)
                ],
            )
            for topic in request.topics
        ]
    )


def _each_once(partitions: Sequence[ListOffsetsPartition]) -> Iterable[tuple[ListOffsetsPartition, int]]:
    """Partitions, with how often each was asked for."""
    times = Counter(one.partition_index for one in partitions)
    return [(one, times[index]) for index, one in {one.partition_index: one for one in partitions}.items()]


def _find(
    context: Context, isolation_level: int, topic: str, wanted: ListOffsetsPartition, times: int
) -> ListOffsetsPartitionResponse:
    index = wanted.partition_index
    try:
        context.require_topic(Operation.DESCRIBE, topic)
        if times > 1:
            raise InvalidRequest(f"Partition {index} of topic {topic!r} is asked for {times} times in one request.")
        since = _SINCE.get(wanted.timestamp, _NEVER) if wanted.timestamp < 0 else 0
        if context.version < since:
            raise UnsupportedVersion(f"ListOffsets v{context.version} does not know timestamp {wanted.timestamp}.")
        partition = context.broker.partitions.find(topic, index, wanted.current_leader_epoch)
        with storage_errors(f"look up an offset of {topic}-{index}"):
            timestamp, offset = _position(partition, wanted.timestamp, isolation_level)
    except BrokerError as error:
        return ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)
    epoch = partition.leader_epoch if offset >= 0 else -1
    return ListOffsetsPartitionResponse(partition_index=index, timestamp=timestamp, offset=offset, leader_epoch=epoch)


def _position(partition: PartitionLog, timestamp: int, isolation_level: int) -> Position:
    stable = isolation_level == READ_COMMITTED
    end = partition.last_stable_offset if stable else partition.log_end_offset
    if timestamp == _LATEST:
        return -1, end
    named = _POSITIONS.get(timestamp)
    if named is not None:
        return named(partition)
    found = partition.offset_for_time(timestamp)
    return found if found is not None and found[1] < end else _NONE


@routes.handles(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=range(2, 5))
def offset_for_leader_epoch(context: Context, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    """Tell where the records of a leader epoch end, so that a client notices a log that was cut off.

    A partition is in one epoch for all time, unless an Apache Kafka led it before.

    v3 replica id · v4 flexible
    """
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_epoch_end(context, topic.topic, one) for one in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _epoch_end(context: Context, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        if not context.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
            context.require_topic(Operation.DESCRIBE, topic)
        partition = context.broker.partitions.find(topic, wanted.partition, wanted.current_leader_epoch)
    except BrokerError as error:
        return EpochEndOffset(error_code=error.code, partition=wanted.partition)
    epoch, end_offset = partition.end_of_epoch(wanted.leader_epoch)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
