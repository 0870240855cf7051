"""Produce within transactions, while the coordinator's disk is slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.coordinator.state_log import StateLog
from broker.protocol.records import Record, encode_batch
from tests.conformance.differential.exchange import Peer
from tests.support.broker import BrokerThread, settings

PRODUCE, CREATE_TOPICS, INIT, END = 0, 19, 22, 26


class SlowLog:
    """The coordinator's log, durable a while after it is written."""

    def __init__(self, log: StateLog) -> None:
        self._log = log

    @property
    def partitions(self) -> int:
        return self._log.partitions

    def append(
        self, partition: int, entries: Sequence[tuple[bytes, bytes | None]], producer: tuple[int, int] | None = None
    ) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._log.append(partition, entries, producer)
        loop.call_later(0.05, lambda: done.done() or done.set_result(None))
        return done

    def read(self, *arguments: Any) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        return self._log.read(*arguments)


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    with BrokerThread(settings(tmp_path)) as broker:
        coordinator = broker.server.broker.transactions
        coordinator._log = SlowLog(coordinator._log)
        made = Peer(broker.port)
        made.ask(
            CREATE_TOPICS, 5, {"topics": [{"name": "t", "num_partitions": 3, "replication_factor": 1}], "timeout": 9}
        )
        yield made
        made.hang_up()


def test_batches_keep_their_order_while_partitions_are_added(peer: Peer) -> None:
    body = {"transactional_id": "x", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
    producer = peer.ask(INIT, 5, body)
    sequences = [0, 0, 0]

    def send(*partitions: int) -> None:
        data = []
        for partition in partitions:
            batch = encode_batch(
                [Record(b"k", b"%d" % sequences[partition], (), 1)],
                producer_id=producer["producer_id"],
                producer_epoch=producer["producer_epoch"],
                base_sequence=sequences[partition],
                transactional=True,
            )
            sequences[partition] += 1
            data.append({"index": partition, "records": batch})
        topics = [{"name": "t", "partition_data": data}]
        peer.send(PRODUCE, 12, {"transactional_id": "x", "acks": -1, "timeout": 9000, "topic_data": topics})

    rounds = [(0,), (0, 1), (1,), (0, 1), (2, 0), (0,), (1, 2), (2,), (0, 1, 2), (1,), (0,)] * 3
    for number, partitions in enumerate(rounds):
        send(*partitions)
        time.sleep(0.01 if number % 5 else 0)  # so that some come while others are taken from the queue
    values: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for partitions in rounds:
        (topic,) = peer.receive(PRODUCE, 12)["responses"]
        answered = topic["partition_responses"]
        assert {answer["index"] for answer in answered} == set(partitions)
        for answer in answered:
            assert answer["error_code"] == "none", answer
            values[answer["index"]].append(answer["base_offset"])
    assert values == {partition: list(range(count)) for partition, count in enumerate(sequences)}
    ended = peer.ask(
        END,
        5,
        {"transactional_id": "x", "committed": True, **{k: producer[k] for k in ("producer_id", "producer_epoch")}},
    )
    assert (ended["error_code"], ended["producer_epoch"]) == ("none", 1)


def test_a_client_that_leaves_meanwhile_disturbs_nothing(peer: Peer) -> None:
    body = {"transactional_id": "x", "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
    producer = peer.ask(INIT, 5, body)
    batch = encode_batch(
        [Record(b"k", b"v", (), 1)],
        producer_id=producer["producer_id"],
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    topics = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
    peer.send(PRODUCE, 12, {"transactional_id": "x", "acks": -1, "timeout": 9000, "topic_data": topics})
    peer.hang_up()
    again = peer.ask(INIT, 5, body)
    while again["error_code"] == "concurrent_transactions":
        again = peer.ask(INIT, 5, body)
    assert (again["error_code"], again["producer_epoch"]) == ("none", 2)
