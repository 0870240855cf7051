"""The clients of a source task and the delivery over them, chosen by configuration: at least once or exactly once."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from connect.api import ConnectError
from connect.config.connector import SourceConfig, topic_groups
from connect.config.worker import WorkerConfig
from connect.task.clients import ClientLoop
from connect.task.context import RunningSourceContext
from connect.task.exactly_once import BoundaryRequests, boundary_of, enabled_in
from connect.task.measures import TaskMeasures
from connect.task.sources.deliveries import AtLeastOnce, Delivery, ExactlyOnce, OnCommitted
from connect.task.sources.offsets import OffsetKeys, SubmittedBatches
from connect.task.sources.senders import KafkaOffsets, KafkaSender, TopicRules, TransactionalSender
from connect.task.sources.separate_offsets import merged_offsets, read_offsets
from connect.task.sources.worker_offsets import KeptOffsets

if TYPE_CHECKING:
    from connect.task.parts import TaskParts

__all__ = ["SourceEnds"]


class SourceEnds:
    """Made in the task's thread; ``made`` closes the clients."""

    def __init__(self, parts: TaskParts, worker: WorkerConfig, config: SourceConfig, made: ExitStack) -> None:
        self._parts, self._worker, self._config = parts, worker, config
        self._loop = loop = ClientLoop(parts.control)
        groups = topic_groups(parts.config, config.topic_creation_groups)
        rules = TopicRules(groups, enabled=worker.topic_creation, fit=worker.replication_fit)
        clients, topic = parts.clients, config.offsets_topic or worker.offset_topic
        standalone = worker.offset_file is not None
        for_owner = worker.connector_rights == "owner"
        self._copy: KafkaOffsets | KeptOffsets | None = None
        if self._separate and not standalone:
            kept = KeptOffsets(parts.keep_offsets) if for_owner else None
            self._copy = kept or KafkaOffsets(loop, clients.offsets_producer(), worker.offset_topic)
        self._transactional: TransactionalSender | None = None
        self._offsets: KafkaOffsets | KeptOffsets | None = None
        if enabled_in(parts.worker):
            if for_owner and not self._separate:
                raise ConnectError(
                    f"positions and records of an exactly-once source are one transaction, and the owner of {parts.connector} has no "
                    f"right to write to {topic}, which has the positions of all connectors: set offsets.storage.topic to a topic "
                    "that the owner may manage"
                )
            self._transactional = TransactionalSender(loop, clients, rules, topic, self._copy)
        elif (standalone or for_owner) and not self._separate:
            self._offsets = KeptOffsets(parts.keep_offsets)
        else:
            producer = clients.own_offsets_producer() if self._separate else clients.offsets_producer()
            self._offsets = KafkaOffsets(loop, producer, topic, self._copy)
        self.sender: KafkaSender = self._transactional or KafkaSender(loop, clients, rules)
        for client in (self._copy, self._offsets, self.sender):
            if client is not None:
                made.callback(client.close)

    @property
    def transactional(self) -> bool:
        """Whether rows are delivered exactly once."""
        return self._transactional is not None

    @property
    def _separate(self) -> bool:
        """Whether the offsets have a topic that is not the worker's; one of the same name in another cluster is not."""
        topic, clients = self._config.offsets_topic, self._parts.clients
        elsewhere = clients.producer().bootstrap_servers != clients.offsets_producer().bootstrap_servers
        return topic is not None and (topic != self._worker.offset_topic or elsewhere)

    def connected(self) -> list[dict[str, Any]]:
        """Connect, and give the positions to go on from. Raises Stopped, and what the worker says against this task."""
        parts = self._parts
        for client in (self._copy, self._offsets, self.sender):
            if client is not None:
                client.start()
        if self._transactional is None:
            return self._positions([dict(entry) for entry in parts.offsets])
        # Forerunners are ended before this task takes its place, and its place is confirmed after that: so of two
        # generations of tasks the later one wins, whatever the order in which their workers get here.
        parts.ask_worker("fence")
        self._transactional.take_over()
        parts.ask_worker("confirm")
        return self._positions(parts.ask_worker("offsets"))

    def _positions(self, of_worker: list[dict[str, Any]]) -> list[dict[str, Any]]:
        topic = self._config.offsets_topic
        if not self._separate or topic is None:
            return of_worker
        from broker.client import NewTopic

        worker, clients = self._worker, self._parts.clients
        new_topic = NewTopic(topic, worker.offset_partitions, worker.offset_replication, {"cleanup.policy": "compact"})
        admin, consumer = clients.own_offsets_admin(), clients.own_offsets_consumer()
        separate = self._loop.patiently(
            lambda: read_offsets(admin, consumer, new_topic, self._parts.connector, fit=worker.replication_fit),
            f"offsets of {self._parts.connector} in {topic}",
        )
        return merged_offsets(separate, of_worker)

    def delivery(
        self, context: RunningSourceContext, keys: OffsetKeys, on_committed: OnCommitted, measures: TaskMeasures
    ) -> Delivery:
        """How rows and positions are committed. Gives the context its ``transaction`` where the task is to use one."""
        flush_interval_ms = self._worker.offset_flush_interval_ms
        if self._transactional is None:
            assert self._offsets is not None
            return AtLeastOnce(
                self._parts.connector,
                SubmittedBatches(keys),
                self._offsets,
                on_committed,
                self._parts.control,
                interval_ms=flush_interval_ms,
                timeout_ms=self._worker.offset_flush_timeout_ms,
                measures=measures,
            )
        requests = BoundaryRequests()
        if self._config.transaction_boundary.lower() == "connector":
            context.transaction = requests
        boundary = boundary_of(self._config, requests, flush_interval_ms)
        return ExactlyOnce(keys, self._transactional, boundary, on_committed, self._parts.control, measures)
