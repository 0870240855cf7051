"""Consumer groups, rule by rule."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from broker.coordinator.committed_offset import CommittedOffset
from broker.errors import (
    BrokerError,
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    GroupNotEmpty,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidRegularExpression,
    InvalidRequest,
    KafkaStorageError,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from broker.groups.consumer.service import ConsumerGroups
from broker.groups.consumer.values import ConsumerHeartbeat, HeartbeatAnswer
from broker.groups.modern.member import Partitions
from tests.support.groups import Cluster, failure, value


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster(group_consumer_assignment_interval_ms="0")
    made.topics.put("t", 4)
    yield made
    made.clock.close()


def beat(cluster: Cluster, member: str, epoch: int, **more: Any) -> asyncio.Future[HeartbeatAnswer]:
    future = cluster.coordinator.service(ConsumerGroups).heartbeat(
        ConsumerHeartbeat(group_id="g", member_id=member, epoch=epoch, client_id="c", client_host="/127.0.0.1", **more),
        more.pop("version", 1),
    )
    cluster.clock.settle()
    return future


def join(cluster: Cluster, member: str, **more: Any) -> HeartbeatAnswer:
    more = {"topics": frozenset({"t"}), "rebalance_timeout_ms": 30_000, "owned": {}, **more}
    return value(beat(cluster, member, 0, **more))


def numbers(partitions: Partitions | None) -> list[int]:
    assert partitions is not None
    return sorted(number for some in partitions.values() for number in some)


def topic_id(cluster: Cluster, name: str = "t") -> Any:
    topic = cluster.topics.by_name(name)
    assert topic is not None
    return topic.id


def describe(cluster: Cluster) -> Any:
    return cluster.coordinator.service(ConsumerGroups).describe("g")


def test_the_first_member_gets_everything_at_once(cluster: Cluster) -> None:
    answer = join(cluster, "a")
    assert (answer.member_id, answer.epoch, answer.heartbeat_interval_ms) == ("a", 2, 5_000)
    assert numbers(answer.assigned) == [0, 1, 2, 3]
    assert describe(cluster).state == "Stable"
    assert value(beat(cluster, "a", 2)).assigned is None, "nothing has changed"


def test_partitions_are_given_up_before_another_gets_them(cluster: Cluster) -> None:
    join(cluster, "a")
    second = join(cluster, "b")
    assert second.assigned == {}
    asked = value(beat(cluster, "a", 2))
    assert (asked.epoch, numbers(asked.assigned)) == (2, [0, 1])
    assert value(beat(cluster, "b", 3)).assigned is None, "the first has them still"
    assert describe(cluster).state == "Reconciling"
    done = value(beat(cluster, "a", 2, owned={topic_id(cluster): frozenset({0, 1})}))
    assert done.epoch == 3
    assert numbers(value(beat(cluster, "b", 3)).assigned) == [2, 3]
    assert describe(cluster).state == "Stable"


def test_a_member_that_keeps_what_it_is_to_give_up_is_fenced(cluster: Cluster) -> None:
    join(cluster, "a")
    join(cluster, "b")
    value(beat(cluster, "a", 2))
    cluster.clock.advance(29_999)
    value(beat(cluster, "a", 2))
    value(beat(cluster, "b", 3))
    cluster.clock.advance(1)
    assert isinstance(failure(beat(cluster, "a", 2)), UnknownMemberId)
    assert numbers(value(beat(cluster, "b", 3)).assigned) == [0, 1, 2, 3]


def test_a_silent_member_is_missed(cluster: Cluster) -> None:
    join(cluster, "a")
    cluster.clock.advance(44_999)
    value(beat(cluster, "a", 2))
    cluster.clock.advance(45_000)
    assert describe(cluster).state == "Empty"


def test_epochs_are_checked(cluster: Cluster) -> None:
    join(cluster, "a")
    assert isinstance(failure(beat(cluster, "a", 3)), FencedMemberEpoch)
    assert isinstance(failure(beat(cluster, "a", 1)), FencedMemberEpoch)
    join(cluster, "b")
    value(beat(cluster, "a", 2))
    owned = {topic_id(cluster): frozenset({0, 1})}
    assert value(beat(cluster, "a", 2, owned=owned)).epoch == 3
    assert value(beat(cluster, "a", 2, owned=owned)).epoch == 3, "it did not get the answer"
    more = {topic_id(cluster): frozenset({0, 1, 2})}
    assert isinstance(failure(beat(cluster, "a", 2, owned=more)), FencedMemberEpoch)


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"epoch": 0, "topics": frozenset({"t"}), "owned": {}}, InvalidRequest),
        ({"epoch": 0, "rebalance_timeout_ms": 1, "topics": frozenset({"t"})}, InvalidRequest),
        ({"epoch": 0, "rebalance_timeout_ms": 1, "owned": {}}, InvalidRequest),
        ({"epoch": -2}, InvalidRequest),
        ({"epoch": -3}, InvalidRequest),
        ({"epoch": 1, "instance_id": ""}, InvalidRequest),
        ({"epoch": 1, "assignor": "best"}, UnsupportedAssignor),
        ({"epoch": 1}, GroupIdNotFound),
        ({"epoch": -1}, GroupIdNotFound),
    ],
)
def test_invalid_heartbeats_are_refused(cluster: Cluster, more: dict[str, Any], error: type[BrokerError]) -> None:
    assert isinstance(failure(beat(cluster, "a", **more)), error)


def test_before_version_1_the_broker_names_members(cluster: Cluster) -> None:
    fields = {"topics": frozenset({"t"}), "rebalance_timeout_ms": 1, "owned": {}}
    request = ConsumerHeartbeat(group_id="g", member_id="", epoch=0, **fields)
    service = cluster.coordinator.service(ConsumerGroups)
    assert value(service.heartbeat(request, 0)).member_id
    assert isinstance(failure(service.heartbeat(request, 1)), InvalidRequest)


def test_a_static_member_keeps_its_place_while_it_is_away(cluster: Cluster) -> None:
    join(cluster, "a", instance_id="i")
    error = failure(beat(cluster, "b", 0, instance_id="i", topics=frozenset({"t"}), rebalance_timeout_ms=1, owned={}))
    assert isinstance(error, UnreleasedInstanceId)
    assert value(beat(cluster, "a", -2, instance_id="i")).epoch == -2
    back = join(cluster, "b", instance_id="i")
    assert numbers(back.assigned) == [0, 1, 2, 3]
    assert describe(cluster).epoch == 2, "nothing had to be assigned anew"
    assert isinstance(failure(beat(cluster, "a", 2, instance_id="i")), FencedInstanceId)
    beat(cluster, "b", -2, instance_id="i")
    cluster.clock.advance(45_000)
    assert describe(cluster).state == "Empty"


def test_a_group_has_as_many_members_as_it_may(cluster: Cluster) -> None:
    small = Cluster(group_consumer_max_size="1")
    small.topics.put("t", 1)
    join(small, "a")
    wish = {"topics": frozenset({"t"}), "rebalance_timeout_ms": 1, "owned": {}}
    assert isinstance(failure(beat(small, "b", 0, **wish)), GroupMaxSizeReached)
    small.clock.close()


def test_topics_that_come_grow_and_go_are_noticed(cluster: Cluster) -> None:
    join(cluster, "a", topics=frozenset({"t", "later"}))
    cluster.topics.put("later", 1)
    cluster.coordinator.topic_changed("later")
    assert numbers(value(beat(cluster, "a", 2)).assigned) == [0, 0, 1, 2, 3]
    cluster.topics.put("t", 5)
    cluster.coordinator.topic_changed("t")
    assert numbers(value(beat(cluster, "a", 3)).assigned) == [0, 0, 1, 2, 3, 4]
    cluster.topics.remove("later")
    cluster.coordinator.topic_changed("later")
    asked = value(beat(cluster, "a", 4))
    assert numbers(asked.assigned) == [0, 1, 2, 3, 4]


def test_regular_expressions_are_resolved_after_the_heartbeat(cluster: Cluster) -> None:
    first = join(cluster, "a", topics=None, regex="t.*")
    assert first.assigned == {}
    cluster.clock.advance(0)
    assert numbers(value(beat(cluster, "a", first.epoch)).assigned) == [0, 1, 2, 3]
    cluster.topics.put("two", 1)
    value(beat(cluster, "a", 2))
    cluster.clock.advance(10_001)
    value(beat(cluster, "a", 2))
    cluster.clock.advance(0)
    assert numbers(value(beat(cluster, "a", 2)).assigned) == [0, 0, 1, 2, 3]
    wish = {"regex": "(", "rebalance_timeout_ms": 1, "owned": {}}
    assert isinstance(failure(beat(cluster, "b", 0, **wish)), InvalidRegularExpression)


def test_the_assignor_most_members_ask_for_assigns(cluster: Cluster) -> None:
    join(cluster, "a", assignor="range")
    assert describe(cluster).assignor == "range"


def commit(cluster: Cluster, member: str, epoch: int, version: int = 9) -> Any:
    offsets = {("t", 0): CommittedOffset(7, topic_id=topic_id(cluster))}
    return cluster.coordinator.commit_offsets("g", offsets, generation=epoch, member_id=member, version=version)


def test_members_commit_at_their_epoch(cluster: Cluster) -> None:
    join(cluster, "a")
    assert value(commit(cluster, "a", 2)) == {("t", 0): None}
    assert isinstance(failure(commit(cluster, "a", 3)), StaleMemberEpoch)
    assert isinstance(failure(commit(cluster, "x", 2)), UnknownMemberId)
    assert isinstance(failure(commit(cluster, "a", 2, version=8)), UnsupportedVersion)
    assert isinstance(failure(commit(cluster, "", -1)), UnknownMemberId)
    (stale,) = value(commit(cluster, "a", 1)).values()
    assert isinstance(stale, StaleMemberEpoch), "it had the partition from epoch 2 on"


def test_a_commit_of_an_earlier_epoch_counts_for_what_was_assigned_then(cluster: Cluster) -> None:
    join(cluster, "a")
    join(cluster, "b")
    value(beat(cluster, "a", 2))
    value(beat(cluster, "a", 2, owned={topic_id(cluster): frozenset({0, 1})}))
    assert value(commit(cluster, "a", 2)) == {("t", 0): None}


def test_offsets_are_read_at_the_members_epoch(cluster: Cluster) -> None:
    join(cluster, "a")
    value(commit(cluster, "a", 2))
    fetch = cluster.coordinator.fetch_offsets
    assert fetch("g", member_id="a", member_epoch=2)[("t", 0)].offset == 7
    assert fetch("g")[("t", 0)].offset == 7
    with pytest.raises(StaleMemberEpoch):
        fetch("g", member_id="a", member_epoch=1)
    with pytest.raises(UnknownMemberId):
        fetch("g", member_id="x", member_epoch=1)
    assert fetch("nobody", member_id="x", member_epoch=1) == {}


def test_a_group_is_deleted_and_its_offsets_with_it(cluster: Cluster) -> None:
    join(cluster, "a")
    value(commit(cluster, "a", 2))
    (error,) = value(cluster.coordinator.delete_groups(["g"])).values()
    assert isinstance(error, GroupNotEmpty)
    (subscribed,) = value(cluster.coordinator.delete_offsets("g", [("t", 0)])).values()
    assert isinstance(subscribed, GroupSubscribedToTopic)
    value(beat(cluster, "a", -1))
    assert value(cluster.coordinator.delete_groups(["g"])) == {"g": None}
    for coordinator in (cluster.coordinator, cluster.reload()):
        assert coordinator.list_groups() == []
        assert coordinator.fetch_offsets("g") == {}


def test_the_group_stays_unchanged_if_the_log_refuses(cluster: Cluster) -> None:
    join(cluster, "a")
    before = describe(cluster)
    cluster.log.refusal = KafkaStorageError("the disk is full")
    for future in (beat(cluster, "a", -1), beat(cluster, "a", 2, topics=frozenset({"u"}))):
        assert isinstance(failure(future), BrokerError)
    assert describe(cluster) == before
    cluster.clock.advance(45_000)
    assert describe(cluster) == before, "not even by a timer"
    cluster.log.refusal = None
    cluster.clock.advance(1_000)
    assert describe(cluster).state == "Empty"


def test_a_classic_member_of_another_kind_cannot_join(cluster: Cluster) -> None:
    join(cluster, "a")
    assert isinstance(failure(cluster.join(protocol_type="connect")), InconsistentGroupProtocol)
    assert isinstance(failure(cluster.coordinator.sync_group("g", generation=2, member_id="a")), UnknownMemberId)
    with pytest.raises(UnknownMemberId):
        cluster.coordinator.heartbeat("g", generation=2, member_id="a")


def subscription(*topics: str) -> bytes:
    names = b"".join(len(topic).to_bytes(2) + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff"


CLASSIC: dict[str, Any] = {"protocol_type": "consumer", "protocols": {"range": subscription("t")}}


def test_members_of_both_protocols_share_a_group(cluster: Cluster) -> None:
    join(cluster, "a")
    classic = cluster.member_id(**CLASSIC)
    joined = value(cluster.join(member_id=classic, **CLASSIC))
    assert (joined.generation, joined.leader, joined.protocol_name) == (3, "", "range")
    synced = value(cluster.coordinator.sync_group("g", generation=3, member_id=classic))
    assert synced.assignment == b"\0\0\0\0\0\0\xff\xff\xff\xff", "nothing is free yet"
    cluster.coordinator.heartbeat("g", generation=3, member_id=classic)
    value(beat(cluster, "a", 2))
    value(beat(cluster, "a", 2, owned={topic_id(cluster): frozenset({0, 1})}))
    with pytest.raises(BrokerError, match="join again"):
        cluster.coordinator.heartbeat("g", generation=3, member_id=classic)
    joined = value(cluster.join(member_id=classic, **CLASSIC))
    synced = value(cluster.coordinator.sync_group("g", generation=joined.generation, member_id=classic))
    assert synced.assignment == bytes.fromhex("0000 00000001 0001 74 00000002 00000002 00000003 ffffffff")
    offsets = {("t", 2): CommittedOffset(1, topic_id=topic_id(cluster))}
    old = cluster.coordinator.commit_offsets("g", offsets, generation=9, member_id=classic, version=8)
    assert isinstance(failure(old), IllegalGeneration)
    assert [member.is_classic for member in describe(cluster).members] == [False, True]


def test_the_last_member_of_the_consumer_protocol_leaves_a_classic_group(cluster: Cluster) -> None:
    join(cluster, "a")
    classic = cluster.member_id(**CLASSIC)
    value(cluster.join(member_id=classic, **CLASSIC))
    value(beat(cluster, "a", -1))
    for coordinator in (cluster.coordinator, cluster.reload()):
        (listed,) = coordinator.list_groups()
        assert listed.group_type == "classic"
        (described,) = coordinator.describe_groups(["g"])
        assert [member.member_id for member in described.members] == [classic]
    joined = value(cluster.join(member_id=classic, **CLASSIC))
    assert joined.leader == classic


def test_a_classic_group_is_upgraded_by_the_first_member_of_the_consumer_protocol(cluster: Cluster) -> None:
    leader, follower = cluster.member_id(**CLASSIC), cluster.member_id(**CLASSIC)
    joins = [cluster.join(member_id=member_id, **CLASSIC) for member_id in (leader, follower)]
    cluster.clock.advance(0)
    both = [value(member_id) for member_id in joins]
    halves = {
        member_id: bytes.fromhex(f"0000 00000001 0001 74 00000002 0000000{first} 0000000{first + 1} ffffffff")
        for member_id, first in ((leader, 0), (follower, 2))
    }
    syncs = [
        cluster.sync(member_id, assignments=halves if member_id.member_id == member_id.leader else None)
        for member_id in both
    ]
    cluster.clock.settle()
    assert [value(sync).assignment for sync in syncs] == [halves[member_id.member_id] for member_id in both]
    new = join(cluster, "a")
    assert new.assigned == {}
    group = describe(cluster)
    assert {m.member_id: numbers(m.assigned) for m in group.members} == {leader: [0, 1], follower: [2, 3], "a": []}
    reloaded = cluster.reload().service(ConsumerGroups).describe("g")
    assert {m.member_id: m.assigned for m in reloaded.members} == {m.member_id: m.assigned for m in group.members}
    with pytest.raises(BrokerError, match="join again"):
        cluster.coordinator.heartbeat("g", generation=both[0].generation, member_id=leader)


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_classic_group_with_members_stays_one_where_that_is_the_policy(policy: str) -> None:
    cluster = Cluster(group_consumer_migration_policy=policy)
    cluster.topics.put("t", 1)
    cluster.join(member_id=cluster.member_id(**CLASSIC), **CLASSIC)
    cluster.clock.advance(0)
    wish = {"topics": frozenset({"t"}), "rebalance_timeout_ms": 1, "owned": {}}
    assert isinstance(failure(beat(cluster, "a", 0, **wish)), GroupIdNotFound)
    cluster.clock.close()


def test_empty_groups_change_type_freely(cluster: Cluster) -> None:
    join(cluster, "a")
    value(commit(cluster, "a", 2))
    value(beat(cluster, "a", -1))
    cluster.join(member_id=cluster.member_id(**CLASSIC), **CLASSIC)
    cluster.clock.advance(0)
    assert [group.group_type for group in cluster.coordinator.list_groups()] == ["classic"]
    assert cluster.coordinator.fetch_offsets("g")[("t", 0)].offset == 7
    assert [group.group_type for group in cluster.reload().list_groups()] == ["classic"]
