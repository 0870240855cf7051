"""The records of ``__cluster_metadata-0``, in the format of Apache Kafka's KRaft metadata log.

A record's value is a frame version, the record type's key and version as unsigned varints, then the message. Fields,
keys and versions: Kafka's ``metadata/src/main/resources/common/metadata`` as of 4.x. All are flexible from version 0
on.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from broker.errors import CorruptMessage
from broker.metadata.log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    UnknownRecord,
    UnregisterBrokerRecord,
)
from broker.protocol.declare import structure, wire
from broker.protocol.metadata_record import MetadataRecord
from broker.protocol.primitives import MalformedMessage, read_uvarint, write_uvarint
from broker.protocol.schema import Message, decode, encode
from broker.quotas.records import ClientQuotaRecord
from broker.security.acl_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from broker.security.credential_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

__all__ = [
    "BROKER_RESOURCE",
    "GROUP_RESOURCE",
    "RECORD_TYPES",
    "TOPIC_RESOURCE",
    "AbortTransactionRecord",
    "BeginTransactionRecord",
    "BrokerEndpoint",
    "BrokerFeature",
    "BrokerRegistrationChangeRecord",
    "ConfigRecord",
    "EndTransactionRecord",
    "FeatureLevelRecord",
    "MetadataRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveTopicRecord",
    "TopicRecord",
    "UnknownRecord",
    "UnregisterBrokerRecord",
    "decode_record",
    "encode_record",
    "encode_records",
]

TOPIC_RESOURCE: Final = 2
"""ConfigRecord's resource type for topics (ConfigResource.Type)."""
BROKER_RESOURCE: Final = 4
GROUP_RESOURCE: Final = 32

_FRAME_VERSION: Final = 1


@structure
class BrokerEndpoint(Message):
    name: str = wire("string")
    host: str = wire("string")
    port: int = wire("uint16")
    security_protocol: int = wire("int16")


@structure
class BrokerFeature(Message):
    name: str = wire("string")
    min_supported_version: int = wire("int16")
    max_supported_version: int = wire("int16")


@structure
class RegisterBrokerRecord(MetadataRecord):
    """A broker started: its identity and its listeners."""

    API_KEY = 0
    VERSION = 3
    LATEST = 4
    broker_id: int = wire("int32")
    is_migrating_zk_broker: bool = wire("bool", since=2)
    incarnation_id: uuid.UUID = wire("uuid")
    broker_epoch: int = wire("int64")
    end_points: Sequence[BrokerEndpoint] = wire(BrokerEndpoint, array=True)
    features: Sequence[BrokerFeature] = wire(BrokerFeature, array=True)
    rack: str | None = wire("string", null_since=0, default=None)
    fenced: bool = wire("bool", default=True)
    in_controlled_shutdown: bool = wire("bool", since=1)
    log_dirs: Sequence[uuid.UUID] = wire("uuid", array=True, since=3, tag=0)
    cordoned_log_dirs: Sequence[uuid.UUID] | None = wire("uuid", array=True, since=4, null_since=4, tag=1, default=None)


@structure
class RegisterControllerRecord(MetadataRecord):
    """A controller started: its identity and its listeners."""

    API_KEY = 27
    controller_id: int = wire("int32")
    incarnation_id: uuid.UUID = wire("uuid")
    zk_migration_ready: bool = wire("bool")
    end_points: Sequence[BrokerEndpoint] = wire(BrokerEndpoint, array=True)
    features: Sequence[BrokerFeature] = wire(BrokerFeature, array=True)


@structure
class BrokerRegistrationChangeRecord(MetadataRecord):
    """A registered broker was fenced (1) or unfenced (-1)."""

    API_KEY = 17
    VERSION = 2
    LATEST = 3
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64")
    fenced: int = wire("int8", tag=0)
    in_controlled_shutdown: int = wire("int8", since=1, tag=1)
    log_dirs: Sequence[uuid.UUID] = wire("uuid", array=True, since=2, tag=2)
    cordoned_log_dirs: Sequence[uuid.UUID] | None = wire("uuid", array=True, since=3, null_since=3, tag=3, default=None)


@structure
class TopicRecord(MetadataRecord):
    """A topic was created. Its partitions follow as separate records in the same batch."""

    API_KEY = 2
    name: str = wire("string")
    topic_id: uuid.UUID = wire("uuid")


