"""The image of a cluster: topics, partitions, configuration, producer ids. It is stored in ``__cluster_metadata-0``.

Every change is one batch of KRaft records that is on disk before the image changes, so that a crash leaves it complete
or undone. The logs of partitions follow the image: ``open`` creates missing ones, completes deletions, and sets aside
logs that are not in the image.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.errors import (
    BrokerError,
    InvalidConfiguration,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    KafkaStorageError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from broker.log.config import LogConfig
from broker.log.directory import NO_TOPIC_ID, LogDirectory
from broker.log.disk import Disk
from broker.log.partition import PartitionLog
from broker.metadata.features import FEATURES
from broker.metadata.fold import NO_LEADER_CHANGE, MetadataTransactions
from broker.metadata.properties import MetaProperties, load_or_create
from broker.metadata.records import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    AbortTransactionRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_record,
    encode_records,
)
from broker.metadata.snapshot import Snapshot, latest_snapshot
from broker.protocol.records import Record
from broker.quotas.records import ClientQuotaRecord
from broker.quotas.settings import QuotaSettings
from broker.security.acl_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from broker.security.acls import Acls
from broker.security.credential_records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from broker.security.scram import ScramCredentials
from broker.security.token_image import TokenImage
from broker.steps import Step, run_through
from tidegate.kit.config import keys_of, nearest_key, parse
from tidegate.kit.errors import ConfigError

__all__ = ["METADATA_TOPIC", "ClusterMetadata", "NewTopic", "Topic"]

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
"""The id Kafka reserves for it."""

_PRODUCER_ID_BLOCK: Final = 1000
_RESERVED_IDS: Final = 100
"""Kafka reserves the first ids: 0 to 2 mean no directory, a lost one, and an unknown one."""
_PREPARED_TOGETHER: Final = 64
"""Directories of new logs that are made in one go. That takes 100 ms on a busy disk."""
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's current state. ``configs`` has only the keys that were set, as text."""

    name: str
    id: uuid.UUID
    partitions: int
    configs: Mapping[str, str]

    @property
    def internal(self) -> bool:
        return self.name in ("__consumer_offsets", "__transaction_state", "__share_group_state")


class NewTopic(NamedTuple):
    """A topic to create, as ``check_new_topic`` accepted it."""

    name: str
    partitions: int
    configs: Mapping[str, str]


