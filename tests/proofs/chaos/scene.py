"""The hosts, what runs on them, and the connectors."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
import requests

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin
from tests.servers.kafka import KafkaNode, metadata_answers
from tests.servers.postgres import PostgresServer
from tests.servers.process import ServerProcess, wait_until
from tests.servers.s3 import S3Server
from tests.support import slow_disks
from tests.support.clocks import Clock
from tests.support.hosts import Host, Network
from tests.support.slow_disks import SlowDisk

__all__ = ["EVENTS_PASSWORD", "ROWS_A_FILE", "Party", "Scene"]

ROWS_A_FILE: Final = 40
GROUP: Final = "chaos"
EVENTS_PASSWORD: Final = "tide-of-chaos"


class Party:
    """A process on a host that may be killed, frozen or cut off."""

    def __init__(self, kind: str, process: ServerProcess, host: Host, clock: Clock | None = None) -> None:
        self.kind, self.process, self.host, self.clock = kind, process, host, clock

    @property
    def name(self) -> str:
        return self.host.name

    def signal_all(self, number: signal.Signals) -> None:
        """Of a worker its task hosts too: they are in its process group."""
        with contextlib.suppress(ProcessLookupError, AssertionError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.signal_all(signal.SIGKILL)
        self.process.kill()


class Database(PostgresServer):
    """PostgreSQL on a host."""

    def __init__(self, host: Host) -> None:
        super().__init__(f"listen_addresses = '{host.address}'", "max_connections = 200")
        self.address = host.address
        with (self._folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\nhost replication all 10.77.0.0/24 trust\n")
        self.process.move(host.inside)

    @property
    def dsn(self) -> str:
        return super().dsn.replace("127.0.0.1", self.address)

    @property
    def far_url(self) -> str:
        return f"jdbc:postgresql://{self.address}:{self.port}/{self.database}?user={self.user}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            return connection.execute(query).fetchall()  # type: ignore[arg-type]


class Scene:
    """Over three brokers of Apache Kafka, or one of ours. Raises ServerFailed where a server doesn't start."""

    def __init__(self, folder: Path, *, ours: bool = False) -> None:
        self.folder, self.network, self.ours = folder, Network(), ours
        folder.mkdir(parents=True, exist_ok=True)
        self.disk, self.scratch = folder / "disk", folder / "scratch"
        for tmpfs in (self.disk, self.scratch):
            tmpfs.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(tmpfs)], check=True)
        self.lines = folder / "lines.txt"
        self.lines.touch()
        database, objects = self.network.host("database"), self.network.host("s3")
        self.database, self.objects = Database(database), S3Server(folder / "s3", objects.address)
        self.objects.process.move(objects.inside)
        brokers = [self.network.host(f"kafka-{n}") for n in ((1,) if ours else (1, 2, 3))]
        self.slow_disks = {} if slow_disks.why_not() else {host.name: self._slow_disk(host) for host in brokers}
        self.parties: list[Party] = [self._our_broker(brokers[0])] if ours else self._brokers(brokers)
        self.bootstrap = ",".join(f"{host.address}:{KafkaNode.port}" for host in brokers)
        self.parties += [self._registry(self.network.host(f"registry-{n}")) for n in (1, 2)]
        self.registries = [f"http://{party.host.address}:18081" for party in self.of("registry")]
        self.parties += [self._worker(self.network.host(f"worker-{n}")) for n in (1, 2, 3)]
        self.parties += [self._events(self.network.host(f"events-{n}")) for n in (1, 2)]
        self.parties += [Party("database", self.database.process, database), Party("s3", self.objects.process, objects)]

    @property
    def copies(self) -> int:
        """The replicas of each topic."""
        return 1 if self.ours else 3

    def of(self, kind: str) -> list[Party]:
        return [party for party in self.parties if party.kind == kind]

    def _brokers(self, hosts: Sequence[Host]) -> list[Party]:
        addresses, cluster = [host.address for host in hosts], KafkaNode.cluster_id()
        parties = []
        for number, host in enumerate(hosts, 1):
            node = KafkaNode(self.folder / host.name, number, addresses, cluster, host.inside)
            node.format()
            self._on_its_disk(host, node.process)
            parties.append(Party("broker", node.process, host))
        return parties

    def _our_broker(self, host: Host) -> Party:
        address = f"{host.address}:{KafkaNode.port}"
        settings = {"listeners": f"PLAINTEXT://{address}", "log.dirs": str(self.folder / host.name / "log")}
        party = self._serve("broker", host, settings, lambda: metadata_answers(KafkaNode.port, host.address))
        self._on_its_disk(host, party.process)
        return party

    def _slow_disk(self, host: Host) -> SlowDisk:
        return SlowDisk(self.folder / host.name, f"{os.getpid()}-{host.name}", 512)

    def _on_its_disk(self, host: Host, process: ServerProcess) -> None:
        if host.name in self.slow_disks:
            process.move(self.slow_disks[host.name].inside)

    def _serve(
        self,
        kind: str,
        host: Host,
        settings: Mapping[str, str],
        ready: Callable[[], bool],
        **environment: str,
    ) -> Party:
        clock = Clock(self.folder / f"{host.name}.clock")
        file = self.folder / f"{host.name}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = host.inside([sys.executable, "-m", "tidegate.cli", "serve", kind, str(file)])
        log = self.folder / f"{host.name}.log"
        process = ServerProcess(host.name, command, log=log, ready=ready, environment=environment | clock.environment)
        return Party(kind, process, host, clock)

    def _registry(self, host: Host) -> Party:
        url = f"http://{host.address}:18081"
        settings = {
            "listeners": url,
            "host.name": host.address,
            "kafkastore.bootstrap.servers": self.bootstrap,
            "schema.compatibility.level": "none",
            "kafkastore.topic.replication.factor": str(self.copies),
        }
        return self._serve("registry", host, settings, lambda: answers(f"{url}/subjects"))

    def _worker(self, host: Host) -> Party:
        url = f"http://{host.address}:18083"
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": GROUP,
            "listeners": url,
            "rest.advertised.host.name": host.address,
            "schema.registry.url": ",".join(self.registries),
            "replication.factor.fit": "true",
            "scheduled.rebalance.max.delay.ms": "3000",
            "exactly.once.source.support": "enabled",
            "consumer.isolation.level": "read_committed",
            "offset.flush.interval.ms": "1000",
            "offset.storage.partitions": "3",
            "task.host.processes": "1",
            "worker.unsync.backoff.ms": "5000",
        }
        return self._serve("connect", host, settings, lambda: answers(f"{url}/connectors"), TMPDIR=str(self.scratch))

    def _events(self, host: Host) -> Party:
        data = self.folder / f"{host.name}-data"
        data.mkdir()
        (data / "session.key").write_bytes(bytes(range(32)))  # the same on all, so that a session is good at each
        settings = {
            "bootstrap.servers": self.bootstrap,
            "schema.registry.url": ",".join(self.registries),
            "data.dir": str(data),
            "http.listen": f"{host.address}:18090",
            "https.listen": f"{host.address}:18443",
            "pubsub.listen": f"{host.address}:17443",
            "pubsub.plain.listen": f"{host.address}:17080",
            "pubsub.keepalive.ms": "500",
            "events.password": EVENTS_PASSWORD,
            "events.client.secret": EVENTS_PASSWORD,
        }
        return self._serve("events", host, settings, lambda: answers(f"http://{host.address}:18090/services/data"))

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        brokers = self.of("broker")
        for party in brokers[:-1]:  # two are enough for a quorum, and none is ready alone
            party.process.begin()
        brokers[-1].process.start()
        for party in brokers[:-1]:
            party.process.await_ready()
        self.database.start()
        self.objects.start()
        for kind in ("registry", "connect", "events"):
            for party in self.of(kind):
                party.process.begin()
            for party in self.of(kind):
                party.process.await_ready()

    def stop(self) -> None:
        for party in reversed(self.parties):
            party.signal_all(signal.SIGCONT)
            party.kill()
        with contextlib.suppress(OSError):
            self.database.stop()
        for disk in self.slow_disks.values():
            with contextlib.suppress(OSError):  # a process that the disk still keeps
                disk.close()

    # -- connectors --------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Tables, topics, a bucket and the connectors."""
        with self.database.connect() as connection:
            connection.execute("CREATE TABLE orders (id bigserial PRIMARY KEY, n bigint NOT NULL)")
            connection.execute("CREATE TABLE accounts (id bigint PRIMARY KEY, v bigint NOT NULL)")
            connection.execute("INSERT INTO accounts SELECT n, 0 FROM generate_series(0, 199) n")
        (self.objects.store / "lake").mkdir()
        with Admin(ClientConfig(self.bootstrap)) as admin:
            admin.create_topics([NewTopic(topic, 3, self.copies) for topic in ("p-orders", "c.public.accounts")])
            admin.create_topics([NewTopic("lines", 1, self.copies)])
        for name, config in self._connectors().items():
            answer = self.ask("PUT", f"/connectors/{name}/config", config)
            while "no answer within" in answer.text:  # from a database, on a machine that has more to do than it can
                answer = self.ask("PUT", f"/connectors/{name}/config", config)
            assert answer.status_code in (200, 201), f"{name}: {answer.text}"

    def _connectors(self) -> dict[str, dict[str, str]]:
        text = "org.apache.kafka.connect.storage.StringConverter"
        database = {"connection.url": self.database.far_url, "connection.attempts": "100"}
        writes = {"max.retries": "100", "retry.backoff.ms": "500", "auto.create": "true", "tasks.max": "2"}
        files = {
            "topics": "p-orders",
            "tasks.max": "2",
            "format.class": "ParquetFormat",
            "flush.size": str(ROWS_A_FILE),
            "schema.compatibility": "NONE",
        }
        return {
            "lines": {
                "connector.class": "FileStreamSource",
                "file": str(self.lines),
                "topic": "lines",
                "batch.size": "50",
                "value.converter": text,
                "exactly.once.support": "required",
            },
            "orders": {
                "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
                "table.whitelist": "orders",
                "mode": "incrementing",
                "incrementing.column.name": "id",
                "topic.prefix": "p-",
                "poll.interval.ms": "200",
                "transforms": "k,i",
                "transforms.k.type": "org.apache.kafka.connect.transforms.ValueToKey",
                "transforms.k.fields": "id",
                "transforms.i.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
                "transforms.i.field": "id",
                **database,
            },
            "accounts": {
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                "database.hostname": self.database.address,
                "database.port": str(self.database.port),
                "database.user": self.database.user,
                "database.dbname": self.database.database,
                "table.include.list": "public.accounts",
                "topic.prefix": "c",
                "status.update.interval.ms": "500",
                "poll.interval.ms": "100",
            },
            "orders-disk": {"connector.class": "LocalSink", "store.url": f"file://{self.disk}", **files},
            "orders-s3": {
                "connector.class": "io.confluent.connect.s3.S3SinkConnector",
                "s3.bucket.name": "lake",
                "s3.region": self.objects.region,
                "store.url": self.objects.endpoint_url,
                "aws.access.key.id": self.objects.access_key,
                "aws.secret.access.key": self.objects.secret_key,
                "storage.class": "io.confluent.connect.s3.storage.S3Storage",
                **files,
            },
            "orders-copy": {
                "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
                "topics": "p-orders",
                "table.name.format": "orders_copy",
                "tidegate.offsets.table": "sink_offsets",
                "consumer.override.auto.offset.reset": "earliest",
                **database,
                **writes,
            },
            "accounts-copy": {
                "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
                "topics": "c.public.accounts",
                "table.name.format": "accounts_copy",
                # Without it, writes that a frozen or cut off task had begun may come after those of its successor.
                "tidegate.offsets.table": "sink_offsets",
                "insert.mode": "upsert",
                "pk.mode": "record_key",
                "pk.fields": "id",
                "delete.enabled": "true",
                "transforms": "unwrap",
                "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
                "transforms.unwrap.drop.tombstones": "false",
                "transforms.unwrap.delete.handling.mode": "none",
                **database,
                **writes,
            },
        }

    def ask(self, method: str, path: str, body: object = None) -> requests.Response:
        """Ask any worker until one answers that is not sharing out work."""
        answered: list[requests.Response] = []

        def once() -> bool:
            host = random.choice(self.of("connect")).host
            with contextlib.suppress(requests.RequestException):
                url = f"http://{host.address}:18083{path}"
                answered[:] = [requests.request(method, url, json=body, timeout=15)]
                return answered[0].status_code < 500 and answered[0].status_code != 409
            return False

        wait_until(once, f"an answer to {method} {path}; the last was {answered and answered[0].text}", 120, 0.5)
        return answered[0]

    def unsettled(self) -> list[str]:
        """Connectors and tasks that do not run, as a worker that answers says; those that fail with their trace."""
        wrong = []
        for name, told in self.ask("GET", "/connectors?expand=status").json().items():
            shown = told["status"]
            parts = [("connector", shown["connector"]), *((str(task["id"]), task) for task in shown["tasks"])]
            wrong += [
                f"{name} {part}: {state['state']} at {state['worker_id']} {state.get('trace', '')[-600:]}"
                for part, state in parts
                if state["state"] != "RUNNING"
            ]
            if not shown["tasks"]:
                wrong.append(f"{name}: no tasks")
        return wrong

    def progress(self) -> Callable[[], bool]:
        """Whether the newest row of each table when this is called has come through the log to its copy."""
        (((order,),), ((beat,),)) = (
            self.database.rows("SELECT coalesce(max(id), 0) FROM orders"),
            self.database.rows("SELECT v FROM accounts WHERE id = 0"),
        )

        def there() -> bool:
            with contextlib.suppress(psycopg.Error):
                copied = self.database.rows("SELECT coalesce(max(id), 0) FROM orders_copy")[0][0]
                beaten = self.database.rows("SELECT v FROM accounts_copy WHERE id = 0")
                return bool(copied >= order and beaten and beaten[0][0] >= beat)
            return False

        return there


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).ok
    except requests.RequestException:
        return False


def dump(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1))
