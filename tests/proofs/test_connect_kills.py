"""Connect workers under kill -9: workers, the leader, task hosts and the broker die at random under load.

Sources write numbers into topics, a sink writes them into files. At least once: all are there. Exactly once: each is there once.
A seed's remainder by four says which broker and which promise. TIDEGATE_SEEDS=3,7-9 chooses seeds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests

from broker.client import ClientConfig
from broker.client.blocking import Admin, BatchConsumer
from connect.group.protocol import decode_assignment
from tests.proofs import effort, run_seeds, seeds
from tests.servers.kafka import KafkaBroker
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.toys import rows_of
from tests.support.worker import ConnectWorker
from tidegate.kit.errors import TidegateError

pytestmark = [pytest.mark.proof, pytest.mark.timeout(7200)]

WORKERS, SOURCES = 3, 2
KINDS = [(kafka, mode) for kafka in ("tidegate", "apache") for mode in ("at least once", "exactly once")]
NUMBERS, ROWS = "org.toys.NumbersConnector", "org.toys.RowsConnector"
GROUP = "g"
SETTINGS = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "rebalance.timeout.ms": "10000",
    "scheduled.rebalance.max.delay.ms": "1000",
    "task.host.processes": "1",
    "offset.storage.replication.factor": "1",
    "config.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
}


class Cluster:
    """A broker and a group of workers over it, and what may happen to them."""

    def __init__(self, folder: Path, kafka: str, mode: str, chance: random.Random) -> None:
        self.chance = chance
        self.broker = TidegateBroker(folder / "broker") if kafka == "tidegate" else KafkaBroker(folder / "broker")
        self.broker.start()
        enabled = {"exactly.once.source.support": "enabled"} if mode == "exactly once" else {}
        servers = self.broker.bootstrap_servers
        self.workers = [
            ConnectWorker(folder / f"w{number}", servers, SETTINGS | enabled, name=GROUP) for number in range(WORKERS)
        ]
        self.killed: Counter[str] = Counter()
        for worker in self.workers:
            worker.start()

    def client(self, **settings: str) -> ClientConfig:
        return ClientConfig(self.broker.bootstrap_servers, {key.replace("_", "."): v for key, v in settings.items()})

    @property
    def up(self) -> list[ConnectWorker]:
        return [worker for worker in self.workers if worker.process.running]

    def create(self, name: str, config: dict[str, str]) -> None:
        """Uses PUT, because a response may be lost and a retry must not fail because the connector exists already."""
        answer = self.ask(f"/connectors/{name}/config", config)
        assert answer.status_code in (200, 201), answer.text

    def ask(self, path: str, body: object = None) -> requests.Response:
        """Ask any worker; while the group rebalances or a worker has just died there is no answer that counts."""
        deadline = time.monotonic() + 90
        while True:
            worker = self.chance.choice(self.up)
            try:
                answer = requests.request("PUT" if body else "GET", worker.url + path, json=body, timeout=15)
                if answer.status_code < 500 and answer.status_code != 409:
                    return answer
                told = answer.text
            except (requests.RequestException, OSError, ValueError) as error:
                told = str(error)
            assert time.monotonic() < deadline, f"{path}: {told}"
            time.sleep(0.3)

    def leader(self) -> ConnectWorker | None:
        """The worker that leads the group, as the group's own assignments say."""
        with contextlib.suppress(TidegateError, StopIteration), Admin(self.client(request_timeout_ms="3000")) as admin:
            members = admin.describe_group(GROUP).members
            url = next(decode_assignment(member.assignment).leader_url for member in members if member.assignment)
            return next((worker for worker in self.up if worker.url.rstrip("/") == url.rstrip("/")), None)
        return None

    def strike(self) -> None:
        """Kill something; what is no task host comes back, at once or with the next strike."""
        what = self.chance.choice(["worker", "leader", "task host", "task host", "broker"])
        victim = self.leader() if what == "leader" else self.chance.choice(self.up)
        if what == "broker":
            self.broker.kill()
            self.pause()
            self.broker.start()
        elif victim is None:
            return
        elif what == "task host":
            hosts = psutil.Process(victim.process.pid).children()
            if not hosts:
                return
            with contextlib.suppress(psutil.NoSuchProcess):
                self.chance.choice(hosts).kill()
        else:
            # The worker alone: its task hosts have to notice by themselves.
            os.kill(victim.process.pid, signal.SIGKILL)
            wait_until(lambda: not victim.process.running, "the worker gone")
            victim.kill()  # what is left of it in this process
        self.killed[what] += 1
        if len(self.up) < 2 or self.chance.random() < 0.6:
            self.heal()

    def heal(self) -> None:
        for worker in self.workers:
            if not worker.process.running:
                worker.start()

    def pause(self) -> None:
        time.sleep(self.chance.uniform(0.1, 1.5))

    def stop(self) -> None:
        for server in (*self.workers, self.broker):
            server.kill()

    def numbers(self, topic: str) -> list[int]:
        """The numbers committed to a topic, in order."""
        numbers: list[int] = []
        config = self.client(isolation_level="read_committed", auto_offset_reset="earliest")
        with Admin(config) as admin, BatchConsumer(config) as consumer:
            ends = admin.end_offsets([(topic, p.partition) for p in admin.describe_topics([topic])[topic].partitions])
            consumer.assign(ends)
            consumer.seek_to_beginning(*ends)
            left = {tuple(tp): end for tp, end in ends.items() if end}
            while left:
                for part in consumer.fetch():
                    numbers += [json.loads(record.value)["n"] for record in part.records()]
                    if part.next_offset >= left.get((part.topic, part.partition), 0):
                        left.pop((part.topic, part.partition), None)
        return numbers


