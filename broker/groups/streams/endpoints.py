"""The endpoints at which an application's state can be queried: interactive queries (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.groups.modern.topics import TopicCatalog
from broker.groups.streams.configured import ConfiguredSubtopology
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.tasks import Tasks
from broker.groups.streams.values import EndpointPartitions

__all__ = ["endpoints"]


def endpoints(group: StreamsGroup, member: StreamsMember, topics: TopicCatalog) -> list[EndpointPartitions]:
    """The endpoints of all members that have one, with ``member`` in its current state."""
    subtopologies = group.configured.subtopologies if group.configured is not None else None
    if subtopologies is None:
        return []
    others: Iterable[StreamsMember] = (
        streams_member for streams_member in group.members.values() if streams_member.member_id != member.member_id
    )
    return [
        EndpointPartitions(
            streams_member.endpoint,
            _partitions(streams_member.assigned.roles.active, subtopologies, topics),
            _partitions(streams_member.assigned.standby, subtopologies, topics),
        )
        for streams_member in (*others, member)
        if streams_member.endpoint is not None
    ]


def _partitions(
    tasks: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology], topics: TopicCatalog
) -> dict[str, list[int]]:
    """A task reads its partition of each source topic that has that many."""
    made: dict[str, list[int]] = {}
    for name, numbers in tasks.items():
        for source in subtopologies[name].sources if name in subtopologies else ():
            topic = topics.by_name(source)
            if topic is not None:
                made[source] = sorted(number for number in numbers if number < topic.partitions)
    return made
