"""Committing, fetching, deleting and expiring offsets."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator

import pytest

from broker.coordinator.committed_offset import CommittedOffset
from broker.errors import (
    GroupIdNotFound,
    GroupNotEmpty,
    GroupSubscribedToTopic,
    IllegalGeneration,
    KafkaStorageError,
    NotCoordinator,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownServerError,
)
from broker.groups import Leaving
from tests.support.groups import Cluster, failure, value

WEEK_MS = 7 * 24 * 3_600_000
T0 = ("t", 0)
T1 = ("t", 1)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.clock.close()


def consumer_of(*topics: str) -> dict[str, bytes]:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return {"range": struct.pack(">hi", 0, len(topics)) + names}


def committed(cluster: Cluster, group_id: str = "g") -> dict[tuple[str, int], int]:
    return {
        where: committed_offset.offset
        for where, committed_offset in cluster.coordinator.fetch_offsets(group_id).items()
    }


def commit(cluster: Cluster, offset: int = 5, group_id: str = "g", topic: str = "t") -> None:
    assert value(cluster.coordinator.commit_offsets(group_id, {(topic, 0): CommittedOffset(offset)})) == {
        (topic, 0): None
    }


def test_offsets_are_kept_with_what_was_said_beside_them(cluster: Cluster) -> None:
    topic_id = uuid.uuid4()
    offset = CommittedOffset(42, leader_epoch=3, metadata="so far", topic_id=topic_id)
    assert value(cluster.coordinator.commit_offsets("g", {T0: offset, T1: CommittedOffset(7)})) == {T0: None, T1: None}
    for coordinator in (cluster.coordinator, cluster.reload()):
        fetched = coordinator.fetch_offsets("g", [T0, ("t", 9)])
        assert list(fetched) == [T0]
        first = fetched[T0]
        assert (first.offset, first.leader_epoch, first.metadata, first.topic_id) == (42, 3, "so far", topic_id)
        assert first.commit_timestamp_ms == cluster.clock.now_ms()
        assert set(coordinator.fetch_offsets("g")) == {T0, T1}
        assert coordinator.fetch_offsets("nowhere") == {}


def test_a_consumer_without_a_group_commits_to_an_empty_one(cluster: Cluster) -> None:
    commit(cluster)
    (listed,) = cluster.coordinator.list_groups()
    assert (listed.state, listed.protocol_type) == ("Empty", "")
    cluster.stable(1)
    refused = cluster.coordinator.commit_offsets("g", {T0: CommittedOffset(9)})
    assert isinstance(failure(refused), UnknownMemberId)
    assert committed(cluster) == {T0: 5}


def test_only_members_of_the_generation_commit(cluster: Cluster) -> None:
    (alone,) = cluster.stable(1)

    def attempt(generation: int, member_id: str, instance_id: str | None = None) -> object:
        return failure(
            cluster.coordinator.commit_offsets(
                "g", {T0: CommittedOffset(1)}, generation=generation, member_id=member_id, instance_id=instance_id
            )
        )

    assert isinstance(attempt(0, alone.member_id), IllegalGeneration)
    assert isinstance(attempt(1, "stranger"), UnknownMemberId)
    assert isinstance(attempt(1, alone.member_id, "instance"), UnknownMemberId)
    assert isinstance(attempt(-1, alone.member_id), IllegalGeneration)
    done = cluster.coordinator.commit_offsets("g", {T0: CommittedOffset(1)}, generation=1, member_id=alone.member_id)
    assert value(done) == {T0: None}


def test_a_member_of_a_group_that_is_gone_is_told_so(cluster: Cluster) -> None:
    offsets = {T0: CommittedOffset(1)}
    commit_offsets = cluster.coordinator.commit_offsets
    assert isinstance(failure(commit_offsets("g", offsets, generation=1, member_id="m")), GroupIdNotFound)
    old = commit_offsets("g", offsets, generation=1, member_id="m", version=8)
    assert isinstance(failure(old), IllegalGeneration)


def test_members_commit_while_a_rebalance_begins_but_not_before_their_assignment(cluster: Cluster) -> None:
    (alone,) = cluster.stable(1)
    newcomer = cluster.join(known_id=False)
    before = cluster.coordinator.commit_offsets("g", {T0: CommittedOffset(1)}, generation=1, member_id=alone.member_id)
    assert value(before) == {T0: None}
    again = value(cluster.join(member_id=alone.member_id))
    assert newcomer.done()
    between = cluster.coordinator.commit_offsets(
        "g", {T0: CommittedOffset(2)}, generation=again.generation, member_id=again.member_id
    )
    assert isinstance(failure(between), RebalanceInProgress)


def test_a_commit_counts_as_a_heartbeat(cluster: Cluster) -> None:
    (alone,) = cluster.stable(1)
    for offset in range(4):
        cluster.clock.advance(9_000)
        done = cluster.coordinator.commit_offsets(
            "g", {T0: CommittedOffset(offset)}, generation=1, member_id=alone.member_id
        )
        assert value(done) == {T0: None}


def test_metadata_that_is_too_long_is_refused_for_its_partition_alone(cluster: Cluster) -> None:
    offsets = {T0: CommittedOffset(1, metadata="x" * 4_097), T1: CommittedOffset(2, metadata="x" * 4_096)}
    results = value(cluster.coordinator.commit_offsets("g", offsets))
    assert isinstance(results[T0], OffsetMetadataTooLarge)
    assert results[T1] is None
    assert committed(cluster) == {T1: 2}


def test_a_commit_is_answered_once_it_is_durable(cluster: Cluster) -> None:
    cluster.log.held = True
    waiting = cluster.coordinator.commit_offsets("g", {T0: CommittedOffset(1)})
    cluster.clock.settle()
    assert not waiting.done()
    cluster.log.release()
    assert value(waiting) == {T0: None}


def test_a_commit_that_is_not_written_is_an_error_and_changes_nothing(cluster: Cluster) -> None:
    commit(cluster)
    cluster.log.refusal = KafkaStorageError("the disk is full")
    assert isinstance(failure(cluster.coordinator.commit_offsets("g", {T0: CommittedOffset(9)})), NotCoordinator)
    assert committed(cluster) == {T0: 5}
    cluster.log.refusal = None
    cluster.log.held = True
    waiting = cluster.coordinator.commit_offsets("g", {T0: CommittedOffset(9)})
    cluster.log.release(KafkaStorageError("the disk is gone"))
    assert isinstance(failure(waiting), NotCoordinator)


def test_a_write_that_is_called_off_is_an_error(cluster: Cluster) -> None:
    cluster.log.held = True
    waiting = cluster.coordinator.commit_offsets("g", {T0: CommittedOffset(9)})
    cluster.log.refusal = UnknownServerError("strange")
    assert isinstance(failure(cluster.coordinator.commit_offsets("g", {T1: CommittedOffset(9)})), UnknownServerError)
    assert not waiting.done()
    cluster.log.release()
    assert waiting.done()


def test_deleted_offsets_are_gone_after_a_restart_too(cluster: Cluster) -> None:
    commit(cluster)
    commit(cluster, topic="u")
    assert value(cluster.coordinator.delete_offsets("g", [T0, T1])) == {T0: None, T1: None}
    assert committed(cluster) == {("u", 0): 5}
    cluster.coordinator = cluster.reload()
    assert committed(cluster) == {("u", 0): 5}
    assert isinstance(failure(cluster.coordinator.delete_offsets("nowhere", [T0])), GroupIdNotFound)


def test_offsets_of_topics_that_are_read_cannot_be_deleted(cluster: Cluster) -> None:
    commit(cluster)
    commit(cluster, topic="u")
    cluster.stable(1, protocol_type="consumer", protocols=consumer_of("t"))
    results = value(cluster.coordinator.delete_offsets("g", [T0, ("u", 0)]))
    assert isinstance(results[T0], GroupSubscribedToTopic)
    assert results["u", 0] is None
    cluster.stable(1, "other")
    assert isinstance(failure(cluster.coordinator.delete_offsets("other", [T0])), GroupNotEmpty)


def test_unreadable_subscriptions_protect_every_topic(cluster: Cluster) -> None:
    commit(cluster)
    cluster.stable(1, protocol_type="consumer", protocols={"own": b"?"})
    assert isinstance(value(cluster.coordinator.delete_offsets("g", [T0]))[T0], GroupSubscribedToTopic)


def test_deleting_a_group_deletes_its_offsets(cluster: Cluster) -> None:
    commit(cluster)
    assert value(cluster.coordinator.delete_groups(["g"])) == {"g": None}
    cluster.coordinator = cluster.reload()
    assert committed(cluster) == {}
    assert cluster.coordinator.list_groups() == []


def test_a_group_that_cannot_be_deleted_stays(cluster: Cluster) -> None:
    commit(cluster)
    cluster.log.refusal = KafkaStorageError("the disk is full")
    assert isinstance(value(cluster.coordinator.delete_groups(["g"]))["g"], NotCoordinator)
    assert committed(cluster) == {T0: 5}


def test_a_deleted_topic_takes_its_offsets_along(cluster: Cluster) -> None:
    commit(cluster)
    commit(cluster, topic="u")
    commit(cluster, group_id="h")
    cluster.coordinator.forget_topic("t")
    cluster.coordinator = cluster.reload()
    assert committed(cluster) == {("u", 0): 5}
    assert committed(cluster, "h") == {}


def test_offsets_without_a_group_expire_after_their_last_commit(cluster: Cluster) -> None:
    commit(cluster)
    cluster.clock.advance(WEEK_MS - 600_000)
    commit(cluster, topic="u")
    cluster.clock.advance(1_200_000)
    assert committed(cluster) == {("u", 0): 5}
    cluster.clock.advance(WEEK_MS)
    assert cluster.coordinator.list_groups() == []
    assert cluster.reload().list_groups() == []


def test_offsets_of_a_group_expire_after_it_lost_its_last_member(cluster: Cluster) -> None:
    commit(cluster)
    (alone,) = cluster.stable(1, session_timeout_ms=1_800_000)
    for _ in range(WEEK_MS // 1_700_000 + 2):
        cluster.clock.advance(1_700_000)
        cluster.coordinator.heartbeat("g", generation=1, member_id=alone.member_id)
    assert committed(cluster) == {T0: 5}
    value(cluster.coordinator.leave_group("g", [Leaving(alone.member_id)]))
    cluster.clock.advance(WEEK_MS - 600_000)
    assert committed(cluster) == {T0: 5}
    cluster.clock.advance(1_200_000)
    assert cluster.coordinator.list_groups() == []


def test_a_consumer_group_keeps_the_offsets_of_what_it_reads_and_loses_others(cluster: Cluster) -> None:
    commit(cluster)
    commit(cluster, topic="u")
    request = {"protocol_type": "consumer", "protocols": consumer_of("t"), "session_timeout_ms": 1_800_000}
    (alone,) = cluster.stable(1, **request)  # type: ignore[arg-type]
    for _ in range(WEEK_MS // 1_700_000 + 2):
        cluster.clock.advance(1_700_000)
        cluster.coordinator.heartbeat("g", generation=1, member_id=alone.member_id)
    assert committed(cluster) == {T0: 5}


def test_a_retention_the_client_gave_goes_first(cluster: Cluster) -> None:
    expires_ms = cluster.clock.now_ms() + 3_600_000
    value(cluster.coordinator.commit_offsets("g", {T0: CommittedOffset(1, expire_timestamp_ms=expires_ms)}))
    cluster.coordinator = cluster.reload()
    cluster.clock.advance(3_000_000)
    assert committed(cluster) == {T0: 1}
    cluster.clock.advance(1_200_000)
    assert committed(cluster) == {}


def test_a_record_that_cannot_be_read_is_passed_over(cluster: Cluster) -> None:
    commit(cluster)
    cluster.log.entries[0].append((b"\0\1\0", b""))
    cluster.log.entries[1].append((b"\0\2\0\1x", b"\0\x63"))
    cluster.log.entries[2].append((b"\0\3\0\1x", b"\0\0\0\0\0\1"))
    cluster.coordinator = cluster.reload()
    assert committed(cluster) == {T0: 5}
    assert [g.group_id for g in cluster.coordinator.list_groups()] == ["g"]
