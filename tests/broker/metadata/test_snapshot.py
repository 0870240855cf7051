"""A snapshot has the same contents as the records that it replaces, and a start needs only the snapshot."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import CorruptMessage
from broker.log.directory import LogDirectory
from broker.metadata.config import MetadataLogConfig
from broker.metadata.fold import MetadataFold, MetadataTransactions
from broker.metadata.image import METADATA_TOPIC, METADATA_TOPIC_ID, ClusterMetadata
from broker.metadata.keeper import MetadataKeeper
from broker.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from broker.metadata.snapshot import Content, latest_snapshot, read_snapshot, snapshots, write_snapshot
from broker.protocol.records import Record
from tidegate.kit.config import parse

NOW = 1_700_000_000_000
UNKNOWN = b"\x01\x63\x00later"


def opened(path: Path) -> tuple[LogDirectory, ClusterMetadata]:
    directory = LogDirectory(path)
    directory.open()
    return directory, ClusterMetadata.open(directory)


def keeper(metadata: ClusterMetadata, **given_keys: str) -> MetadataKeeper:
    keys = {"metadata.log.max.record.bytes.between.snapshots": "1", **given_keys}
    return MetadataKeeper(metadata, parse(MetadataLogConfig, keys), clock_ms=lambda: NOW)


def image(metadata: ClusterMetadata) -> object:
    topics = {name: (topic.id, topic.partitions, dict(topic.configs)) for name, topic in metadata.topics.items()}
    return topics, metadata.features, metadata.next_producer_id() // 1000, metadata.configs(4, "1")


def test_a_start_from_a_snapshot_and_the_rest_of_the_log_is_as_one_from_all(tmp_path: Path) -> None:
    directory, metadata = opened(tmp_path)
    metadata.create_topic("orders", partitions=3, configs={"retention.ms": "5000"})
    metadata.create_topic("gone", configs={"retention.ms": "5000"})
    metadata.set_configs(4, "1", {"log.cleaner.threads": "2", "num.io.threads": "3"})
    metadata.delete_topic("gone")
    metadata.set_configs(4, "1", {"num.io.threads": None})
    metadata.log.append_records([Record(None, UNKNOWN)])
    made = asyncio.run(keeper(metadata).keep())
    assert made is not None
    assert made.offset == metadata.log.log_end_offset
    content = read_snapshot(made.path)
    assert UNKNOWN in content.values
    assert len(content.values) < metadata.log.log_end_offset
    metadata.create_topic("later")
    expected = image(metadata)
    metadata.log.delete_records(made.offset)
    directory.close()
    directory, again = opened(tmp_path)
    assert again.snapshot == made
    after = image(again)
    assert after[:2] == expected[:2]  # type: ignore[index]
    assert set(again.topics) == {"orders", "later"}
    assert dict(again.configs(4, "1")) == {"log.cleaner.threads": "2"}
    assert [log.partition for log in again.logs("orders")] == [0, 1, 2]
    assert asyncio.run(keeper(again).keep()) is not None
    assert UNKNOWN in read_snapshot(snapshots(again.log.directory)[-1].path).values
    directory.close()


def test_old_snapshots_go_and_the_log_in_front_of_the_next_with_them(tmp_path: Path) -> None:
    directory, metadata = opened(tmp_path)
    kept = keeper(metadata, **{"metadata.max.retention.bytes": "1000"})
    for number in range(4):
        metadata.create_topic(f"t{number}", partitions=20)
        asyncio.run(kept.keep())
    (only,) = snapshots(metadata.log.directory)
    assert metadata.log.log_start_offset == only.offset
    directory.close()
    directory, again = opened(tmp_path)
    assert len(again.topics) == 4
    directory.close()


def test_without_new_records_nothing_is_written(tmp_path: Path) -> None:
    directory, metadata = opened(tmp_path)
    kept = keeper(metadata)
    assert asyncio.run(kept.keep()) is not None
    assert asyncio.run(kept.keep()) is None
    directory.close()


def test_a_snapshot_beyond_the_end_of_the_log_takes_its_place(tmp_path: Path) -> None:
    directory, metadata = opened(tmp_path)
    metadata.create_topic("orders")
    made = asyncio.run(keeper(metadata).keep())
    assert made is not None
    made.path.rename(made.path.with_name(f"{made.offset + 10:020d}-0000000000.checkpoint"))
    metadata.log.restart_at(0)
    directory.close()
    directory, again = opened(tmp_path)
    assert set(again.topics) == {"orders"}
    assert again.log.log_start_offset == made.offset + 10
    again.create_topic("later")
    directory.close()
    directory, again = opened(tmp_path)
    assert set(again.topics) == {"orders", "later"}
    directory.close()


def test_transactions_of_the_metadata_count_when_they_end() -> None:
    first, two, three = (encode_record(TopicRecord(name=name, topic_id=uuid.uuid4())) for name in ("a", "b", "c"))
    begin, end, abort = (
        encode_record(record) for record in (BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord())
    )
    transactions = MetadataTransactions()
    assert list(transactions.committed([begin, first, two, end, begin, three, abort, begin, three])) == [first, two]
    assert transactions.is_open
    assert list(transactions.committed([end])) == [three]


def test_changes_of_a_partition_end_up_in_it() -> None:
    topic = uuid.uuid4()
    fold = MetadataFold()
    fold.add(encode_record(TopicRecord(name="t", topic_id=topic)))
    fold.add(
        encode_record(PartitionRecord(partition_id=0, topic_id=topic, leader=1, leader_epoch=4, partition_epoch=2))
    )
    fold.add(encode_record(PartitionChangeRecord(partition_id=0, topic_id=topic, leader=-1, isr=[1])))
    fold.add(encode_record(PartitionChangeRecord(partition_id=0, topic_id=topic, leader=1)))
    kept = decode_record(fold.values()[1])
    assert isinstance(kept, PartitionRecord)
    assert (kept.leader, kept.leader_epoch, kept.partition_epoch, list(kept.isr)) == (1, 6, 4, [1])


@settings(max_examples=80, deadline=None)
@given(cut=st.integers(0, 700), flip=st.integers(0, 8 * 700))
def test_a_damaged_snapshot_is_not_taken(tmp_path_factory: pytest.TempPathFactory, cut: int, flip: int) -> None:
    path = tmp_path_factory.mktemp("snapshots")
    values = [encode_record(TopicRecord(name=f"t{number}", topic_id=uuid.UUID(int=number))) for number in range(9)]
    good = write_snapshot(path, 7, 2, Content(values, []), last_timestamp_ms=NOW, now_ms=NOW)
    bad = write_snapshot(path, 9, 2, Content(values, []), last_timestamp_ms=NOW, now_ms=NOW)
    data = bytearray(bad.path.read_bytes())
    changed = data[: min(cut, len(data) - 1)]
    if changed and flip < 8 * len(changed):
        changed[flip // 8] ^= 1 << flip % 8
    bad.path.write_bytes(changed)
    snapshot = latest_snapshot(path)
    assert snapshot is not None
    assert snapshot[0] == good
    assert snapshot[1].values == values
    with pytest.raises(CorruptMessage):
        read_snapshot(bad.path)


def test_a_feature_that_was_put_to_0_stays_there(tmp_path: Path) -> None:
    directory, metadata = opened(tmp_path)
    metadata.append([FeatureLevelRecord(name="group.version", feature_level=0)])
    assert asyncio.run(keeper(metadata).keep()) is not None
    metadata.log.delete_records(metadata.log.log_end_offset)
    directory.close()
    directory, again = opened(tmp_path)
    assert again.features["group.version"] == 0
    directory.close()


def test_a_cluster_that_was_begun_elsewhere_keeps_the_features_it_has(tmp_path: Path) -> None:
    directory = LogDirectory(tmp_path)
    directory.open()
    log = directory.internal(METADATA_TOPIC, METADATA_TOPIC_ID)
    log.append_records([Record(None, encode_record(FeatureLevelRecord(name="metadata.version", feature_level=21)))])
    directory.close()
    directory, metadata = opened(tmp_path)
    assert metadata.features == {"metadata.version": 21}
    assert not metadata.configs(4, "") and metadata.version == 0
    directory.close()
