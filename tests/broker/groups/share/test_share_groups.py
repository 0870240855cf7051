"""Share groups from the view of members and administrators: who fetches which partition, and from which offset."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.modern.assignors.simple import assign_simply
from broker.groups.modern.assignors.spec import GroupSpec, MemberSpec
from broker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from broker.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from broker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread, settings
from tests.support.requests import Wire

SETTINGS = {
    "share_coordinator_state_topic_num_partitions": "2",
    "group_share_assignment_interval_ms": "0",
    "group_share_min_session_timeout_ms": "100",
    "group_share_heartbeat_interval_ms": "100",
    "group_share_min_heartbeat_interval_ms": "100",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(settings(tmp_path_factory.mktemp("share"), **SETTINGS)) as running:
        yield running


@pytest.fixture
def wire(broker: BrokerThread) -> Iterator[Wire]:
    with Wire(broker.port) as opened:
        yield opened


@pytest.fixture
def name() -> str:
    return f"n{uuid.uuid4().hex[:8]}"


def create(wire: Wire, topic: str, partitions: int = 2) -> uuid.UUID:
    made = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    answer = wire.send(CreateTopicsRequest(topics=[made]), CreateTopicsResponse, 7)
    assert not answer.topics[0].error_code
    return answer.topics[0].topic_id


class Member:
    def __init__(self, wire: Wire, group: str, *topics: str) -> None:
        self.wire = wire
        self.group = group
        self.topics = topics
        self.id = str(uuid.uuid4())
        self.epoch = 0
        self.assigned: dict[uuid.UUID, list[int]] = {}

    def beat(self, epoch: int | None = None, **changes: Any) -> int:
        """Send a heartbeat; the error."""
        if epoch is None:
            epoch = self.epoch
        if epoch == 0:
            changes = {"subscribed_topic_names": self.topics, **changes}
        changes = {"subscribed_topic_names": None, **changes}
        request = ShareGroupHeartbeatRequest(group_id=self.group, member_id=self.id, member_epoch=epoch, **changes)
        answer = self.wire.send(request, ShareGroupHeartbeatResponse, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.assigned = {
                    topic_partitions.topic_id: list(topic_partitions.partitions)
                    for topic_partitions in answer.assignment.topic_partitions
                }
        return answer.error_code

    def gets(self, topic_id: uuid.UUID, count: int) -> Callable[[], bool]:
        """Whether this many partitions are assigned to it after one more heartbeat."""
        return lambda: self.beat() == 0 and len(self.assigned.get(topic_id, [])) == count


def describe(wire: Wire, group: str) -> Any:
    (described,) = wire.send(ShareGroupDescribeRequest(group_ids=[group]), ShareGroupDescribeResponse, 1).groups
    return described


def offsets(wire: Wire, group: str) -> dict[tuple[str, int], tuple[int, int]]:
    """Start offset and lag by topic and partition."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    answer = wire.send(DescribeShareGroupOffsetsRequest(groups=[asked]), DescribeShareGroupOffsetsResponse, 1)
    return {
        (topic.topic_name, partition.partition_index): (partition.start_offset, partition.lag)
        for topic in answer.groups[0].topics
        for partition in topic.partitions
    }


def test_members_are_assigned_partitions_once_these_have_a_state(wire: Wire, name: str) -> None:
    topic_id = create(wire, name)
    first, other = Member(wire, name, name), Member(wire, name, name)
    assert first.beat() == 0
    assert first.assigned == {}
    wait_until(first.gets(topic_id, 2), "an assignment")
    assert offsets(wire, name) == {(name, 0): (-1, -1), (name, 1): (-1, -1)}
    wait_until(other.gets(topic_id, 1), "a share of it")
    wait_until(first.gets(topic_id, 1), "less")
    assert first.assigned != other.assigned
    described = describe(wire, name)
    assert (described.group_state, described.assignor_name, len(described.members)) == ("Stable", "simple", 2)
    assert sorted(p for m in described.members for t in m.assignment.topic_partitions for p in t.partitions) == [0, 1]
    third = Member(wire, name, name)
    wait_until(third.gets(topic_id, 1), "a partition that another has too")
    assert first.beat(-1) == other.beat(-1) == third.beat(-1) == 0
    assert describe(wire, name).group_state == "Empty"
    listed = wire.send(ListGroupsRequest(types_filter=["share"]), ListGroupsResponse, 5).groups
    assert [(g.group_type, g.protocol_type, g.group_state) for g in listed if g.group_id == name] == [
        ("share", "share", "Empty")
    ]


def test_heartbeats_are_checked(wire: Wire, name: str) -> None:
    create(wire, name)
    member = Member(wire, name, name)
    assert member.beat(3) == 69
    assert member.beat(-2) == 42
    assert member.beat(0, subscribed_topic_names=None) == 42
    assert member.beat(0, rack_id="") == 42
    assert member.beat() == 0
    assert member.beat(member.epoch + 1) == 110
    stranger = Member(wire, name, name)
    assert stranger.beat(5) == 25
    assert describe(wire, "nobody").error_code == 69


def test_a_silent_member_is_missed(wire: Wire, name: str) -> None:
    create(wire, name)
    keys = [AlterableConfig(name="share.session.timeout.ms", value="101")]
    resource = AlterConfigsResource(resource_type=32, resource_name=name, configs=keys)
    answer = wire.send(IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse, 1)
    assert not answer.responses[0].error_code
    member = Member(wire, name, name)
    assert member.beat() == 0
    wait_until(lambda: describe(wire, name).group_state == "Empty", "the end of its session")
    assert member.beat() == 25


