"""Requests of streams groups' members, and the answers, as plain values independent of the wire format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker.groups.streams.configured import ConfiguredTopology, InternalTopic, Status
from broker.groups.streams.member import Endpoint, StreamsMember
from broker.groups.streams.records import StreamsGroupTopologyValue
from broker.groups.streams.tasks import TasksByRole

__all__ = ["DescribedStreamsGroup", "EndpointPartitions", "StreamsAnswer", "StreamsHeartbeat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsHeartbeat:
    """StreamsGroupHeartbeat; None (and -1 for the timeout) means unchanged since the last one.

    ``epoch`` is 0 to join, -1 to leave. Only the first heartbeat has a ``topology``. ``uses_unsupported`` names a
    requested feature that Kafka does not serve yet, if any.
    """

    group_id: str
    member_id: str
    epoch: int
    endpoint_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: StreamsGroupTopologyValue | None = None
    owned: TasksByRole | None = None
    owned_is_partial: bool = False
    """Whether the request has some roles of tasks and lacks others."""
    process_id: str | None = None
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] | None = None
    shutdown_application: bool = False
    client_id: str = ""
    client_host: str = ""
    uses_unsupported: str = ""


@dataclass(frozen=True, slots=True)
class EndpointPartitions:
    """The source topic partitions that can be queried at an endpoint, by topic."""

    endpoint: Endpoint
    active: Mapping[str, Sequence[int]]
    standby: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsAnswer:
    """``assigned`` is None if the tasks have not changed, ``endpoints`` if the endpoints have not.

    ``missing`` are internal topics that have to be created.
    """

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: TasksByRole | None = None
    status: Sequence[Status] = ()
    endpoint_epoch: int = 0
    endpoints: Sequence[EndpointPartitions] | None = None
    missing: Sequence[InternalTopic] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedStreamsGroup:
    """A streams group as StreamsGroupDescribe shows it. The topology has its topics' partitions if they are known."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    topology: StreamsGroupTopologyValue | None
    configured: ConfiguredTopology | None
    members: Sequence[tuple[StreamsMember, TasksByRole]]
    """Each member with its target assignment."""
