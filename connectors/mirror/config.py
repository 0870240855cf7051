"""Keys of the Mirror connectors, with the names, defaults and descriptions of the original (Kafka 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from connect.api import (
    Check,
    JavaRegex,
    KeyType,
    Problem,
    all_of,
    config,
    distinct,
    family,
    key,
    non_empty,
    one_of,
    valid_regexes,
)
from connectors.mirror.policies import POLICIES, DefaultReplicationPolicy

__all__ = [
    "MirrorCheckpointConfig",
    "MirrorConfig",
    "MirrorHeartbeatConfig",
    "MirrorSourceConfig",
    "OffsetSyncsConfig",
    "matcher",
]

_MIRROR: Final = "org.apache.kafka.connect.mirror."


def _class_of(*names: str) -> Check:
    """Accepts only the original's classes, as no others exist here."""

    def check(value: str) -> str | None:
        return None if value in names else f"Class {value} could not be found."

    check.valid = ", ".join(names)  # type: ignore[attr-defined]
    return check


def _own_class(name: str, *, doc: str, default: str) -> Any:
    return key(name, default=default, type=KeyType.CLASS, check=_class_of(default), importance="low", doc=doc)


def _every(name: str, *, default: int, doc: str) -> Any:
    return key(name, default=default, importance="low", doc=doc)


def matcher(include: Sequence[str], exclude: Sequence[str]) -> Callable[[str], bool]:
    """A function that tells whether a whole name matches one of ``include`` and none of ``exclude``; an empty
    expression matches no name.
    """
    included, excluded = ([JavaRegex("|".join(patterns))] if patterns else [] for patterns in (include, exclude))
    return lambda name: (
        any(pattern.fullmatch(name) for pattern in included)
        and not any(pattern.fullmatch(name) for pattern in excluded)
    )


