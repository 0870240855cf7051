"""Configures a topology for the existing topics: its number of tasks, and which topics are missing or don't fit.

The existing topics determine the partitions of internal topics: a repartition topic has as many as the largest source
of the subtopology that writes it, joined topics have equally many, and changelogs have one per task (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from broker.errors import StreamsInvalidTopology
from broker.groups.modern.topics import TopicCatalog
from broker.groups.streams.records import StreamsGroupTopologyValue, Subtopology, TopicInfo
from broker.groups.streams.topology import required_topics, source_topics, subtopologies

__all__ = ["ConfiguredSubtopology", "ConfiguredTopology", "InternalTopic", "Status", "StatusCode", "configure"]

_MOST_NAMED = 3


class StatusCode(IntEnum):
    """Why a member gets no tasks or has to stop (``StreamsGroupHeartbeatResponse.Status``)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(frozen=True, slots=True)
class Status:
    code: StatusCode
    detail: str


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """An internal topic of the application. ``replication_factor`` is None for the broker's default."""

    name: str
    partitions: int
    replication_factor: int | None
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    tasks: int
    sources: tuple[str, ...]
    """All topics that its tasks read."""
    repartition_sources: Mapping[str, InternalTopic]
    changelogs: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """``problem`` is None if tasks can be assigned. ``missing`` are internal topics that must be created first."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None = None
    missing: Mapping[str, InternalTopic] = field(default_factory=dict)
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _DoesNotFit(Exception):
    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.status = Status(code, detail)


def configure(topology: StreamsGroupTopologyValue, topics: TopicCatalog) -> ConfiguredTopology:
    """Raises StreamsInvalidTopology for a topology that no topics can fit."""
    try:
        _check_sources(topology, topics)
        counts = _Counts(topology, topics)
        made = {subtopology.subtopology_id: _configured(subtopology, counts) for subtopology in subtopologies(topology)}
        missing = _missing(topology, made, topics)
    except _DoesNotFit as problem:
        return ConfiguredTopology(topology.epoch, problem=problem.status)
    if not missing:
        return ConfiguredTopology(topology.epoch, made)
    status = Status(StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_named(sorted(missing))}")
    return ConfiguredTopology(topology.epoch, made, missing, status)


def _check_sources(topology: StreamsGroupTopologyValue, topics: TopicCatalog) -> None:
    sources = {name for subtopology in topology.subtopologies for name in subtopology.source_topics}
    missing = sorted(name for name in sources if topics.by_name(name) is None)
    if missing:
        raise _DoesNotFit(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_named(missing)} are missing.")


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} additional topics" if rest > 0 else "")


class _Counts:
    """The number of partitions that each topic has, or will have."""

    def __init__(self, topology: StreamsGroupTopologyValue, topics: TopicCatalog) -> None:
        self._topics = topics
        self._every = subtopologies(topology)
        self._decided: dict[str, int] = {}
        infos = [info for subtopology in self._every for info in subtopology.repartition_source_topics]
        self._fixed = {info.name for info in infos if info.partitions}
        self._flexible = {info.name for info in infos if not info.partitions}
        self._decided |= self._repartitions(infos)
        for subtopology in self._every:
            for group in subtopology.copartition_groups:
                names = {subtopology.source_topics[index] for index in group.source_topics}
                names |= {
                    subtopology.repartition_source_topics[index].name for index in group.repartition_source_topics
                }
                self._copartition(names)
        for subtopology in self._every:
            if not source_topics(subtopology):
                raise StreamsInvalidTopology(f"No source topics found for subtopology {subtopology.subtopology_id}.")
            most = max(self.of(name) for name in source_topics(subtopology))
            self._decided |= {info.name: most for info in subtopology.state_changelog_topics}

    def of(self, name: str) -> int:
        """The partitions of a topic; if it does not exist, the decided number."""
        topic = self._topics.by_name(name)
        if topic is not None:
            return topic.partitions
        if name not in self._decided:
            raise StreamsInvalidTopology(f"The number of partitions of topic {name} follows from nothing.")
        return self._decided[name]

    def decided(self, info: TopicInfo) -> int:
        return info.partitions or self._decided[info.name]

    def _repartitions(self, infos: Iterable[TopicInfo]) -> dict[str, int]:
        counts = {info.name: info.partitions for info in infos if info.partitions}
        while True:
            open_sinks = [
                (subtopology, sink)
                for subtopology in self._every
                for sink in subtopology.repartition_sink_topics
                if sink not in counts
            ]
            if not open_sinks:
                break
            before = len(counts)
            for subtopology, sink in open_sinks:
                sources = [counts[info.name] for info in subtopology.repartition_source_topics if info.name in counts]
                topics = (self._topics.by_name(name) for name in subtopology.source_topics)
                sources += (topic.partitions for topic in topics if topic is not None)
                if sources:
                    counts[sink] = max(sources)
            if len(counts) == before:
                raise StreamsInvalidTopology(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                    "topology that cannot be resolved."
                )
        unused = next((info.name for info in infos if info.name not in counts), None)
        if unused is not None:
            raise StreamsInvalidTopology(
                f"Failed to compute number of partitions for all repartition topics, because {unused} is never used as a "
                "sink topic."
            )
        return counts

    def _copartition(self, names: set[str]) -> None:
        """Joined topics need equal numbers of partitions; internal topics are created that way."""
        if not names:
            return
        counts = {name: self.of(name) for name in names}
        repartitions = {name: count for name, count in counts.items() if name in self._fixed | self._flexible}
        external = {name: count for name, count in counts.items() if name not in repartitions}
        if external:
            chosen = self._equal(external)
        elif self._fixed:
            chosen = self._equal({name: self.of(name) for name in self._fixed}, shown=repartitions)
        else:
            chosen = max(repartitions.values())
        for name, count in repartitions.items():
            self._decided[name] = chosen
            if name in self._fixed and count != chosen:
                raise _DoesNotFit(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of partitions "
                    f"[{chosen}] of the source topic.",
                )

    def _equal(self, counts: Mapping[str, int], shown: Mapping[str, int] | None = None) -> int:
        if len(set(counts.values())) > 1:
            pairs = ", ".join(f"{name}={count}" for name, count in sorted((shown or counts).items()))
            raise _DoesNotFit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Following topics do not have the same number of partitions: [{{{pairs}}}]",
            )
        return next(iter(counts.values()))


def _configured(subtopology: Subtopology, counts: _Counts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        max(counts.of(name) for name in source_topics(subtopology)),
        tuple(dict.fromkeys(source_topics(subtopology))),
        {info.name: _internal(info, counts) for info in subtopology.repartition_source_topics},
        {info.name: _internal(info, counts) for info in subtopology.state_changelog_topics},
    )


def _internal(info: TopicInfo, counts: _Counts) -> InternalTopic:
    configs = {config.key: config.value for config in info.topic_configs}
    return InternalTopic(info.name, counts.decided(info), info.replication_factor or None, configs)


def _missing(
    topology: StreamsGroupTopologyValue, made: Mapping[str, ConfiguredSubtopology], topics: TopicCatalog
) -> dict[str, InternalTopic]:
    missing = {
        topic.name: topic
        for subtopology in made.values()
        for topic in (*subtopology.repartition_sources.values(), *subtopology.changelogs.values())
    }
    for name in sorted(required_topics(topology)):
        group_topic = topics.by_name(name)
        expected = missing.pop(name, None) if group_topic is not None else None
        if group_topic is not None and expected is not None and group_topic.partitions != expected.partitions:
            raise _DoesNotFit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: expected {expected.partitions}, found "
                f"{group_topic.partitions}",
            )
    return missing
