"""Consumer groups as an administrator sees them."""

from __future__ import annotations

from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember, partitions_of
from broker.groups.consumer.values import DescribedConsumer, DescribedConsumerGroup
from broker.groups.modern.group import NO_PARTITIONS
from broker.groups.modern.member import Partitions
from broker.groups.modern.topics import TopicCatalog

__all__ = ["described"]


def described(group: ConsumerGroup, topics: TopicCatalog, default_assignor: str) -> DescribedConsumerGroup:
    members = tuple(_member(group, member) for member in group.members.values())
    ids = {
        topic_id
        for described_consumer in members
        for topic_id in (*described_consumer.assigned, *described_consumer.target)
    }
    result = (topics.by_id(topic_id) for topic_id in ids)
    return DescribedConsumerGroup(
        group_id=group.group_id,
        state=group.state_name,
        epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.preferred_assignor(group.members.values()) or default_assignor,
        members=members,
        topic_names={topic.id: topic.name for topic in result if topic is not None},
    )


def _member(group: ConsumerGroup, member: ConsumerMember) -> DescribedConsumer:
    assigned, revoking = partitions_of(member.assigned), partitions_of(member.revoking)
    both: Partitions = {
        topic_id: assigned.get(topic_id, frozenset()) | revoking.get(topic_id, frozenset())
        for topic_id in assigned.keys() | revoking.keys()
    }
    return DescribedConsumer(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=member.topics,
        regex=member.regex,
        assigned=both,
        target=group.target.get(member.member_id, NO_PARTITIONS),
        is_classic=member.classic is not None,
    )