@config
class MirrorConfig:
    """The two clusters and the naming of topics: keys of all three connectors."""

    enabled: bool = key("enabled", default=True, importance="low", doc="Whether to replicate source->target.")
    source: str = key("source.cluster.alias", importance="high", doc="Alias of source cluster")
    target: str = key(
        "target.cluster.alias",
        default="target",
        importance="high",
        doc="Alias of target cluster. Used in metrics reporting.",
    )
    source_servers: list[str] | None = key(
        "source.cluster.bootstrap.servers",
        default=None,
        importance="high",
        doc="Where the source cluster is, host:port.",
    )
    target_servers: list[str] | None = key(
        "target.cluster.bootstrap.servers",
        default=None,
        importance="high",
        doc="Where the target cluster is, host:port.",
    )
    admin_timeout_ms: int = key(
        "admin.timeout.ms",
        default=60_000,
        importance="low",
        doc="Timeout for administrative tasks, e.g. detecting new topics.",
    )
    policy_class: str = key(
        "replication.policy.class",
        default=f"{_MIRROR}DefaultReplicationPolicy",
        type=KeyType.CLASS,
        check=_class_of(*POLICIES),
        importance="low",
        doc="Class which defines the remote topic naming convention.",
    )
    separator: str = key(
        "replication.policy.separator",
        default=".",
        importance="low",
        doc="Separator used in remote topic naming convention. With an empty one, and source.cluster.alias empty too, topics keep their "
        "names; nothing then shows a cycle.",
    )
    internal_separator: bool = key(
        "replication.policy.internal.topic.separator.enabled",
        default=True,
        importance="low",
        doc="Whether replication.policy.separator stands in the names of the topics of checkpoints and offset syncs too; "
        "before Kafka 3.1 they always had a dot.",
    )
    forwarding_admin: str = _own_class(
        "forwarding.admin.class",
        default="org.apache.kafka.clients.admin.ForwardingAdmin",
        doc="Class which extends ForwardingAdmin to define custom cluster resource management.",
    )
    source_cluster: dict[str, str] = family(
        "source.cluster.", doc="How to reach the source cluster: bootstrap.servers, security.protocol, ssl.*, sasl.*"
    )
    target_cluster: dict[str, str] = family(
        "target.cluster.", doc="How to reach the target cluster: bootstrap.servers, security.protocol, ssl.*, sasl.*"
    )
    protocol: str = key(
        "security.protocol",
        default="PLAINTEXT",
        check=one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", ignore_case=True),
        doc="Accepted, as by the original: a cluster is reached by source.cluster.security.protocol and the like.",
    )
    _logins: dict[str, str] = family(
        "sasl.", doc="Accepted, as by the original: source.cluster.sasl.* and the like are used."
    )
    _encryption: dict[str, str] = family(
        "ssl.", doc="Accepted, as by the original: source.cluster.ssl.* and the like are used."
    )
    metric_reporters: list[str] = key(
        "metric.reporters",
        default=["org.apache.kafka.common.metrics.JmxReporter"],
        check=distinct,
        importance="low",
        doc="Accepted: metrics are the worker's.",
    )
    config_providers: list[str] = key(
        "config.providers", default=[], check=distinct, importance="low", doc="Accepted: the worker's are used."
    )
    consumers: dict[str, str] = family("consumer.", doc="Settings of the consumers of both clusters.")
    producers: dict[str, str] = family("producer.", doc="Settings of the producers of both clusters.")
    admins: dict[str, str] = family("admin.", doc="Settings of the admin clients of both clusters.")
    source_consumers: dict[str, str] = family("source.consumer.", doc="Settings of the source cluster's consumers.")
    source_producers: dict[str, str] = family("source.producer.", doc="Settings of the source cluster's producers.")
    source_admins: dict[str, str] = family("source.admin.", doc="Settings of the source cluster's admin clients.")
    target_consumers: dict[str, str] = family("target.consumer.", doc="Settings of the target cluster's consumers.")
    target_producers: dict[str, str] = family("target.producer.", doc="Settings of the target cluster's producers.")
    target_admins: dict[str, str] = family("target.admin.", doc="Settings of the target cluster's admin clients.")

    @cached_property
    def policy(self) -> DefaultReplicationPolicy:
        internal = self.separator if self.internal_separator else "."
        return POLICIES[self.policy_class](separator=self.separator, internal_separator=internal, source=self.source)

    def label(self, name: str) -> str:
        """The name of clients and threads of a connector or a task, as in the original."""
        return f"{self.source}->{self.target}|{name}"

    def problems(self) -> Iterable[Problem]:
        for name, servers in self._needed_servers:
            if not servers:
                yield Problem(name, f'Missing required configuration "{name}" which has no default value.')

    @property
    def _needed_servers(self) -> Iterable[tuple[str, list[str] | None]]:
        yield "source.cluster.bootstrap.servers", self.source_servers
        yield "target.cluster.bootstrap.servers", self.target_servers


@config
class OffsetSyncsConfig(MirrorConfig):
    """Keys that the source and the checkpoint connector share."""

    topic_filter: str = _own_class(
        "topic.filter.class",
        default=f"{_MIRROR}DefaultTopicFilter",
        doc="TopicFilter to use. Selects topics to replicate.",
    )
    topics: list[str] = key(
        "topics",
        default=[".*"],
        check=all_of(distinct, valid_regexes),
        importance="high",
        doc="Topics to replicate. Supports comma-separated topic names and regexes.",
    )
    topics_exclude: list[str] = key(
        "topics.exclude",
        default=[r"mm2.*\.internal", r".*\.replica", "__.*"],
        check=all_of(distinct, valid_regexes),
        importance="high",
        doc="Excluded topics. Supports comma-separated topic names and regexes. Excludes take precedence over includes.",
    )
    metric_names: list[str] = key(
        "metric.names.formats",
        default=["legacy"],
        check=all_of(non_empty, distinct, one_of("legacy", "new")),
        importance="low",
        doc="Accepted: metrics are the worker's.",
    )
    poll_timeout_ms: int = key(
        "consumer.poll.timeout.ms", default=1000, importance="low", doc="Timeout when polling source cluster."
    )
    syncs_location: str = key(
        "offset-syncs.topic.location",
        default="source",
        check=one_of("source", "target"),
        importance="low",
        doc="The location (source/target) of the offset-syncs topic.",
    )
    emits_syncs: bool = key(
        "emit.offset-syncs.enabled",
        default=True,
        importance="low",
        doc="Whether to store where replicated records lie in the offset-syncs topic. Without it there are no checkpoints.",
    )

    @property
    def syncs_topic(self) -> str:
        """The topic's name, which contains the other cluster's alias."""
        return self.policy.offset_syncs_topic(self.target if self.syncs_location == "source" else self.source)

    @property
    def checkpoints_topic(self) -> str:
        return self.policy.checkpoints_topic(self.source)

    @cached_property
    def takes_topic(self) -> Callable[[str], bool]:
        """A function that tells whether the topic filter accepts a topic."""
        return matcher(self.topics, self.topics_exclude)


