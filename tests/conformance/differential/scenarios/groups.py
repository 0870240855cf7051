"""Classic groups and the offsets of all groups."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, Step, ask, setup
from tests.conformance.differential.scenarios.common import ABSENT_ID, create_topic

_PROTOCOLS: Final = [{"name": "range", "metadata": b"\0\1\0\0\0\0\0\0\0\0"}]


def _join(member: str, **more: Any) -> dict[str, Any]:
    return {
        "group_id": "$u-g",
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "member_id": member,
        "protocol_type": "consumer",
        "protocols": _PROTOCOLS,
        **more,
    }


def coordinator_found() -> Step:
    """Wait until the group's coordinator answers: the offsets topic is made at the first question."""
    body = {"key_type": 0, "coordinator_keys": ["$u-g"]}
    return setup(ApiKey.FIND_COORDINATOR, 4, body, until=("coordinators.0.error_code", "none"))


def settled() -> Step:
    """Wait until the coordinator has loaded its part of the offsets topic."""
    return setup(
        ApiKey.HEARTBEAT,
        4,
        {"group_id": "$u-g", "generation_id": 1, "member_id": "x"},
        until=("error_code", "unknown_member_id"),
    )


def joined(**more: Any) -> tuple[Step, ...]:
    """A group of one member: its id is kept as ``member``, its generation is 1."""
    return (
        coordinator_found(),
        settled(),
        setup(ApiKey.JOIN_GROUP, 9, _join("", **more), keep={"member": "member_id"}, once=True),
        setup(ApiKey.JOIN_GROUP, 9, _join("$member", **more), once=True),
    )


def synced(**more: Any) -> Step:
    body = {
        "group_id": "$u-g",
        "generation_id": 1,
        "member_id": "$member",
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": "$member", "assignment": b"mine"}],
        **more,
    }
    return setup(ApiKey.SYNC_GROUP, 5, body, once=True)


def commit(
    *offsets: tuple[int, int],
    member: str = "",
    generation: int = -1,
    group: str = "$u-g",
    topic: str = "$u",
    topic_id: str = "$id",
    **more: Any,
) -> Step:
    parts = [
        {"partition_index": p, "committed_offset": o, "committed_leader_epoch": -1, "committed_metadata": f"m{o}"}
        for p, o in offsets
    ]
    body = {
        "group_id": group,
        "generation_id_or_member_epoch": generation,
        "member_id": member,
        "retention_time": -1,
        "topics": [{"name": topic, "topic_id": topic_id, "partitions": parts}],
        **more,
    }
    return ask(ApiKey.OFFSET_COMMIT, body, once=True)


def committed(
    *partitions: int, group: str = "$u-g", topic: str = "$u", topic_id: str = "$id", every: bool = False, **more: Any
) -> Step:
    topics = None if every else [{"name": topic, "topic_id": topic_id, "partition_indexes": list(partitions)}]
    request = {"group_id": group, "member_epoch": -1, "member_id": None, "topics": topics, **more}
    return ask(ApiKey.OFFSET_FETCH, {"group_id": group, "topics": topics, "groups": [request], "require_stable": True})


def beat(**more: Any) -> Step:
    return ask(ApiKey.HEARTBEAT, {"group_id": "$u-g", "generation_id": 1, "member_id": "$member", **more})


def leave(member: str, instance: str | None = None, group: str = "$u-g") -> Step:
    body = {"group_id": group, "member_id": member, "members": [{"member_id": member, "group_instance_id": instance}]}
    return ask(ApiKey.LEAVE_GROUP, body, once=True)


def sync(**more: Any) -> Step:
    body = {
        "group_id": "$u-g",
        "generation_id": 1,
        "member_id": "$member",
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": "$member", "assignment": b"mine"}],
        **more,
    }
    return ask(ApiKey.SYNC_GROUP, body, once=True)


def join(member: str, **more: Any) -> Step:
    return ask(ApiKey.JOIN_GROUP, _join(member, **more), once=True)


def described(*groups: str) -> Step:
    return ask(ApiKey.DESCRIBE_GROUPS, {"groups": list(groups), "include_authorized_operations": True})


def coordinator(key: str, kind: int = 0) -> Step:
    return ask(ApiKey.FIND_COORDINATOR, {"key": key, "key_type": kind, "coordinator_keys": [key]})


