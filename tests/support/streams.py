"""Topologies of Kafka Streams applications, as their members describe them."""

from __future__ import annotations

from broker.groups.streams.records import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicInfo,
)

__all__ = ["counting", "joining"]


def counting(source: str = "lines") -> StreamsGroupTopologyValue:
    """Words are counted: the first subtopology sends them to a topic of the application's own, the second keeps counts."""
    return StreamsGroupTopologyValue(
        epoch=0,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=[source], repartition_sink_topics=["app-repartition"]),
            Subtopology(
                subtopology_id="1",
                state_changelog_topics=[TopicInfo(name="app-changelog")],
                repartition_source_topics=[TopicInfo(name="app-repartition")],
            ),
        ],
    )


def joining(repartition_partitions: int = 0) -> StreamsGroupTopologyValue:
    """Two topics are joined, and a third one that the application partitions anew."""
    return StreamsGroupTopologyValue(
        epoch=0,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=["clicks"], repartition_sink_topics=["app-clicks"]),
            Subtopology(
                subtopology_id="1",
                source_topics=["users", "pages"],
                repartition_source_topics=[TopicInfo(name="app-clicks", partitions=repartition_partitions)],
                state_changelog_topics=[TopicInfo(name="app-store")],
                copartition_groups=[CopartitionGroup(source_topics=[0, 1], repartition_source_topics=[0])],
            ),
        ],
    )
