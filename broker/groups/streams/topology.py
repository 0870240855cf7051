"""The topics and state stores of a Kafka Streams application, as its members describe them."""

from __future__ import annotations

from collections.abc import Iterable

from broker.groups.streams.records import StreamsGroupTopologyValue, Subtopology

__all__ = ["changelog_topics", "required_topics", "same", "source_topics", "subtopologies"]


def subtopologies(topology: StreamsGroupTopologyValue) -> list[Subtopology]:
    """The subtopologies, ordered by id."""
    return sorted(topology.subtopologies, key=lambda subtopology: subtopology.subtopology_id)


def same(streams_group_topology_value: StreamsGroupTopologyValue, other: StreamsGroupTopologyValue) -> bool:
    return streams_group_topology_value.epoch == other.epoch and subtopologies(
        streams_group_topology_value
    ) == subtopologies(other)


def source_topics(subtopology: Subtopology) -> list[str]:
    """The topics whose partitions its tasks read: external topics and the application's repartition topics."""
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def changelog_topics(subtopology: Subtopology) -> Iterable[str]:
    return (topic.name for topic in subtopology.state_changelog_topics)


def required_topics(topology: StreamsGroupTopologyValue) -> frozenset[str]:
    """All topics that must exist before tasks can be assigned."""
    return frozenset(
        name
        for subtopology in topology.subtopologies
        for name in (*source_topics(subtopology), *changelog_topics(subtopology))
    )
