"""Restores the records and positions of a backup into any Kafka, and compares what is there afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.backup.checksum import Checksum
from tidegate.backup.manifest import Partition, Point, RecordFile, Topic
from tidegate.backup.memory import keep_buffers
from tidegate.backup.records import fetched_tables, file_tables, records_before
from tidegate.backup.store import BackupStore
from tidegate.backup.taking import Progress
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.texts import counted

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from broker.client.blocking import Admin, BatchConsumer, BatchProducer

__all__ = [
    "Restored",
    "check_target",
    "compare_records",
    "make_topics",
    "records_in",
    "restore_groups",
    "restore_records",
    "settle_topics",
]

_AT_ONCE: Final = 16
"""The most batches that wait for their acknowledgement."""
_MEANWHILE: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
"""Configs of a topic while it is restored: old records are kept with their times, and superseded ones too, until all
were compared.
"""
_WRITING: Final = {"max.request.size": str(128 * 1024 * 1024), "compression.type": "none"}
_BATCH_BYTES: Final = 900_000


@dataclass(frozen=True, slots=True)
class Restored:
    """Where a partition of the backup begins in the target: the offset of its first restored record."""

    base: int
    written: int
    """The records that an interrupted restore has written before."""


def check_target(admin: Admin, point: Point, *, resume: bool, hint: str = "") -> dict[tuple[str, int], Restored]:
    """Where each partition's records begin in the target. Raises UsageError where a topic there has other partitions,
    or has records and ``resume`` does not say that they are those of an interrupted restore. ``hint`` ends its text.
    """
    from broker.client import TopicPartition

    existing = set(admin.list_topics(internal=True))
    there = admin.describe_topics([name for name in point.topics if name in existing]) if existing else {}
    made: dict[tuple[str, int], Restored] = {}
    problems = []
    for name, topic in point.topics.items():
        if name not in there:
            made |= {(name, p.partition): Restored(0, 0) for p in topic.partitions}
            continue
        if len(there[name].partitions) != len(topic.partitions):
            problems.append(f"{name} has {len(there[name].partitions)} partitions, not {len(topic.partitions)}")
            continue
        partitions = [TopicPartition(name, p.partition) for p in topic.partitions]
        starts, ends = admin.beginning_offsets(partitions), admin.end_offsets(partitions)
        records = sum(ends[tp] - starts[tp] for tp in partitions)
        if records and not resume:
            problems.append(f"{name} has {counted(records, 'record')}")
        for tp in partitions:
            made[name, tp.partition] = Restored(starts[tp], ends[tp] - starts[tp])
    if problems:
        raise UsageError(
            f"the target can't take the records: {'; '.join(problems)}. Its topics of these names must be empty or not there"
            f"{hint}"
        )
    return made


def make_topics(admin: Admin, point: Point, replication_factor: int) -> dict[str, dict[str, str | None]]:
    """Make the topics that are missing, and set all up to be filled. Returns the configs to set when all is done."""
    from broker.client import NewTopic
    from broker.client.errors import InvalidConfiguration

    existing = set(admin.list_topics(internal=True))
    later: dict[str, dict[str, str | None]] = {}
    for name, topic in point.topics.items():
        later[name] = {**dict.fromkeys(_MEANWHILE), **topic.configs}
        at_once = {key: value for key, value in topic.configs.items() if key not in _MEANWHILE}
        if name not in existing:
            admin.create_topics([NewTopic(name, len(topic.partitions), replication_factor, at_once)])
        for key, value in _MEANWHILE.items():
            try:
                admin.alter_configs(name, {key: value})
            except InvalidConfiguration:  # a broker that does not have this config yet
                later[name].pop(key, None)
    return later


def settle_topics(admin: Admin, later: Mapping[str, Mapping[str, str | None]]) -> None:
    """Give the topics the configs of the backup."""
    for name, changes in later.items():
        admin.alter_configs(name, changes)


def _parts(store: BackupStore, partition: Partition) -> Iterator[tuple[RecordFile, int]]:
    """The files of a partition with the number of their records to restore: those before its start are left out."""
    for file in partition.files:
        if file.next_offset <= partition.start:
            continue
        records = file.records
        if file.first_offset < partition.start:
            inside = Partition(partition.partition, partition.start, partition.end, [file])
            records = records_before(store, inside, file.next_offset)
        yield file, records


def _from(batch: pa.RecordBatch, start: int) -> pa.RecordBatch:
    return batch if batch.column(0)[0].as_py() >= start else batch.filter(pc.greater_equal(batch.column(0), start))


def records_in(store: BackupStore, point: Point) -> int:
    """The number of records to restore."""
    return sum(records for _, partition in _partitions(point) for _, records in _parts(store, partition))


def restore_records(
    config: ClientConfig,
    store: BackupStore,
    point: Point,
    where: Mapping[tuple[str, int], Restored],
    progress: Progress,
) -> int:
    """Write the records in the order of their offsets, with their keys, values, headers and times. Returns their number.

    Records that an interrupted restore has written, by ``where``, are not written again. Raises TidegateError for a damaged file.
    """
    from broker.client.blocking import BatchProducer

    keep_buffers()
    total = records_in(store, point)
    done = written = 0
    with BatchProducer(config.with_properties(_WRITING)) as producer:
        for topic, partition in _partitions(point):
            left = where[topic.name, partition.partition].written
            for file, records in _parts(store, partition):
                done += records
                if left >= records:
                    left -= records
                    continue
                skip, left = left, 0
                written += _write_file(producer, store, topic, partition, file, skip)
                progress(done, total, f"{topic.name}-{partition.partition}")
        producer.flush()
    progress(total, total, "")
    return written


def _partitions(point: Point) -> Iterator[tuple[Topic, Partition]]:
    for topic in point.topics.values():
        for partition in topic.partitions:
            yield topic, partition


def _write_file(
    producer: BatchProducer, store: BackupStore, topic: Topic, partition: Partition, file: RecordFile, skip: int
) -> int:
    from broker.client.columns import encode_batches

    waiting: deque[Future[Any]] = deque()
    written = 0
    for batch in file_tables(store, file):
        rows = _from(batch, partition.start)
        rows, skip = rows.slice(min(skip, len(rows))), max(0, skip - len(rows))
        if not len(rows):
            continue
        _, timestamps, keys, values, headers = rows.columns
        limit = min(_BATCH_BYTES, int(topic.configs.get("max.message.bytes", _BATCH_BYTES)))
        for encoded in encode_batches(
            keys, values, timestamps.cast(pa.int64()), headers, compression="lz4", max_bytes=limit
        ):
            waiting.append(producer.send_batch(topic.name, partition.partition, encoded))
            if len(waiting) > _AT_ONCE:
                waiting.popleft().result()
        written += len(rows)
    while waiting:
        waiting.popleft().result()
    return written


def compare_records(
    consumer: BatchConsumer,
    store: BackupStore,
    point: Point,
    where: Mapping[tuple[str, int], Restored],
    progress: Progress,
) -> list[str]:
    """Read what was restored, and compare the checksum of each file's records. Returns what differs."""
    total = records_in(store, point)
    done, problems = 0, []
    for topic, partition in _partitions(point):
        position = where[topic.name, partition.partition].base
        for file, records in _parts(store, partition):
            progress(done, total, f"{topic.name}-{partition.partition}")
            done += records
            checksum = Checksum()
            for batch in fetched_tables(consumer, topic.name, partition.partition, position, position + records):
                checksum.add(*batch.columns[1:])
            expected = file.checksum if records == file.records else _checksum_from(store, file, partition.start)
            if checksum.text != expected:
                problems.append(
                    f"{topic.name}-{partition.partition}: offsets {position} to {position + records - 1} differ from {file.path}"
                )
            position += records
    progress(total, total, "")
    return problems


