"""Mirroring beside Kafka's own Mirror connector: one topic of one Apache Kafka into another topic of it, one task, keys and headers too."""

from __future__ import annotations

import uuid
from pathlib import Path

from rich.console import Console

from bench.connect import Worker, kafka_worker, our_worker
from bench.paired import Case, Measured, measure, show
from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from tests.servers.fetch import require
from tests.servers.kafka import FOR_SPEED, KafkaBroker

__all__ = ["main"]

ROWS = 1_000_000
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def fill(bootstrap: str, topic: str) -> None:
    """1,000,000 records of 150 bytes with a key; every batch compressed as producers do."""
    import pyarrow as pa

    from broker.client.columns import encode_batches

    config = ClientConfig(bootstrap)
    with Admin(config) as admin, BatchProducer(config) as producer:
        admin.create_topics([NewTopic(topic, 1, 1)])
        for start in range(0, ROWS, 100_000):
            keys = pa.array([f"key {n}".encode() for n in range(start, start + 100_000)], pa.binary())
            values = pa.array([b"x" * 150] * 100_000, pa.binary())
            for batch in encode_batches(keys, values, compression="lz4", max_bytes=500_000):
                producer.send_batch(topic, 0, batch)
        producer.flush()


def mirror(worker: Worker, topic: str) -> Measured:
    alias = f"m{uuid.uuid4().hex[:8]}"
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": alias,
        "target.cluster.alias": "here",
        "source.cluster.bootstrap.servers": worker.bootstrap,
        "target.cluster.bootstrap.servers": worker.bootstrap,
        "topics": topic,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
        "tasks.max": "1",
    }
    return worker.run_source(config, f"{alias}.{topic}", ROWS)


def main(folder: Path, runs: int, console: Console) -> None:
    broker = KafkaBroker(folder / "kafka", heap="1G", jvm=FOR_SPEED)
    broker.start()
    try:
        bootstrap, plugins = broker.bootstrap_servers, str(require("connect-mirror") / "plugins")
        fill(bootstrap, "source")
        with (
            our_worker(folder / "ours", bootstrap, registry=False) as ours,
            kafka_worker(folder / "theirs", bootstrap, {"plugin.path": plugins}) as theirs,
        ):
            case = Case("mirror", lambda: mirror(ours, "source"), lambda: mirror(theirs, "source"))
            show("Mirror: ours and Kafka Connect's 4.3.1", {case.name: measure(case, runs, console)}, console)
    finally:
        broker.stop()
