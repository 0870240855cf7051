"""The two brokers under measurement, each a process of its own with the same defaults."""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic, TopicMetadata

from tests.servers.kafka import FOR_SPEED, KafkaBroker, metadata_answers
from tests.servers.process import ServerProcess, free_ports

__all__ = ["Side", "apache_broker", "both", "our_broker"]


@dataclass
class Side:
    """A broker under measurement."""

    bootstrap: str
    pid: int

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def cpu_s(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def memory_mb(self) -> float:
        """Memory of its own (PSS: shared libraries counted in part)."""
        return psutil.Process(self.pid).memory_full_info().pss / 1e6

    def create_topic(self, partitions: int, **config: str) -> str:
        """A new topic; config keys have ``_`` for ``.``."""
        topic = f"bench-{uuid.uuid4().hex[:8]}"
        new = NewTopic(topic, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()})
        self._admin.create_topics([new])[topic].result(30)
        return topic

    def topics(self) -> Mapping[str, TopicMetadata]:
        return self._admin.list_topics(timeout=60).topics

    def delete_topic(self, topic: str) -> None:
        """So that one measurement does not fill the page cache for the next."""
        self._admin.delete_topics([topic])[topic].result(30)


@contextlib.contextmanager
def our_broker(folder: Path, *, program: str = "tidegate.cli", **settings: str) -> Iterator[Side]:
    """With the durability of the page cache, as Kafka's, unless ``settings`` (``_`` for ``.``) say otherwise."""
    port, metrics = free_ports(2)
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder),
        "metrics.listen": f"127.0.0.1:{metrics}",
        "acks.all.durability": "page-cache",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    arguments = [argument for name, value in properties.items() for argument in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", program, "serve", "broker", *arguments]
    process = ServerProcess(
        "our broker",
        command,
        log=folder / "broker.log",
        ready=lambda: metadata_answers(port),
        environment={"PYTHONDONTWRITEBYTECODE": ""},  # an installed package has its bytecode
    )
    folder.mkdir(parents=True, exist_ok=True)
    process.start()
    try:
        yield Side(f"127.0.0.1:{port}", process.pid)
    finally:
        process.stop()


@contextlib.contextmanager
def apache_broker(folder: Path) -> Iterator[Side]:
    """With the JVM options of Kafka's own start scripts."""
    broker = KafkaBroker(folder, heap="1G", jvm=FOR_SPEED)
    broker.start()
    try:
        yield Side(broker.bootstrap_servers, broker.process.pid)
    finally:
        broker.stop()


@contextlib.contextmanager
def both(folder: Path) -> Iterator[tuple[Side, Side]]:
    with our_broker(folder / "ours") as ours, apache_broker(folder / "apache") as theirs:
        yield ours, theirs
