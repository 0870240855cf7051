"""The data directories: their contents, and moves of partitions between them."""

from __future__ import annotations

import os
from typing import Protocol

from broker.api.parts import Common, WithLogs, WithMetadata, WithPartitions, WithReplicaMoves
from broker.api.routes import Context, Routes
from broker.errors import BrokerError, InvalidReplicaAssignment, KafkaStorageError
from broker.log.disk import Disk
from broker.protocol.api import ApiKey
from broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from broker.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from broker.security.access import Operation, ResourceType

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithLogs, WithMetadata, WithPartitions, WithReplicaMoves, Protocol):
    """The parts of a broker that these handlers use."""


@routes.handles(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=range(1, 3))
def alter_replica_log_dirs(
    context: Context[_Parts], request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Move partitions to other data directories of the broker. They stay in use, and the answer does not wait for the
    move.

    v2 flexible
    """
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            results.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=_move(context, directory.path, topic.name, index)
                )
                for index in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=result) for name, result in results.items()]
    )


def _move(context: Context[_Parts], path: str, topic: str, index: int) -> int:
    broker = context.broker
    try:
        context.require(Operation.ALTER, ResourceType.CLUSTER)
        target = broker.logs.disk(path)
        if target.is_cordoned:
            raise InvalidReplicaAssignment(f"{path} takes no partitions: it is in cordoned.log.dirs.")
        broker.replica_moves.move(broker.partitions.find(topic, index), target)
    except BrokerError as error:
        return error.code
    return 0


@routes.handles(ApiKey.DESCRIBE_LOG_DIRS, versions=range(1, 6))
def describe_log_dirs(context: Context[_Parts], request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe the sizes of partitions on each disk, and the free space.

    v2 flexible · v3 top-level error · v4 sizes of the volume · v5 cordoned directories
    """
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    partitions = None
    if request.topics is not None:
        partitions = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    return DescribeLogDirsResponse(
        results=[_described(context, disk, partitions) for disk in context.broker.logs.disks]
    )


def _described(
    context: Context[_Parts], disk: Disk, topic_partitions: set[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    path = str(disk.path.absolute())
    if disk.failure is not None:
        return DescribeLogDirsResult(error_code=KafkaStorageError.code, log_dir=path, is_cordoned=disk.is_cordoned)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    known = context.broker.metadata.topics
    for log in disk.all():
        if log.topic in known and (topic_partitions is None or (log.topic, log.partition) in topic_partitions):
            topics.setdefault(log.topic, []).append(
                DescribeLogDirsPartition(partition_index=log.partition, partition_size=log.size)
            )
    for move in context.broker.replica_moves.under_way(disk):
        log = move.log
        if topic_partitions is None or (log.topic, log.partition) in topic_partitions:
            topics.setdefault(log.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=log.partition,
                    partition_size=move.size,
                    offset_lag=max(log.log_end_offset - move.end_offset, 0),
                    is_future_key=True,
                )
            )
    try:
        volume = os.statvfs(disk.path)
    except OSError:
        return DescribeLogDirsResult(error_code=KafkaStorageError.code, log_dir=path)
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=volume.f_blocks * volume.f_frsize,
        usable_bytes=volume.f_bavail * volume.f_frsize,
        is_cordoned=disk.is_cordoned,
    )
