"""Topologies and existing topics: the number of partitions of internal topics, and topologies that do not fit."""

from __future__ import annotations

import pytest

from broker.errors import StreamsInvalidTopology
from broker.groups.streams.configured import StatusCode, configure
from broker.groups.streams.records import StreamsGroupTopologyValue, Subtopology, TopicInfo
from tests.support.groups import ListTopics
from tests.support.streams import counting, joining


def missing(topology: StreamsGroupTopologyValue, topics: ListTopics) -> dict[str, int]:
    made = configure(topology, topics)
    assert made.problem is not None
    assert made.problem.code is StatusCode.MISSING_INTERNAL_TOPICS
    return {topic.name: topic.partitions for topic in made.missing.values()}


def problem(topology: StreamsGroupTopologyValue, topics: ListTopics) -> tuple[StatusCode, str]:
    made = configure(topology, topics)
    assert made.problem is not None
    return made.problem.code, made.problem.detail


def test_internal_topics_have_as_many_partitions_as_their_sources() -> None:
    assert missing(counting(), ListTopics(lines=5)) == {"app-repartition": 5, "app-changelog": 5}


def test_a_topology_is_ready_when_all_topics_are_there() -> None:
    topics = ListTopics(lines=2)
    topics.put("app-repartition", 2)
    topics.put("app-changelog", 2)
    made = configure(counting(), topics)
    assert made.is_ready
    assert made.subtopologies is not None
    assert {name: (subtopology.tasks, subtopology.is_stateful) for name, subtopology in made.subtopologies.items()} == {
        "0": (2, False), "1": (2, True),
    }  # fmt: skip


def test_missing_source_topics_are_named() -> None:
    assert problem(counting(), ListTopics()) == (StatusCode.MISSING_SOURCE_TOPICS, "Source topics lines are missing.")


def test_an_internal_topic_of_another_size_does_not_fit() -> None:
    topics = ListTopics(lines=2)
    topics.put("app-changelog", 3)
    code, detail = problem(counting(), topics)
    assert code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert detail == "Existing topic app-changelog has different number of partitions: expected 2, found 3"


def test_joined_topics_get_the_same_number_of_partitions() -> None:
    assert missing(joining(), ListTopics(clicks=7, users=3, pages=3)) == {"app-clicks": 3, "app-store": 3}
    code, detail = problem(joining(), ListTopics(clicks=7, users=3, pages=4))
    assert code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert detail == "Following topics do not have the same number of partitions: [{pages=4, users=3}]"


def test_a_number_that_the_application_gives_must_fit() -> None:
    code, detail = problem(joining(5), ListTopics(clicks=7, users=3, pages=3))
    assert code is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert "Number of partitions [5] of repartition topic [app-clicks] doesn't match number of partitions [3]" in detail


def test_a_loop_of_topics_of_its_own_is_not_a_topology() -> None:
    loop = StreamsGroupTopologyValue(
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                repartition_source_topics=[TopicInfo(name="app-loop")],
                repartition_sink_topics=["app-loop"],
            )
        ]
    )
    with pytest.raises(StreamsInvalidTopology, match="loops"):
        configure(loop, ListTopics())
