"""The records of ``__cluster_metadata-0``, in the format of Apache Kafka's KRaft metadata log.

A record's value is a frame version, the record type's key and version as unsigned varints, then the message. Fields, keys and
versions: Kafka's ``metadata/src/main/resources/common/metadata`` as of 4.x. All of them are flexible from version 0 on.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar, Final

from broker.errors import CorruptMessage
from broker.metadata.log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    UnknownRecord,
    UnregisterBrokerRecord,
)
from broker.protocol.metadata_record import MetadataRecord
from broker.protocol.primitives import ZERO_UUID, MalformedMessage, read_uvarint, write_uvarint
from broker.protocol.schema import Field, Message, decode, encode
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
]

TOPIC_RESOURCE: Final = 2
"""ConfigRecord's resource type of a topic (ConfigResource.Type)."""
BROKER_RESOURCE: Final = 4
GROUP_RESOURCE: Final = 32

_FRAME_VERSION: Final = 1


class BrokerEndpoint(Message):
    __slots__ = ("host", "name", "port", "security_protocol")
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="host", kind="string"),
        Field(name="port", kind="uint16"),
        Field(name="security_protocol", kind="int16"),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0, security_protocol: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol


class BrokerFeature(Message):
    __slots__ = ("max_supported_version", "min_supported_version", "name")
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="min_supported_version", kind="int16"),
        Field(name="max_supported_version", kind="int16"),
    )

    def __init__(self, *, name: str = "", min_supported_version: int = 0, max_supported_version: int = 0) -> None:
        self.name = name
        self.min_supported_version = min_supported_version
        self.max_supported_version = max_supported_version


