"""Admin's arguments and results: topics, configs and groups as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from broker.client.batches import TopicPartition

__all__ = [
    "ConfigEntry",
    "GroupDescription",
    "GroupListing",
    "MemberDescription",
    "NewTopic",
    "OffsetAndTimestamp",
    "PartitionDescription",
    "ProducerDescription",
    "TopicDescription",
]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1 selects the broker's default for partitions or replication factor."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProducerDescription:
    """A producer that a partition remembers: an idempotent or a transactional one. ``last_sequence`` and ``last_ms`` are those of
    its last batch, -1 if they are not known.
    """

    partition: int
    producer_id: int
    epoch: int
    last_sequence: int
    last_ms: int
    transaction_start: int | None
    """The first offset of its open transaction."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


CONFIG_SOURCES: Final = {
    0: "UNKNOWN",
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
}


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config key of a topic or broker; ``source`` is Kafka's name for the origin of the value."""

    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool


@dataclass(frozen=True, slots=True)
class OffsetAndTimestamp:
    offset: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class GroupListing:
    """``type`` is the rebalance protocol (classic, consumer, share, streams) and ``state`` is Kafka's; both are empty
    if the broker does not say.
    """

    group_id: str
    protocol_type: str
    type: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """``metadata`` and ``assignment`` are bytes of the group's protocol type; empty unless the group is classic."""

    member_id: str
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""
    partitions: tuple[TopicPartition, ...] = ()
    """The partitions assigned to it; empty if it is not a consumer, or if the assignment can't be read."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """``state`` is Kafka's: Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, NotReady, Stable or
    Dead.

    ``protocol`` is the assignor: the protocol that members chose, or the broker's assignor.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberDescription, ...]
    type: str = "classic"