class ClusterMetadata:
    """Created by ``open``. Used on the broker's thread only; changes block until they are on disk."""

    def __init__(self, directory: LogDirectory, properties: MetaProperties, records: PartitionLog) -> None:
        self.properties = properties
        self._directory = directory
        self._log = records
        self._topics: dict[str, Topic] = {}
        self._names: dict[int, str] = {}
        """Names of topics by id as an int, because a lookup by UUID runs Python code."""
        self._alike: dict[str, str] = {}
        """Topics by their metric name, in which `.` is written as `_`."""
        self._removed: set[uuid.UUID] = set()
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._defaults: Mapping[str, str] = {}
        self._next_block = 0
        self._producer_ids = range(0)
        self._changed_topics: set[str] = set()
        self._without_logs: set[str] = set()
        self.topics_created_version = -1
        """The version in which the newest topic was created."""
        self.watch_topics: Callable[[str], None] | None = None
        """Called with the name of each topic that was created, grown or deleted, after the fact."""
        self.snapshot: Snapshot | None = None
        """The newest snapshot, after which the log continues."""
        self._homes: dict[tuple[str, int], uuid.UUID] = {}
        """The directory of each partition, if there are several."""
        self.leader_epochs: dict[tuple[str, int], int] = {}
        """Leader epochs of partitions that an Apache Kafka led before; all others are in epoch 0."""
        self.tail_bytes = 0
        """Sizes of the records since the last snapshot."""
        self.features: dict[str, int] = {}
        self.config_changes = 0
        self.acls = Acls()
        self.quotas = QuotaSettings()
        self.scram = ScramCredentials()
        self.tokens = TokenImage()

    @classmethod
    def open(
        cls, directory: LogDirectory, *, node_id: int = 1, topic_defaults: Mapping[str, str] | None = None
    ) -> ClusterMetadata:
        """Read the image from an opened directory and make its logs match.

        ``topic_defaults`` are the broker's defaults for topic keys. Raises KafkaStorageError, CorruptMessage.
        """
        properties = load_or_create(directory.path, node_id)
        for disk in directory.online:
            disk.id = load_or_create(disk.path, node_id, properties.cluster_id).directory_id
        records = directory.internal(METADATA_TOPIC, METADATA_TOPIC_ID)
        records.config = LogConfig(retention_ms=-1)
        made = cls(directory, properties, records)
        made._defaults = dict(topic_defaults or {})
        made._read()
        if made.version < 0 and made.snapshot is None:
            made._begin()
        made._align_logs()
        return made

    # Reading

    @property
    def cluster_id(self) -> str:
        return self.properties.cluster_id

    @property
    def version(self) -> int:
        """The offset of the newest record, which Kafka uses as the version of the metadata."""
        return self._log.log_end_offset - 1

    @property
    def node_id(self) -> int:
        return self.properties.node_id

    @property
    def topics(self) -> Mapping[str, Topic]:
        """All topics by name, without the metadata log itself."""
        return self._topics

    def topic(self, name: str) -> Topic:
        """Raises UnknownTopicOrPartition."""
        topic_image = self._topics.get(name)
        if topic_image is None:
            raise UnknownTopicOrPartition(f"there is no topic {name!r}")
        return topic_image

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        return self._names.get(topic_id.int)

    def topic_config(self, name: str) -> LogConfig:
        """The effective configuration of a topic's logs: its own keys, then the broker's defaults."""
        return parse(LogConfig, {**self._defaults, **self.topic(name).configs})

    def configs(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The keys set on a resource other than a topic (types as in ``metadata_records``)."""
        return self._configs.get((resource_type, name), {})

    def configured(self, resource_type: int) -> list[str]:
        """The resources of a type for which keys are set."""
        return [name for (kind, name), configs in self._configs.items() if kind == resource_type and configs]

    def named_configs(self, resource_type: int) -> dict[str, Mapping[str, str]]:
        """All resources of a type that have keys set, by name."""
        return {name: configs for (kind, name), configs in self._configs.items() if kind == resource_type}

    def logs(self, name: str) -> list[PartitionLog]:
        """The logs of a topic, by partition. Raises UnknownTopicOrPartition."""
        result = (self._directory.get(name, partition) for partition in range(self.topic(name).partitions))
        return [log for log in result if log is not None]

    # Changes

    def check_new_topic(
        self, name: str, *, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Check whether ``create_topic`` would accept a topic.

        Raises InvalidTopic, TopicAlreadyExists, InvalidPartitions, InvalidReplicationFactor or InvalidConfiguration.
        """
        self._check_new_name(name)
        if partitions < 1:
            raise InvalidPartitions(f"topic {name!r} cannot have {partitions} partitions; at least 1 is needed")
        if replication_factor not in (-1, 1):
            raise InvalidReplicationFactor(
                f"topic {name!r} asks for {replication_factor} replicas, but there is 1 broker"
            )
        self.check_topic_configs(configs or {})

    @staticmethod
    def check_name(name: str) -> None:
        """Raises InvalidTopic for an invalid topic name."""
        if not _LEGAL_NAME.fullmatch(name) or name in (".", ".."):
            raise InvalidTopic(
                f"{name!r} cannot name a topic: 1 to 249 ASCII letters, digits, '.', '_' and '-', not '.' or '..'"
            )

    def _check_new_name(self, name: str, beside: Mapping[str, str] = MappingProxyType({})) -> None:
        """``beside`` are names, by their metric names, of topics that are created in the same change."""
        self.check_name(name)
        if name in self._topics or name == METADATA_TOPIC:
            raise TopicAlreadyExists(f"topic {name!r} exists already")
        collision = self._alike.get(_metric_name(name)) or beside.get(_metric_name(name))
        if collision is not None and ("." in name or "." in collision):
            raise InvalidTopic(
                f"topic {name!r} collides with {collision!r}: '.' and '_' are the same in the names of metrics"
            )

    def check_topic_configs(self, configs: Mapping[str, str]) -> LogConfig:
        """The keys with defaults for those that are not set. Raises InvalidConfiguration with every problem."""
        known = keys_of(LogConfig)
        names = {key.name for key in known}
        for name in configs:
            if name not in names:
                near = nearest_key(name, known)
                hint = f"; did you mean {near}?" if near else ""
                raise InvalidConfiguration(f"Unknown topic config name: {name}{hint}")
        try:
            return parse(LogConfig, {**self._defaults, **configs})
        except ConfigError as error:
            raise InvalidConfiguration(error.message) from error

    def create_topic(
        self, name: str, *, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, str] | None = None
    ) -> Topic:
        """Create a topic with its logs. Raises the errors of ``check_new_topic``, and KafkaStorageError.

        After KafkaStorageError the topic does not exist. If its removal could not be written either, it exists and
        ``make_missing_logs`` creates its missing logs: it is not removed later, because it may be in use by then.
        """
        self.check_new_topic(name, partitions=partitions, replication_factor=replication_factor, configs=configs)
        failed = run_through(self.create_topics([NewTopic(name, partitions, configs or {})]))
        if failed:
            raise failed[name]
        return self._topics[name]

    def create_topics(self, new: Sequence[NewTopic]) -> Generator[Step, None, dict[str, BrokerError]]:
        """Create topics that ``check_new_topic`` has accepted: all in one change with the first step, then their
        logs.

        Returns the errors of those that were not created: TopicAlreadyExists or InvalidTopic if another one came first,
        KafkaStorageError as by ``create_topic``. Raises KafkaStorageError if the change could not be written.
        """
        failed: dict[str, BrokerError] = {}
        beside: dict[str, str] = {}
        for topic in new:
            try:
                self._check_new_name(topic.name, beside)
            except BrokerError as error:
                failed[topic.name] = error
            else:
                beside[_metric_name(topic.name)] = topic.name
        disks = iter(self._directory.choose_disks(sum(topic.partitions for topic in new)))
        records: list[MetadataRecord] = []
        for topic in new:
            if topic.name not in failed:
                topic_id = _new_topic_id()
                records.append(TopicRecord(name=topic.name, topic_id=topic_id))
                records += self._config_records(topic.name, topic.configs)
                records += self._partition_records(topic_id, range(topic.partitions), disks)
        names = list(beside.values())
        with self._making(names):
            self._commit(records)
            for name in names:
                try:
                    yield from self._log_steps(self._topics[name])
                except KafkaStorageError as error:
                    failed[name] = error
                    self._without_logs.add(name)
                    with contextlib.suppress(KafkaStorageError):
                        self.delete_topic(name)
                self._made(name)
        return failed

    def make_missing_logs(self) -> None:
        """Create logs that could not be created with their partitions, as far as the disk permits."""
        for name in list(self._without_logs):
            with contextlib.suppress(KafkaStorageError):
                if name in self._topics:
                    run_through(self._log_steps(self._topics[name]))
                    self._made(name)
                self._without_logs.discard(name)

    def delete_topic(self, name: str) -> Topic:
        """Delete a topic with its logs, and return it. Raises UnknownTopicOrPartition, KafkaStorageError."""
        topic = self.topic(name)
        run_through(self.delete_topics([topic]))
        return topic

    def delete_topics(self, topics: Sequence[Topic]) -> Generator[Step]:
        """Delete different topics: all in one change with the first step, then the directory of a log with each.

        Raises KafkaStorageError if the change could not be written.
        """
        self._commit([RemoveTopicRecord(topic_id=topic.id) for topic in topics])
        for topic in topics:
            self._directory.drop(topic.name, *range(topic.partitions))
        yield from self._directory.take_away()

    def create_partitions(self, name: str, total: int) -> Topic:
        """Raise the number of partitions to ``total``. Raises InvalidPartitions unless that is more."""
        run_through(self.grow_topic(name, total))
        return self._topics[name]

    def grow_topic(self, name: str, total: int) -> Generator[Step]:
        """The same in steps: the change with the first, then a log with each."""
        topic = self.topic(name)
        if total <= topic.partitions:
            raise InvalidPartitions(
                f"topic {name!r} has {topic.partitions} partitions already; {total} would not be more"
            )
        disks = iter(self._directory.choose_disks(total - topic.partitions))
        with self._making([name]):
            self._commit(self._partition_records(topic.id, range(topic.partitions, total), disks))
            try:
                yield from self._log_steps(self._topics[name])
            except KafkaStorageError:
                self._without_logs.add(name)  # partitions are never removed, so missing logs are created later
                raise
            finally:
                self._made(name)

    def set_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> Topic:
        """Set (or, with None, remove) keys of a topic; takes effect at once. Raises InvalidConfiguration."""
        topic = self.topic(name)
        after = {key: value for key, value in {**topic.configs, **changes}.items() if value is not None}
        settled = self.check_topic_configs(after)
        self._commit(self._config_records(name, changes))
        for log in self.logs(name):
            log.config = settled
        return self._topics[name]

    def set_configs(self, resource_type: int, name: str, changes: Mapping[str, str | None]) -> None:
        """Store keys of a resource other than a topic. The caller knows what they mean and has validated them."""
        self._commit(
            [
                ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
                for key, value in changes.items()
            ]
        )

    def set_topic_defaults(self, topic_defaults: Mapping[str, str]) -> None:
        """Replace the defaults of topic keys, and apply them to all logs. Raises InvalidConfiguration."""
        before, self._defaults = self._defaults, dict(topic_defaults)
        try:
            self.check_topic_configs({})
        except InvalidConfiguration:
            self._defaults = before
            raise
        self._align_logs()

    def next_producer_id(self) -> int:
        """A producer id that was never used. Ids are reserved in blocks, so few calls write to disk."""
        if not self._producer_ids:
            start = self._next_block
            self._commit([ProducerIdsRecord(broker_id=self.node_id, next_producer_id=start + _PRODUCER_ID_BLOCK)])
            self._producer_ids = range(start, start + _PRODUCER_ID_BLOCK)
        taken, self._producer_ids = self._producer_ids[0], self._producer_ids[1:]
        return taken

    def _read(self) -> None:
        """Read the newest snapshot, then the log after it."""
        records, transactions = self._log, MetadataTransactions()
        result = latest_snapshot(records.directory)
        if result is not None:
            self.snapshot, content = result
            for value in transactions.committed(content.values):
                self._replay(decode_record(value))
            if self.snapshot.offset > records.log_end_offset:
                # As in Kafka, a snapshot takes precedence over a log that ends before it.
                records.restart_at(self.snapshot.offset)
        for value in transactions.committed(self._tail()):
            self._replay(decode_record(value))
        if transactions.is_open:
            self._commit([AbortTransactionRecord(reason="the controller ended")])

    def _tail(self) -> Iterator[bytes]:
        start = 0 if self.snapshot is None else self.snapshot.offset
        for record in self._log.iter_records(start):
            value = record.value or b""
            self.tail_bytes += len(value)
            yield value

    @property
    def log(self) -> PartitionLog:
        """The log with the records."""
        return self._log

    def append(self, records: Sequence[MetadataRecord]) -> None:
        """Make other records (broker registrations, ACLs, quotas) durable in one batch."""
        self._commit(records)

    def _begin(self) -> None:
        """Write the first records of a new cluster.

        An existing cluster keeps its levels until they are raised, as in Kafka: a feature without a record is at its
        lowest level.
        """
        begun: list[MetadataRecord] = [
            FeatureLevelRecord(name=name, feature_level=feature.highest)
            for name, feature in FEATURES.items()
            if feature.in_metadata
        ]
        # When eligible leaders are counted, Kafka wants a cluster-wide value, so that brokers do not differ.
        key = "min.insync.replicas"
        value = self._defaults.get(key, "1")
        begun.append(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name=key, value=value))
        self._commit(begun)

    def _config_records(self, name: str, changes: Mapping[str, str | None]) -> list[MetadataRecord]:
        return [
            ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=name, name=key, value=value)
            for key, value in changes.items()
        ]

    def _partition_records(
        self, topic_id: uuid.UUID, partitions: range, disks: Iterator[Disk]
    ) -> list[PartitionRecord]:
        alone = (self.node_id,)
        return [
            PartitionRecord(
                partition_id=partition,
                topic_id=topic_id,
                replicas=alone,
                isr=alone,
                leader=self.node_id,
                leader_epoch=0,
                partition_epoch=0,
                directories=(disk.id,),
            )
            for partition, disk in zip(partitions, disks, strict=False)
        ]

    def moved(self, partitions: Iterable[PartitionLog]) -> None:
        """Record the current directories of these partitions. Raises KafkaStorageError."""
        changes = []
        for partition in partitions:
            home = self._directory.disk_of(partition).id
            changes.append(
                PartitionChangeRecord(
                    topic_id=partition.topic_id, partition_id=partition.partition, directories=(home,)
                )
            )
        self._commit(changes)

    def _commit(self, records: Sequence[MetadataRecord]) -> None:
        if not records:
            return
        values = encode_records(records)
        before = self._log.flusher.savepoint
        try:
            self._log.append_records([Record(None, value) for value in values])
            self._log.flush()
        except KafkaStorageError:
            # The change was answered as failed, so it must not reappear when the disk works again.
            self._log.flusher.take_back(before)
            raise
        self.tail_bytes += sum(map(len, values))
        for record in records:
            self._replay(record)
        changed, self._changed_topics = self._changed_topics, set()
        for name in changed - self._directory.unmade:
            self._tell(name)

    def _tell(self, name: str) -> None:
        if self.watch_topics is not None:
            self.watch_topics(name)

    @contextlib.contextmanager
    def _making(self, names: Sequence[str]) -> Iterator[None]:
        """Topics whose logs are created here: those who watch are told of each once it is ``_made``."""
        self._directory.unmade.update(names)
        try:
            yield
        finally:
            self._directory.unmade.difference_update(names)

    def _made(self, name: str) -> None:
        self._directory.unmade.discard(name)
        self._tell(name)

    # The image

    def _replay(self, record: MetadataRecord) -> None:
        match record:
            case TopicRecord():
                self._topics[record.name] = Topic(
                    record.name, record.topic_id, 0, self._configs.get((TOPIC_RESOURCE, record.name), {})
                )
                self._names[record.topic_id.int] = record.name
                self._alike[_metric_name(record.name)] = record.name
                self._changed_topics.add(record.name)
                self.topics_created_version = self.version
            case PartitionRecord():
                topic = self._topics[self._names[record.topic_id.int]]
                self._changed_topics.add(topic.name)
                count = max(topic.partitions, record.partition_id + 1)
                self._topics[topic.name] = replace(topic, partitions=count)
                if len(self._directory.disks) > 1 and record.directories:
                    self._homes[topic.name, record.partition_id] = record.directories[0]
                if record.leader_epoch > 0:
                    self.leader_epochs[topic.name, record.partition_id] = record.leader_epoch
            case PartitionChangeRecord():
                which = self._names[record.topic_id.int], record.partition_id
                if len(self._directory.disks) > 1 and record.directories:
                    self._homes[which] = record.directories[0]
                if record.leader != NO_LEADER_CHANGE:
                    self.leader_epochs[which] = self.leader_epochs.get(which, 0) + 1
            case ConfigRecord():
                self._replay_config(record)
            case RemoveTopicRecord():
                name = self._names.pop(record.topic_id.int)
                self._alike.pop(_metric_name(name), None)
                self._changed_topics.add(name)
                self._removed.add(record.topic_id)
                for partition in range(self._topics.pop(name).partitions):
                    self.leader_epochs.pop((name, partition), None)
                    self._homes.pop((name, partition), None)
                self._configs.pop((TOPIC_RESOURCE, name), None)
            case FeatureLevelRecord():
                self.features[record.name] = record.feature_level
            case ProducerIdsRecord():
                self._next_block = max(self._next_block, record.next_producer_id)
            case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
                self.acls.replay(record)
            case ClientQuotaRecord():
                self.quotas.replay(record)
            case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
                self.scram.replay(record)
            case DelegationTokenRecord() | RemoveDelegationTokenRecord():
                self.tokens.replay(record)

    def _replay_config(self, record: ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        present = dict(self._configs.get(resource, {}))
        if record.value is None:
            present.pop(record.name, None)
        else:
            present[record.name] = record.value
        self.config_changes += 1
        if present or record.resource_type == TOPIC_RESOURCE:
            self._configs[resource] = present
        else:
            self._configs.pop(resource, None)
        topic = self._topics.get(record.resource_name) if record.resource_type == TOPIC_RESOURCE else None
        if topic is not None:
            self._topics[topic.name] = replace(topic, configs=present)

    def _log_steps(self, topic: Topic) -> Generator[Step]:
        """Configure a topic's logs, and create those that it lacks: the files in another thread, then a log with each
        step.
        """
        settled = self.topic_config(topic.name)
        missing: list[tuple[int, uuid.UUID | None]] = []
        for partition in range(topic.partitions):
            present = self._directory.get(topic.name, partition)
            home = self._homes.get((topic.name, partition))
            if present is not None:
                self._configure(present, settled)
            elif self._is_offline(home):
                self._directory.offline.add((topic.name, partition))
            else:
                missing.append((partition, home))
        configs = self.config_changes, self._defaults
        while missing:
            prepared = self._directory.prepare(topic.name, topic.id, missing[:_PREPARED_TOGETHER])
            del missing[:_PREPARED_TOGETHER]
            yield prepared
            for log in self._directory.take(prepared):
                if configs != (self.config_changes, self._defaults):
                    configs, settled = (self.config_changes, self._defaults), self.topic_config(topic.name)
                self._configure(log, settled)
                yield None

    def _configure(self, log: PartitionLog, settled: LogConfig) -> None:
        log.config = settled
        if self.leader_epochs:
            log.appender.lead(self.leader_epochs.get((log.topic, log.partition), 0))

    def _align_logs(self) -> None:
        for stray in self._strays():
            if stray.topic_id in self._removed:
                self._directory.delete(stray.topic, stray.partition)
            else:
                self._directory.set_aside(stray.topic, stray.partition)
        for topic in self._topics.values():
            if topic.name not in self._directory.unmade:
                run_through(self._log_steps(topic))
        if self._homes:
            self.moved(
                log
                for log in self._directory.all()
                if self._homes.get((log.topic, log.partition), log.topic_id) not in (log.topic_id, self._home_of(log))
            )

    def _home_of(self, log: PartitionLog) -> uuid.UUID:
        return self._directory.disk_of(log).id

    def _is_offline(self, home: uuid.UUID | None) -> bool:
        """Whether a log with this directory id is on a failed disk, whose id could not be read."""
        disks = self._directory
        failed = any(disk.failure is not None for disk in disks.disks)
        return (
            failed
            and home is not None
            and home.int >= _RESERVED_IDS
            and all(home != log_disk.id for log_disk in disks.online)
        )

    def _strays(self) -> Iterator[PartitionLog]:
        for log in self._directory.all():
            topic = self._topics.get(log.topic)
            if topic is not None and log.topic_id == NO_TOPIC_ID and log.partition < topic.partitions:
                self._directory.identify(log, topic.id)
            known = topic is not None and topic.id == log.topic_id and log.partition < topic.partitions
            if not known and log.topic != METADATA_TOPIC:
                yield log


def _metric_name(topic: str) -> str:
    return topic.replace(".", "_")


def _new_topic_id() -> uuid.UUID:
    """A random id outside of Kafka's reserved first 100."""
    while (made := uuid.uuid4()).int < 100:
        pass
    return made
