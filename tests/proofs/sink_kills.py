"""Shared by the proofs of sinks under kill -9.

Records are produced while task hosts, the worker, the broker and the sink's servers die at random, answer with errors, slowly or
not at all, and the target's disk is full; in the end the target has what the records say, each row once. Odd seeds run on our
broker, even ones on three of Apache Kafka. TIDEGATE_SEEDS=3,7-9 chooses seeds.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import fastavro
import psutil
import pytest
import requests

from broker.client import BatchProducer, ClientConfig, NewTopic
from broker.client.blocking import Admin
from tests.proofs.chaos.faults import fill
from tests.servers.kafka import KafkaNode
from tests.servers.process import answer_when, free_ports, wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.hosts import apart, why_not
from tests.support.registries import RegistryProcess
from tests.support.worker import ConnectWorker

__all__ = ["Killer", "Party", "Rows", "appended", "changed", "filling", "killing", "run", "run_apart"]

PARTITIONS, KEYS = 3, 400
_FIELDS = [{"field": "id", "type": "int64", "optional": False}, {"field": "n", "type": "int64", "optional": True}]
_SCHEMA = {"type": "struct", "optional": True, "fields": _FIELDS}

Rows = Counter[tuple[int, int]]
Killer = Callable[[random.Random], None]
Encode = Callable[[int, int | None], bytes | None]
"""Takes the id of a record and its value."""


class Party(Protocol):
    """A server that may be killed."""

    process: Any

    def start(self) -> None: ...


class _Broker(Protocol):
    """The brokers of the records: one, or several of which ``kill`` kills one."""

    @property
    def bootstrap_servers(self) -> str: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...
    def end(self) -> None: ...


class _One:
    def __init__(self, folder: Path) -> None:
        self._broker = TidegateBroker(folder)
        self.start, self.kill, self.end = self._broker.start, self._broker.kill, self._broker.kill

    @property
    def bootstrap_servers(self) -> str:
        return self._broker.bootstrap_servers


class _ApacheCluster:
    """Three brokers of Apache Kafka; ``kill`` kills one after the other, and ``start`` starts what does not run."""

    def __init__(self, folder: Path) -> None:
        network = random.SystemRandom().randrange(1, 255)  # others may have a cluster on these ports
        addresses, cluster = [f"127.{network}.0.{n}" for n in (1, 2, 3)], KafkaNode.cluster_id()
        self._nodes = [KafkaNode(folder / str(n), n, addresses, cluster, list) for n in (1, 2, 3)]
        self._turn = 0
        for node in self._nodes:
            node.format()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{node.address}:{node.port}" for node in self._nodes)

    def start(self) -> None:
        away = [node.process for node in self._nodes if not node.process.running]
        for process in away:
            process.begin()
        for process in away:
            process.await_ready()

    def kill(self) -> None:
        self._nodes[self._turn].process.kill()
        self._turn = (self._turn + 1) % len(self._nodes)

    def end(self) -> None:
        for node in self._nodes:
            node.process.kill()


class _Registry:
    """A registry over the brokers, which may be killed; it comes back at its address."""

    def __init__(self, folder: Path) -> None:
        self._folder, (port,) = folder, free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._settings = {"listeners": self.url, "schema.compatibility.level": "none"}
        self._process: RegistryProcess | None = None

    def start(self, bootstrap_servers: str) -> None:
        self._folder.mkdir(exist_ok=True)
        self._process = RegistryProcess(
            self._folder, self._settings | {"kafkastore.bootstrap.servers": bootstrap_servers}
        )
        assert self._process.url == self.url

    def end(self) -> None:
        if self._process is not None:
            self._process.end(signal.SIGKILL)

    def registered(self, step: int) -> Encode:
        """Register a schema that no step before had, so that whoever reads must ask for it; and write by it."""
        fields = [{"name": "id", "type": "long"}, {"name": "n", "type": ["null", "long"]}]
        fields.append({"name": f"since_{step}", "type": ["null", "long"], "default": None})
        schema = {"type": "record", "name": "row", "fields": fields}

        def register() -> int | None:  # None while the brokers that were killed have no leader yet
            asked = {"schema": json.dumps(schema)}
            with contextlib.suppress(requests.RequestException):
                answer = requests.post(f"{self.url}/subjects/rows-value/versions", json=asked, timeout=30)
                return int(answer.json()["id"]) if answer.ok else None
            return None

        number = answer_when(lambda told: told is not None, register, "a registration")
        assert number is not None
        parsed = fastavro.parse_schema(schema)

        def encode(key: int, value: int | None) -> bytes:
            written = io.BytesIO()
            fastavro.schemaless_writer(written, parsed, {"id": key, "n": value})
            return b"\0" + number.to_bytes(4, "big") + written.getvalue()

        return encode


def killing(party: Party) -> Killer:
    """Kills a server, and starts it again after up to a second."""

    def strike(chance: random.Random) -> None:
        party.process.kill()
        time.sleep(chance.uniform(0, 1))
        party.start()

    return strike


def filling(disk: Path) -> Killer:
    """Mounts a disk of 256 MiB there, and fills it for up to three seconds. For what ``run_apart`` runs."""
    disk.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(disk)], check=True)

    def strike(chance: random.Random) -> None:
        ballast = disk / "ballast"
        fill(ballast)
        time.sleep(chance.uniform(0.5, 3))
        ballast.unlink()

    return strike


def run_apart(function: Callable[[int, Path], None], seed: int, folder: Path) -> None:
    """Call a function of a module in namespaces of its own, where it may mount. Skips where there are none."""
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    module = f"tests.{function.__module__.removeprefix('tests.')}"  # pytest names it from its own root
    script = f"""
