"""The JDBC sink under kill -9: task hosts, the worker, PostgreSQL and the broker die at random while rows are written.

With its offsets in the database every record is one row, though ``insert.mode=insert`` would gladly write it again.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections import Counter
from pathlib import Path

import psutil
import psycopg
import pytest
import requests

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from tests.proofs import drawn_seed, effort
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(3600)]

SEEDS, STRIKES = effort(1, 20), effort(3, 20)
ROWS, PARTITIONS = effort(9_000, 200_000), 3
_FIELDS = [{"field": "n", "type": "int64", "optional": False}, {"field": "word", "type": "string", "optional": True}]
_SCHEMA = {"type": "struct", "optional": False, "fields": _FIELDS}


def produce(servers: str, start: int, stop: int) -> None:
    with BatchProducer(ClientConfig(servers)) as producer:
        for n in range(start, stop):
            value = json.dumps({"schema": _SCHEMA, "payload": {"n": n, "word": "w" * (n % 50)}}).encode()
            producer.send("rows", None, value, partition=n % PARTITIONS)
        producer.flush()


def written(database: PostgresServer) -> Counter[int]:
    with contextlib.suppress(psycopg.Error), database.connect() as connection:
        return Counter(n for (n,) in connection.execute("SELECT n FROM rows").fetchall())
    return Counter()


def plan(chance: random.Random) -> list[str]:
    """The processes to kill, in order: at least the database and a task host."""
    others = ["task host", "worker", "database", "backend", "broker"]
    planned = ["database", "task host", *chance.choices(others, k=STRIKES - 2)]
    chance.shuffle(planned)
    return planned


def strike(
    what: str, chance: random.Random, worker: ConnectWorker, database: PostgresServer, broker: TidegateBroker
) -> None:
    if what == "task host":
        for host in psutil.Process(worker.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                host.kill()
    elif what == "worker":
        worker.kill()
        worker.start()
    elif what == "database":
        database.process.kill()
        time.sleep(chance.uniform(0, 1))
        database.start()
    elif what == "backend":
        with contextlib.suppress(psycopg.Error), database.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
    else:
        broker.kill()
        time.sleep(chance.uniform(0, 1))
        broker.start()


@pytest.mark.parametrize("number", range(SEEDS))
def test_every_record_is_one_row(number: int, tmp_path: Path) -> None:
    seed = drawn_seed() + number
    chance = random.Random(seed)
    broker, database = TidegateBroker(tmp_path / "broker"), PostgresServer()
    worker = ConnectWorker(tmp_path / "worker", broker.bootstrap_servers, {"value.converter.schemas.enable": "true"})
    killed: Counter[str] = Counter()
    try:
        broker.start()
        database.start()
        worker.start()
        with Admin(ClientConfig(broker.bootstrap_servers)) as admin:
            admin.create_topics([NewTopic("rows", PARTITIONS, 1)])
        config = {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "topics": "rows",
            "tasks.max": "2",
            "connection.url": database.jdbc_url,
            "auto.create": "true",
            "tidegate.offsets.table": "sink_offsets",
            "max.retries": "100",
            "retry.backoff.ms": "200",
            "connection.backoff.ms": "200",
            "consumer.override.auto.offset.reset": "earliest",
            "consumer.override.max.partition.fetch.bytes": "20000",
        }
        worker.ask("POST", "/connectors", {"name": "sink", "config": config}, expect=201)
        share = ROWS // STRIKES
        for step, what in enumerate(plan(chance)):
            produce(broker.bootstrap_servers, step * share, (step + 1) * share)
            time.sleep(chance.uniform(0.1, 1))
            strike(what, chance, worker, database, broker)
            killed[what] += 1
        total = share * STRIKES
        try:
            wait_until(lambda: len(written(database)) == total, "all rows in the table", 120, pause_s=0.5)
        except TimeoutError as error:
            with contextlib.suppress(requests.RequestException):
                told = worker.ask("GET", "/connectors/sink/status")
                raise AssertionError(f"{error}: {len(written(database))} of {total}; {dict(killed)}; {told}") from error
            raise
        rows = written(database)
        print(f"seed {seed}: {total} rows, killed {dict(killed)}")
        assert [n for n, count in rows.items() if count > 1] == []
    finally:
        worker.kill()
        broker.kill()
        database.stop()