@contextlib.contextmanager
def cluster(*arguments: object) -> Iterator[Cluster]:
    made = None
    try:
        made = Cluster(*arguments)  # type: ignore[arg-type]
        yield made
    finally:
        if made is not None:
            made.stop()


def written(files: list[Path]) -> Counter[tuple[str, int]]:
    return Counter((row["topic"], row["value"]["n"]) for file in files for row in rows_of(file))


def run(seed: int, folder: Path) -> str:
    kafka, mode = KINDS[seed % len(KINDS)]
    chance = random.Random(seed)
    strikes = effort(3, chance.randint(4, 8))
    total, topics = strikes * 600, [f"t{number}" for number in range(SOURCES)]
    out = folder / "out"
    with cluster(folder, kafka, mode, chance) as group:
        for topic in topics:
            config = {"connector.class": NUMBERS, "topic": topic, "total": str(total), "batch": "10", "pause.ms": "15"}
            if mode == "exactly once":
                config |= {
                    "exactly.once.support": "required",
                    "transaction.boundary": chance.choice(["poll", "interval"]),
                    "transaction.boundary.interval.ms": "100",
                }
            group.create(f"source-{topic}", config)
        config = {"connector.class": ROWS, "topics": ",".join(topics), "file": str(out), "tasks.max": "2"}
        group.create("sink", config)
        for _ in range(strikes):
            group.pause()
            group.strike()
        group.heal()
        expected = {(topic, n) for topic in topics for n in range(total)}

        missing = expected
        while missing:
            before = len(missing)

            def fewer() -> bool:
                nonlocal missing
                missing = expected - written([out]).keys()
                return len(missing) < before

            try:
                wait_until(fewer, "a further number in the sink's file", 150, pause_s=0.5)
            except TimeoutError as error:
                states = [group.ask(f"/connectors/{name}/status").json() for name in ("source-t0", "source-t1", "sink")]
                raise AssertionError(f"{error}; {before} missing, as {sorted(missing)[:5]}; {states}") from None
        for topic in topics:
            numbers = group.numbers(topic)
            assert set(numbers) == set(range(total))
            if mode == "exactly once":
                twice = [n for n, count in Counter(numbers).items() if count > 1]
                assert not twice, f"{len(twice)} numbers of {topic} are there more than once: {twice[:10]}"
                assert numbers == sorted(numbers)
        return f"{kafka}, {mode}, {dict(group.killed)}"


def test_no_number_is_lost_and_none_comes_twice_where_that_is_promised(tmp_path, record_property):
    run_seeds(run, seeds(1, 50), tmp_path, record_property)
