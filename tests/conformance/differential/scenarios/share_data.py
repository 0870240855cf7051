"""Members of share groups read and acknowledge records, and the coordinator stores their states."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from tests.conformance.differential.scenario import Scenario, Step, ask, setup
from tests.conformance.differential.scenarios.common import ABSENT_ID, create_topic, written
from tests.conformance.differential.scenarios.groups import coordinator_found, settled

_MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAQ"


def joined() -> tuple[Step, ...]:
    """A topic with records and a share group of one member."""
    beat = {"group_id": "$u-g", "member_id": _MEMBER}
    return (
        *create_topic(partitions=1),
        written(),
        coordinator_found(),
        settled(),
        setup(
            ApiKey.SHARE_GROUP_HEARTBEAT, 1, {**beat, "member_epoch": 0, "subscribed_topic_names": ["$u"]}, once=True
        ),
    )


def fetch(
    epoch: int, *, member: str = _MEMBER, group: str = "$u-g", topic_id: str = "$id", acks: Any = (), **more: Any
) -> Step:
    partition = {"partition_index": 0, "partition_max_bytes": 1000, "acknowledgement_batches": list(acks)}
    body = {
        "group_id": group,
        "member_id": member,
        "share_session_epoch": epoch,
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "max_records": 100,
        "batch_size": 100,
        "topics": [{"topic_id": topic_id, "partitions": [partition]}],
        **more,
    }
    return ask(ApiKey.SHARE_FETCH, body, once=True)


def acknowledge(epoch: int, *batches: tuple[int, int, int], topic_id: str = "$id", group: str = "$u-g") -> Step:
    acks = [{"first_offset": first, "last_offset": last, "acknowledge_types": [kind]} for first, last, kind in batches]
    partition = {"partition_index": 0, "acknowledgement_batches": acks}
    body = {
        "group_id": group,
        "member_id": _MEMBER,
        "share_session_epoch": epoch,
        "topics": [{"topic_id": topic_id, "partitions": [partition]}],
    }
    return ask(ApiKey.SHARE_ACKNOWLEDGE, body, once=True)


def state(api: ApiKey, group: str = "$u-s", topic_id: str = "$id", **partition: Any) -> Step:
    parts = [{"partition": 0, **partition}]
    return ask(api, {"group_id": group, "topics": [{"topic_id": topic_id, "partitions": parts}]}, once=True)


def share_coordinator() -> Step:
    return setup(
        ApiKey.FIND_COORDINATOR,
        6,
        {"key_type": 2, "coordinator_keys": ["$u-s:AAAAAAAAAAAAAAAAAAAAAQ:0"]},
        until=("coordinators.0.error_code", "none"),
    )


def initialized(group: str = "$u-s") -> Step:
    body = {
        "group_id": group,
        "topics": [{"topic_id": "$id", "partitions": [{"partition": 0, "state_epoch": 1, "start_offset": 0}]}],
    }
    return setup(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, body, until=("results.0.partitions.0.error_code", "none"))


SCENARIOS: Final = (
    Scenario(
        "shared records",
        ApiKey.SHARE_FETCH,
        (
            *joined(),
            fetch(3),
            fetch(0, group=""),
            fetch(0, member=""),
            fetch(0, topic_id=ABSENT_ID),
            fetch(-1, member="AAAAAAAAAAAAAAAAAAAAAw"),
        ),
    ),
    Scenario(
        "acknowledgements",
        ApiKey.SHARE_ACKNOWLEDGE,
        (
            *joined(),
            fetch(0),
            acknowledge(1),
            acknowledge(7, (0, 0, 1)),
            acknowledge(2, (0, 0, 9)),
            acknowledge(0, (0, 0, 1), group=""),
            acknowledge(3, (50, 40, 1)),
        ),
    ),
    Scenario("the first shared records", ApiKey.SHARE_FETCH, (*joined(), fetch(0))),
    Scenario(
        "states made",
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        (
            *create_topic(),
            share_coordinator(),
            initialized("$u-first"),
            state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=1, start_offset=3),
            state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, state_epoch=0, start_offset=3),
            state(ApiKey.INITIALIZE_SHARE_GROUP_STATE, group="", state_epoch=1, start_offset=3),
        ),
    ),
    Scenario(
        "states read",
        ApiKey.READ_SHARE_GROUP_STATE,
        (
            *create_topic(),
            share_coordinator(),
            initialized(),
            state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=2),
            state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=1),
            state(ApiKey.READ_SHARE_GROUP_STATE, group="", leader_epoch=2),
        ),
    ),
    Scenario(
        "states summed up",
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        (
            *create_topic(),
            share_coordinator(),
            initialized(),
            state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=2),
            state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, leader_epoch=2),
            state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, leader_epoch=1),
            state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, group="", leader_epoch=2),
            state(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, topic_id=ABSENT_ID, leader_epoch=2),
        ),
    ),
    Scenario(
        "states written",
        ApiKey.WRITE_SHARE_GROUP_STATE,
        (
            *create_topic(),
            share_coordinator(),
            initialized(),
            state(
                ApiKey.WRITE_SHARE_GROUP_STATE,
                state_epoch=1,
                leader_epoch=0,
                start_offset=1,
                delivery_complete_count=1,
                state_batches=[{"first_offset": 1, "last_offset": 4, "delivery_state": 0, "delivery_count": 1}],
            ),
            state(ApiKey.READ_SHARE_GROUP_STATE, leader_epoch=0),
            state(ApiKey.WRITE_SHARE_GROUP_STATE, state_epoch=0, leader_epoch=0, start_offset=1),
            state(ApiKey.WRITE_SHARE_GROUP_STATE, group="", state_epoch=1, leader_epoch=0, start_offset=1),
        ),
    ),
    Scenario(
        "states deleted",
        ApiKey.DELETE_SHARE_GROUP_STATE,
        (
            *create_topic(),
            share_coordinator(),
            initialized(),
            state(ApiKey.DELETE_SHARE_GROUP_STATE),
            state(ApiKey.DELETE_SHARE_GROUP_STATE, group=""),
            state(ApiKey.DELETE_SHARE_GROUP_STATE, topic_id=ABSENT_ID),
        ),
    ),
)
