"""Steps that many scenarios begin with."""

from __future__ import annotations

from typing import Any, Final

from broker.protocol.api import ApiKey
from broker.protocol.records import Record, encode_batch
from tests.conformance.differential.scenario import Step, setup

__all__ = ["ABSENT_ID", "FIVE_RECORDS", "create_topic", "records", "written"]

ABSENT_ID: Final = "00000000-0000-4000-8000-00000000abcd"
"""The id of no topic."""
_AT_MS: Final = 1_700_000_000_000


def records(count: int, *, first: int = 0) -> bytes:
    """A batch, whose timestamps are a second apart."""
    return encode_batch([
        Record(b"k%d" % n, b"v%d" % n, timestamp_ms=_AT_MS + 1000 * n) for n in range(first, first + count)
    ])  # fmt: skip


FIVE_RECORDS: Final = records(5)


def create_topic(
    name: str = "$u", partitions: int = 2, *, keep: str = "id", configs: dict[str, str] | None = None
) -> tuple[Step, ...]:
    """Make a topic and wait until the broker leads it; its id is kept."""
    settings = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    body = {
        "topics": [{"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": settings}],
        "timeout": 10_000,
    }
    leader = f"topics.0.partitions.{partitions - 1}.leader_id"
    return (
        setup(ApiKey.CREATE_TOPICS, 4, body, once=True),
        setup(ApiKey.METADATA, 12, {"topics": [{"name": name}]}, until=(leader, 1), keep={keep: "topics.0.topic_id"}),
        # Apache Kafka's broker may lead a partition some time after it says so.
        *(
            setup(
                ApiKey.LIST_OFFSETS,
                6,
                {
                    "replica_id": -1,
                    "topics": [{"name": name, "partitions": [{"partition_index": index, "timestamp": -1}]}],
                },
                until=("topics.0.partitions.0.error_code", "none"),
            )
            for index in range(partitions)
        ),
    )


def written(topic: str = "$u", *, partition: int = 0, batch: bytes = FIVE_RECORDS, acks: int = -1) -> Step:
    """Write a batch to a partition."""
    data: Any = [{"name": topic, "partition_data": [{"index": partition, "records": batch}]}]
    return setup(ApiKey.PRODUCE, 9, {"acks": acks, "timeout": 10_000, "topic_data": data}, once=True)