@config
class MirrorSourceConfig(OffsetSyncsConfig):
    """Which topics are replicated, and how often new ones are looked for."""

    properties_exclude: list[str] = key(
        "config.properties.exclude",
        default=[
            r"follower\.replication\.throttled\.replicas",
            r"leader\.replication\.throttled\.replicas",
            r"message\.timestamp\.difference\.max\.ms",
            r"log\.message\.timestamp\.before\.max\.ms",
            r"log\.message\.timestamp\.after\.max\.ms",
            r"message\.timestamp\.type",
            r"unclean\.leader\.election\.enable",
            r"min\.insync\.replicas",
        ],
        check=all_of(distinct, valid_regexes),
        importance="high",
        doc="Topic config properties that should not be replicated. Supports comma-separated property names and regexes.",
    )
    property_filter: str = _own_class(
        "config.property.filter.class",
        default=f"{_MIRROR}DefaultConfigPropertyFilter",
        doc="ConfigPropertyFilter to use. Selects topic config properties to replicate.",
    )
    defaults_from: str = key(
        "use.defaults.from",
        default="target",
        doc="Which cluster's defaults (source or target) to use when syncing topic configurations that have default values.",
    )
    refreshes: bool = key(
        "refresh.topics.enabled",
        default=True,
        importance="low",
        doc="Whether to periodically check for new topics and partitions.",
    )
    refresh_s: int = _every("refresh.topics.interval.seconds", default=600, doc="Frequency of topic refresh.")
    syncs_configs: bool = key(
        "sync.topic.configs.enabled",
        default=True,
        importance="low",
        doc="Whether to periodically configure remote topics to match their corresponding upstream topics.",
    )
    configs_s: int = _every("sync.topic.configs.interval.seconds", default=600, doc="Frequency of topic config sync.")
    syncs_acls: bool = key(
        "sync.topic.acls.enabled",
        default=True,
        importance="low",
        doc="Whether to periodically configure remote topic ACLs to match their corresponding upstream topics.",
    )
    acls_s: int = _every("sync.topic.acls.interval.seconds", default=600, doc="Frequency of topic ACL sync.")
    replication_factor: int = key(
        "replication.factor",
        default=2,
        type=KeyType.INT,
        importance="low",
        doc="Replication factor for newly created remote topics.",
    )
    syncs_replication_factor: int = key(
        "offset-syncs.topic.replication.factor",
        default=3,
        type=KeyType.SHORT,
        importance="low",
        doc="Replication factor for offset-syncs topic.",
    )
    max_lag: int = key(
        "offset.lag.max",
        default=100,
        importance="low",
        doc="How out-of-sync a remote partition can be before it is resynced.",
    )
    mirrors_heartbeats: bool = key(
        "heartbeats.replication.enabled",
        default=True,
        importance="low",
        doc="Whether to replicate the heartbeats topics even when the topic filter does not include them.",
    )
    task_partitions: list[str] | None = key(
        "task.assigned.partitions",
        default=None,
        importance="low",
        doc="Set by the connector for each task: topic-partitions assigned to this task to replicate.",
    )
    _syncs_clients: dict[str, str] = family("offset-syncs-", doc="Not used.")
    _syncs_keys: dict[str, str] = family("offset-syncs.topic.", doc="Keys of the offset-syncs topic.")

    @property
    def reads_committed(self) -> bool:
        level = {**self.consumers, **self.source_consumers}.get("isolation.level", "")
        return level == "read_committed"

    def takes_property(self, name: str) -> bool:
        """Whether the config property filter accepts a property."""
        return not any(JavaRegex(pattern).fullmatch(name) for pattern in self.properties_exclude)

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if not self.emits_syncs and (self._syncs_clients or self._syncs_keys):
            text = "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"
            yield Problem("emit.offset-syncs.enabled", text)


