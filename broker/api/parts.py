"""The parts of a broker, as handlers name those that they use: each family of handlers adds up its own from these.

    class _Parts(Common, WithGroups, WithLogs, Protocol):
        \"\"\"What these handlers use of a broker.\"\"\"

The type checker holds a family to its parts: another one is an error until the family names it. ``Broker`` has them all.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.broker import Node
    from broker.config import BrokerConfig
    from broker.fetch_sessions import FetchSessions
    from broker.groups import GroupCoordinator
    from broker.log.directory import LogDirectory
    from broker.metadata.image import ClusterMetadata
    from broker.metrics.topics import TopicMetrics
    from broker.protocol.fields import SharedArray
    from broker.protocol.messages.api_versions import ApiVersion
    from broker.quotas.quotas import Quotas
    from broker.resources.resources import Resources
    from broker.security.access import Authorizer
    from broker.security.config import SecurityProtocol
    from broker.security.tokens import DelegationTokens
    from broker.share_delivery.share_groups import ShareGroups
    from broker.steps import Steps
    from broker.storage.arrivals import Arrivals
    from broker.storage.partitions import Partitions
    from broker.storage.record_worker import RecordWorker
    from broker.storage.replica_moves import ReplicaMoves
    from broker.telemetry.telemetry import Telemetry
    from broker.topics import Topics
    from broker.transactions import Markers, TransactionCoordinator

__all__ = [
    "AllParts",
    "Common",
    "WithApiVersions",
    "WithArrivals",
    "WithAuthorizer",
    "WithConfig",
    "WithEveryTopic",
    "WithFetchSessions",
    "WithForgetShares",
    "WithGroups",
    "WithLogs",
    "WithMarkers",
    "WithMetadata",
    "WithNode",
    "WithPartitions",
    "WithProtocols",
    "WithQuotas",
    "WithRecordWorker",
    "WithReplicaMoves",
    "WithResources",
    "WithSettings",
    "WithShare",
    "WithSteps",
    "WithTelemetry",
    "WithTokens",
    "WithTopicMetrics",
    "WithTopics",
    "WithTransactions",
]


class WithAuthorizer(Protocol):
    @property
    def authorizer(self) -> Authorizer | None:
        """Decides what clients may do; without one everything is allowed."""
        ...


class WithQuotas(Protocol):
    @property
    def quotas(self) -> Quotas:
        """Limits of users, clients and addresses."""
        ...


class WithTopics(Protocol):
    @property
    def topics(self) -> Topics:
        """Topics as they are created, changed and deleted."""
        ...


class Common(WithAuthorizer, WithQuotas, WithTopics, Protocol):
    """The parts of a broker that the context of a request uses itself, for decisions and quotas."""


class WithApiVersions(Protocol):
    @property
    def api_versions(self) -> Sequence[ApiVersion]:
        """The entries of ApiVersions."""
        ...


class WithArrivals(Protocol):
    @property
    def arrivals(self) -> Arrivals:
        """Tells those who wait that records have arrived."""
        ...


class WithConfig(Protocol):
    @property
    def config(self) -> BrokerConfig:
        """The configuration as of the start."""
        ...


class WithSettings(Protocol):
    @property
    def settings(self) -> BrokerConfig:
        """The configuration with what was set while brokers ran."""
        ...


class WithFetchSessions(Protocol):
    @property
    def fetch_sessions(self) -> FetchSessions:
        """Incremental fetch sessions (KIP-227)."""
        ...


class WithGroups(Protocol):
    @property
    def groups(self) -> GroupCoordinator:
        """Consumer, share and streams groups."""
        ...


class WithLogs(Protocol):
    @property
    def logs(self) -> LogDirectory:
        """The data directories with the logs of partitions."""
        ...


class WithMarkers(Protocol):
    @property
    def markers(self) -> Markers:
        """Writes the markers that end transactions."""
        ...


class WithMetadata(Protocol):
    @property
    def metadata(self) -> ClusterMetadata:
        """The image of the metadata log."""
        ...


class WithPartitions(Protocol):
    @property
    def partitions(self) -> Partitions:
        """Partitions as producers and consumers use them."""
        ...


class WithProtocols(Protocol):
    @property
    def protocols(self) -> Mapping[str, SecurityProtocol]:
        """The security protocol of each listener, by its name."""
        ...


class WithRecordWorker(Protocol):
    @property
    def record_worker(self) -> RecordWorker:
        """Works on records off the event loop."""
        ...


class WithReplicaMoves(Protocol):
    @property
    def replica_moves(self) -> ReplicaMoves:
        """Moves of partitions between data directories."""
        ...


class WithResources(Protocol):
    @property
    def resources(self) -> Resources:
        """Configurations of brokers, topics and groups."""
        ...


class WithShare(Protocol):
    @property
    def share(self) -> ShareGroups:
        """Delivery to share groups; made when first asked for."""
        ...


class WithSteps(Protocol):
    @property
    def steps(self) -> Steps:
        """Long changes of topics, with time for other clients in between."""
        ...


class WithTelemetry(Protocol):
    @property
    def telemetry(self) -> Telemetry:
        """Metrics that clients push; made when first asked for."""
        ...


class WithTokens(Protocol):
    @property
    def tokens(self) -> DelegationTokens:
        """Delegation tokens; made when first asked for."""
        ...


class WithTopicMetrics(Protocol):
    @property
    def topic_metrics(self) -> TopicMetrics:
        """Bytes and records by topic."""
        ...


class WithTransactions(Protocol):
    @property
    def transactions(self) -> TransactionCoordinator:
        """The transaction coordinator."""
        ...


class WithForgetShares(Protocol):
    def forget_shares(self, topic_id: uuid.UUID) -> None:
        """Drop what share groups know of a deleted topic."""
        ...


class WithNode(Protocol):
    def node(self, listener: str) -> Node:
        """This broker, as a client of that listener can reach it."""
        ...


class WithEveryTopic(Protocol):
    every_topic: tuple[tuple[int, int, bool], SharedArray] | None
    """The answer of Metadata about all topics, and the state of the metadata that it is from."""


class AllParts(
    Common,
    WithApiVersions,
    WithArrivals,
    WithConfig,
    WithEveryTopic,
    WithFetchSessions,
    WithForgetShares,
    WithGroups,
    WithLogs,
    WithMarkers,
    WithMetadata,
    WithNode,
    WithPartitions,
    WithProtocols,
    WithRecordWorker,
    WithReplicaMoves,
    WithResources,
    WithSettings,
    WithShare,
    WithSteps,
    WithTelemetry,
    WithTokens,
    WithTopicMetrics,
    WithTransactions,
    Protocol,
):
    """The parts of a broker that all handlers together use."""
