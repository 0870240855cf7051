"""A cluster of three Apache Kafka brokers, which hear of changes one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from broker.client import Admin, ClientConfig, NewTopic
from broker.client.errors import UnknownTopicOrPartition
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaNode
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.original, pytest.mark.servers]

ADDRESSES = ("127.0.0.11", "127.0.0.12", "127.0.0.13")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, identity = tmp_path_factory.mktemp("cluster"), KafkaNode.cluster_id()
    nodes = [
        or_skip(lambda n=n: KafkaNode(folder / str(n), n, ADDRESSES, identity, list))
        for n in range(1, len(ADDRESSES) + 1)
    ]
    try:
        for node in nodes:
            node.format()
            node.process.begin()
        for node in nodes:
            node.process.await_ready()
        yield ",".join(f"{node.address}:{node.port}" for node in nodes)
    finally:
        for node in nodes:
            node.process.kill()


def test_a_topic_that_was_created_is_known_to_every_broker(cluster: str) -> None:
    async def denied() -> list[str]:
        async with Admin(ClientConfig(cluster)) as admin:
            wrong = []
            for number in range(40):
                topic = f"known-{number}"
                await admin.create_topics([NewTopic(topic, 3, 3)])
                for _ in range(6):  # each time of any broker
                    try:
                        await admin.describe_topics([topic])
                    except UnknownTopicOrPartition:
                        wrong.append(topic)
            return wrong

    assert asyncio.run(denied()) == []


def test_workers_that_start_at_the_same_time_create_their_topics_together(cluster: str, tmp_path: Path) -> None:
    workers = [ConnectWorker(tmp_path / str(n), cluster, name="together") for n in range(3)]
    try:
        with ThreadPoolExecutor(len(workers)) as pool:
            assert [*pool.map(ConnectWorker.start, workers)] == [None] * len(workers)
    finally:
        for worker in workers:
            worker.kill()
