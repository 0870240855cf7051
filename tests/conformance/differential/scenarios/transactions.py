"""Transactions: producers with a transactional id, their writes and commits, and the views of administrators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker.protocol.api import ApiKey
from broker.protocol.records import Record, encode_batch
from tests.conformance.differential.scenario import Scenario, Step, ask, setup
from tests.conformance.differential.scenarios.common import create_topic
from tests.conformance.differential.scenarios.groups import coordinator_found, settled


def coordinator_of_transactions() -> tuple[Step, ...]:
    """Wait until the coordinator of the transactional id answers."""
    body = {"key_type": 1, "coordinator_keys": ["$u-x"]}
    return (setup(ApiKey.FIND_COORDINATOR, 4, body, until=("coordinators.0.error_code", "none")), begun())


def begun(**more: Any) -> Step:
    body = {"transactional_id": "$u-x", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1, **more}
    kept = {"pid": "producer_id", "epoch": "producer_epoch"}
    return setup(ApiKey.INIT_PRODUCER_ID, 4, body, until=("error_code", "none"), keep=kept)


def init(transactional_id: str | None, timeout: int = 60_000, pid: Any = -1, epoch: Any = -1) -> Step:
    body = {
        "transactional_id": transactional_id,
        "transaction_timeout": timeout,
        "producer_id": pid,
        "producer_epoch": epoch,
    }
    return ask(ApiKey.INIT_PRODUCER_ID, body, once=True)


def add_partitions(
    *partitions: int, topic: str = "$u", name: str = "$u-x", pid: Any = "$pid", epoch: Any = "$epoch", **more: Any
) -> Step:
    topics = [{"name": topic, "partitions": list(partitions)}]
    request = {
        "transactional_id": name,
        "producer_id": pid,
        "producer_epoch": epoch,
        "verify_only": False,
        "topics": topics,
    }
    body = {
        "transactions": [{**request, **more}],
        "v3_and_below_transactional_id": name,
        "v3_and_below_producer_id": pid,
        "v3_and_below_producer_epoch": epoch,
        "v3_and_below_topics": topics,
    }
    return ask(ApiKey.ADD_PARTITIONS_TO_TXN, body, once=True)


def added(*partitions: int) -> Step:
    topics = [{"name": "$u", "partitions": list(partitions)}]
    body = {
        "v3_and_below_transactional_id": "$u-x",
        "v3_and_below_producer_id": "$pid",
        "v3_and_below_producer_epoch": "$epoch",
        "v3_and_below_topics": topics,
    }
    return setup(ApiKey.ADD_PARTITIONS_TO_TXN, 3, body, once=True)


def add_offsets(name: str = "$u-x", pid: Any = "$pid", epoch: Any = "$epoch", group: str = "$u-g") -> Step:
    body = {"transactional_id": name, "producer_id": pid, "producer_epoch": epoch, "group_id": group}
    return ask(ApiKey.ADD_OFFSETS_TO_TXN, body, once=True)


def end(committed: bool, name: str = "$u-x", pid: Any = "$pid", epoch: Any = "$epoch", **more: Any) -> Step:
    body = {"transactional_id": name, "producer_id": pid, "producer_epoch": epoch, "committed": committed}
    return ask(ApiKey.END_TXN, body, **more)


def commit_offsets(
    pid: Any = "$pid", epoch: Any = "$epoch", partition: int = 0, group: str = "$u-g", **more: Any
) -> Step:
    parts = [
        {"partition_index": partition, "committed_offset": 7, "committed_leader_epoch": -1, "committed_metadata": "m"}
    ]
    body = {
        "transactional_id": "$u-x",
        "group_id": group,
        "producer_id": pid,
        "producer_epoch": epoch,
        "generation_id": -1,
        "member_id": "",
        "topics": [{"name": "$u", "partitions": parts}],
        **more,
    }
    return ask(ApiKey.TXN_OFFSET_COMMIT, body, once=True)


def described(*names: str) -> Step:
    return ask(ApiKey.DESCRIBE_TRANSACTIONS, {"transactional_ids": list(names)})


def listed(**filters: Any) -> Step:
    body = {
        "state_filters": [],
        "producer_id_filters": [],
        "duration_filter": -1,
        "transactional_id_pattern": "$u-x",
        **filters,
    }
    return ask(ApiKey.LIST_TRANSACTIONS, body)


def markers(
    pid: Any, epoch: Any, *partitions: int, topic: str = "$u", committed: bool = False, coordinator: int = 0
) -> Step:
    request = {
        "producer_id": pid,
        "producer_epoch": epoch,
        "transaction_result": committed,
        "coordinator_epoch": coordinator,
        "topics": [{"name": topic, "partition_indexes": list(partitions)}],
    }
    return ask(ApiKey.WRITE_TXN_MARKERS, {"markers": [request]}, once=True)


def batch(known: Mapping[str, Any]) -> bytes:
    """One record of the transaction."""
    return encode_batch(
        [Record(b"k", b"v", timestamp_ms=1_700_000_000_000)],
        producer_id=known["pid"],
        producer_epoch=known["epoch"],
        base_sequence=0,
        transactional=True,
    )


SCENARIOS: Final = (
    Scenario(
        "producer ids",
        ApiKey.INIT_PRODUCER_ID,
        (
            *coordinator_of_transactions(),
            init(None),
            init("$u-x"),
            init("$u-x"),
            init("$u-x", timeout=0),
            init("$u-x", timeout=1 << 30),
            init(""),
        ),
    ),
    Scenario(
        "producer ids that go on",
        ApiKey.INIT_PRODUCER_ID,
        (
            *coordinator_of_transactions(),
            init("$u-x", pid="$pid", epoch="$epoch"),
            init("$u-x", pid="$pid", epoch="$epoch"),
            init("$u-x", pid=987654321, epoch=0),
            init(None, pid=-1, epoch=3),
        ),
        range(3, 6),
    ),
    Scenario(
        "partitions of a transaction",
        ApiKey.ADD_PARTITIONS_TO_TXN,
        (
            *create_topic(),
            *coordinator_of_transactions(),
            add_partitions(0, 1),
            add_partitions(0),
            add_partitions(9),
            add_partitions(0, topic="$u-absent"),
            add_partitions(0, epoch=30),
            add_partitions(0, pid=4711),
            add_partitions(0, name="$u-other"),
            add_partitions(0, name=""),
        ),
        range(4),
    ),
    Scenario(
        "partitions of transactions",
        ApiKey.ADD_PARTITIONS_TO_TXN,
        (
            *create_topic(),
            *coordinator_of_transactions(),
            add_partitions(0, verify_only=True),
            add_partitions(0, 1),
            add_partitions(0, verify_only=True),
            add_partitions(0, epoch=30, verify_only=True),
            add_partitions(0, name="$u-other", verify_only=True),
        ),
        range(4, 6),
    ),
    Scenario(
        "offsets of a transaction",
        ApiKey.ADD_OFFSETS_TO_TXN,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            *coordinator_of_transactions(),
            add_offsets(),
            add_offsets(epoch=30),
            add_offsets(pid=4711),
            add_offsets(name="$u-other"),
            add_offsets(group=""),
        ),
    ),
    Scenario(
        "committed offsets of a transaction",
        ApiKey.TXN_OFFSET_COMMIT,
        (
            *create_topic(),
            coordinator_found(),
            settled(),
            *coordinator_of_transactions(),
            setup(
                ApiKey.ADD_OFFSETS_TO_TXN,
                3,
                {"transactional_id": "$u-x", "producer_id": "$pid", "producer_epoch": "$epoch", "group_id": "$u-g"},
                once=True,
            ),
            commit_offsets(),
            commit_offsets(partition=9),
            commit_offsets(group=""),
            ask(
                ApiKey.OFFSET_FETCH,
                {
                    "groups": [
                        {"group_id": "$u-g", "member_epoch": -1, "topics": [{"name": "$u", "partition_indexes": [0]}]}
                    ],
                    "require_stable": True,
                },
                version=9,
            ),
            setup(
                ApiKey.END_TXN,
                3,
                {"transactional_id": "$u-x", "producer_id": "$pid", "producer_epoch": "$epoch", "committed": True},
                until=("error_code", "none"),
            ),
            ask(
                ApiKey.OFFSET_FETCH,
                {
                    "groups": [
                        {"group_id": "$u-g", "member_epoch": -1, "topics": [{"name": "$u", "partition_indexes": [0]}]}
                    ],
                    "require_stable": True,
                },
                version=9,
            ),
        ),
    ),
    Scenario(
        "ends of transactions",
        ApiKey.END_TXN,
        (
            *create_topic(),
            *coordinator_of_transactions(),
            added(0),
            end(True, epoch=30, once=True),
            end(True, pid=4711, once=True),
            end(True, name="$u-other", once=True),
            end(True, once=True),
        ),
    ),
    Scenario(
        "ends of transactions that are empty",
        ApiKey.END_TXN,
        (*coordinator_of_transactions(), end(True, once=True)),
    ),
    Scenario(
        "transactions described",
        ApiKey.DESCRIBE_TRANSACTIONS,
        (*create_topic(), *coordinator_of_transactions(), added(0, 1), described("$u-x"), described("$u-other")),
    ),
    Scenario(
        "transactions listed",
        ApiKey.LIST_TRANSACTIONS,
        (
            *create_topic(),
            *coordinator_of_transactions(),
            added(0),
            ask(
                ApiKey.LIST_TRANSACTIONS,
                {"state_filters": ["Ongoing"], "producer_id_filters": ["$pid"], "duration_filter": -1},
            ),
            ask(
                ApiKey.LIST_TRANSACTIONS,
                {"state_filters": ["NoSuchState"], "producer_id_filters": ["$pid"], "duration_filter": -1},
            ),
            ask(
                ApiKey.LIST_TRANSACTIONS,
                {"state_filters": [], "producer_id_filters": [987654], "duration_filter": 10_000},
            ),
        ),
    ),
    Scenario(
        "transactions listed by a pattern",
        ApiKey.LIST_TRANSACTIONS,
        (*create_topic(), *coordinator_of_transactions(), added(0), listed(), listed(transactional_id_pattern="$u-(")),
        range(2, 3),
    ),
    Scenario(
        "markers",
        ApiKey.WRITE_TXN_MARKERS,
        (
            *create_topic(),
            *coordinator_of_transactions(),
            added(0),
            ask(
                ApiKey.PRODUCE,
                {
                    "transactional_id": "$u-x",
                    "acks": -1,
                    "timeout": 5000,
                    "topic_data": [{"name": "$u", "partition_data": [{"index": 0, "records": batch}]}],
                },
                version=9,
                once=True,
            ),
            markers("$pid", "$epoch", 0),
            markers("$pid", "$epoch", 0, 9),
            markers("$pid", "$epoch", 0, topic="$u-absent"),
        ),
    ),
)
