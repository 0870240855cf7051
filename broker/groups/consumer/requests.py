"""Validates the fields of a ConsumerGroupHeartbeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from broker.errors import InvalidRequest, UnsupportedAssignor
from broker.groups.consumer.values import ConsumerHeartbeat
from broker.groups.modern.member import JOINING, LEAVING, LEAVING_STATIC

__all__ = ["check_request"]

_OWN_IDS_SINCE: Final = 1
"""From this version of the API on, members choose their ids (KIP-1082)."""

_Rule = tuple[Callable[[ConsumerHeartbeat], bool], str]

_RULES: Final[Sequence[_Rule]] = (
    (lambda r: not r.group_id, "GroupId can't be empty."),
    (lambda r: not r.member_id and (r.epoch > 0 or r.epoch == LEAVING), "MemberId can't be empty."),
    (lambda r: r.instance_id == "", "InstanceId can't be empty."),
    (lambda r: r.rack_id == "", "RackId can't be empty."),
    (
        lambda r: r.epoch == JOINING and r.rebalance_timeout_ms == -1,
        "RebalanceTimeoutMs must be provided in first request.",
    ),
    (lambda r: r.epoch == JOINING and r.owned != {}, "TopicPartitions must be empty when (re-)joining."),
    (
        lambda r: r.epoch == JOINING and r.topics is None and r.regex is None,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    ),
    (lambda r: r.epoch == LEAVING_STATIC and r.instance_id is None, "InstanceId can't be null."),
    (lambda r: r.epoch < LEAVING_STATIC, "MemberEpoch is invalid."),
)
"""The problem, in Kafka's words."""


def check_request(request: ConsumerHeartbeat, version: int, assignors: Sequence[str]) -> None:
    """Raises InvalidRequest, or UnsupportedAssignor."""
    if version >= _OWN_IDS_SINCE and not request.member_id:
        raise InvalidRequest("MemberId can't be empty.")
    for is_wrong, message in _RULES:
        if is_wrong(request):
            raise InvalidRequest(message)
    if request.assignor is not None and request.assignor not in assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )
