"""Leaders and replicas of partitions. With one broker there is nothing to elect and nowhere to move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from broker.api.parts import Common, WithMetadata
from broker.api.routes import Context, Routes
from broker.errors import (
    BrokerError,
    ElectionNotNeeded,
    InvalidReplicaAssignment,
    InvalidRequest,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from broker.metadata.image import ClusterMetadata
from broker.protocol.api import ApiKey
from broker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from broker.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from broker.security.access import Operation, ResourceType

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithMetadata, Protocol):
    """The parts of a broker that these handlers use."""


_PREFERRED: Final = 0
_UNCLEAN: Final = 1


@routes.handles(ApiKey.ELECT_LEADERS, versions=range(3))
def elect_leaders(context: Context[_Parts], request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect leaders of partitions. No election is needed: the only replica already leads.

    v1 unclean elections, top-level error · v2 flexible
    """
    try:
        context.require(Operation.ALTER, ResourceType.CLUSTER)
        if request.election_type not in (_PREFERRED, _UNCLEAN):
            raise InvalidRequest(f"Unknown election type {request.election_type}: 0 (preferred) and 1 (unclean) are.")
    except BrokerError as error:
        # Kafka repeats the error for every partition, because version 0 has no other field for it.
        return ElectLeadersResponse(
            error_code=error.code,
            replica_election_results=[
                ReplicaElectionResult(
                    topic=topic_partition.topic,
                    partition_result=[_election(partition, error) for partition in topic_partition.partitions],
                )
                for topic_partition in request.topic_partitions or ()
            ],
        )
    metadata = context.broker.metadata
    if request.topic_partitions is None:
        # All partitions were requested. Those that need no election are left out, which here are all.
        return ElectLeadersResponse(
            replica_election_results=[ReplicaElectionResult(topic=name) for name in metadata.topics]
        )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic_partition.topic,
                partition_result=[
                    _election(partition, _no_election(metadata, topic_partition.topic, partition))
                    for partition in topic_partition.partitions
                ],
            )
            for topic_partition in request.topic_partitions
        ]
    )


def _election(partition: int, error: BrokerError) -> PartitionResult:
    return PartitionResult(partition_id=partition, error_code=error.code, error_message=error.message)


def _no_election(metadata: ClusterMetadata, topic: str, partition: int) -> BrokerError:
    """Why no leader is elected."""
    try:
        _check_partition(metadata, topic, partition)
    except BrokerError as error:
        return error
    return ElectionNotNeeded(f"{topic}-{partition} is led by its only replica.")


def _check_partition(metadata: ClusterMetadata, topic: str, partition: int) -> None:
    count = metadata.topic(topic).partitions
    if not 0 <= partition < count:
        raise UnknownTopicOrPartition(f"There is no partition {partition} of topic {topic!r}: it has {count}.")


@routes.handles(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=range(2))
def alter_partition_reassignments(
    context: Context[_Parts], request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Move partitions to other brokers. There are none; a request that keeps a partition on this broker succeeds at
    once.

    v1 can require an unchanged number of replicas
    """
    try:
        context.require(Operation.ALTER, ResourceType.CLUSTER)
    except BrokerError as error:
        return AlterPartitionReassignmentsResponse(
            error_code=error.code,
            error_message=error.message,
            responses=[
                ReassignableTopicResponse(
                    name=topic.name,
                    partitions=[
                        ReassignablePartitionResponse(
                            partition_index=partition.partition_index,
                            error_code=error.code,
                            error_message=error.message,
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )
    metadata = context.broker.metadata
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_reassigned(metadata, topic, partition) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _reassigned(
    metadata: ClusterMetadata, topic: ReassignableTopic, reassignable_partition: ReassignablePartition
) -> ReassignablePartitionResponse:
    response = ReassignablePartitionResponse(partition_index=reassignable_partition.partition_index, error_message=None)
    try:
        _check_partition(metadata, topic.name, reassignable_partition.partition_index)
        if reassignable_partition.replicas is None:
            raise NoReassignmentInProgress(f"{topic.name}-{reassignable_partition.partition_index} is not being moved.")
        _check_replicas(reassignable_partition.replicas, metadata.node_id)
    except BrokerError as error:
        response.error_code, response.error_message = error.code, error.message
    return response


def _check_replicas(replicas: Sequence[int], node_id: int) -> None:
    if not replicas:
        raise InvalidReplicaAssignment("The assignment has no replicas; at least one is needed.")
    stranger = next((replica for replica in replicas if replica != node_id), None)
    if stranger is not None:
        raise InvalidReplicaAssignment(f"The assignment has broker {stranger}, but the only one is {node_id}.")
    if len(replicas) > 1:
        raise InvalidReplicaAssignment(f"The assignment has broker {node_id} more than once.")


@routes.handles(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=range(1))
def list_partition_reassignments(
    context: Context[_Parts], _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List the partitions that are being moved: always none."""
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    return ListPartitionReassignmentsResponse(error_message=None)
