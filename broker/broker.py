"""One broker, assembled: its topics, partitions and groups, and everything else that handlers use."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from broker.config import BrokerConfig, Listener
from broker.coordinator.clock import LoopClock
from broker.coordinator.journal import OFFSETS_TOPIC
from broker.coordinator.namespace import GroupType
from broker.coordinator.state_topic import StateTopic
from broker.fetch_sessions import FetchSessions
from broker.groups import GroupCoordinator
from broker.log.config import topic_defaults
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata, Topic
from broker.metadata.keeper import MetadataKeeper
from broker.metadata.records import GROUP_RESOURCE
from broker.metrics.topics import TopicMetrics
from broker.protocol.compression import Codec
from broker.protocol.fields import SharedArray
from broker.protocol.messages.api_versions import ApiVersion
from broker.quotas.quotas import Quotas
from broker.resources.resources import NamedKind, Resources, Source
from broker.security.access import Authorizer
from broker.security.config import SecurityProtocol
from broker.share_coordinator.config import SHARE_STATE_TOPIC
from broker.steps import Steps
from broker.storage.arrivals import Arrivals
from broker.storage.durability import Durability
from broker.storage.keeper import LogKeeper
from broker.storage.partitions import Partitions
from broker.storage.record_worker import RecordWorker
from broker.storage.replica_moves import ReplicaMoves
from broker.telemetry.config import CLIENT_METRICS
from broker.topic_catalog import MetadataTopics
from broker.topics import Topics
from broker.transactions import TRANSACTIONS_TOPIC, Markers, TransactionCoordinator
from tidegate.kit.users import UsersFile

if TYPE_CHECKING:
    from broker.security.tokens import DelegationTokens
    from broker.share_delivery.share_groups import ShareGroups
    from broker.telemetry.telemetry import Telemetry

__all__ = ["Broker", "Node"]


class Node(NamedTuple):
    """A broker as clients are told of it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Broker:
    """Create it in a running event loop and use it from that loop only. ``open`` blocks while logs are recovered."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = self.settings = config
        """``settings`` are ``config`` with the dynamic changes made while brokers ran."""
        self.advertised: dict[str, Listener] = {}
        """By listener name; filled when the ports are known."""
        self.protocols: dict[str, SecurityProtocol] = {
            listener.name: config.protocol_of(listener.name) or SecurityProtocol.PLAINTEXT
            for listener in config.opened_listeners
        }
        """By listener name."""
        self.api_versions: Sequence[ApiVersion] = ()

        self.logs = LogDirectory(config.log_dirs, config.log_defaults, config.metadata_log_dir)
        self.logs.open()
        self.metadata = ClusterMetadata.open(
            self.logs, node_id=config.node_id, topic_defaults=topic_defaults(config.topic_settings)
        )
        self.metadata_keeper = MetadataKeeper(self.metadata, config)
        self.every_topic: tuple[tuple[int, int, bool], SharedArray] | None = None
        """Cached Metadata answer about all topics, with the state of the metadata that it was made in."""
        self.topics = Topics(config, self.metadata, self.logs)
        self.steps = Steps()
        self.topic_metrics = TopicMetrics()
        self.resources = self._new_resources()

        self.users = UsersFile(Path(config.users_file)) if config.users_file else None
        """The platform's users, in addition to those of the metadata log."""
        self.authorizer: Authorizer | None = config.authorizer(self.metadata.acls, self.users)
        """Everything is allowed if this is None."""
        self.quotas = Quotas(self.metadata.quotas, config)

        self.arrivals = Arrivals()
        self.fetch_sessions = FetchSessions(config.fetch_session_slots, self.arrivals)
        self.durability = Durability(background_interval_s=config.background_flush_ms / 1000)
        self.record_worker = RecordWorker()
        self.partitions = Partitions(self.topics, self.logs, self.durability, self.arrivals)
        self.replica_moves = ReplicaMoves(self.logs, self.metadata)
        self.log_keeper = LogKeeper(
            self.logs,
            starts_moved=self.fetch_sessions.look_at_all,
            producers_kept_ms=lambda: self.settings.producer_id_expiration_ms,
        )

        self.groups = self._new_groups()
        self.markers = Markers(self.partitions, self.groups, OFFSETS_TOPIC)
        self.transactions = self._new_transactions()
        self._start()

    def _new_resources(self) -> Resources:
        kinds = {CLIENT_METRICS: NamedKind(Source.CLIENT_METRICS, _subscription_keys, _check_subscription)}
        resources = Resources(self.config, self.metadata, kinds)
        resources.follow(lambda settings: self.logs.cordon(settings.cordoned_log_dirs))
        return resources

    def _new_groups(self) -> GroupCoordinator:
        config, offsets_topic = self.config, self.topics.offsets_topic
        log = self._state_topic(
            OFFSETS_TOPIC, config.offsets_topic_partitions, offsets_topic, config.offsets_topic_compression
        )
        return GroupCoordinator(
            log,
            config,
            MetadataTopics(self.metadata, config.broker_rack),
            settings=lambda group: self.metadata.configs(GROUP_RESOURCE, group),
            share_state=lambda: self.share,
        )

    def _new_transactions(self) -> TransactionCoordinator:
        partitions, transactions_topic = self.config.transaction_topic_partitions, self.topics.transactions_topic
        return TransactionCoordinator(
            self._state_topic(TRANSACTIONS_TOPIC, partitions, transactions_topic),
            self.markers,
            self.config,
            new_producer_id=self.metadata.next_producer_id,
            transaction_version=lambda: self.metadata.features.get("transaction.version", 0),
        )

    def _start(self) -> None:
        """Have the coordinators read their topics and follow changes of settings and topics."""
        self.resources.follow(self._go_by)
        self.metadata.watch_topics = self.groups.topic_changed
        self.groups.start()
        self.transactions.start()
        if SHARE_STATE_TOPIC in self.metadata.topics:
            _ = self.share  # existing share state has to be maintained

    def _go_by(self, settings: BrokerConfig) -> None:
        self.settings = settings
        self.groups.settings.go_by(settings)

    def _state_topic(
        self, name: str, partitions: int, make: Callable[[], Topic], compression: int = Codec.NONE
    ) -> StateTopic:
        return StateTopic(
            name,
            partitions=partitions,
            make=make,
            topics=self.metadata.topics,
            logs=self.partitions,
            compression=Codec(compression),
        )

    # Parts that few clients use are imported and created on first use.

    @cached_property
    def share(self) -> ShareGroups:
        """Delivery to share groups."""
        from broker.share_coordinator.coordinator import ShareCoordinator
        from broker.share_delivery.settings import share_settings
        from broker.share_delivery.share_groups import ShareGroups

        clock = LoopClock()
        log = self._state_topic(
            SHARE_STATE_TOPIC,
            self.config.share_state_partitions,
            self.topics.share_state_topic,
            self.config.share_state_compression,
        )
        coordinator = ShareCoordinator(log, self.config, clock, self._has_partition)
        coordinator.start()
        return ShareGroups(
            coordinator,
            self.partitions,
            self.arrivals,
            clock,
            lambda group_id: share_settings(self.groups.settings(group_id)),
            self.config.share_max_share_sessions,
        )

    @cached_property
    def telemetry(self) -> Telemetry:
        """Metrics that clients push."""
        from broker.telemetry.subscriptions import CurrentSubscriptions
        from broker.telemetry.telemetry import Telemetry

        subscriptions = CurrentSubscriptions(
            lambda: (self.metadata.config_changes, self.metadata.named_configs(CLIENT_METRICS))
        )
        return Telemetry(subscriptions, self.config.telemetry_max_bytes)

    @cached_property
    def tokens(self) -> DelegationTokens:
        from broker.security.tokens import DelegationTokens

        return DelegationTokens(self.config, self.metadata.tokens, self.metadata.append)

    def uses(self, part: str) -> bool:
        """Whether ``share``, ``telemetry`` or ``tokens`` has been created."""
        return part in vars(self)

    def forget_shares(self, topic_id: uuid.UUID) -> None:
        """Drop what share groups know of a deleted topic."""
        if self.uses("share"):
            self.share.forget_topic(topic_id)
        if self.groups.has(GroupType.SHARE):
            from broker.groups.share.service import ShareMembership

            self.groups.service(ShareMembership).forget_topics([topic_id])

    def sweep_tokens(self) -> None:
        """Remove delegation tokens that have expired."""
        if self.metadata.tokens:
            self.tokens.sweep()

    def _has_partition(self, topic_id: uuid.UUID, partition: int) -> bool:
        name = self.topics.name_of(topic_id)
        return name is not None and self.logs.get(name, partition) is not None

    def node(self, listener: str) -> Node:
        """This broker, as a client of that listener can reach it."""
        where = self.advertised[listener]
        return Node(self.metadata.node_id, where.host, where.port, self.config.broker_rack)

    async def close(self) -> None:
        """Flush everything to disk and mark the stop as clean."""
        self.steps.close()
        self.groups.stop()
        self.transactions.stop()
        if self.uses("share"):
            self.share.coordinator.stop()
        await self.record_worker.close()
        await self.durability.close()
        await self.replica_moves.close()
        self.log_keeper.close()
        self.logs.close()


def _subscription_keys() -> type:
    from broker.telemetry.subscriptions import SubscriptionConfig

    return SubscriptionConfig


def _check_subscription(name: str, configs: Mapping[str, str]) -> None:
    from broker.telemetry.subscriptions import check_subscription

    check_subscription(name, configs)
