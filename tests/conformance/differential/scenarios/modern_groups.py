"""Groups whose assignments the coordinator computes: consumer, share and streams groups."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, Step, ask, setup
from tests.conformance.differential.scenarios.common import create_topic
from tests.conformance.differential.scenarios.groups import coordinator_found, settled

_MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
_OTHER: Final = "AAAAAAAAAAAAAAAAAAAAAg"


def beat(api: ApiKey, epoch: int, *, member: str = _MEMBER, group: str = "$u-g", **more: Any) -> Step:
    return ask(api, {"group_id": group, "member_id": member, "member_epoch": epoch, **more}, once=True)


def consume(epoch: int, **more: Any) -> Step:
    return beat(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        epoch,
        **{"rebalance_timeout": 30_000 if epoch == 0 else -1, "topic_partitions": [] if epoch == 0 else None, **more},
    )


def share(epoch: int, **more: Any) -> Step:
    return beat(ApiKey.SHARE_GROUP_HEARTBEAT, epoch, **more)


def stream(epoch: int, **more: Any) -> Step:
    tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []} if epoch == 0 else {}
    return beat(ApiKey.STREAMS_GROUP_HEARTBEAT, epoch, rebalance_timeout=30_000 if epoch == 0 else -1, **tasks, **more)


def topology(*sources: str, epoch: int = 1) -> dict[str, Any]:
    return {"epoch": epoch, "subtopologies": [{"subtopology_id": "0", "source_topics": list(sources)}]}


def described(api: ApiKey, *groups: str) -> Step:
    return ask(api, {"group_ids": list(groups), "include_authorized_operations": True})


def settled_member(api: ApiKey, version: int, **more: Any) -> Step:
    """Beat until the member has its partitions: groups that begin wait for their first assignment."""
    return setup(api, version, {"group_id": "$u-g", "member_id": _MEMBER, "rebalance_timeout": -1, **more}, once=True)


SCENARIOS: Final = (
    Scenario(
        "consumer groups",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        (
            *create_topic(partitions=2),
            coordinator_found(),
            settled(),
            consume(0, group=""),
            consume(0, member=""),
            consume(0, subscribed_topic_names=None),
            consume(0, subscribed_topic_names=["$u"], rebalance_timeout=-1),
            consume(0, subscribed_topic_names=["$u"], server_assignor="no such assignor"),
            consume(5),
            consume(0, subscribed_topic_names=["$u"], server_assignor="range"),
            consume(1),
            consume(1, topic_partitions=[{"topic_id": "$id", "partitions": [0, 1]}]),
            consume(7),
            consume(1, member=_OTHER),
            consume(0, member=_OTHER, subscribed_topic_names=["$u-absent"]),
            consume(-1, member=_OTHER),
            consume(-1),
            consume(1),
        ),
        range(1, 2),
    ),
    Scenario(
        "consumer groups of the first version",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            ask(
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                {
                    "group_id": "$u-g",
                    "member_id": "",
                    "rebalance_timeout": 30_000,
                    "subscribed_topic_names": ["$u"],
                    "topic_partitions": [],
                },
                keep={"member": "member_id"},
                once=True,
            ),
            consume(1, member="$member"),
            consume(9, member="$member"),
            consume(1, member="nobody"),
        ),
        range(1),
    ),
    Scenario(
        "consumer groups by pattern",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        (
            coordinator_found(),
            settled(),
            consume(0, subscribed_topic_regex="$u-nothing.*"),
            consume(0, member=_OTHER, subscribed_topic_regex="("),
        ),
        range(1, 2),
    ),
    Scenario(
        "static members of consumer groups",
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            consume(0, subscribed_topic_names=["$u"], instance_id="i"),
            consume(0, member=_OTHER, subscribed_topic_names=["$u"], instance_id="i"),
            consume(-2, instance_id="i"),
            consume(0, member=_OTHER, subscribed_topic_names=["$u"], instance_id="i"),
            consume(1, instance_id="i"),
        ),
        range(1, 2),
    ),
    Scenario(
        "consumer groups described",
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            setup(
                ApiKey.CONSUMER_GROUP_HEARTBEAT,
                1,
                {
                    "group_id": "$u-g",
                    "member_id": _MEMBER,
                    "rebalance_timeout": 30_000,
                    "subscribed_topic_names": ["$u"],
                    "topic_partitions": [],
                },
                once=True,
            ),
            described(ApiKey.CONSUMER_GROUP_DESCRIBE, "$u-g"),
            described(ApiKey.CONSUMER_GROUP_DESCRIBE, "$u-other", ""),
            ask(ApiKey.DESCRIBE_GROUPS, {"groups": ["$u-g"]}, version=6),
            ask(ApiKey.LIST_GROUPS, {"types_filter": ["consumer"]}, version=5),
        ),
    ),
    Scenario(
        "share groups",
        ApiKey.SHARE_GROUP_HEARTBEAT,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            share(0, group="", subscribed_topic_names=["$u"]),
            share(0, member="", subscribed_topic_names=["$u"]),
            share(0, subscribed_topic_names=None),
            share(4),
            share(0, subscribed_topic_names=["$u"]),
            share(9),
            share(1, member=_OTHER),
            share(-1),
        ),
    ),
    Scenario(
        "share groups described",
        ApiKey.SHARE_GROUP_DESCRIBE,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            setup(
                ApiKey.SHARE_GROUP_HEARTBEAT,
                1,
                {"group_id": "$u-g", "member_id": _MEMBER, "subscribed_topic_names": ["$u"]},
                once=True,
            ),
            described(ApiKey.SHARE_GROUP_DESCRIBE, "$u-g"),
            described(ApiKey.SHARE_GROUP_DESCRIBE, "$u-other", ""),
        ),
    ),
    Scenario(
        "offsets of share groups",
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            ask(
                ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
                {"groups": [{"group_id": "$u-g", "topics": [{"topic_name": "$u", "partitions": [0]}]}]},
            ),
            ask(
                ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
                {"groups": [{"group_id": "", "topics": [{"topic_name": "$u", "partitions": [0]}]}]},
            ),
        ),
    ),
    Scenario(
        "offsets of share groups changed",
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            ask(
                ApiKey.ALTER_SHARE_GROUP_OFFSETS,
                {
                    "group_id": "$u-g",
                    "topics": [{"topic_name": "$u", "partitions": [{"partition_index": 0, "start_offset": 0}]}],
                },
                once=True,
            ),
            ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, {"group_id": "", "topics": []}, once=True),
        ),
    ),
    Scenario(
        "offsets of share groups deleted",
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, {"group_id": "$u-g", "topics": [{"topic_name": "$u"}]}, once=True),
            ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, {"group_id": "", "topics": []}, once=True),
        ),
    ),
    Scenario(
        "streams groups",
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            stream(0, group="", topology=topology("$u"), process_id="p"),
            stream(0, member="", topology=topology("$u"), process_id="p"),
            stream(0, process_id="p"),
            stream(0, topology=topology("$u"), process_id="p"),
            stream(1),
            stream(9),
            stream(1, member=_OTHER),
            stream(-1),
        ),
    ),
    Scenario(
        "streams groups described",
        ApiKey.STREAMS_GROUP_DESCRIBE,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            setup(
                ApiKey.STREAMS_GROUP_HEARTBEAT,
                0,
                {
                    "group_id": "$u-g",
                    "member_id": _MEMBER,
                    "rebalance_timeout": 30_000,
                    "topology": topology("$u"),
                    "process_id": "p",
                    "active_tasks": [],
                    "standby_tasks": [],
                    "warmup_tasks": [],
                },
                once=True,
            ),
            described(ApiKey.STREAMS_GROUP_DESCRIBE, "$u-g"),
            described(ApiKey.STREAMS_GROUP_DESCRIBE, "$u-other", ""),
        ),
    ),
)
