"""A cluster of three Apache Kafka brokers, which hear of changes one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, NewTopic
from broker.client.errors import UnknownTopicOrPartition
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaNode
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.original, pytest.mark.servers]

ADDRESSES = ("127.0.0.11", "127.0.0.12", "127.0.0.13")
RACKS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[KafkaNode]]:
    folder, identity = tmp_path_factory.mktemp("cluster"), KafkaNode.cluster_id()
    nodes = [
        or_skip(
            lambda n=n: KafkaNode(folder / str(n), n, ADDRESSES, identity, list, RACKS | {"broker.rack": f"rack-{n}"})
        )
        for n in range(1, len(ADDRESSES) + 1)
    ]
    try:
        for node in nodes:
            node.format()
            node.process.begin()
        for node in nodes:
            node.process.await_ready()
        yield nodes
    finally:
        for node in nodes:
            node.process.kill()


def bootstrap(cluster: list[KafkaNode]) -> str:
    return ",".join(f"{node.address}:{node.port}" for node in cluster)


def test_a_topic_that_was_created_is_known_to_every_broker(cluster: list[KafkaNode]) -> None:
    async def denied() -> list[str]:
        async with Admin(ClientConfig(bootstrap(cluster))) as admin:
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


def test_workers_that_start_at_the_same_time_create_their_topics_together(
    cluster: list[KafkaNode], tmp_path: Path
) -> None:
    workers = [ConnectWorker(tmp_path / str(n), bootstrap(cluster), name="together") for n in range(3)]
    try:
        with ThreadPoolExecutor(len(workers)) as pool:
            assert [*pool.map(ConnectWorker.start, workers)] == [None] * len(workers)
    finally:
        for worker in workers:
            worker.kill()


def test_a_consumer_reads_from_the_replica_of_its_rack(cluster: list[KafkaNode]) -> None:
    """It goes on while the leader is frozen, which then still leads: it was not asked any more (KIP-392)."""
    topic, count = "racks", 60
    config = ClientConfig(bootstrap(cluster), {"max.partition.fetch.bytes": "1", "auto.offset.reset": "earliest"})

    async def leader(admin: Admin) -> int:
        return (await admin.describe_topics([topic]))[topic].partitions[0].leader

    async def read() -> None:
        async with Admin(config) as admin, BatchProducer(config) as producer:
            await admin.create_topics([NewTopic(topic, 1, 3)])
            for number in range(count):  # a batch each, and a fetch each
                await producer.send(topic, None, b"%d" % number)
            leads = await leader(admin)
            near = next(n for n in range(1, len(cluster) + 1) if n != leads)
            async with BatchConsumer(config.with_properties({"client.rack": f"rack-{near}"})) as consumer:
                await consumer.assign([(topic, 0)])
                read: list[bytes] = []
                while len(read) < 3:
                    read += [record.value for part in await consumer.fetch() for record in part.records()]
                frozen = psutil.Process(cluster[leads - 1].process.pid)
                frozen.suspend()
                try:
                    while len(read) < count - 1:  # a replica may hear of the last commit with its next fetch
                        read += [record.value for part in await consumer.fetch() for record in part.records()]
                finally:
                    frozen.resume()
                assert read[: count - 1] == [b"%d" % number for number in range(count - 1)]
            assert await leader(admin) == leads

    asyncio.run(read())
