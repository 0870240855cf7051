"""Manages the mirrored topics: finds them in the source; creates, extends and configures them in the target and copies
their ACLs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from connect.api import TidegateError, TopicPartition, get_logger
from connectors.mirror.client import Calls
from connectors.mirror.config import MirrorSourceConfig

if TYPE_CHECKING:
    from broker.client import AclBinding, Admin, ConfigEntry

__all__ = ["MirroredTopics"]

logger = get_logger(__name__)

_DEFAULT: Final = "DEFAULT_CONFIG"
_OF_THE_TOPIC: Final = "DYNAMIC_TOPIC_CONFIG"
_OF_THE_BROKER: Final = "STATIC_BROKER_CONFIG"


class MirroredTopics:
    """For use from one thread; the clients are passed with each call."""

    def __init__(self, config: MirrorSourceConfig, calls: Calls) -> None:
        self._config, self._policy, self._calls = config, config.policy, calls
        self._told_no_authorizer = False

    def is_mirrored(self, topic: str) -> bool:
        """Whether a topic of the source is mirrored."""
        heartbeats = self._config.mirrors_heartbeats and self._policy.is_heartbeats(topic)
        mirrored = self._config.takes_topic(topic) or heartbeats
        return mirrored and not self._policy.is_internal(topic) and not self._comes_from_target(topic)

    def _comes_from_target(self, topic: str) -> bool:
        while (source := self._policy.source_of(topic)) is not None:
            if source == self._config.target:
                return True
            upstream = self._policy.upstream_topic(topic)
            if upstream is None or upstream == topic:
                return False
            topic = upstream
        return False

    def remote(self, topic: str) -> str:
        return self._policy.remote_topic(self._config.source, topic)

    def in_source(self, source: Admin) -> list[TopicPartition]:
        """The partitions to mirror, sorted."""
        return self._partitions(source, filter(self.is_mirrored, self._calls.run(source.list_topics())))

    def _in_target(self, target: Admin) -> Counter[str]:
        """The number of partitions of each topic that was mirrored from the source."""
        topics = [
            topic
            for topic in self._calls.run(target.list_topics())
            if self._policy.source_of(topic) == self._config.source and topic != self._config.checkpoints_topic
        ]
        return Counter(partition.topic for partition in self._partitions(target, topics))

    def _partitions(self, admin: Admin, topics: Iterable[str]) -> list[TopicPartition]:
        names = list(topics)
        described = self._calls.run(admin.describe_topics(names)) if names else {}
        return sorted(
            TopicPartition(name, part.partition) for name, topic in described.items() for part in topic.partitions
        )

    def make(self, source: Admin, target: Admin, partitions: Sequence[TopicPartition]) -> bool:
        """Create topics and partitions that the target lacks.

        Returns whether any were missing. Errors of the target are logged.
        """
        from broker.client.errors import InvalidPartitions

        there = self._in_target(target)
        counts = Counter(partition.topic for partition in partitions)
        missing = [topic for topic in counts if self.remote(topic) not in there]
        grown = [topic for topic in counts if 0 < there[self.remote(topic)] < counts[topic]]
        for topic in missing:
            self._create(source, target, topic, counts[topic])
        for topic in grown:
            name = self.remote(topic)
            try:
                with suppress(InvalidPartitions):  # another task was faster
                    self._calls.run(target.create_partitions(name, counts[topic]))
                    logger.info("partitions added", topic=name, partitions=counts[topic])
            except TidegateError as error:
                logger.warning("partitions could not be added", topic=name, error=str(error))
        return bool(missing or grown)

    def _create(self, source: Admin, target: Admin, topic: str, partitions: int) -> None:
        from broker.client import NewTopic

        name = self.remote(topic)
        configs = {
            entry.name: entry.value or ""
            for entry in self._entries(source, topic)
            if entry.source != _DEFAULT or self._config.defaults_from == "source"
        }
        new = NewTopic(name, partitions, self._config.replication_factor, configs)
        try:
            self._calls.run(target.create_topics([new], exist_ok=True))
            logger.info("remote topic created", topic=name, partitions=partitions)
        except TidegateError as error:
            logger.warning("remote topic could not be created", topic=name, error=str(error))

    def _entries(self, source: Admin, topic: str) -> list[ConfigEntry]:
        """The configuration entries of a source topic that are copied to the target."""
        return [
            entry
            for entry in self._calls.run(source.describe_configs(topic)).values()
            if not (entry.read_only or entry.sensitive)
            and entry.source != _OF_THE_BROKER
            and self._config.takes_property(entry.name)
        ]

    def sync_configs(self, source: Admin, target: Admin, topics: Iterable[str]) -> None:
        """Copy these topics' configurations to the remote topics; only differences are changed."""
        there = set(self._calls.run(target.list_topics()))
        for topic in topics:
            name = self.remote(topic)
            if name not in there:
                continue
            now = self._calls.run(target.describe_configs(name))
            changes: dict[str, str | None] = {}
            for entry in self._entries(source, topic):
                current = now[entry.name].value if _is_own(now.get(entry.name)) else None
                default = entry.source == _DEFAULT and self._config.defaults_from != "source"
                value = None if default else entry.value
                if value != current:
                    changes[entry.name] = value
            if changes:
                try:
                    self._calls.run(target.alter_configs(name, changes))
                    logger.info("remote topic configured", topic=name, keys=sorted(changes))
                except TidegateError as error:
                    logger.warning("remote topic could not be configured", topic=name, error=str(error))

    def sync_acls(self, source: Admin, target: Admin) -> None:
        """Copy ACLs: principals that may read or describe a source topic may do so with the remote one; only Mirror may
        write to that.
        """
        from broker.client import AclFilter, ResourceType
        from broker.client.errors import SecurityDisabled

        try:
            rules = self._calls.run(source.describe_acls(AclFilter(ResourceType.TOPIC)))
        except SecurityDisabled:
            if not self._told_no_authorizer:
                logger.info(
                    "the source cluster has no authorizer, so there are no ACLs to mirror",
                    key="sync.topic.acls.enabled",
                )
            self._told_no_authorizer = True
            return
        bindings = [made for rule in rules if (made := self._remote_rule(rule)) is not None]
        for binding, error in self._calls.run(target.create_acls(bindings)) if bindings else ():
            logger.warning("ACL could not be mirrored", topic=binding.resource_name, error=str(error))

    def _remote_rule(self, rule: AclBinding) -> AclBinding | None:
        from broker.client import Operation, PatternType, Permission

        allows = rule.permission == Permission.ALLOW
        if rule.pattern_type != PatternType.LITERAL or (allows and rule.operation == Operation.WRITE):
            return None
        if not self.is_mirrored(rule.resource_name):
            return None
        operation = Operation.READ if allows and rule.operation == Operation.ALL else rule.operation
        return replace(rule, resource_name=self.remote(rule.resource_name), operation=operation)


def _is_own(entry: ConfigEntry | None) -> bool:
    return entry is not None and entry.source == _OF_THE_TOPIC
