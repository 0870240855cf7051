"""Offsets committed in transactions: when they count, what waits for them, and their state after a restart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.coordinator.committed_offset import CommittedOffset
from broker.errors import IllegalGeneration, UnknownMemberId
from broker.groups import GroupState
from tests.support.groups import Cluster, failure, value

HERE, THERE = ("t", 0), ("t", 1)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.clock.close()


def offsets(cluster: Cluster, group: str = "g") -> dict[tuple[str, int], int]:
    return {where: committed.offset for where, committed in cluster.coordinator.fetch_offsets(group).items()}


def commit(cluster: Cluster, offset: int, producer_id: int | None = None, *where: tuple[str, int]) -> None:
    offsets = {partition: CommittedOffset(offset) for partition in where or (HERE,)}
    if producer_id is None:
        future = cluster.coordinator.commit_offsets("g", offsets)
    else:
        future = cluster.coordinator.commit_transaction_offsets("g", offsets, producer=(producer_id, 0))
    assert set(value(future).values()) == {None}


def end(cluster: Cluster, producer_id: int, *, commit: bool) -> None:
    partition = cluster.coordinator.partition("g")
    cluster.log.end_transaction(partition, producer_id, commit=commit)
    cluster.coordinator.end_transaction(partition, producer_id, commit=commit)


def after_a_restart(cluster: Cluster) -> None:
    cluster.coordinator.stop()
    cluster.coordinator = cluster.reload()


@pytest.mark.parametrize("restarted", [False, True])
def test_offsets_count_from_the_marker_on(cluster: Cluster, restarted: bool) -> None:
    commit(cluster, 3)
    commit(cluster, 5, 1, HERE, THERE)
    if restarted:
        after_a_restart(cluster)
    assert offsets(cluster) == {HERE: 3}
    assert set(cluster.coordinator.unstable_offsets("g")) == {HERE, THERE}
    end(cluster, 1, commit=True)
    if restarted:
        after_a_restart(cluster)
    assert offsets(cluster) == {HERE: 5, THERE: 5}
    assert not cluster.coordinator.unstable_offsets("g")


@pytest.mark.parametrize("restarted", [False, True])
def test_an_aborted_transaction_changes_nothing(cluster: Cluster, restarted: bool) -> None:
    commit(cluster, 3)
    commit(cluster, 5, 1)
    end(cluster, 1, commit=False)
    if restarted:
        after_a_restart(cluster)
    assert offsets(cluster) == {HERE: 3}
    assert not cluster.coordinator.unstable_offsets("g")


@pytest.mark.parametrize("restarts", [(False, False), (True, False), (False, True)])
def test_the_write_that_is_last_in_the_log_wins(cluster: Cluster, restarts: tuple[bool, bool]) -> None:
    commit(cluster, 5, 1)
    commit(cluster, 6, 2)
    commit(cluster, 7)
    commit(cluster, 8, 3)
    if restarts[0]:
        after_a_restart(cluster)
    for producer_id, expected in ((2, 7), (3, 8), (1, 8)):
        end(cluster, producer_id, commit=True)
        assert offsets(cluster) == {HERE: expected}
    if restarts[1]:
        after_a_restart(cluster)
    assert offsets(cluster) == {HERE: 8}


def test_deleting_a_group_forgets_what_is_pending(cluster: Cluster) -> None:
    commit(cluster, 5, 1)
    assert value(cluster.coordinator.delete_groups(["g"])) == {"g": None}
    end(cluster, 1, commit=True)
    assert offsets(cluster) == {}
    after_a_restart(cluster)
    assert offsets(cluster) == {}


def test_a_group_whose_offsets_are_pending_does_not_expire(cluster: Cluster) -> None:
    commit(cluster, 5, 1)
    cluster.clock.advance(30 * 24 * 3_600_000)
    assert [group.group_id for group in cluster.coordinator.list_groups()] == ["g"]
    end(cluster, 1, commit=True)
    cluster.clock.advance(3_600_000)
    assert cluster.coordinator.list_groups() == []


def test_only_current_members_may_commit_in_a_transaction(cluster: Cluster) -> None:
    (member,) = cluster.stable(1)
    commits = cluster.coordinator.commit_transaction_offsets
    offsets = {HERE: CommittedOffset(1)}
    assert value(commits("g", offsets, producer=(1, 0))) == {HERE: None}
    as_member = {"generation": member.generation, "member_id": member.member_id}
    assert value(commits("g", offsets, producer=(1, 0), **as_member)) == {HERE: None}  # type: ignore[arg-type]
    stale = commits("g", offsets, producer=(1, 0), generation=member.generation - 1, member_id=member.member_id)
    assert isinstance(failure(stale), IllegalGeneration)
    stranger = commits("g", offsets, producer=(1, 0), generation=member.generation, member_id="x")
    assert isinstance(failure(stranger), UnknownMemberId)
    assert isinstance(failure(commits("new", offsets, producer=(1, 0), generation=1, member_id="x")), IllegalGeneration)
    assert value(commits("new", offsets, producer=(1, 0))) == {HERE: None}
    (new,) = cluster.coordinator.describe_groups(["new"])
    assert new.state is GroupState.EMPTY