import pathlib, subprocess
from {module} import {function.__name__}
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
{function.__name__}({seed}, pathlib.Path({str(folder)!r}))
"""
    done = subprocess.run(apart([sys.executable, "-c", script]), capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr


def appended(n: int, chance: random.Random) -> tuple[int, int | None]:
    """The id of a record and its value."""
    del chance
    return n, n


def changed(n: int, chance: random.Random) -> tuple[int, int | None]:
    """Likewise; None deletes."""
    return chance.randrange(KEYS), None if chance.random() < 0.2 else n


def _json(key: int, value: int | None) -> bytes | None:
    payload = None if value is None else {"id": key, "n": value}
    return None if payload is None else json.dumps({"schema": _SCHEMA, "payload": payload}).encode()


async def _produce(servers: str, records: list[tuple[int, int | None]], encode: Encode) -> None:
    async with BatchProducer(ClientConfig(servers)) as producer:
        queued = []
        for key, value in records:
            name = json.dumps({"id": key}).encode()
            queued.append(await producer.enqueue("rows", name, encode(key, value), partition=key % PARTITIONS))
        await asyncio.gather(*queued)


def run(
    seed: int,
    folder: Path,
    config: Mapping[str, str],
    parties: Mapping[str, Killer],
    read: Callable[[], Rows],
    *,
    strikes: int,
    rows: int,
    record: Callable[[int, random.Random], tuple[int, int | None]] = appended,
    patience_s: float = 180,
    avro: bool = False,
) -> None:
    """``read`` returns the target's rows, and may fail while its server is away. Each of the parties is killed at least
    once, and so is a task host, as far as there are strikes. With ``avro`` values have schemas of a registry, which dies too, and a new
    one after each strike.
    """
    chance = random.Random(seed)
    apache = seed % 2 == 0
    broker: _Broker = _ApacheCluster(folder / "kafka") if apache else _One(folder / "broker")
    registry = _Registry(folder / "registry")
    settings = {"schema.registry.url": registry.url} if avro else {"value.converter.schemas.enable": "true"}
    worker = ConnectWorker(folder / "worker", broker.bootstrap_servers, settings)

    def kill_hosts(_: random.Random) -> None:
        for host in psutil.Process(worker.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                host.kill()

    def kill_worker(_: random.Random) -> None:
        worker.kill()
        worker.start()

    def kill_broker(chance: random.Random) -> None:
        broker.kill()
        time.sleep(chance.uniform(0, 1))
        broker.start()

    def kill_registry(chance: random.Random) -> None:
        registry.end()
        time.sleep(chance.uniform(0, 3))
        registry.start(broker.bootstrap_servers)

    parties = {**parties, **({"registry": kill_registry} if avro else {})}
    killers = {**parties, "task host": kill_hosts, "worker": kill_worker, "broker": kill_broker}
    planned = [*parties, "task host"][:strikes]
    planned += chance.choices(list(killers), k=strikes - len(planned))
    chance.shuffle(planned)
    shared = {
        "topics": "rows",
        "tasks.max": "2",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "false",
        "consumer.override.auto.offset.reset": "earliest",
        "consumer.override.max.partition.fetch.bytes": "20000",
    }
    every: Rows = Counter()
    last: dict[int, int | None] = {}
    try:
        broker.start()
        if avro:
            registry.start(broker.bootstrap_servers)
        worker.start()
        with Admin(ClientConfig(broker.bootstrap_servers)) as admin:
            admin.create_topics([NewTopic("rows", PARTITIONS, 3 if apache else 1)])
        worker.ask("POST", "/connectors", {"name": "sink", "config": {**shared, **config}}, expect=201)
        share = rows // strikes
        for step, what in enumerate(planned):
            records = [record(n, chance) for n in range(step * share, (step + 1) * share)]
            last |= dict(records)
            encode = registry.registered(step) if avro else _json
            asyncio.run(_produce(broker.bootstrap_servers, records, encode))
            time.sleep(chance.uniform(0.1, 1))
            killers[what](chance)
        every.update((key, value) for key, value in last.items() if value is not None)

        def there() -> Rows:
            with contextlib.suppress(Exception):
                return read()
            return Counter()

        try:
            wait_until(lambda: set(there()) == set(every), "all rows in the target", patience_s, pause_s=0.5)
        except TimeoutError as error:
            with contextlib.suppress(requests.RequestException):
                told = worker.ask("GET", "/connectors/sink/status")
                missing = len(set(every) - set(there()))
                raise AssertionError(f"seed {seed}: {error}: {missing} are missing; {planned}; {told}") from error
            raise
        print(f"seed {seed}: {rows} records, {'Apache Kafka' if apache else 'Tidegate'}, killed {Counter(planned)}")
        assert there() == every, f"seed {seed}: rows are there more than once"
    finally:
        worker.kill()
        registry.end()
        broker.end()
