"""Groups from the view of members: joining, syncing, heartbeats, leaving."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.coordinator.namespace import GroupType
from broker.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    GroupIdNotFound,
    GroupMaxSizeReached,
    GroupNotEmpty,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaStorageError,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from broker.groups import (
    GroupConfig,
    GroupCoordinator,
    GroupState,
    Leaving,
)
from tests.support.groups import Cluster, failure, value
from tidegate.kit.config import parse


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.clock.close()


def state(cluster: Cluster, group_id: str = "g") -> GroupState:
    return cluster.coordinator.describe_groups([group_id])[0].state


def heartbeat(cluster: Cluster, member_id: str, generation: int) -> None:
    cluster.coordinator.heartbeat("g", generation=generation, member_id=member_id)


def test_a_newcomer_is_told_its_id_and_joins_with_it(cluster: Cluster) -> None:
    member_id = cluster.member_id()
    assert member_id.startswith("client-")
    joining = cluster.join(member_id=member_id)
    cluster.clock.advance(0)
    joined = value(joining)
    assert (joined.member_id, joined.generation, joined.leader) == (member_id, 1, member_id)
    assert (joined.protocol_type, joined.protocol_name) == ("connect", "default")
    assert [(m.member_id, m.metadata) for m in joined.members] == [(member_id, b"meta")]


def test_an_old_client_joins_at_once(cluster: Cluster) -> None:
    joining = cluster.join(known_id=False)
    cluster.clock.advance(0)
    assert value(joining).generation == 1


def test_the_leader_alone_sees_the_members_and_each_gets_what_it_assigns(cluster: Cluster) -> None:
    leader, follower = cluster.stable(2)
    assert {m.member_id for m in leader.members} == {leader.member_id, follower.member_id}
    assert follower.members == ()
    assert state(cluster) is GroupState.STABLE
    described = cluster.coordinator.describe_groups(["g"])[0]
    assert [m.assignment for m in described.members if m.member_id == follower.member_id] == [b"1"]
    assert {m.metadata for m in described.members} == {b"meta"}


def test_a_follower_that_syncs_first_waits_for_the_leader(cluster: Cluster) -> None:
    ids = [cluster.member_id() for _ in range(2)]
    joins = [cluster.join(member_id=member_id) for member_id in ids]
    cluster.clock.advance(0)
    follower = next(value(j) for j in joins if not value(j).members)
    leader = next(value(j) for j in joins if value(j).members)
    waiting = cluster.sync(follower)
    assert not waiting.done()
    assert value(cluster.sync(leader, assignments={leader.member_id: b"L"})).assignment == b"L"
    assert value(waiting).assignment == b"", "a member the leader forgot gets an empty assignment"


def test_the_first_rebalance_waits_for_others() -> None:
    cluster = Cluster(group_initial_rebalance_delay_ms="3000")
    first = cluster.join(known_id=False)
    cluster.clock.advance(2_000)
    second = cluster.join(known_id=False)
    cluster.clock.advance(1_500)
    assert not first.done(), "a newcomer extends the wait"
    cluster.clock.advance(3_000)
    assert value(first).generation == value(second).generation == 1
    cluster.clock.close()


def test_the_first_rebalance_does_not_wait_longer_than_the_rebalance_timeout() -> None:
    cluster = Cluster(group_initial_rebalance_delay_ms="3000")
    first = cluster.join(known_id=False, rebalance_timeout_ms=8_000)
    for _ in range(4):
        cluster.clock.advance(1_900)
        cluster.join(known_id=False, rebalance_timeout_ms=8_000)
        assert not first.done()
    cluster.clock.advance(400)
    assert len(value(first).members) == 5
    cluster.clock.close()


def test_a_newcomer_makes_the_others_join_again(cluster: Cluster) -> None:
    (alone,) = cluster.stable(1)
    second = cluster.join(known_id=False)
    with pytest.raises(RebalanceInProgress):
        heartbeat(cluster, alone.member_id, alone.generation)
    assert isinstance(failure(cluster.sync(alone)), RebalanceInProgress)
    again = cluster.join(member_id=alone.member_id)
    assert value(again).generation == value(second).generation == 2
    assert value(again).leader == alone.member_id, "the leader stays"


def test_a_member_that_does_not_rejoin_in_time_is_left_behind(cluster: Cluster) -> None:
    leader, follower = cluster.stable(2, session_timeout_ms=60_000)
    newcomer = cluster.join(known_id=False)
    again = cluster.join(member_id=follower.member_id, session_timeout_ms=60_000)
    cluster.clock.advance(29_999)
    assert not again.done()
    cluster.clock.advance(1)
    assert value(again).leader == value(newcomer).leader == follower.member_id
    with pytest.raises(UnknownMemberId):
        heartbeat(cluster, leader.member_id, 2)


def test_a_silent_member_loses_its_place(cluster: Cluster) -> None:
    leader, follower = cluster.stable(2)
    cluster.clock.advance(9_000)
    heartbeat(cluster, leader.member_id, 1)
    cluster.clock.advance(1_000)
    with pytest.raises(RebalanceInProgress):
        heartbeat(cluster, leader.member_id, 1)
    with pytest.raises(UnknownMemberId):
        heartbeat(cluster, follower.member_id, 1)
    assert len(value(cluster.join(member_id=leader.member_id)).members) == 1


def test_a_parked_member_does_not_time_out(cluster: Cluster) -> None:
    leader, follower = cluster.stable(2, rebalance_timeout_ms=60_000)
    parked = cluster.join(member_id=leader.member_id, rebalance_timeout_ms=60_000)
    for _ in range(4):
        with pytest.raises(RebalanceInProgress):
            heartbeat(cluster, follower.member_id, 1)
        cluster.clock.advance(9_000)
    assert not parked.done()
    value(cluster.join(member_id=follower.member_id))
    assert value(parked).generation == 2


def test_a_member_that_joined_and_does_not_sync_is_removed(cluster: Cluster) -> None:
    ids = [cluster.member_id(session_timeout_ms=60_000) for _ in range(2)]
    joins = [cluster.join(member_id=member_id, session_timeout_ms=60_000) for member_id in ids]
    cluster.clock.advance(0)
    leader = next(value(j) for j in joins if value(j).members)
    follower = next(value(j) for j in joins if not value(j).members)
    waiting = cluster.sync(follower)
    cluster.clock.advance(30_000)
    assert isinstance(failure(waiting), RebalanceInProgress)
    again = cluster.join(member_id=follower.member_id)
    assert value(again).leader == follower.member_id
    assert isinstance(failure(cluster.join(member_id=leader.member_id)), UnknownMemberId)


def test_an_id_that_is_not_used_is_forgotten(cluster: Cluster) -> None:
    member_id = cluster.member_id()
    cluster.clock.advance(10_000)
    assert isinstance(failure(cluster.join(member_id=member_id)), UnknownMemberId)


def test_a_rebalance_waits_for_an_id_just_given_out(cluster: Cluster) -> None:
    (alone,) = cluster.stable(1)
    pending = cluster.member_id()
    rejoin = cluster.join(member_id=alone.member_id)
    assert not rejoin.done()
    joining = cluster.join(member_id=pending)
    assert value(rejoin).generation == value(joining).generation == 2


def test_leaving_makes_the_others_rebalance_and_the_last_empties_the_group(cluster: Cluster) -> None:
    leader, follower = cluster.stable(2)
    (left,) = value(cluster.coordinator.leave_group("g", [Leaving(leader.member_id)]))
    assert left.error is None
    again = value(cluster.join(member_id=follower.member_id))
    assert (again.leader, again.generation) == (follower.member_id, 2)
    value(cluster.coordinator.leave_group("g", [Leaving(follower.member_id)]))
    assert state(cluster) is GroupState.EMPTY


def test_leaving_is_answered_for_each_member(cluster: Cluster) -> None:
    pending = cluster.member_id()
    results = value(cluster.coordinator.leave_group("g", [Leaving(pending), Leaving("stranger"), Leaving("", "none")]))
    assert [type(result.error) for result in results] == [type(None), UnknownMemberId, UnknownMemberId]
    (unknown,) = value(cluster.coordinator.leave_group("nowhere", [Leaving("m")]))
    assert isinstance(unknown.error, UnknownMemberId)


def test_leaving_while_joining_answers_the_join(cluster: Cluster) -> None:
    leader, _ = cluster.stable(2)
    parked = cluster.join(member_id=leader.member_id)
    value(cluster.coordinator.leave_group("g", [Leaving(leader.member_id)]))
    assert isinstance(failure(parked), UnknownMemberId)


def test_a_follower_that_joins_again_unchanged_keeps_its_generation(cluster: Cluster) -> None:
    leader, follower = cluster.stable(2)
    again = value(cluster.join(member_id=follower.member_id))
    assert again.generation == follower.generation
    assert value(cluster.sync(again)).assignment == b"1"
    assert state(cluster) is GroupState.STABLE
    cluster.join(member_id=leader.member_id)
    assert state(cluster) is GroupState.PREPARING_REBALANCE, "a leader that joins again asks for a new assignment"


def test_changed_metadata_begins_a_rebalance(cluster: Cluster) -> None:
    _, follower = cluster.stable(2)
    cluster.join(member_id=follower.member_id, protocols={"default": b"other"})
    assert state(cluster) is GroupState.PREPARING_REBALANCE


def test_the_protocol_most_members_like_is_chosen(cluster: Cluster) -> None:
    offers = [["range", "roundrobin"], ["roundrobin", "range"], ["sticky", "roundrobin", "range"]]
    joins = [cluster.join(known_id=False, protocols=dict.fromkeys(names, b"")) for names in offers]
    cluster.clock.advance(0)
    assert {value(join).protocol_name for join in joins} == {"roundrobin"}


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("consumer", {"default": b""}), ("connect", {"other": b""}), ("connect", {})]
)
def test_a_member_with_other_protocols_is_refused(
    cluster: Cluster, protocol_type: str, protocols: dict[str, bytes]
) -> None:
    cluster.stable(1)
    refused = cluster.join(known_id=False, protocol_type=protocol_type, protocols=protocols)
    assert isinstance(failure(refused), InconsistentGroupProtocol)


def test_a_full_group_takes_nobody() -> None:
    cluster = Cluster(group_max_size="2")
    leader, _ = cluster.stable(2)
    assert isinstance(failure(cluster.join()), GroupMaxSizeReached)
    assert state(cluster) is GroupState.STABLE
    heartbeat(cluster, leader.member_id, 1)
    cluster.clock.close()


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds_is_refused(cluster: Cluster, timeout_ms: int) -> None:
    assert isinstance(failure(cluster.join(session_timeout_ms=timeout_ms)), InvalidSessionTimeout)


def test_errors_in_a_sync_or_heartbeat_get_their_error_code(cluster: Cluster) -> None:
    (alone,) = cluster.stable(1)
    coordinator = cluster.coordinator
    wrong: list[tuple[type[BrokerError], dict[str, object]]] = [
        (IllegalGeneration, {"generation": 7}),
        (UnknownMemberId, {"member_id": "stranger"}),
        (UnknownMemberId, {"instance_id": "nobody"}),
        (InconsistentGroupProtocol, {"protocol_type": "consumer"}),
        (InconsistentGroupProtocol, {"protocol_name": "range"}),
    ]
    for expected, change in wrong:
        request = {"generation": alone.generation, "member_id": alone.member_id, **change}
        assert isinstance(failure(coordinator.sync_group("g", **request)), expected)  # type: ignore[arg-type]
        if not change.keys() & {"protocol_type", "protocol_name"}:
            with pytest.raises(expected):
                coordinator.heartbeat("g", **request)  # type: ignore[arg-type]
    assert isinstance(failure(cluster.sync(alone, "nowhere")), UnknownMemberId)
    assert isinstance(failure(cluster.sync(alone, "")), InvalidGroupId)


def test_groups_are_listed_by_state_and_type(cluster: Cluster) -> None:
    cluster.stable(1, "busy")
    cluster.member_id("waiting")
    listed = {group.group_id: group for group in cluster.coordinator.list_groups()}
    assert listed["busy"].protocol_type == "connect"
    assert listed["waiting"].state == "Empty"
    assert [g.group_id for g in cluster.coordinator.list_groups(states=["stable"])] == ["busy"]
    assert [g.group_id for g in cluster.coordinator.list_groups(types=["Consumer"])] == []
    assert len(cluster.coordinator.list_groups(types=["Classic"])) == 2
    assert cluster.coordinator.counts()[GroupType.CLASSIC, "Stable"] == 1


def test_a_group_that_does_not_exist_is_described_as_dead(cluster: Cluster) -> None:
    (described,) = cluster.coordinator.describe_groups(["nowhere"])
    assert described.state is GroupState.DEAD
    assert isinstance(described.error, GroupIdNotFound)


def test_only_a_group_without_members_can_be_deleted(cluster: Cluster) -> None:
    cluster.stable(1, "busy")
    cluster.member_id("empty")
    results = value(cluster.coordinator.delete_groups(["busy", "empty", "nowhere", ""]))
    kinds = {group_id: type(error) for group_id, error in results.items()}
    assert kinds == {"busy": GroupNotEmpty, "empty": type(None), "nowhere": GroupIdNotFound, "": GroupIdNotFound}
    assert [g.group_id for g in cluster.coordinator.list_groups()] == ["busy"]
    assert [g.group_id for g in cluster.reload().list_groups()] == ["busy"]


def test_a_restarted_coordinator_knows_its_members(cluster: Cluster) -> None:
    leader, follower = cluster.stable(2)
    cluster.coordinator = cluster.reload()
    heartbeat(cluster, follower.member_id, 1)
    assert value(cluster.sync(follower)).assignment == b"1"
    cluster.clock.advance(10_000)
    assert state(cluster) is GroupState.EMPTY, "sessions run from the restart"
    with pytest.raises(UnknownMemberId):
        heartbeat(cluster, leader.member_id, 1)


def test_assignments_are_given_out_only_once_they_are_durable(cluster: Cluster) -> None:
    joining = cluster.join(known_id=False)
    cluster.clock.advance(0)
    cluster.log.held = True
    syncing = cluster.sync(value(joining), assignments={value(joining).member_id: b"a"})
    cluster.clock.settle()
    assert not syncing.done()
    cluster.log.release()
    assert value(syncing).assignment == b"a"


def test_assignments_that_cannot_be_written_make_the_group_try_again(cluster: Cluster) -> None:
    joining = cluster.join(known_id=False)
    cluster.clock.advance(0)
    joined = value(joining)
    cluster.log.refusal = KafkaStorageError("the disk is full")
    assert isinstance(failure(cluster.sync(joined)), NotCoordinator)
    assert state(cluster) is GroupState.PREPARING_REBALANCE
    cluster.log.refusal = None
    again = value(cluster.join(member_id=joined.member_id))
    assert value(cluster.sync(again, assignments={again.member_id: b"x"})).assignment == b"x"


def test_a_stopped_coordinator_sends_everybody_away(cluster: Cluster) -> None:
    leader, _ = cluster.stable(2)
    parked = cluster.join(member_id=leader.member_id)
    cluster.coordinator.stop()
    assert isinstance(failure(parked), NotCoordinator)
    assert isinstance(failure(cluster.join()), NotCoordinator)
    with pytest.raises(NotCoordinator):
        cluster.coordinator.list_groups()


def test_before_its_log_is_read_a_coordinator_asks_for_patience(cluster: Cluster) -> None:
    coordinator = GroupCoordinator(cluster.log, cluster.config, cluster.topics, cluster.clock)
    coordinator.heartbeat("g", generation=1, member_id="m")
    with pytest.raises(CoordinatorLoadInProgress):
        coordinator.fetch_offsets("g")


def test_a_request_nobody_waits_for_does_no_harm(cluster: Cluster) -> None:
    (alone,) = cluster.stable(1)
    gone = cluster.join(known_id=False)
    gone.cancel()
    again = cluster.join(member_id=alone.member_id)
    assert len(value(again).members) == 2
    cluster.clock.advance(30_000)
    assert state(cluster) is not GroupState.COMPLETING_REBALANCE


def test_assignments_of_a_generation_that_is_over_are_not_given_out(cluster: Cluster) -> None:
    joining = cluster.join(known_id=False)
    cluster.clock.advance(0)
    joined = value(joining)
    cluster.log.held = True
    syncing = cluster.sync(joined, assignments={joined.member_id: b"old"})
    cluster.join(known_id=False)
    assert isinstance(failure(syncing), RebalanceInProgress)
    cluster.log.held = False
    cluster.log.release()
    assert state(cluster) is GroupState.PREPARING_REBALANCE
    again = value(cluster.join(member_id=joined.member_id))
    assert value(cluster.sync(again, assignments={joined.member_id: b"new"})).assignment == b"new"


def test_a_session_begins_anew_when_a_wait_ends(cluster: Cluster) -> None:
    ids = [cluster.member_id() for _ in range(2)]
    joins = [cluster.join(member_id=member_id) for member_id in ids]
    cluster.clock.advance(0)
    leader = next(value(j) for j in joins if value(j).members)
    follower = next(value(j) for j in joins if not value(j).members)
    waiting = cluster.sync(follower)
    for _ in range(3):
        cluster.clock.advance(9_000)
        heartbeat(cluster, leader.member_id, 1)
    value(cluster.sync(leader))
    value(waiting)
    cluster.clock.advance(9_999)
    heartbeat(cluster, leader.member_id, 1)
    cluster.clock.advance(1)
    with pytest.raises(UnknownMemberId):
        heartbeat(cluster, follower.member_id, 1)


def test_a_group_over_a_lowered_limit_loses_its_last_to_join_after_a_restart() -> None:
    cluster = Cluster()
    members = cluster.stable(3)
    cluster.config = parse(GroupConfig, {"group.max.size": "2"})
    cluster.coordinator = cluster.reload()
    assert state(cluster) is GroupState.PREPARING_REBALANCE
    first, second, third = [cluster.join(member_id=member.member_id) for member in members]
    assert isinstance(failure(third), GroupMaxSizeReached)
    cluster.clock.advance(30_000)
    assert value(first).generation == value(second).generation == 2
    cluster.clock.close()
