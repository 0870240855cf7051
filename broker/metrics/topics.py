"""Bytes and messages in and out, by topic."""

from __future__ import annotations

from collections import defaultdict

__all__ = ["TopicCounts", "TopicMetrics"]


class TopicCounts:
    """Counts for one topic, since the start or its creation."""

    __slots__ = ("bytes_in", "bytes_out", "failed_fetches", "failed_produces", "messages_in")

    def __init__(self) -> None:
        self.bytes_in = self.bytes_out = self.messages_in = 0
        self.failed_produces = self.failed_fetches = 0


class TopicMetrics:
    """Counters by topic. Callers increment ``by_topic`` directly, because every request does."""

    __slots__ = ("by_topic", "deleted_topics")

    def __init__(self) -> None:
        self.by_topic: defaultdict[str, TopicCounts] = defaultdict(TopicCounts)
        self.deleted_topics = TopicCounts()
        """Counts for topics that do not exist (any more), so that totals never decrease."""

    def forget(self, topic: str) -> None:
        counts = self.by_topic.pop(topic, None)
        if counts is not None:
            self._add(self.deleted_topics, counts)

    def failed_produce(self, topic: str | None) -> None:
        """Only existing topics are counted by name: clients may send any number of others."""
        self._of(topic).failed_produces += 1

    def failed_fetch(self, topic: str | None) -> None:
        self._of(topic).failed_fetches += 1

    def _of(self, topic: str | None) -> TopicCounts:
        return self.deleted_topics if topic is None else self.by_topic[topic]

    def total(self) -> TopicCounts:
        total = TopicCounts()
        for counts in (self.deleted_topics, *self.by_topic.values()):
            self._add(total, counts)
        return total

    @staticmethod
    def _add(into: TopicCounts, counts: TopicCounts) -> None:
        for name in TopicCounts.__slots__:
            setattr(into, name, getattr(into, name) + getattr(counts, name))