def _checksum_from(store: BackupStore, file: RecordFile, start: int) -> str:
    checksum = Checksum()
    for batch in file_tables(store, file):
        rows = _from(batch, start)
        if len(rows):
            checksum.add(*rows.columns[1:])
    return checksum.text


def restore_groups(
    admin: Admin,
    store: BackupStore,
    point: Point,
    where: Mapping[tuple[str, int], Restored],
    names: Sequence[str],
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Set the positions of groups and share groups in the topics of ``point``, each at the record it was at. Returns the new offsets by
    group and partition, and what could not be done: a group with members keeps its positions.
    """
    from broker.client import TopicPartition

    known = {(topic.name, p.partition): p for topic, p in _partitions(point)}
    counted: dict[tuple[str, int, int], int] = {}
    restored: dict[str, dict[str, int]] = {}
    problems = []
    for name in names:
        shared = name in point.share_groups
        offsets: dict[TopicPartition, int] = {}
        notes: dict[TopicPartition, str] = {}
        for said in point.share_groups[name] if shared else point.groups[name]:
            key = (said["topic"], said["partition"])
            if key not in known:
                continue
            at = (*key, said["offset"])
            if at not in counted:
                counted[at] = records_before(store, known[key], said["offset"])
            tp = TopicPartition(*key)
            offsets[tp], notes[tp] = where[key].base + counted[at], said.get("note", "")
        if not offsets:
            continue
        try:
            if shared:
                admin.alter_share_group_offsets(name, offsets)
            else:
                admin.alter_group_offsets(name, offsets, notes)
        except TidegateError as error:
            problems.append(f"group {name}: {error}")
            continue
        restored[name] = {str(tp): offset for tp, offset in sorted(offsets.items())}
    return restored, problems
