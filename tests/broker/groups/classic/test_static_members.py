"""Static members (KIP-345): an instance keeps its place while its process restarts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.errors import FencedInstanceId, KafkaStorageError, NotCoordinator, RebalanceInProgress, UnknownMemberId
from broker.groups import GroupState, Joined, Leaving
from tests.support.groups import Cluster, failure, value


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.clock.close()


def state(cluster: Cluster) -> GroupState:
    return cluster.coordinator.describe_groups(["g"])[0].state


def two_instances(cluster: Cluster, session_timeout_ms: int = 60_000) -> tuple[Joined, Joined]:
    """A stable group of instances "a", which leads and is assigned b"a", and "b"."""
    joins = [cluster.join(instance_id=name, session_timeout_ms=session_timeout_ms) for name in ("a", "b")]
    cluster.clock.advance(0)
    first, second = (value(join) for join in joins)
    assert first.leader == first.member_id
    assert first.member_id.startswith("a-")
    cluster.sync(first, assignments={first.member_id: b"a", second.member_id: b"b"})
    cluster.sync(second)
    assert state(cluster) is GroupState.STABLE
    return first, second


def test_an_instance_needs_no_second_request_to_join(cluster: Cluster) -> None:
    two_instances(cluster)


def test_an_instance_that_comes_back_takes_its_place_without_a_rebalance(cluster: Cluster) -> None:
    first, second = two_instances(cluster)
    back = value(cluster.join(instance_id="b", session_timeout_ms=60_000))
    assert (back.generation, back.leader, back.skip_assignment) == (1, first.member_id, False)
    assert back.member_id != second.member_id
    assert value(cluster.sync(back)).assignment == b"b"
    old = cluster.coordinator.sync_group("g", generation=1, member_id=second.member_id, instance_id="b")
    assert isinstance(failure(old), FencedInstanceId)
    with pytest.raises(UnknownMemberId):
        cluster.coordinator.heartbeat("g", generation=1, member_id=second.member_id)


def test_a_leader_that_comes_back_need_not_assign(cluster: Cluster) -> None:
    two_instances(cluster)
    back = value(cluster.join(instance_id="a", session_timeout_ms=60_000))
    assert back.leader == back.member_id
    assert back.skip_assignment
    assert len(back.members) == 2
    assert value(cluster.sync(back)).assignment == b"a"


def test_an_old_client_that_comes_back_takes_itself_for_a_follower(cluster: Cluster) -> None:
    first, _ = two_instances(cluster)
    back = value(cluster.join(instance_id="a", skipping=False, session_timeout_ms=60_000))
    assert back.leader == first.member_id
    assert back.members == ()


def test_the_place_survives_a_restart_of_the_broker(cluster: Cluster) -> None:
    two_instances(cluster)
    back = value(cluster.join(instance_id="b", session_timeout_ms=60_000))
    cluster.coordinator = cluster.reload()
    cluster.coordinator.heartbeat("g", generation=1, member_id=back.member_id, instance_id="b")


def test_a_place_that_cannot_be_written_goes_back_to_the_old_id(cluster: Cluster) -> None:
    _, second = two_instances(cluster)
    cluster.log.refusal = KafkaStorageError("the disk is full")
    assert isinstance(failure(cluster.join(instance_id="b", session_timeout_ms=60_000)), NotCoordinator)
    cluster.coordinator.heartbeat("g", generation=1, member_id=second.member_id, instance_id="b")


def test_an_instance_that_comes_back_with_another_protocol_begins_a_rebalance(cluster: Cluster) -> None:
    protocols = {"one": b"", "two": b""}
    joins = [cluster.join(instance_id=name, protocols=protocols) for name in ("a", "b", "c")]
    cluster.clock.advance(0)
    cluster.sync(value(joins[0]), assignments={})
    swapped = {"two": b"", "one": b""}
    again = [cluster.join(instance_id=name, protocols=swapped) for name in ("a", "b")]
    assert again[0].done()
    assert not again[1].done()
    assert state(cluster) is GroupState.PREPARING_REBALANCE


def test_a_member_replaced_while_it_joins_is_fenced(cluster: Cluster) -> None:
    first, second = two_instances(cluster)
    parked = cluster.join(member_id=first.member_id, instance_id="a", session_timeout_ms=60_000)
    back = cluster.join(instance_id="a", session_timeout_ms=60_000)
    assert isinstance(failure(parked), FencedInstanceId)
    value(cluster.join(member_id=second.member_id, instance_id="b", session_timeout_ms=60_000))
    assert value(back).generation == 2


def test_replacing_a_member_while_the_leader_assigns_makes_all_join_again(cluster: Cluster) -> None:
    joins = [cluster.join(instance_id=name) for name in ("a", "b")]
    cluster.clock.advance(0)
    follower = cluster.sync(value(joins[1]))
    cluster.join(instance_id="b")
    assert isinstance(failure(follower), FencedInstanceId)
    assert isinstance(failure(cluster.sync(value(joins[0]))), RebalanceInProgress)


def test_a_static_member_is_not_left_behind_by_a_rebalance_before_its_session_ends(cluster: Cluster) -> None:
    first, second = two_instances(cluster)
    again = cluster.join(member_id=first.member_id, instance_id="a", session_timeout_ms=60_000)
    cluster.clock.advance(30_000)
    assert [m.instance_id for m in value(again).members] == ["a", "b"]
    assert value(again).generation == 2
    cluster.coordinator.heartbeat("g", generation=2, member_id=second.member_id, instance_id="b")


def test_a_group_of_static_members_waits_until_one_of_them_is_back(cluster: Cluster) -> None:
    first, _ = two_instances(cluster, 600_000)
    newcomer = cluster.join(known_id=False)
    newcomer_id = cluster.coordinator.describe_groups(["g"])[0].members[-1].member_id
    cluster.coordinator.leave_group("g", [Leaving(newcomer_id)])
    assert isinstance(failure(newcomer), UnknownMemberId)
    cluster.clock.advance(30_000)
    assert state(cluster) is GroupState.PREPARING_REBALANCE
    again = cluster.join(member_id=first.member_id, instance_id="a", session_timeout_ms=600_000)
    cluster.clock.advance(30_000)
    assert value(again).generation == 2


def test_somebody_else_can_remove_an_instance(cluster: Cluster) -> None:
    two_instances(cluster)
    (left,) = value(cluster.coordinator.leave_group("g", [Leaving("", "b")]))
    assert left.error is None
    assert len(cluster.coordinator.describe_groups(["g"])[0].members) == 1


def test_a_wrong_id_for_an_instance_is_fenced(cluster: Cluster) -> None:
    first, _ = two_instances(cluster)
    (left,) = value(cluster.coordinator.leave_group("g", [Leaving(first.member_id, "b")]))
    assert isinstance(left.error, FencedInstanceId)
    assert isinstance(failure(cluster.join(member_id="x", instance_id="a")), FencedInstanceId)
    assert isinstance(failure(cluster.join(member_id="x", instance_id="c")), UnknownMemberId)
    pending = cluster.member_id()
    assert isinstance(failure(cluster.join(member_id=pending, instance_id="c")), UnknownMemberId)


def test_an_instance_that_comes_back_before_it_synced_is_still_awaited(cluster: Cluster) -> None:
    joins = [cluster.join(instance_id=name, session_timeout_ms=60_000) for name in ("a", "b")]
    cluster.clock.advance(0)
    first, second = (value(join) for join in joins)
    value(cluster.sync(first, assignments={second.member_id: b"b"}))
    back = value(cluster.join(instance_id="b", session_timeout_ms=60_000))
    assert value(cluster.sync(back)).assignment == b"b"
    cluster.clock.advance(30_000)
    assert state(cluster) is GroupState.STABLE
    value(cluster.join(instance_id="b", session_timeout_ms=60_000))
    assert state(cluster) is GroupState.STABLE
