"""Reduces metadata records to the newest one per object, which is the content of a snapshot.

It works on the records and not on the image, so that it keeps records that Tidegate does not use: registrations, and
types of later releases, which are copied unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final

from broker.metadata.records import (
    TOPIC_RESOURCE,
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    decode_record,
    encode_record,
)
from broker.quotas.records import ClientQuotaRecord
from broker.security.acl_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from broker.security.credential_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

__all__ = ["NO_LEADER_CHANGE", "MetadataFold", "MetadataTransactions", "changed_by"]

NO_LEADER_CHANGE: Final = -2
"""The leader value of a PartitionChangeRecord that keeps the leader."""

_KEYS: Final[dict[type[MetadataRecord], Callable[..., Hashable]]] = {
    RegisterBrokerRecord: lambda item: ("broker", item.broker_id),
    RegisterControllerRecord: lambda item: ("controller", item.controller_id),
    BrokerRegistrationChangeRecord: lambda item: ("broker change", item.broker_id),
    TopicRecord: lambda item: ("topic", item.topic_id),
    PartitionRecord: lambda item: ("partition", item.topic_id, item.partition_id),
    ConfigRecord: lambda item: ("config", item.resource_type, item.resource_name, item.name),
    FeatureLevelRecord: lambda item: ("feature", item.name),
    AccessControlEntryRecord: lambda item: ("acl", item.acl_id),
    RemoveAccessControlEntryRecord: lambda item: ("acl", item.acl_id),
    ClientQuotaRecord: lambda item: (
        "quota",
        frozenset((part.entity_type, part.entity_name) for part in item.entity),
        item.key,
    ),
    UserScramCredentialRecord: lambda item: ("scram", item.name, item.mechanism),
    RemoveUserScramCredentialRecord: lambda item: ("scram", item.name, item.mechanism),
    DelegationTokenRecord: lambda item: ("token", item.token_id),
    RemoveDelegationTokenRecord: lambda item: ("token", item.token_id),
}
"""The object that a record is about.

A later record about the same object replaces it. Types not listed have one object for all.
"""

_REMOVED: Final[dict[type[MetadataRecord], Callable[..., bool]]] = {
    ConfigRecord: lambda item: item.value is None,
    ClientQuotaRecord: lambda item: item.remove,
    RemoveAccessControlEntryRecord: lambda _: True,
    RemoveUserScramCredentialRecord: lambda _: True,
    RemoveDelegationTokenRecord: lambda _: True,
}
"""Records that delete their object."""


class MetadataTransactions:
    """Delays the records of a metadata transaction until it ends (KIP-868), and drops those of an aborted one."""

    def __init__(self) -> None:
        self._pending: list[bytes] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the records end within a transaction."""
        return self._pending is not None

    def committed(self, values: Iterable[bytes]) -> Iterator[bytes]:
        """The values that are effective by now. Raises CorruptMessage."""
        for value in values:
            record = decode_record(value)
            if isinstance(record, BeginTransactionRecord):
                self._pending = []
            elif isinstance(record, EndTransactionRecord):
                yield from self._pending or ()
                self._pending = None
            elif isinstance(record, AbortTransactionRecord):
                self._pending = None
            elif self._pending is not None:
                self._pending.append(value)
            else:
                yield value


class MetadataFold:
    """Takes the values of records in order; ``values`` returns fewer values with the same meaning."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, bytes] = {}
        self._unknown: list[bytes] = []
        self._topics: dict[Hashable, tuple[str, list[Hashable]]] = {}

    def add(self, value: bytes) -> None:
        """Raises CorruptMessage."""
        record = decode_record(value)
        kind = type(record)
        if kind is NoOpRecord:
            return
        if isinstance(record, RemoveTopicRecord):
            self._remove_topic(record)
        elif isinstance(record, PartitionChangeRecord):
            self._change_partition(record)
        elif isinstance(record, UnregisterBrokerRecord):
            self._kept.pop(("broker", record.broker_id), None)
            self._kept.pop(("broker change", record.broker_id), None)
        elif kind in _KEYS:
            self._keep(record, value)
        else:
            self._keep_unkeyed(record, value)

    def _keep(self, record: MetadataRecord, value: bytes) -> None:
        key = _KEYS[type(record)](record)
        if type(record) in _REMOVED and _REMOVED[type(record)](record):
            self._kept.pop(key, None)
            return
        if isinstance(record, TopicRecord):
            self._topics[record.topic_id] = (record.name, [])
        elif isinstance(record, PartitionRecord) and key not in self._kept and record.topic_id in self._topics:
            self._topics[record.topic_id][1].append(key)
        elif isinstance(record, RegisterBrokerRecord):
            self._kept.pop(("broker change", record.broker_id), None)
            self._kept.pop(key, None)  # an earlier change must not come after it
        self._kept[key] = value

    def _keep_unkeyed(self, record: MetadataRecord, value: bytes) -> None:
        if record.API_KEY < 0:
            self._unknown.append(value)
        else:
            self._kept["one for all", record.API_KEY] = value

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        name, partitions = self._topics.pop(record.topic_id, ("", []))
        self._kept.pop(("topic", record.topic_id), None)
        for key in partitions:
            self._kept.pop(key, None)
        for key in [
            key
            for key in self._kept
            if isinstance(key, tuple) and key[0] == "config" and key[1:3] == (TOPIC_RESOURCE, name)
        ]:
            del self._kept[key]

    def _change_partition(self, change: PartitionChangeRecord) -> None:
        """Source: PartitionRegistration.merge."""
        key = ("partition", change.topic_id, change.partition_id)
        before = self._kept.get(key)
        if before is None:
            return
        partition = decode_record(before)
        assert isinstance(partition, PartitionRecord)
        changed_by(partition, change)
        has_elr = partition.eligible_leader_replicas is not None or partition.last_known_elr is not None
        self._kept[key] = encode_record(partition, PartitionRecord.LATEST if has_elr else None)

    def values(self) -> list[bytes]:
        """Topics come before their partitions."""
        return [*self._kept.values(), *self._unknown]


def changed_by(partition: PartitionRecord, change: PartitionChangeRecord) -> None:
    """Apply a change to a partition. Source: PartitionRegistration.merge."""
    if change.leader != NO_LEADER_CHANGE:
        partition.leader = change.leader
        partition.leader_epoch += 1
    if change.leader_recovery_state >= 0:
        partition.leader_recovery_state = change.leader_recovery_state
    for name in (
        "isr", "replicas", "removing_replicas", "adding_replicas", "directories", "eligible_leader_replicas",
        "last_known_elr",
    ):  # fmt: skip
        changed = getattr(change, name)
        if changed is not None:
            setattr(partition, name, changed)
    partition.partition_epoch += 1