def test_offsets_of_a_group_without_members_are_set_and_deleted(wire: Wire, name: str) -> None:
    topic_id = create(wire, name)
    member = Member(wire, name, name)
    wait_until(member.gets(topic_id, 2), "an assignment")

    def alter(to: int = 5) -> AlterShareGroupOffsetsResponse:
        partitions = [
            AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=to) for index in (0, 7)
        ]
        topics = [
            AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions) for topic in (name, "none")
        ]
        request = AlterShareGroupOffsetsRequest(group_id=name, topics=topics)
        return wire.send(request, AlterShareGroupOffsetsResponse, 0)

    assert alter().error_code == 68
    member.beat(-1)
    answer = alter()
    assert [[partition.error_code for partition in topic.partitions] for topic in answer.responses] == [[0, 3], [3, 3]]
    assert offsets(wire, name)[name, 0] == (5, -5)
    alter(-(2**63))  # its lag has no place in 64 bits
    assert offsets(wire, name)[name, 0] == (-(2**63), -(2**63))

    def delete(*topics: str) -> DeleteShareGroupOffsetsResponse:
        asked = [DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
        return wire.send(
            DeleteShareGroupOffsetsRequest(group_id=name, topics=asked), DeleteShareGroupOffsetsResponse, 0
        )

    codes = {partition.topic_name: partition.error_code for partition in delete(name, "none").responses}
    assert codes == {name: 0, "none": 3}
    assert offsets(wire, name) == {}
    assert delete(name).responses[0].error_code == 3
    gone = wire.send(DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse, 2)
    assert gone.results[0].error_code == 0
    assert describe(wire, name).error_code == 69


def test_a_deleted_topic_is_forgotten(wire: Wire, name: str, broker: BrokerThread) -> None:
    topic_id = create(wire, name)
    member = Member(wire, name, name)
    wait_until(member.gets(topic_id, 2), "an assignment")
    states = len(broker.server.broker.share.coordinator)
    wire.send(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]), DeleteTopicsResponse, 6)
    assert offsets(wire, name) == {}
    assert len(broker.server.broker.share.coordinator) == states - 2
    again = create(wire, name, 3)
    wait_until(member.gets(again, 3), "the topic of the same name")


def test_groups_outlive_the_broker(tmp_path: Path, name: str) -> None:
    broker_settings = settings(tmp_path, **SETTINGS)
    with BrokerThread(broker_settings) as broker, Wire(broker.port) as wire:
        topic_id = create(wire, name)
        member = Member(wire, name, name)
        wait_until(member.gets(topic_id, 2), "an assignment")
    with BrokerThread(broker_settings) as broker, Wire(broker.port) as wire:
        member.wire = wire
        assert member.beat() == 0
        assert [len(m.assignment.topic_partitions[0].partitions) for m in describe(wire, name).members] == [2]


def test_coordinators_of_share_partitions_are_found(wire: Wire) -> None:
    keys = ["g:AAAAAAAAAAAAAAAAAAAABw:0", "no key"]
    response = wire.send(FindCoordinatorRequest(key_type=2, coordinator_keys=keys), FindCoordinatorResponse, 6)
    assert [coordinator.error_code for coordinator in response.coordinators] == [0, 42]
    response = wire.send(FindCoordinatorRequest(key_type=2, coordinator_keys=keys[:1]), FindCoordinatorResponse, 5)
    assert response.coordinators[0].error_code == 42


TOPICS = [uuid.UUID(int=number) for number in range(1, 4)]


@given(
    subscriptions=st.lists(st.frozensets(st.sampled_from(TOPICS), min_size=1), min_size=1, max_size=6),
    sizes=st.lists(st.integers(0, 5), min_size=3, max_size=3),
    homogeneous=st.booleans(),
    rounds=st.integers(1, 3),
)
def test_the_simple_assignor_shares_out_evenly(
    subscriptions: list[frozenset[uuid.UUID]], sizes: list[int], homogeneous: bool, rounds: int
) -> None:
    if homogeneous:
        subscriptions = [subscriptions[0]] * len(subscriptions)
    partitions = dict(zip(TOPICS, sizes, strict=True))
    assigned: dict[str, Any] = {}
    for members in range(1, len(subscriptions) + 1):
        for _ in range(rounds):
            spec = GroupSpec(
                members={f"m{n}": MemberSpec(subscriptions[n], assigned.get(f"m{n}", {})) for n in range(members)},
                homogeneous=homogeneous,
                partitions=partitions,
            )
            assigned = assign_simply(spec)
        again = assign_simply(
            GroupSpec(
                members={f"m{n}": MemberSpec(subscriptions[n], assigned[f"m{n}"]) for n in range(members)},
                homogeneous=homogeneous,
                partitions=partitions,
            )
        )
        assert again == assigned, "who has a fair share keeps it"
        for n in range(members):
            assert set(assigned[f"m{n}"]) <= subscriptions[n]
        for topic, size in partitions.items():
            if any(topic in subscriptions[n] for n in range(members)):
                given_out = {p for assignment in assigned.values() for p in assignment.get(topic, ())}
                assert given_out == set(range(size)), "everything is read by somebody"
        if homogeneous:
            counts = [sum(map(len, assignment.values())) for assignment in assigned.values()]
            assert max(counts) - min(counts) <= 1