class RegisterBrokerRecord(MetadataRecord):
    """A broker started: who it is and where it listens."""

    __slots__ = (
        "broker_epoch", "broker_id", "cordoned_log_dirs", "end_points", "features", "fenced", "in_controlled_shutdown",
        "incarnation_id", "is_migrating_zk_broker", "log_dirs", "rack",
    )  # fmt: skip
    API_KEY = 0
    VERSION = 3
    LATEST = 4
    FIELDS: ClassVar = (
        Field(name="broker_id", kind="int32"),
        Field(name="is_migrating_zk_broker", kind="bool", since=2),
        Field(name="incarnation_id", kind="uuid"),
        Field(name="broker_epoch", kind="int64"),
        Field(name="end_points", kind=BrokerEndpoint, array=True),
        Field(name="features", kind=BrokerFeature, array=True),
        Field(name="rack", kind="string", null_since=0),
        Field(name="fenced", kind="bool"),
        Field(name="in_controlled_shutdown", kind="bool", since=1),
        Field(name="log_dirs", kind="uuid", array=True, since=3, tag=0),
        Field(name="cordoned_log_dirs", kind="uuid", array=True, since=4, null_since=4, tag=1),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: uuid.UUID = ZERO_UUID,
        broker_epoch: int = 0,
        end_points: Sequence[BrokerEndpoint] = (),
        features: Sequence[BrokerFeature] = (),
        rack: str | None = None,
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: Sequence[uuid.UUID] = (),
        cordoned_log_dirs: Sequence[uuid.UUID] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.is_migrating_zk_broker = is_migrating_zk_broker
        self.incarnation_id = incarnation_id
        self.broker_epoch = broker_epoch
        self.end_points = end_points
        self.features = features
        self.rack = rack
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs


class RegisterControllerRecord(MetadataRecord):
    """A controller started: who it is and where it listens."""

    __slots__ = ("controller_id", "end_points", "features", "incarnation_id", "zk_migration_ready")
    API_KEY = 27
    FIELDS: ClassVar = (
        Field(name="controller_id", kind="int32"),
        Field(name="incarnation_id", kind="uuid"),
        Field(name="zk_migration_ready", kind="bool"),
        Field(name="end_points", kind=BrokerEndpoint, array=True),
        Field(name="features", kind=BrokerFeature, array=True),
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: uuid.UUID = ZERO_UUID,
        zk_migration_ready: bool = False,
        end_points: Sequence[BrokerEndpoint] = (),
        features: Sequence[BrokerFeature] = (),
    ) -> None:
        self.controller_id = controller_id
        self.incarnation_id = incarnation_id
        self.zk_migration_ready = zk_migration_ready
        self.end_points = end_points
        self.features = features


class BrokerRegistrationChangeRecord(MetadataRecord):
    """A registered broker was fenced (1) or unfenced (-1)."""

    __slots__ = ("broker_epoch", "broker_id", "cordoned_log_dirs", "fenced", "in_controlled_shutdown", "log_dirs")
    API_KEY = 17
    VERSION = 2
    LATEST = 3
    FIELDS: ClassVar = (
        Field(name="broker_id", kind="int32"),
        Field(name="broker_epoch", kind="int64"),
        Field(name="fenced", kind="int8", tag=0),
        Field(name="in_controlled_shutdown", kind="int8", since=1, tag=1),
        Field(name="log_dirs", kind="uuid", array=True, since=2, tag=2),
        Field(name="cordoned_log_dirs", kind="uuid", array=True, since=3, null_since=3, tag=3),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: Sequence[uuid.UUID] = (),
        cordoned_log_dirs: Sequence[uuid.UUID] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs


class TopicRecord(MetadataRecord):
    """A topic was created; its partitions follow in records of their own, in the same batch."""

    __slots__ = ("name", "topic_id")
    API_KEY = 2
    FIELDS: ClassVar = (Field(name="name", kind="string"), Field(name="topic_id", kind="uuid"))

    def __init__(self, *, name: str = "", topic_id: uuid.UUID = ZERO_UUID) -> None:
        self.name = name
        self.topic_id = topic_id


class PartitionRecord(MetadataRecord):
    """A partition exists. Version 1 adds the directory of each replica (KIP-858); 2 the eligible leaders (KIP-966)."""

    __slots__ = (
        "adding_replicas", "directories", "eligible_leader_replicas", "isr", "last_known_elr", "leader", "leader_epoch",
        "leader_recovery_state", "partition_epoch", "partition_id", "removing_replicas", "replicas", "topic_id",
    )  # fmt: skip
    API_KEY = 3
    VERSION = 1
    LATEST = 2
    FIELDS: ClassVar = (
        Field(name="partition_id", kind="int32"),
        Field(name="topic_id", kind="uuid"),
        Field(name="replicas", kind="int32", array=True),
        Field(name="isr", kind="int32", array=True),
        Field(name="removing_replicas", kind="int32", array=True),
        Field(name="adding_replicas", kind="int32", array=True),
        Field(name="leader", kind="int32"),
        Field(name="leader_recovery_state", kind="int8", tag=0),
        Field(name="leader_epoch", kind="int32"),
        Field(name="partition_epoch", kind="int32"),
        Field(name="directories", kind="uuid", array=True, since=1),
        Field(name="eligible_leader_replicas", kind="int32", array=True, since=2, null_since=2, tag=1),
        Field(name="last_known_elr", kind="int32", array=True, since=2, null_since=2, tag=2),
    )

    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: uuid.UUID = ZERO_UUID,
        replicas: Sequence[int] = (),
        isr: Sequence[int] = (),
        removing_replicas: Sequence[int] = (),
        adding_replicas: Sequence[int] = (),
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: Sequence[uuid.UUID] = (),
        eligible_leader_replicas: Sequence[int] | None = None,
        last_known_elr: Sequence[int] | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.topic_id = topic_id
        self.replicas = replicas
        self.isr = isr
        self.removing_replicas = removing_replicas
        self.adding_replicas = adding_replicas
        self.leader = leader
        self.leader_recovery_state = leader_recovery_state
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.directories = directories
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr


class ConfigRecord(MetadataRecord):
    """One configuration key of a resource was set, or (value None) removed."""

    __slots__ = ("name", "resource_name", "resource_type", "value")
    API_KEY = 4
    FIELDS: ClassVar = (
        Field(name="resource_type", kind="int8"),
        Field(name="resource_name", kind="string"),
        Field(name="name", kind="string"),
        Field(name="value", kind="string", null_since=0),
    )

    def __init__(
        self, *, resource_type: int = 0, resource_name: str = "", name: str = "", value: str | None = None
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.name = name
        self.value = value


class RemoveTopicRecord(MetadataRecord):
    """A topic is gone, with its partitions and its configuration."""

    __slots__ = ("topic_id",)
    API_KEY = 9
    FIELDS: ClassVar = (Field(name="topic_id", kind="uuid"),)

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID) -> None:
        self.topic_id = topic_id


class FeatureLevelRecord(MetadataRecord):
    """The level of a cluster-wide feature; ``metadata.version`` is one."""

    __slots__ = ("feature_level", "name")
    API_KEY = 12
    FIELDS: ClassVar = (Field(name="name", kind="string"), Field(name="feature_level", kind="int16"))

    def __init__(self, *, name: str = "", feature_level: int = 0) -> None:
        self.name = name
        self.feature_level = feature_level


class ProducerIdsRecord(MetadataRecord):
    """A broker took a block of producer ids; ``next_producer_id`` begins the next block."""

    __slots__ = ("broker_epoch", "broker_id", "next_producer_id")
    API_KEY = 15
    FIELDS: ClassVar = (
        Field(name="broker_id", kind="int32"),
        Field(name="broker_epoch", kind="int64"),
        Field(name="next_producer_id", kind="int64"),
    )

    def __init__(self, *, broker_id: int = 0, broker_epoch: int = -1, next_producer_id: int = 0) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.next_producer_id = next_producer_id


class NoOpRecord(MetadataRecord):
    """Says nothing."""

    __slots__ = ()
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


def encode_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """The value of a metadata record."""
    out = bytearray()
    chosen = record.VERSION if version is None else version
    write_uvarint(out, _FRAME_VERSION)
    write_uvarint(out, record.API_KEY)
    write_uvarint(out, chosen)
    return bytes(encode(record, chosen, out))


def decode_record(data: bytes) -> MetadataRecord:
    """An UnknownRecord for what is of another type. Raises CorruptMessage for what is malformed, or of a later version.

    Kafka has records for parts of it that are not here; but what a later version says of a topic must not be passed over.
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
