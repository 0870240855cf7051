"""Validates the fields of a StreamsGroupHeartbeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from broker.errors import InvalidRequest, StreamsInvalidTopology
from broker.groups.modern.member import JOINING, LEAVING_STATIC
from broker.groups.streams.configured import ConfiguredTopology
from broker.groups.streams.tasks import NO_TASKS, TasksByRole
from broker.groups.streams.values import StreamsHeartbeat

__all__ = ["check_owned", "check_request"]

_Rule = tuple[Callable[[StreamsHeartbeat], bool], str]

_RULES: Final[Sequence[_Rule]] = (
    (lambda r: r.instance_id is not None, "Static membership is not yet supported."),
    (lambda r: bool(r.owned and r.owned.warmup), "WarmupTasks are not supported yet."),
    (lambda r: not r.member_id, "MemberId can't be empty."),
    (lambda r: not r.group_id, "GroupId can't be empty."),
    (lambda r: r.rack_id == "", "RackId can't be empty."),
    (
        lambda r: r.epoch == JOINING and r.rebalance_timeout_ms == -1,
        "RebalanceTimeoutMs must be provided in first request.",
    ),
    (lambda r: r.epoch == JOINING and r.owned != NO_TASKS, "Tasks must be empty when (re-)joining."),
    (lambda r: r.epoch == JOINING and r.topology is None, "Topology must be non-null when (re-)joining."),
    (lambda r: r.epoch == LEAVING_STATIC, "InstanceId can't be null."),
    (lambda r: r.epoch < LEAVING_STATIC, "MemberEpoch must be greater than or equal to -2."),
    (lambda r: r.owned_is_partial, "If one task-type is non-null, all must be non-null."),
    (
        lambda r: r.epoch != JOINING and r.topology is not None,
        "Topology can only be provided when (re-)joining.",
    ),
)
"""The problem, in Kafka's words."""


def check_request(request: StreamsHeartbeat) -> None:
    """Raises InvalidRequest, or StreamsInvalidTopology."""
    if request.uses_unsupported:
        raise InvalidRequest(request.uses_unsupported)
    for is_wrong, message in _RULES:
        if is_wrong(request):
            raise InvalidRequest(message)
    for subtopology in request.topology.subtopologies if request.topology is not None else ():
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise StreamsInvalidTopology(
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )


def check_owned(owned: TasksByRole | None, configured: ConfiguredTopology) -> None:
    """Raises InvalidRequest for tasks that are not in the topology."""
    if owned is None or configured.subtopologies is None:
        return
    for tasks in (owned.active, owned.standby, owned.warmup):
        for name, partitions in tasks.items():
            subtopology = configured.subtopologies.get(name)
            if subtopology is None:
                raise InvalidRequest(f"Subtopology {name} does not exist in the topology.")
            wrong = next((number for number in sorted(partitions) if not 0 <= number < subtopology.tasks), None)
            if wrong is not None:
                raise InvalidRequest(
                    f"Task {wrong} for subtopology {name} is invalid. Number of tasks for this subtopology: {subtopology.tasks}"
                )