@structure
class PartitionRecord(MetadataRecord):
    """A partition exists. Version 1 adds the directory of each replica (KIP-858); 2 the eligible leaders (KIP-966)."""

    API_KEY = 3
    VERSION = 1
    LATEST = 2
    partition_id: int = wire("int32", default=-1)
    topic_id: uuid.UUID = wire("uuid")
    replicas: Sequence[int] = wire("int32", array=True)
    isr: Sequence[int] = wire("int32", array=True)
    removing_replicas: Sequence[int] = wire("int32", array=True, default=())
    adding_replicas: Sequence[int] = wire("int32", array=True, default=())
    leader: int = wire("int32", default=-1)
    leader_recovery_state: int = wire("int8", tag=0, default=0)
    leader_epoch: int = wire("int32", default=-1)
    partition_epoch: int = wire("int32", default=-1)
    directories: Sequence[uuid.UUID] = wire("uuid", array=True, since=1)
    eligible_leader_replicas: Sequence[int] | None = wire(
        "int32", array=True, since=2, null_since=2, tag=1, default=None
    )
    last_known_elr: Sequence[int] | None = wire("int32", array=True, since=2, null_since=2, tag=2, default=None)


@structure
class ConfigRecord(MetadataRecord):
    """One configuration key of a resource was set, or (value None) removed."""

    API_KEY = 4
    resource_type: int = wire("int8")
    resource_name: str = wire("string")
    name: str = wire("string")
    value: str | None = wire("string", null_since=0, default=None)


@structure
class RemoveTopicRecord(MetadataRecord):
    """A topic was deleted, with its partitions and its configuration."""

    API_KEY = 9
    topic_id: uuid.UUID = wire("uuid")


@structure
class FeatureLevelRecord(MetadataRecord):
    """The level of a cluster-wide feature; ``metadata.version`` is one."""

    API_KEY = 12
    name: str = wire("string")
    feature_level: int = wire("int16")


@structure
class ProducerIdsRecord(MetadataRecord):
    """A broker reserved a block of producer ids; ``next_producer_id`` begins the next block."""

    API_KEY = 15
    broker_id: int = wire("int32")
    broker_epoch: int = wire("int64", default=-1)
    next_producer_id: int = wire("int64")


@structure
class NoOpRecord(MetadataRecord):
    """Has no meaning."""

    API_KEY = 20


RECORD_TYPES: Final[dict[int, type[MetadataRecord]]] = {
    made.API_KEY: made
    for made in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        RegisterControllerRecord,
        TopicRecord,
        PartitionRecord,
        PartitionChangeRecord,
        BeginTransactionRecord,
        EndTransactionRecord,
        AbortTransactionRecord,
        ConfigRecord,
        RemoveTopicRecord,
        FeatureLevelRecord,
        ProducerIdsRecord,
        BrokerRegistrationChangeRecord,
        NoOpRecord,
        AccessControlEntryRecord,
        RemoveAccessControlEntryRecord,
        ClientQuotaRecord,
        UserScramCredentialRecord,
        RemoveUserScramCredentialRecord,
        DelegationTokenRecord,
        RemoveDelegationTokenRecord,
    )
}


def encode_records(records: Iterable[MetadataRecord]) -> list[bytes]:
    """The values of metadata records. A topic may have thousands of partitions that differ in their number alone, which
    is written into the value of the one before.
    """
    values: list[bytes] = []
    alike: tuple[Any, ...] | None = None
    for record in records:
        if not isinstance(record, PartitionRecord):
            values.append(encode_record(record))
            alike = None
        elif (rest := _REST_OF_PARTITION(record)) == alike:
            value = bytearray(values[-1])
            _INT32.pack_into(value, _PARTITION_ID_AT, record.partition_id)
            values.append(bytes(value))
        else:
            values.append(encode_record(record))
            alike = rest
    return values


_REST_OF_PARTITION: Final = attrgetter(
    *(field.name for field in PartitionRecord.FIELDS if field.name != "partition_id")
)
_PARTITION_ID_AT: Final = 3
"""After the versions of the frame and of the record, and its key: a byte each."""
_INT32: Final = struct.Struct(">i")


def encode_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """The value of a metadata record."""
    out = bytearray()
    chosen = record.VERSION if version is None else version
    write_uvarint(out, _FRAME_VERSION)
    write_uvarint(out, record.API_KEY)
    write_uvarint(out, chosen)
    return bytes(encode(record, chosen, out))


def decode_record(data: bytes) -> MetadataRecord:
    """Decode a record; other types become an UnknownRecord. Raises CorruptMessage for a malformed record or a later
    version.

    Records for parts of Kafka that do not exist here can be skipped, but not later versions of known records.
    """
    try:
        frame, at = read_uvarint(data, 0)
        key, at = read_uvarint(data, at)
        version, at = read_uvarint(data, at)
        if frame != _FRAME_VERSION:
            raise CorruptMessage(f"a metadata record has frame version {frame}; {_FRAME_VERSION} is known")
        known = RECORD_TYPES.get(key)
        if known is None:
            return UnknownRecord(data=bytes(data))
        if version > known.LATEST:
            raise CorruptMessage(f"metadata record type {key} version {version} is not known to this release")
        return decode(known, data, version, at)
    except (MalformedMessage, IndexError) as error:
        raise CorruptMessage(f"a metadata record of {len(data)} bytes is malformed: {error}") from error
