"""Producing and fetching records, and their offsets."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from broker.protocol.records import Record, encode_batch
from tests.conformance.differential.scenario import Scenario, Step, ask
from tests.conformance.differential.scenarios.common import ABSENT_ID, FIVE_RECORDS, create_topic, records, written


def produce(
    records: bytes | None, *, topic: str = "$u", topic_id: str = "$id", partition: int = 0, acks: int = -1, **more: Any
) -> Step:
    data = [{"name": topic, "topic_id": topic_id, "partition_data": [{"index": partition, "records": records}]}]
    return ask(ApiKey.PRODUCE, {"acks": acks, "timeout": 5000, "topic_data": data, **more}, once=True)


def fetch(offset: int, *, topic: str = "$u", topic_id: str = "$id", partition: int = 0, **more: Any) -> Step:
    request = {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": 100_000,
        "log_start_offset": -1,
        "current_leader_epoch": more.pop("epoch", -1),
        "last_fetched_epoch": more.pop("fetched", -1),
    }
    topics = [{"topic": topic, "topic_id": topic_id, "partitions": [request]}]
    body = {
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "topics": topics,
        "session_epoch": -1,
        "replica_id": -1,
        **more,
    }
    return ask(ApiKey.FETCH, body)


def fetch_twice(first: int, second: int) -> Step:
    """One partition named twice in a request, with another one between."""
    step = fetch(first)
    (topic,) = step.body["topics"]
    (part,) = topic["partitions"]
    topic["partitions"] = [part, {**part, "partition": 1}, {**part, "fetch_offset": second}]
    return step


def offsets(*timestamps: tuple[int, int], topic: str = "$u", epoch: int = -1, **more: Any) -> Step:
    parts = [{"partition_index": p, "timestamp": t, "current_leader_epoch": epoch} for p, t in timestamps]
    return ask(
        ApiKey.LIST_OFFSETS,
        {"replica_id": -1, "timeout": 5000, "topics": [{"name": topic, "partitions": parts}], **more},
    )


def epoch_end(topic: str, partition: int, epoch: int, current: int = -1) -> Step:
    request = {"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current}
    return ask(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, {"replica_id": -1, "topics": [{"topic": topic, "partitions": [request]}]}
    )


METADATA_ID: Final = "00000000-0000-0000-0000-000000000001"
KEYLESS: Final = encode_batch([Record(key, b"v", timestamp_ms=1_700_000_000_000) for key in (b"k", None, None)])
BROKEN: Final = FIVE_RECORDS[:-1] + bytes([FIVE_RECORDS[-1] ^ 1])

SCENARIOS: Final = (
    Scenario(
        "produce",
        ApiKey.PRODUCE,
        (
            *create_topic(configs={"max.message.bytes": "10000"}),
            produce(FIVE_RECORDS),
            produce(records(2), acks=1),
            produce(BROKEN),
            produce(records(1), partition=9),
            produce(records(1), acks=7),
            produce(records(700)),
            fetch(0),
            produce(records(1), topic="$u-absent", topic_id=ABSENT_ID),
        ),
        range(3, 14),
    ),
    Scenario(
        "produce records without keys",
        ApiKey.PRODUCE,
        (*create_topic(configs={"cleanup.policy": "compact"}), produce(FIVE_RECORDS), produce(KEYLESS)),
        range(3, 14),
    ),
    Scenario(
        "produce records out of time",
        ApiKey.PRODUCE,
        (*create_topic(configs={"message.timestamp.before.max.ms": "1000"}), produce(FIVE_RECORDS)),
        range(3, 14),
    ),
    Scenario(
        "produce to the metadata",
        ApiKey.PRODUCE,
        (produce(FIVE_RECORDS, topic="__cluster_metadata", topic_id=METADATA_ID),),
        range(3, 14),
    ),
    Scenario("fetch the metadata", ApiKey.FETCH, (fetch(0, topic="__cluster_metadata", topic_id=METADATA_ID),)),
    Scenario("offsets of the metadata", ApiKey.LIST_OFFSETS, (offsets((0, -1), topic="__cluster_metadata"),)),
    Scenario("produce nothing", ApiKey.PRODUCE, (*create_topic(), produce(b"")), range(3, 14)),
    Scenario(
        "produce two batches at once",
        ApiKey.PRODUCE,
        (*create_topic(), produce(FIVE_RECORDS + FIVE_RECORDS), offsets((0, -1))),
        range(3, 14),
    ),
    Scenario(
        "fetch",
        ApiKey.FETCH,
        (
            *create_topic(),
            written(),
            written(batch=records(3)),
            fetch(0),
            fetch(6, isolation_level=1),
            fetch(8),
            fetch(9),
            fetch(-1),
            fetch(0, partition=7),
            fetch(0, topic="$u-absent", topic_id=ABSENT_ID),
            fetch(0, epoch=0),
            fetch(0, epoch=9),
            fetch_twice(0, 6),
            fetch_twice(6, 0),
        ),
    ),
    Scenario(
        "fetch after a leader's end",
        ApiKey.FETCH,
        (
            *create_topic(),
            written(),
            fetch(5, epoch=0, fetched=0),
            fetch(9, epoch=0, fetched=0),
            fetch(2, epoch=0, fetched=5),
        ),
        range(12, 19),
    ),
    Scenario(
        "list offsets",
        ApiKey.LIST_OFFSETS,
        (
            *create_topic(),
            written(),
            offsets((0, -1), (0, -2), (1, -1)),
            offsets((0, 1_700_000_002_000)),
            offsets((0, 1_700_000_001_500)),
            offsets((0, 1_800_000_000_000)),
            offsets((1, 1_700_000_000_000)),
            offsets((0, -1), isolation_level=1),
            offsets((0, -3)),
            offsets((0, -4)),
            offsets((0, -5)),
            offsets((0, -6)),
            offsets((0, -7)),
            offsets((7, -1)),
            offsets((0, -1), topic="$u-absent"),
            offsets((0, -1), (0, -1)),
            offsets((0, -1), epoch=0),
            offsets((0, -1), epoch=3),
        ),
    ),
    Scenario(
        "ends of epochs",
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        (
            *create_topic(),
            written(),
            epoch_end("$u", 0, 0),
            epoch_end("$u", 0, 0, 0),
            epoch_end("$u", 0, 5),
            epoch_end("$u", 0, -1),
            epoch_end("$u", 1, 0),
            epoch_end("$u", 0, 0, 4),
            epoch_end("$u", 7, 0),
            epoch_end("$u-absent", 0, 0),
        ),
    ),
    Scenario(
        "producers of a partition",
        ApiKey.DESCRIBE_PRODUCERS,
        (
            *create_topic(),
            written(),
            ask(ApiKey.DESCRIBE_PRODUCERS, {"topics": [{"name": "$u", "partition_indexes": [0, 1]}]}),
            ask(
                ApiKey.DESCRIBE_PRODUCERS,
                {"topics": [{"name": "$u", "partition_indexes": [9]}, {"name": "$u-absent", "partition_indexes": [0]}]},
            ),
        ),
    ),
)
