"""Records of the metadata log that only Apache Kafka writes: changes of partitions, transactions, unknown types."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from broker.protocol.declare import structure, wire
from broker.protocol.metadata_record import MetadataRecord

__all__ = [
    "AbortTransactionRecord",
    "BeginTransactionRecord",
    "EndTransactionRecord",
    "PartitionChangeRecord",
    "UnknownRecord",
    "UnregisterBrokerRecord",
]


@structure
class UnregisterBrokerRecord(MetadataRecord):
    """A broker was removed from the cluster."""

    API_KEY = 1
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")


@structure
class PartitionChangeRecord(MetadataRecord):
    """Changes of a partition. None means unchanged; so do -2 for the leader and -1 for the recovery state."""

    API_KEY = 5
    LATEST = 2
    partition_id: int = wire("int32", default=-1)
    topic_id: uuid.UUID = wire("uuid")
    isr: Sequence[int] | None = wire("int32", array=True, null_since=0, tag=0, default=None)
    leader: int = wire("int32", tag=1, default=-2)
    replicas: Sequence[int] | None = wire("int32", array=True, null_since=0, tag=2, default=None)
    removing_replicas: Sequence[int] | None = wire("int32", array=True, null_since=0, tag=3, default=None)
    adding_replicas: Sequence[int] | None = wire("int32", array=True, null_since=0, tag=4, default=None)
    leader_recovery_state: int = wire("int8", tag=5, default=-1)
    eligible_leader_replicas: Sequence[int] | None = wire(
        "int32", array=True, since=2, null_since=2, tag=6, default=None
    )
    last_known_elr: Sequence[int] | None = wire("int32", array=True, since=2, null_since=2, tag=7, default=None)
    directories: Sequence[uuid.UUID] | None = wire("uuid", array=True, since=1, null_since=1, tag=8, default=None)


@structure
class BeginTransactionRecord(MetadataRecord):
    """The following records up to the end of the transaction are effective together, or not at all (KIP-868)."""

    API_KEY = 23
    name: str | None = wire("string", null_since=0, tag=0, default=None)


@structure
class EndTransactionRecord(MetadataRecord):
    """The records since the beginning are effective."""

    API_KEY = 24


@structure
class AbortTransactionRecord(MetadataRecord):
    """The records since the beginning are discarded."""

    API_KEY = 25
    reason: str | None = wire("string", null_since=0, tag=0, default=None)


class UnknownRecord(MetadataRecord):
    """An unknown type: for a part of Kafka that Tidegate does not use, or from a later release."""

    __slots__ = ("data",)
    API_KEY = -1

    def __init__(self, *, data: bytes = b"") -> None:
        self.data = data
