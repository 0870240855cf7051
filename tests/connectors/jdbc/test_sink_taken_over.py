"""A worker that is frozen while another one takes its partitions over: every record is one row, and no task has failed at the end."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
import requests

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from tests.servers.postgres import PostgresServer
from tests.servers.process import answer_when, wait_until
from tests.support.cluster import WorkerCluster
from tests.support.worker import ConnectWorker, settled

pytestmark = [pytest.mark.proof, pytest.mark.long, pytest.mark.servers]

PARTITIONS = 4


def freeze(worker: ConnectWorker, *, thaw: bool = False) -> None:
    """Stop the worker and its task hosts, or have them go on."""
    process = psutil.Process(worker.process.pid)
    for each in (process, *process.children(recursive=True)):
        (each.resume if thaw else each.suspend)()


def test_a_frozen_worker_goes_on_with_what_the_group_leaves_to_it(
    tidegate_broker: Any, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    name = f"taken_{uuid.uuid4().hex[:8]}"
    servers = tidegate_broker.bootstrap_servers
    with Admin(ClientConfig(servers)) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS)])
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": name,
        "tasks.max": "2",
        "connection.url": postgres_server.jdbc_url,
        "auto.create": "true",
        "tidegate.offsets.table": f"{name}_offsets",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "true",
        "consumer.override.session.timeout.ms": "6000",
        "consumer.override.heartbeat.interval.ms": "500",
    }
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int64"}], "optional": False}

    def rows() -> Counter[int]:
        with postgres_server.connect() as connection:
            if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,):
                return Counter()
            return Counter(row[0] for row in connection.execute(f"SELECT id FROM {name}".encode()))

    written, ended = itertools.count(), threading.Event()
    sent = 0

    def write() -> None:
        nonlocal sent
        import json

        with BatchProducer(ClientConfig(servers)) as producer:
            while not ended.wait(0.002):
                number = next(written)
                value = json.dumps({"schema": schema, "payload": {"id": number}}).encode()
                producer.enqueue(name, None, value, partition=number % PARTITIONS)
                sent = number + 1
            producer.flush()

    cluster = WorkerCluster(tmp_path, servers, name, count=2)
    writer = threading.Thread(target=write)
    try:
        cluster.start()
        post = {"name": name, "config": config}
        answer_when(
            settled, lambda: requests.post(f"{cluster.workers[0].url}/connectors", json=post, timeout=60), "created"
        )
        cluster.wait_spread(name, 1, 1)
        writer.start()
        for victim in cluster.workers * 2:
            other = next(worker for worker in cluster.workers if worker is not victim)
            wait_until(lambda: len(rows()) > 0, "rows")
            freeze(victim)
            try:
                # The other one has both tasks, and rows of all partitions arrive.
                cluster.wait_spread(name, 2, at=other)
                reached = sent
                wait_until(lambda reached=reached: set(range(reached)) <= rows().keys(), "rows of all partitions")
            finally:
                freeze(victim, thaw=True)
            cluster.wait_spread(name, 1, 1, at=other)
        ended.set()
        writer.join()
        wait_until(lambda: len(rows()) == sent, "all rows")
        assert set(rows().values()) == {1}
        for worker in cluster.workers:
            status = requests.get(f"{worker.url}/connectors/{name}/status", timeout=60).json()
            assert [task["state"] for task in status["tasks"]] == ["RUNNING", "RUNNING"]
    finally:
        ended.set()
        cluster.stop()
