"""Records of the metadata log that Apache Kafka writes and we only read: changes of partitions, transactions, types not known."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.metadata_record import MetadataRecord
from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field

__all__ = [
    "AbortTransactionRecord",
    "BeginTransactionRecord",
    "EndTransactionRecord",
    "PartitionChangeRecord",
    "UnknownRecord",
    "UnregisterBrokerRecord",
]


class UnregisterBrokerRecord(MetadataRecord):
    """A broker is no part of the cluster any more."""

    __slots__ = ("broker_epoch", "broker_id")
    API_KEY = 1
    FIELDS: ClassVar = (Field(name="broker_id", kind="int32"), Field(name="broker_epoch", kind="int64"))

    def __init__(self, *, broker_id: int = 0, broker_epoch: int = 0) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch


class PartitionChangeRecord(MetadataRecord):
    """What is different now of a partition; None, and -2 for the leader, -1 for the recovery state: as before."""

    __slots__ = (
        "adding_replicas", "directories", "eligible_leader_replicas", "isr", "last_known_elr", "leader",
        "leader_recovery_state", "partition_id", "removing_replicas", "replicas", "topic_id",
    )  # fmt: skip
    API_KEY = 5
    LATEST = 2
    FIELDS: ClassVar = (
        Field(name="partition_id", kind="int32"),
        Field(name="topic_id", kind="uuid"),
        Field(name="isr", kind="int32", array=True, null_since=0, tag=0),
        Field(name="leader", kind="int32", tag=1),
        Field(name="replicas", kind="int32", array=True, null_since=0, tag=2),
        Field(name="removing_replicas", kind="int32", array=True, null_since=0, tag=3),
        Field(name="adding_replicas", kind="int32", array=True, null_since=0, tag=4),
        Field(name="leader_recovery_state", kind="int8", tag=5),
        Field(name="eligible_leader_replicas", kind="int32", array=True, since=2, null_since=2, tag=6),
        Field(name="last_known_elr", kind="int32", array=True, since=2, null_since=2, tag=7),
        Field(name="directories", kind="uuid", array=True, since=1, null_since=1, tag=8),
    )

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: uuid.UUID = ZERO_UUID,
        isr: Sequence[int] | None = None,
        leader: int = -2,
        replicas: Sequence[int] | None = None,
        removing_replicas: Sequence[int] | None = None,
        adding_replicas: Sequence[int] | None = None,
        leader_recovery_state: int = -1,
        eligible_leader_replicas: Sequence[int] | None = None,
        last_known_elr: Sequence[int] | None = None,
        directories: Sequence[uuid.UUID] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.isr = isr
        self.leader = leader
        self.replicas = replicas
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader_recovery_state = leader_recovery_state
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.directories = directories


class BeginTransactionRecord(MetadataRecord):
    """The records up to the end count together, or not at all (KIP-868)."""

    __slots__ = ("name",)
    API_KEY = 23
    FIELDS: ClassVar = (Field(name="name", kind="string", null_since=0, tag=0),)

    def __init__(self, *, name: str | None = None) -> None:
        self.name = name


class EndTransactionRecord(MetadataRecord):
    """The records since the beginning count."""

    __slots__ = ()
    API_KEY = 24


class AbortTransactionRecord(MetadataRecord):
    """The records since the beginning never were."""

    __slots__ = ("reason",)
    API_KEY = 25
    FIELDS: ClassVar = (Field(name="reason", kind="string", null_since=0, tag=0),)

    def __init__(self, *, reason: str | None = None) -> None:
        self.reason = reason


class UnknownRecord(MetadataRecord):
    """A type that is not known here: a part of Kafka that Tidegate has no use for, or of a later release."""

    __slots__ = ("data",)
    API_KEY = -1

    def __init__(self, *, data: bytes = b"") -> None:
        self.data = data
