"""The Iceberg sink under kill -9: task hosts, the worker, catalog, S3 and the broker die at random while rows are written by two tasks.

Appended to a table of a REST catalog every record is one row. In a table with files in S3, changed by key, every key has its last
value.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest
import requests

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from tests.proofs import drawn_seed, effort
from tests.servers.iceberg import IcebergRestServer
from tests.servers.process import wait_until
from tests.servers.s3 import S3Server
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.buckets import bucket_on
from tests.support.iceberg import iceberg_rows, local_catalog
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.proof, pytest.mark.servers, pytest.mark.timeout(3600)]

SEEDS, STRIKES = effort(1, 20), effort(3, 15)
ROWS, PARTITIONS, KEYS = effort(6_000, 60_000), 3, 400
_FIELDS = [{"field": "id", "type": "int64", "optional": False}, {"field": "n", "type": "int64", "optional": True}]
_SCHEMA = {"type": "struct", "optional": True, "fields": _FIELDS}


class Party(Protocol):
    """A server that may be killed."""

    process: Any

    def start(self) -> None: ...


def appended(n: int, chance: random.Random) -> tuple[int, int | None]:
    """The id of a record and its value."""
    del chance
    return n, n


def changed(n: int, chance: random.Random) -> tuple[int, int | None]:
    """Likewise; None deletes."""
    return chance.randrange(KEYS), None if chance.random() < 0.2 else n


def produce(servers: str, records: list[tuple[int, int | None]]) -> None:
    with BatchProducer(ClientConfig(servers)) as producer:
        for key, value in records:
            payload = None if value is None else {"id": key, "n": value}
            text = None if payload is None else json.dumps({"schema": _SCHEMA, "payload": payload}).encode()
            producer.send("rows", json.dumps({"id": key}).encode(), text, partition=key % PARTITIONS)
        producer.flush()


def strike(what: str, chance: random.Random, worker: ConnectWorker, party: Party, broker: TidegateBroker) -> None:
    if what == "task host":
        for host in psutil.Process(worker.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                host.kill()
    elif what == "worker":
        worker.kill()
        worker.start()
    elif what == "party":
        party.process.kill()
        time.sleep(chance.uniform(0, 1))
        party.start()
    else:
        broker.kill()
        time.sleep(chance.uniform(0, 1))
        broker.start()


def run(seed: int, folder: Path, config: dict[str, str], party: Party, record: Any) -> None:
    chance = random.Random(seed)
    broker = TidegateBroker(folder / "broker")
    worker = ConnectWorker(folder / "worker", broker.bootstrap_servers, {"value.converter.schemas.enable": "true"})
    expected: Counter[tuple[int, int]] = Counter()
    last: dict[int, int | None] = {}
    planned = ["party", "task host", *chance.choices(["party", "task host", "worker", "broker"], k=STRIKES - 2)]
    chance.shuffle(planned)
    try:
        broker.start()
        worker.start()
        with Admin(ClientConfig(broker.bootstrap_servers)) as admin:
            admin.create_topics([NewTopic("rows", PARTITIONS, 1)])
        shared = {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "topics": "rows",
            "tasks.max": "2",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "iceberg.tables": "proof.rows",
            "iceberg.tables.auto-create-enabled": "true",
            "iceberg.control.commit.interval-ms": "200",
            "consumer.override.auto.offset.reset": "earliest",
            "consumer.override.max.partition.fetch.bytes": "20000",
        }
        worker.ask("POST", "/connectors", {"name": "sink", "config": shared | config}, expect=201)
        share = ROWS // STRIKES
        for step, what in enumerate(planned):
            records = [record(n, chance) for n in range(step * share, (step + 1) * share)]
            last |= dict(records)
            produce(broker.bootstrap_servers, records)
            time.sleep(chance.uniform(0.1, 1))
            strike(what, chance, worker, party, broker)
        expected.update((key, value) for key, value in last.items() if value is not None)

        def there() -> Counter[tuple[int, int]]:
            with contextlib.suppress(Exception):  # the catalog or S3 may be away
                found = iceberg_rows(shared | config, "proof.rows", "id", "n").to_pylist()
                return Counter((each["id"], each["n"]) for each in found)
            return Counter()

        try:
            wait_until(lambda: set(there()) == set(expected), "all rows in the table", 180, pause_s=0.5)
        except TimeoutError as error:
            with contextlib.suppress(requests.RequestException):
                told = worker.ask("GET", "/connectors/sink/status")
                missing = len(set(expected) - set(there()))
                raise AssertionError(f"seed {seed}: {error}: {missing} are missing; {planned}; {told}") from error
            raise
        print(f"seed {seed}: {ROWS} records, killed {Counter(planned)}")
        assert there() == expected, f"seed {seed}: rows are there more than once"
    finally:
        worker.kill()
        broker.kill()


@pytest.mark.parametrize("number", range(SEEDS))
def test_every_record_is_one_row(number: int, tmp_path: Path) -> None:
    (tmp_path / "catalog").mkdir()
    server = IcebergRestServer(tmp_path / "catalog")
    server.start()
    try:
        run(drawn_seed() + number, tmp_path, server.catalog, server, appended)
    finally:
        server.stop()


@pytest.mark.parametrize("number", range(SEEDS))
def test_every_key_has_its_last_value(number: int, tmp_path: Path) -> None:
    server = S3Server(tmp_path / "s3")
    server.start()
    try:
        with bucket_on(server) as bucket:
            config = local_catalog(tmp_path) | {
                "iceberg.catalog.warehouse": f"s3://{bucket.name}/warehouse",
                "iceberg.catalog.s3.endpoint": server.endpoint_url,
                "iceberg.catalog.s3.access-key-id": server.access_key,
                "iceberg.catalog.s3.secret-access-key": server.secret_key,
                "iceberg.catalog.s3.region": server.region,
                "iceberg.tables.upsert-mode-enabled": "true",
                "iceberg.tables.default-id-columns": "id",
            }
            run(drawn_seed() + number, tmp_path, config, server, changed)
    finally:
        server.stop()
