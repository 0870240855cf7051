"""Apache Kafka's dump tool reads our files on disk and finds no error."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.log import compaction
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata
from broker.protocol.compression import Codec
from broker.protocol.records import Record, encode_batch

pytestmark = pytest.mark.servers

NOW = 1_700_000_000_000
Tool = Callable[..., str]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped broker's directory: all codecs, an idempotent producer, transactions, several segments."""
    path = tmp_path_factory.mktemp("data")
    directory = LogDirectory(path)
    directory.open()
    metadata = ClusterMetadata.open(directory)
    metadata.create_topic("orders", partitions=2, configs={"retention.ms": "5000"})
    metadata.next_producer_id()
    metadata.create_topic("gone")
    metadata.delete_topic("gone")
    log = metadata.logs("orders")[0]
    log.config = LogConfig(index_interval_bytes=200, segment_bytes=6000)
    for number in range(60):
        records = [
            Record(b"k%d" % n, b"v" * 20 if n % 4 else None, (("h", b"1"),), NOW + number * 10 + n) for n in range(10)
        ]
        log.append(
            encode_batch(
                records, compression=Codec(number % 5), producer_id=7, producer_epoch=0, base_sequence=number * 10
            ),
            now_ms=NOW,
        )
        if number % 20 == 5:
            batch = encode_batch(
                records, producer_id=8, producer_epoch=1, base_sequence=number // 20 * 10, transactional=True
            )
            log.append(batch, now_ms=NOW)
            log.append_marker(8, 1, commit=number != 25, now_ms=NOW)
    compacted = metadata.create_topic("table", configs={"cleanup.policy": "compact"})
    log = metadata.logs(compacted.name)[0]
    log.config = LogConfig(
        cleanup_policy=["compact"], segment_bytes=1000, index_interval_bytes=100, min_cleanable_dirty_ratio=0.0
    )
    for number in range(60):
        value = None if number % 9 == 0 else b"v%d" % number
        log.append(
            encode_batch([Record(b"k%d" % (number % 20), value, (), NOW), Record(b"same", b"x", (), NOW)]), now_ms=NOW
        )
    assert compaction.compact(log, NOW)
    directory.close()
    return path


def files(folder: Path, *suffixes: str) -> str:
    paths = [str(path) for path in sorted(folder.iterdir()) if path.suffix in suffixes]
    assert paths
    return ",".join(paths)


@pytest.mark.parametrize(("partition", "records"), [("orders-0", 633), ("table-0", 120)])
def test_every_batch_is_valid(kafka_tools: Tool, data: Path, partition: str, records: int) -> None:
    said = kafka_tools("kafka-dump-log", "--deep-iteration", "--files", files(data / partition, ".log"))
    batches = re.findall(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* isvalid: (\w+)$", said, re.MULTILINE)
    assert {valid for *_, valid in batches} == {"true"}
    assert int(batches[-1][1]) == records - 1
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", said, re.MULTILINE)]
    assert len(offsets) == sum(int(count) for _, _, count, _ in batches)
    assert offsets == sorted(set(offsets))
    if partition == "orders-0":
        assert offsets == list(range(records))


@pytest.mark.parametrize("partition", ["orders-0", "table-0"])
def test_the_indexes_fit_their_logs(kafka_tools: Tool, data: Path, partition: str) -> None:
    indexes = files(data / partition, ".index", ".timeindex")
    said = kafka_tools("kafka-dump-log", "--index-sanity-check", "--files", indexes)
    assert said.count("passed sanity check") == indexes.count(",") + 1
    verified = kafka_tools("kafka-dump-log", "--verify-index-only", "--files", indexes)
    assert [line for line in verified.splitlines() if line and not line.startswith("Dumping ")] == []


def test_snapshots_and_aborted_transactions_are_read(kafka_tools: Tool, data: Path) -> None:
    said = kafka_tools("kafka-dump-log", "--files", files(data / "orders-0", ".snapshot", ".txnindex"))
    assert re.search(r"producerId: 7 producerEpoch: 0 .* firstSequence: 590 lastSequence: 599 lastOffset: 632 ", said)
    assert "version: 0 producerId: 8 firstOffset: 271 lastOffset: 281 lastStableOffset: 282" in said


def test_the_metadata_log_is_kafkas(kafka_tools: Tool, data: Path) -> None:
    said = kafka_tools(
        "kafka-dump-log", "--cluster-metadata-decoder", "--files", files(data / "__cluster_metadata-0", ".log")
    )
    kinds = re.findall(r'"type":"(\w+)"', said)
    assert {"FEATURE_LEVEL_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"} < set(kinds)
    assert {"REMOVE_TOPIC_RECORD", "PRODUCER_IDS_RECORD"} < set(kinds)
    assert '"name":"retention.ms","value":"5000"' in said
    assert said.count("payload: {") == len(kinds)
