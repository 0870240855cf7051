"""Topics for clients: create, look up, grow, delete, with all consequences."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Final

from broker.config import BrokerConfig
from broker.coordinator.journal import OFFSETS_TOPIC
from broker.errors import (
    InvalidConfiguration,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from broker.groups import GroupCoordinator
from broker.log.directory import LogDirectory
from broker.metadata.image import METADATA_TOPIC, ClusterMetadata, NewTopic, Topic
from broker.share_coordinator.config import SHARE_STATE_TOPIC
from broker.steps import Step, run_through
from broker.storage.partitions import INTERNAL_TOPICS, Partitions
from broker.transactions.records import TRANSACTIONS_TOPIC

__all__ = ["DEFAULT", "Topics"]

DEFAULT: Final = -1
"""The number of partitions or replicas that selects the broker's default (KIP-464)."""


class Topics:
    """The topics of one broker, used on its event loop. Changes block until they are on disk."""

    def __init__(self, config: BrokerConfig, metadata: ClusterMetadata, logs: LogDirectory) -> None:
        self._config = config
        self._metadata = metadata
        self._logs = logs

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return self._metadata.topic_name(topic_id)

    def id_of(self, name: str) -> uuid.UUID | None:
        topic = self._metadata.topics.get(name)
        return None if topic is None else topic.id

    def all(self) -> list[Topic]:
        """All topics by name."""
        return sorted(self._metadata.topics.values(), key=lambda topic: topic.name)

    def find(self, topic: str | uuid.UUID | None) -> Topic:
        """Raises UnknownTopicOrPartition or UnknownTopicId."""
        if isinstance(topic, uuid.UUID):
            name = self.name_of(topic)
            if name is None:
                raise UnknownTopicId(f"There is no topic with the id {topic}.")
            return self._metadata.topic(name)
        return self._metadata.topic(topic or "")

    def find_named(self, name: str) -> Topic:
        """Like ``find``, but an invalid name is InvalidTopic."""
        if name not in self._metadata.topics:
            self._metadata.check_name(name)
        return self._metadata.topic(name)

    def find_or_create(self, name: str, *, allowed: bool) -> Topic:
        """A topic by name. A missing one is created if both the client and the broker allow it."""
        if name in self._metadata.topics:
            return self._metadata.topics[name]
        if name == OFFSETS_TOPIC:
            return self.offsets_topic()
        if name == TRANSACTIONS_TOPIC:
            return self.transactions_topic()
        if name == SHARE_STATE_TOPIC:
            return self.share_state_topic()
        if not (allowed and self._config.auto_create_topics_enable) or name in INTERNAL_TOPICS:
            # Topic settings are not checked, because a request may name a hundred thousand topics.
            self._metadata.check_name(name)
            raise UnknownTopicOrPartition(f"There is no topic {name!r}.")
        self._metadata.check_new_topic(name)
        return self.create(name)

    def offsets_topic(self) -> Topic:
        """``__consumer_offsets``, created on first use."""
        topic = self._metadata.topics.get(OFFSETS_TOPIC)
        if topic is not None:
            return topic
        return self._metadata.create_topic(
            OFFSETS_TOPIC,
            partitions=self._config.offsets_topic_partitions,
            configs=self._config.offsets_topic_configs(),
        )

    def transactions_topic(self) -> Topic:
        """``__transaction_state``, created on first use."""
        topic = self._metadata.topics.get(TRANSACTIONS_TOPIC)
        if topic is not None:
            return topic
        return self._metadata.create_topic(
            TRANSACTIONS_TOPIC,
            partitions=self._config.transaction_topic_partitions,
            configs=self._config.transaction_topic_configs(),
        )

    def share_state_topic(self) -> Topic:
        """``__share_group_state``, created on first use."""
        topic = self._metadata.topics.get(SHARE_STATE_TOPIC)
        if topic is not None:
            return topic
        return self._metadata.create_topic(
            SHARE_STATE_TOPIC,
            partitions=self._config.share_state_partitions,
            configs=self._config.share_state_topic_configs(),
        )

    def create(
        self,
        name: str,
        *,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        configs: Mapping[str, str | None] | None = None,
    ) -> Topic:
        """Create a topic at once; the event loop waits for it."""
        new = self.new(name, partitions=partitions, replication_factor=replication_factor, configs=configs)
        failed = run_through(self._metadata.create_topics([new]))
        if failed:
            raise failed[name]
        return self._metadata.topics[name]

    def new(
        self,
        name: str,
        *,
        partitions: int = DEFAULT,
        replication_factor: int = DEFAULT,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
    ) -> NewTopic:
        """A topic that can be created. An ``assignment``, if set, determines the partitions."""
        if name == METADATA_TOPIC:
            raise InvalidRequest(f"{name} is the broker's own topic and cannot be created.")
        if assignment:
            if partitions != DEFAULT or replication_factor != DEFAULT:
                raise InvalidRequest(
                    f"Topic {name!r} has a replica assignment, so partitions and replication factor must both be -1."
                )
            partitions = self._assigned(assignment)
        count = self._config.num_partitions if partitions == DEFAULT else partitions
        without_value = next((key for key, value in (configs or {}).items() if value is None), None)
        if without_value is not None:
            raise InvalidConfiguration(f"Topic {name!r}: {without_value} has no value.")
        settings = {key: value for key, value in (configs or {}).items() if value is not None}
        self._metadata.check_new_topic(name, partitions=count, replication_factor=replication_factor, configs=settings)
        self._logs.choose_disks(1)
        return NewTopic(name, count, settings)

    def _assigned(self, assignment: Mapping[int, Sequence[int]]) -> int:
        if sorted(assignment) != list(range(len(assignment))):
            raise InvalidReplicaAssignment(
                f"Partitions must be numbered from 0 without gaps, not {sorted(assignment)}."
            )
        self._check_replicas(assignment.values())
        return len(assignment)

    def _check_replicas(self, replicas: Iterable[Sequence[int]]) -> None:
        for brokers in replicas:
            if list(brokers) != [self._metadata.node_id]:
                raise InvalidReplicaAssignment(
                    f"Replicas {list(brokers)} cannot be: the only broker is {self._metadata.node_id}."
                )

    def growth(self, name: str, count: int, *, assignment: Sequence[Sequence[int]] | None = None) -> int:
        """How many partitions a topic gets that has ``count`` then; raises if it can't grow to that."""
        topic = self._metadata.topic(name)
        if count <= topic.partitions:
            raise InvalidPartitions(f"Topic {name!r} has {topic.partitions} partitions; {count} would not be more.")
        if assignment is not None:
            if len(assignment) != count - topic.partitions:
                raise InvalidReplicaAssignment(
                    f"{len(assignment)} replica assignments were given for {count - topic.partitions} new partitions."
                )
            self._check_replicas(assignment)
        self._logs.choose_disks(1)
        return count - topic.partitions

    def require_deletable(self, topic: Topic) -> None:
        """Raises TopicDeletionDisabled, or InvalidTopic for a topic of the broker's own."""
        if not self._config.delete_topic_enable:
            raise TopicDeletionDisabled
        if topic.name in INTERNAL_TOPICS:
            raise InvalidTopic(f"Topic {topic.name} is the broker's own and cannot be deleted.")

    def delete(self, topics: Sequence[Topic], partitions: Partitions, groups: GroupCoordinator) -> Generator[Step]:
        """Delete topics and groups' offsets for them, and wake fetches that wait for them."""
        waiting = [log for topic in topics for log in self._metadata.logs(topic.name)]
        for _ in self._metadata.delete_topics(topics):
            while waiting:
                partitions.changed(waiting.pop())
            yield None
        for topic in topics:
            groups.forget_topic(topic.name)
            yield None

    def delete_records(self, name: str, partition: int, before: int, partitions: Partitions) -> int:
        """Delete a partition's records below an offset (-1: all).

        Returns the new start. The caller checkpoints once for all partitions.
        """
        log = partitions.find(name, partition)
        if log.topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"Records of {log.topic} cannot be deleted: it is the broker's own.")
        if not log.config.deletes:
            raise PolicyViolation(f"Topic {name!r} has cleanup.policy=compact only: its records cannot be deleted.")
        start = log.delete_records(before)
        partitions.changed(log)
        return start
