"""The broker's topics as its group coordinator sees them."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from broker.groups import GroupTopic
from broker.metadata.image import ClusterMetadata, Topic

__all__ = ["MetadataTopics"]


class MetadataTopics:
    """A ``TopicCatalog`` over the cluster's metadata. ``rack`` is the broker's."""

    def __init__(self, metadata: ClusterMetadata, rack: str | None) -> None:
        self._metadata = metadata
        self._racks = (rack,) if rack is not None else ()

    @property
    def version(self) -> int:
        return self._metadata.version

    @property
    def created_version(self) -> int:
        return self._metadata.topics_created_version

    def by_name(self, name: str) -> GroupTopic | None:
        return self._seen(self._metadata.topics.get(name))

    def by_id(self, topic_id: UUID) -> GroupTopic | None:
        name = self._metadata.topic_name(topic_id)
        return None if name is None else self.by_name(name)

    def names(self) -> Iterable[str]:
        return self._metadata.topics

    def _seen(self, topic: Topic | None) -> GroupTopic | None:
        return None if topic is None else GroupTopic(topic.id, topic.name, topic.partitions, self._racks)