SCENARIOS: Final = (
    Scenario(
        "coordinators",
        ApiKey.FIND_COORDINATOR,
        (coordinator_found(), coordinator("$u-g"), coordinator("")),
    ),
    Scenario("unknown coordinators", ApiKey.FIND_COORDINATOR, (coordinator("$u-g", 9),), range(1, 7)),
    Scenario(
        "transaction coordinators", ApiKey.FIND_COORDINATOR, (coordinator("$u-x", 1), coordinator("", 1)), range(1, 7)
    ),
    Scenario(
        "join a group",
        ApiKey.JOIN_GROUP,
        (
            coordinator_found(),
            settled(),
            join("", group_id=""),
            join("nobody"),
            join("", session_timeout=1),
            join("", protocols=[]),
            ask(ApiKey.JOIN_GROUP, _join(""), keep={"member": "member_id"}, once=True),
            join("$member"),
            join("$member", protocol_type="connect"),
            join("$member", protocols=[{"name": "other", "metadata": b""}]),
            join("$member", reason="again"),
        ),
    ),
    Scenario(
        "join a group as a static member",
        ApiKey.JOIN_GROUP,
        (
            coordinator_found(),
            settled(),
            ask(ApiKey.JOIN_GROUP, _join("", group_instance_id="i"), keep={"member": "member_id"}, once=True),
            sync(group_instance_id="i"),
            ask(ApiKey.JOIN_GROUP, _join("", group_instance_id="i"), keep={"second": "member_id"}, once=True),
            join("$member", group_instance_id="i"),
            beat(group_instance_id="i"),
            described("$u-g"),
        ),
        range(5, 10),
    ),
    Scenario(
        "sync a group",
        ApiKey.SYNC_GROUP,
        (
            *joined(),
            sync(member_id="nobody"),
            sync(generation_id=9),
            sync(protocol_name="other"),
            sync(protocol_type="connect"),
            sync(),
            sync(),
            sync(group_id="$u-other"),
            sync(group_id=""),
        ),
    ),
    Scenario(
        "heartbeats",
        ApiKey.HEARTBEAT,
        (
            *joined(),
            synced(),
            beat(),
            beat(generation_id=0),
            beat(generation_id=9),
            beat(member_id="nobody"),
            beat(group_id="$u-other"),
            beat(group_id=""),
            beat(group_instance_id="i"),
        ),
    ),
    Scenario(
        "leave a group",
        ApiKey.LEAVE_GROUP,
        (
            *joined(),
            synced(),
            leave("nobody"),
            leave("$member"),
            leave("$member"),
            leave("x", group="$u-other"),
            leave("x", group=""),
        ),
    ),
    Scenario(
        "static members leave",
        ApiKey.LEAVE_GROUP,
        (
            *joined(group_instance_id="i"),
            synced(group_instance_id="i"),
            leave("$member", "other"),
            leave("other", "i"),
            leave("", "i"),
        ),
        range(3, 6),
    ),
    Scenario(
        "describe groups",
        ApiKey.DESCRIBE_GROUPS,
        (*joined(), described("$u-g"), synced(), described("$u-g"), described("$u-other", "")),
    ),
    Scenario(
        "list groups",
        ApiKey.LIST_GROUPS,
        (
            *joined(),
            ask(ApiKey.LIST_GROUPS, {}),
            ask(ApiKey.LIST_GROUPS, {"states_filter": ["CompletingRebalance", "Empty"]}),
            ask(ApiKey.LIST_GROUPS, {"states_filter": ["NoSuchState"]}),
            ask(ApiKey.LIST_GROUPS, {"types_filter": ["classic"]}),
            ask(ApiKey.LIST_GROUPS, {"types_filter": ["Consumer"]}),
            ask(ApiKey.LIST_GROUPS, {"types_filter": ["no such type"]}),
        ),
    ),
    Scenario(
        "commit offsets",
        ApiKey.OFFSET_COMMIT,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            commit((0, 5), (1, 6)),
            commit((0, 7), (9, 7)),
            commit((0, 1), topic="$u-absent", topic_id=ABSENT_ID),
            commit((0, 1), group=""),
            commit((0, 1), member="nobody"),
            commit((0, 1), generation=3),
            ask(
                ApiKey.OFFSET_COMMIT,
                {
                    "group_id": "$u-g",
                    "generation_id_or_member_epoch": -1,
                    "retention_time": -1,
                    "topics": [
                        {
                            "name": "$u",
                            "topic_id": "$id",
                            "partitions": [
                                {
                                    "partition_index": 0,
                                    "committed_offset": 3,
                                    "committed_leader_epoch": -1,
                                    "committed_metadata": "x" * 5000,
                                }
                            ],
                        }
                    ],
                },
                once=True,
            ),
            committed(0, 1),
        ),
    ),
    Scenario(
        "commit offsets as a member",
        ApiKey.OFFSET_COMMIT,
        (
            *create_topic(),
            *joined(),
            commit((0, 5), member="$member", generation=1),
            synced(),
            commit((0, 5), member="$member", generation=1),
            commit((0, 5), member="$member", generation=2),
            commit((0, 5), member="nobody", generation=1),
            commit((0, 5)),
        ),
    ),
    Scenario(
        "fetch offsets",
        ApiKey.OFFSET_FETCH,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            setup(
                ApiKey.OFFSET_COMMIT,
                9,
                {
                    "group_id": "$u-g",
                    "generation_id_or_member_epoch": -1,
                    "topics": [
                        {
                            "name": "$u",
                            "partitions": [
                                {
                                    "partition_index": 0,
                                    "committed_offset": 3,
                                    "committed_leader_epoch": 0,
                                    "committed_metadata": "x",
                                }
                            ],
                        }
                    ],
                },
                once=True,
            ),
            committed(0, 1),
            committed(0, 9),
            committed(0, topic="$u-absent", topic_id=ABSENT_ID),
            committed(0, group="$u-other"),
            committed(0, group=""),
        ),
    ),
    Scenario(
        "fetch all offsets",
        ApiKey.OFFSET_FETCH,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            setup(
                ApiKey.OFFSET_COMMIT,
                9,
                {
                    "group_id": "$u-g",
                    "generation_id_or_member_epoch": -1,
                    "topics": [
                        {
                            "name": "$u",
                            "partitions": [
                                {"partition_index": p, "committed_offset": 3, "committed_leader_epoch": -1}
                                for p in (0, 1)
                            ],
                        }
                    ],
                },
                once=True,
            ),
            committed(every=True),
            committed(every=True, group="$u-other"),
        ),
        range(2, 11),
    ),
    Scenario(
        "fetch offsets as a member",
        ApiKey.OFFSET_FETCH,
        (
            *create_topic(),
            *joined(),
            synced(),
            committed(0, member_id="$member", member_epoch=1),
            committed(0, member_id="nobody", member_epoch=1),
            committed(0, member_id="$member", member_epoch=7),
        ),
        range(9, 11),
    ),
    Scenario(
        "delete groups",
        ApiKey.DELETE_GROUPS,
        (
            *joined(),
            synced(),
            ask(ApiKey.DELETE_GROUPS, {"groups_names": ["$u-g"]}, once=True),
            setup(ApiKey.LEAVE_GROUP, 5, {"group_id": "$u-g", "members": [{"member_id": "$member"}]}, once=True),
            ask(ApiKey.DELETE_GROUPS, {"groups_names": ["$u-g"]}, once=True),
            ask(ApiKey.DELETE_GROUPS, {"groups_names": ["$u-g", ""]}, once=True),
        ),
    ),
    Scenario(
        "delete offsets",
        ApiKey.OFFSET_DELETE,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            setup(
                ApiKey.OFFSET_COMMIT,
                9,
                {
                    "group_id": "$u-g",
                    "generation_id_or_member_epoch": -1,
                    "topics": [
                        {
                            "name": "$u",
                            "partitions": [{"partition_index": 0, "committed_offset": 3, "committed_leader_epoch": -1}],
                        }
                    ],
                },
                once=True,
            ),
            ask(
                ApiKey.OFFSET_DELETE,
                {
                    "group_id": "$u-g",
                    "topics": [{"name": "$u", "partitions": [{"partition_index": 0}, {"partition_index": 7}]}],
                },
                once=True,
            ),
            ask(
                ApiKey.OFFSET_DELETE,
                {"group_id": "$u-g", "topics": [{"name": "$u-absent", "partitions": [{"partition_index": 0}]}]},
                once=True,
            ),
            ask(ApiKey.OFFSET_DELETE, {"group_id": "$u-other", "topics": []}, once=True),
            ask(ApiKey.OFFSET_DELETE, {"group_id": "", "topics": []}, once=True),
        ),
    ),
    Scenario(
        "delete offsets of a member's topic",
        ApiKey.OFFSET_DELETE,
        (
            *create_topic(),
            *joined(),
            synced(),
            ask(
                ApiKey.OFFSET_DELETE,
                {"group_id": "$u-g", "topics": [{"name": "$u", "partitions": [{"partition_index": 0}]}]},
                once=True,
            ),
        ),
    ),
)
