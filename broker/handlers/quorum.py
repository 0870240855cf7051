"""The controller quorum, of which this node is the only, static voter; the cluster's feature levels."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from broker.api.parts import Common, WithMetadata
from broker.api.routes import Answer, Context, Routes
from broker.errors import (
    BrokerError,
    BrokerIdNotRegistered,
    InconsistentClusterId,
    InvalidRequest,
    InvalidUpdateVersion,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from broker.metadata.feature_updates import FeatureUpdate, UpgradeType, checked
from broker.metadata.image import METADATA_TOPIC
from broker.metadata.records import FeatureLevelRecord
from broker.protocol.api import ApiKey
from broker.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from broker.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from broker.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from broker.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from broker.protocol.primitives import ZERO_UUID
from broker.security.access import Operation, ResourceType
from broker.storage.partitions import LEADER_EPOCH

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithMetadata, Protocol):
    """The parts of a broker that these handlers use."""


A = TypeVar("A", bound=Answer)


@routes.handles(ApiKey.DESCRIBE_QUORUM, versions=range(3))
def describe_quorum(context: Context[_Parts], request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Describe the voters of the metadata log and their progress.

    v1 times of fetches · v2 directories and addresses of voters
    """
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    asked = [(topic.topic_name, [item.partition_index for item in topic.partitions]) for topic in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        # Kafka answers only for its single partition, or refuses every requested partition.
        return DescribeQuorumResponse(
            topics=[
                ResponseTopicData(topic_name=name, partitions=[_no_quorum(index) for index in partitions])
                for name, partitions in asked
            ]
        )
    metadata = context.broker.metadata
    now_ms = time.time_ns() // 1_000_000
    voter = ReplicaState(
        replica_id=metadata.node_id,
        # A static voter is identified by its number alone.
        replica_directory_id=ZERO_UUID,
        log_end_offset=metadata.version + 1,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    partition = ResponsePartitionData(
        leader_id=metadata.node_id,
        leader_epoch=LEADER_EPOCH,
        high_watermark=metadata.version + 1,
        current_voters=[voter],
    )
    # Nothing outside this process talks to the controller, so it has no address.
    return DescribeQuorumResponse(
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[Node(node_id=metadata.node_id)],
    )


def _no_quorum(partition: int) -> ResponsePartitionData:
    error = UnknownTopicOrPartition(f"The quorum is that of {METADATA_TOPIC}-0; ask for that alone.")
    return ResponsePartitionData(partition_index=partition, error_code=error.code, error_message=error.message)


@routes.handles(ApiKey.ADD_RAFT_VOTER, versions=range(2))
def add_raft_voter(context: Context[_Parts], request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Add a controller to the quorum. Always refused: voters are static, as with `kraft.version` 0.

    v1 can answer before the change is committed
    """

    def refuse() -> AddRaftVoterResponse:
        _check_voter_change(context, request.cluster_id, request.voter_id)
        if not request.listeners:
            raise InvalidRequest("A voter to add needs an address: listeners is empty.")
        raise UnsupportedVersion("kraft.version is 0 here, so no voter can be added: the voter is this broker.")

    return _or_error_response(refuse, AddRaftVoterResponse)


@routes.handles(ApiKey.REMOVE_RAFT_VOTER, versions=range(1))
def remove_raft_voter(context: Context[_Parts], request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Remove a controller from the quorum. Always refused: voters are static."""

    def refuse() -> RemoveRaftVoterResponse:
        _check_voter_change(context, request.cluster_id, request.voter_id)
        raise UnsupportedVersion("kraft.version is 0 here, so no voter can be removed: the voter is this broker.")

    return _or_error_response(refuse, RemoveRaftVoterResponse)


def _check_voter_change(context: Context[_Parts], cluster_id: str | None, voter_id: int) -> None:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    own_cluster_id = context.broker.metadata.cluster_id
    if cluster_id is not None and cluster_id != own_cluster_id:
        raise InconsistentClusterId(f"The cluster is {own_cluster_id}, not {cluster_id}.")
    if voter_id < 0:
        raise InvalidRequest(f"{voter_id} cannot be the number of a voter: those begin with 0.")


def _or_error_response(make: Callable[[], A], response: type[A]) -> A:
    """The response of ``make``, or one with the code and message of its error."""
    try:
        return make()
    except BrokerError as error:
        told = response()
        told.error_code, told.error_message = error.code, error.message  # type: ignore[attr-defined]
        return told


@routes.handles(ApiKey.UNREGISTER_BROKER, versions=range(1))
def unregister_broker(context: Context[_Parts], request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Remove a broker that is gone permanently. Always refused: the only broker is this one, and it is running."""

    def refuse() -> UnregisterBrokerResponse:
        context.require(Operation.ALTER, ResourceType.CLUSTER)
        node_id = context.broker.metadata.node_id
        if request.broker_id != node_id:
            raise BrokerIdNotRegistered(f"Broker {request.broker_id} is not registered: the only one is {node_id}.")
        raise InvalidRequest(f"Broker {node_id} is running and is the only one, so it stays registered.")

    return _or_error_response(refuse, UnregisterBrokerResponse)


_ALL_OR_NONE: Final = "No feature was updated"


@routes.handles(ApiKey.UPDATE_FEATURES, versions=range(3))
def update_features(context: Context[_Parts], request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Raise or lower the levels of features, all of them or none.

    v1 types of downgrades, validation only · v2 no result per feature
    """
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    metadata = context.broker.metadata
    updates = [_update(feature_update, context.version) for feature_update in request.feature_updates]
    try:
        levels = checked(metadata.features, updates)
    except InvalidUpdateVersion as error:
        return UpdateFeaturesResponse(error_code=error.code, error_message=f"{_ALL_OR_NONE}: {error.message}")
    if not request.validate_only:
        metadata.append(
            [
                FeatureLevelRecord(name=name, feature_level=level)
                for name, level in levels.items()
                if metadata.features.get(name, 0) != level
            ]
        )
    return UpdateFeaturesResponse(
        error_message=None,
        results=[UpdatableFeatureResult(feature=update.name, error_message=None) for update in updates],
    )


def _update(feature_update_key: FeatureUpdateKey, version: int) -> FeatureUpdate:
    # Kafka's controller reads only the upgrade type, which version 0 lacks: it can only upgrade.
    kind = UpgradeType.of(feature_update_key.upgrade_type) if version else UpgradeType.UPGRADE
    return FeatureUpdate(feature_update_key.feature, feature_update_key.max_version_level, kind)
