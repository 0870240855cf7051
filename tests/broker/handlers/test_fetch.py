"""Fetch and Produce on the wire: limits, waiting, and errors of single records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker.protocol.records import Record, encode_batch
from tests.conformance.differential.exchange import Peer
from tests.support.broker import BrokerThread, settings

BATCH = encode_batch([Record(None, b"x" * 100, timestamp_ms=1_700_000_000_000)])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(settings(tmp_path_factory.mktemp("fetch"))) as running:
        yield running


@pytest.fixture
def peer(broker: BrokerThread) -> Iterator[Peer]:
    made = Peer(broker.port)
    yield made
    made.hang_up()


def create(peer: Peer, name: str, partitions: int = 1, **configs: str) -> None:
    entries = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": entries}
    assert peer.ask(19, 5, {"topics": [topic], "timeout": 1000})["topics"][0]["error_code"] == "none"


def produce(peer: Peer, name: str, batch: bytes = BATCH, partition: int = 0) -> Any:
    data = [{"name": name, "partition_data": [{"index": partition, "records": batch}]}]
    return peer.ask(0, 9, {"acks": 1, "timeout": 1000, "topic_data": data})["responses"][0]["partition_responses"][0]


def fetch(peer: Peer, name: str, partitions: int = 1, **more: int) -> list[Any]:
    requested = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in range(partitions)]
    body = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, "replica_id": -1, **more}
    answer = peer.ask(1, 12, {**body, "topics": [{"topic": name, "partitions": requested}]})
    return list(answer["responses"][0]["partitions"])


def test_bytes_count_when_they_go_out(broker: BrokerThread, peer: Peer) -> None:
    create(peer, "counted")
    produce(peer, "counted")
    # Read twice: when it comes, and when the time is over.
    assert fetch(peer, "counted", max_wait=20, min_bytes=10_000)[0]["error_code"] == "none"
    assert broker.server.broker.topic_metrics.by_topic["counted"].bytes_out == len(BATCH)


def test_a_fetch_does_not_wait_for_more_bytes_than_an_answer_can_have(peer: Peer) -> None:
    create(peer, "full")
    for _ in range(3):
        produce(peer, "full")
    (answer,) = fetch(peer, "full", max_wait=600_000, min_bytes=1 << 30, max_bytes=2 * len(BATCH))
    assert len(answer["records"]) == 2 * len(BATCH)


def test_a_partition_that_cannot_be_read_says_so_and_others_are_given(
    broker: BrokerThread, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(peer, "failing", 2)
    for partition in range(2):
        produce(peer, "failing", partition=partition)
    log = broker.server.broker.partitions.find("failing", 0)

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(log, "read", broken)
    monkeypatch.setattr(log.reader, "search_time", broken)
    assert [partition_answer["error_code"] for partition_answer in fetch(peer, "failing", 2)] == [
        "kafka_storage_error",
        "none",
    ]
    requested = [{"partition_index": 0, "timestamp": 1}]
    answer = peer.ask(2, 6, {"replica_id": -1, "topics": [{"name": "failing", "partitions": requested}]})
    assert answer["topics"][0]["partitions"][0]["error_code"] == "kafka_storage_error"


def test_which_records_were_wrong_is_told(peer: Peer) -> None:
    create(peer, "compacted", cleanup_policy="compact")
    mixed = encode_batch([Record(key, b"v", timestamp_ms=1_700_000_000_000) for key in (b"k", None, None)])
    refused = produce(peer, "compacted", mixed)
    assert (refused["error_code"], [record_error["batch_index"] for record_error in refused["record_errors"]]) == (
        "invalid_record",
        [1, 2],
    )
    create(peer, "timely", message_timestamp_before_max_ms="1000")
    old = encode_batch([Record(b"k", b"v", timestamp_ms=at) for at in (1_700_000_000_000, -1)])
    refused = produce(peer, "timely", old)
    assert (refused["error_code"], [record_error["batch_index"] for record_error in refused["record_errors"]]) == (
        "invalid_timestamp",
        [0],
    )
    untimed = encode_batch([Record(b"k", b"v")])
    assert produce(peer, "timely", untimed)["error_code"] == "none"