@config
class MirrorCheckpointConfig(OffsetSyncsConfig):
    """Which groups are synchronized, and how often."""

    groups: list[str] = key(
        "groups",
        default=[".*"],
        check=all_of(distinct, valid_regexes),
        importance="high",
        doc="Consumer groups to replicate. Supports comma-separated group IDs and regexes.",
    )
    groups_exclude: list[str] = key(
        "groups.exclude",
        default=["console-consumer-.*", "connect-.*", "__.*"],
        check=all_of(distinct, valid_regexes),
        importance="high",
        doc="Exclude groups. Supports comma-separated group IDs and regexes. Excludes take precedence over includes.",
    )
    group_filter: str = _own_class(
        "group.filter.class",
        default=f"{_MIRROR}DefaultGroupFilter",
        doc="GroupFilter to use. Selects consumer groups to replicate.",
    )
    refreshes: bool = key(
        "refresh.groups.enabled",
        default=True,
        importance="low",
        doc="Whether to periodically check for new consumer groups.",
    )
    refresh_s: int = _every("refresh.groups.interval.seconds", default=600, doc="Frequency of group refresh.")
    emits: bool = key(
        "emit.checkpoints.enabled",
        default=True,
        importance="low",
        doc="Whether to replicate consumer offsets to target cluster.",
    )
    emit_s: int = _every("emit.checkpoints.interval.seconds", default=60, doc="Frequency of checkpoints.")
    syncs_offsets: bool = key(
        "sync.group.offsets.enabled",
        default=False,
        importance="low",
        doc="Whether to periodically write the translated offsets to __consumer_offsets topic in target cluster, as long as "
        "no active consumers in that group are connected to the target cluster",
    )
    sync_s: int = _every(
        "sync.group.offsets.interval.seconds", default=60, doc="Frequency of consumer group offset sync."
    )
    replication_factor: int = key(
        "checkpoints.topic.replication.factor",
        default=3,
        type=KeyType.SHORT,
        importance="low",
        doc="Replication factor for checkpoints topic.",
    )
    task_groups: list[str] | None = key(
        "task.assigned.groups",
        default=None,
        importance="low",
        doc="Set by the connector for each task: consumer groups assigned to this task to replicate.",
    )

    @cached_property
    def takes_group(self) -> Callable[[str], bool]:
        """A function that tells whether the group filter accepts a group."""
        return matcher(self.groups, self.groups_exclude)

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.enabled and not self.emits:
            name = "emit.checkpoints.enabled"
            yield Problem(name, f"MirrorCheckpointConnector can't run with {name} set to false")
        if self.enabled and not self.emits_syncs:
            yield Problem("emit.offset-syncs.enabled", "MirrorCheckpointConnector can't run without offset syncs")


@config
class MirrorHeartbeatConfig(MirrorConfig):
    """How often heartbeats are written."""

    emits: bool = key(
        "emit.heartbeats.enabled",
        default=True,
        importance="low",
        doc="Whether to emit heartbeats to target cluster.",
    )
    emit_s: int = _every("emit.heartbeats.interval.seconds", default=1, doc="Frequency of heartbeats.")
    replication_factor: int = key(
        "heartbeats.topic.replication.factor",
        default=3,
        type=KeyType.SHORT,
        importance="low",
        doc="Replication factor for heartbeats topic.",
    )

    @property
    def _needed_servers(self) -> Iterable[tuple[str, list[str] | None]]:
        yield "target.cluster.bootstrap.servers", self.target_servers
