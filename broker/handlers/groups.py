"""Classic groups: find the coordinator, join, sync, heartbeat, leave; lists and descriptions for administrators."""

from __future__ import annotations

from typing import Final, Protocol

from broker.api.parts import Common, WithGroups, WithNode
from broker.api.routes import Context, Pending, Routes
from broker.errors import BrokerError, GroupIdNotFound, InconsistentGroupProtocol, InvalidRequest, UnknownMemberId
from broker.groups import DescribedGroup as Group
from broker.groups import Joined, JoinRequest, Leaving, Left, MemberIdAssigned, Synced
from broker.protocol.api import ApiKey
from broker.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from broker.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from broker.security.access import CLUSTER_NAME, NOT_ASKED, Operation, ResourceType

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithGroups, WithNode, Protocol):
    """The parts of a broker that these handlers use."""


_GROUP: Final = 0
_PROTOCOL_TOLD_SINCE: Final = 5
"""The version of SyncGroup."""
_TRANSACTION: Final = 1
_SHARE: Final = 2
_SHARE_SINCE: Final = 6


@routes.handles(ApiKey.FIND_COORDINATOR, versions=range(7))
def find_coordinator(context: Context[_Parts], request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Return the broker that coordinates a group or a transactional id: this one.

    v1 key type · v3 flexible · v4 several keys (KIP-699) · v5-v6 for later kinds of coordinators
    """
    keys = request.coordinator_keys if context.version >= 4 else [request.key]
    coordinators = [_coordinator(context, request.key_type, key) for key in keys]
    if context.version >= 4:
        return FindCoordinatorResponse(coordinators=coordinators)
    (coordinator,) = coordinators
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=coordinator.error_message,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


def _coordinator(context: Context[_Parts], key_type: int, key: str) -> Coordinator:
    try:
        if key_type == _GROUP:
            context.require(Operation.DESCRIBE, ResourceType.GROUP, key)
        elif key_type == _TRANSACTION:
            context.require(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key)
        elif key_type == _SHARE and context.version >= _SHARE_SINCE:
            context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
            from broker.share_coordinator.coordinator import read_coordinator_key

            read_coordinator_key(key)
        else:
            raise InvalidRequest(f"There are no coordinators of type {key_type} for version {context.version}.")
    except BrokerError as error:
        return Coordinator(key=key, node_id=-1, port=-1, error_code=error.code, error_message=error.message)
    node = context.broker.node(context.listener)
    return Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port)


@routes.handles(ApiKey.JOIN_GROUP, versions=range(10))
def join_group(context: Context[_Parts], request: JoinGroupRequest) -> JoinGroupResponse | Pending:
    """Join a group, or its next generation. The answer comes when the generation is complete.

    v1 rebalance timeout · v4 member id first (KIP-394) · v5 static members (KIP-345) · v6 flexible · v7 protocol type ·
    v8 reason · v9 skip assignment
    """
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    wish = JoinRequest(
        protocol_type=request.protocol_type,
        protocols={protocol.name: protocol.metadata for protocol in request.protocols},
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id,
        client_host=f"/{context.client_host}",
        requires_known_member_id=context.version >= 4,
        supports_skipping_assignment=context.version >= 9,
        reason=request.reason or "",
    )
    future = context.broker.groups.join_group(request.group_id, wish)
    no_protocol = None if context.version >= _NULL_PROTOCOL_SINCE else ""
    return Pending(future, _joined, lambda error: _not_joined(request.member_id, no_protocol, error))


def _joined(joined: Joined) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name or "",
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(member_id=m.member_id, group_instance_id=m.instance_id, metadata=m.metadata)
            for m in joined.members
        ],
    )


_NULL_PROTOCOL_SINCE: Final = 7


def _not_joined(member_id: str, no_protocol: str | None, error: BrokerError) -> JoinGroupResponse:
    assigned = error.member_id if isinstance(error, MemberIdAssigned) else member_id
    return JoinGroupResponse(error_code=error.code, generation_id=-1, protocol_name=no_protocol, member_id=assigned)


@routes.handles(ApiKey.SYNC_GROUP, versions=range(6))
def sync_group(context: Context[_Parts], request: SyncGroupRequest) -> SyncGroupResponse | Pending:
    """Return a member's assignment; the leader's request has the assignments of all.

    v3 static members · v4 flexible · v5 protocol type and name
    """
    if context.version >= _PROTOCOL_TOLD_SINCE and (request.protocol_type is None or request.protocol_name is None):
        raise InconsistentGroupProtocol("The member does not say which protocol it follows.")
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    future = context.broker.groups.sync_group(
        request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={assignment.member_id: assignment.assignment for assignment in request.assignments},
    )
    return Pending(future, _synced)


def _synced(synced: Synced) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=synced.protocol_type, protocol_name=synced.protocol_name, assignment=synced.assignment
    )


@routes.handles(ApiKey.HEARTBEAT, versions=range(5))
def heartbeat(context: Context[_Parts], request: HeartbeatRequest) -> HeartbeatResponse:
    """Keep a member in its group, or tell it that a rebalance has begun.

    v1 throttle time · v3 static members · v4 flexible
    """
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    context.broker.groups.heartbeat(
        request.group_id,
        generation=request.generation_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
    )
    return HeartbeatResponse()


@routes.handles(ApiKey.LEAVE_GROUP, versions=range(6))
def leave_group(context: Context[_Parts], request: LeaveGroupRequest) -> LeaveGroupResponse | Pending:
    """Remove members from a group.

    v3 several members, static ones too · v4 flexible · v5 reason
    """
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    if context.version >= 3:
        leaving = [Leaving(member.member_id, member.group_instance_id, member.reason) for member in request.members]
    else:
        leaving = [Leaving(request.member_id)]
    batch = context.version >= 3
    return Pending(context.broker.groups.leave_group(request.group_id, leaving), lambda left: _left(left, batch=batch))


def _left(results: list[Left], *, batch: bool) -> LeaveGroupResponse:
    if not batch:
        error = results[0].error if results else UnknownMemberId("Nobody leaves.")
        return LeaveGroupResponse(error_code=error.code if error else 0)
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=result.member_id,
                group_instance_id=result.instance_id,
                error_code=result.error.code if result.error else 0,
            )
            for result in results
        ]
    )


@routes.handles(ApiKey.LIST_GROUPS, versions=range(6))
def list_groups(context: Context[_Parts], request: ListGroupsRequest) -> ListGroupsResponse:
    """List groups by state and type.

    v3 flexible · v4 states · v5 types (KIP-848)
    """
    every = context.allows(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    listed = context.broker.groups.list_groups(request.states_filter, request.types_filter)
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=listed_group.group_id,
                protocol_type=listed_group.protocol_type,
                group_state=listed_group.state,
                group_type=listed_group.group_type,
            )
            for listed_group in listed
            if every or context.allows(Operation.DESCRIBE, ResourceType.GROUP, listed_group.group_id)
        ]
    )


@routes.handles(ApiKey.DESCRIBE_GROUPS, versions=range(7))
def describe_groups(context: Context[_Parts], request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe groups with their members and assignments.

    v3 authorized operations · v4 static members · v5 flexible · v6 GROUP_ID_NOT_FOUND for groups that do not exist
    """
    allowed, described = [], []
    for group_id in request.groups:
        try:
            context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
            allowed.append(group_id)
        except BrokerError as error:
            described.append(_undescribed(group_id, error))
    try:
        groups = context.broker.groups.describe_groups(allowed)
    except BrokerError as error:
        return DescribeGroupsResponse(groups=[*described, *(_undescribed(group_id, error) for group_id in allowed)])
    for group in groups:
        operations = NOT_ASKED
        if request.include_authorized_operations and (context.version < 6 or group.error is None):
            operations = context.operations(ResourceType.GROUP, group.group_id)
        described.append(_described(group, context.version, operations))
    return DescribeGroupsResponse(groups=described)


def _undescribed(group_id: str, error: BrokerError) -> DescribedGroup:
    return DescribedGroup(error_code=error.code, error_message=error.message, group_id=group_id)


def _described(group: Group, version: int, operations: int) -> DescribedGroup:
    # Before v6 a group that does not exist is dead, without an error.
    error = group.error if version >= 6 or not isinstance(group.error, GroupIdNotFound) else None
    return DescribedGroup(
        error_code=error.code if error else 0,
        error_message=error.message if error else None,
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in group.members
        ],
        authorized_operations=operations,
    )


@routes.handles(ApiKey.DELETE_GROUPS, versions=range(3))
def delete_groups(context: Context[_Parts], request: DeleteGroupsRequest) -> DeleteGroupsResponse | Pending:
    """Delete groups without members, and their offsets.

    v2 flexible
    """
    refused: dict[str, BrokerError | None] = {}
    for group_id in request.groups_names:
        try:
            context.require(Operation.DELETE, ResourceType.GROUP, group_id)
        except BrokerError as error:
            refused[group_id] = error
    deleting = context.broker.groups.delete_groups([name for name in request.groups_names if name not in refused])
    return Pending(deleting, lambda results: _deleted({**results, **refused}))


def _deleted(results: dict[str, BrokerError | None]) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=error.code if error else 0)
            for group_id, error in results.items()
        ]
    )
