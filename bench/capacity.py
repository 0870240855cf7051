"""``python -m bench.capacity [broker-records|broker-partitions|...]``: how far one process of each component goes, ours alone.

Each section prints a table whose rows grow by a factor. A figure that stays the same from row to row scales linearly.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import psutil
import requests
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from bench.broker.produce import produce
from bench.broker.sides import Side, our_broker
from bench.broker.start import _metadata_ms
from bench.connect_groups import OurWorker, create, running, settings
from bench.connect_idle import pss_mb
from bench.events.sides import events_server
from bench.events.subscribe import _idle_cometd, _idle_pubsub
from bench.registry.requests import schema
from bench.registry.sides import ours as our_registry
from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin
from tests.servers.kafka import FOR_SPEED, KafkaBroker
from tests.servers.process import ServerProcess, free_ports, wait_until

__all__ = ["SECTIONS", "main"]

Row = dict[str, float | str]
_IDLE_S = 10.0
_PATIENT = {"request.timeout.ms": "300000"}
_MILLION = 1_000_000
_TOPIC_PARTITIONS = 1000
_WRITTEN_TO = 10_000
"""More partitions of one broker are work for librdkafka, which goes through all of them."""


def _cpu_s(pid: int) -> float:
    process = psutil.Process(pid)
    times = [member.cpu_times() for member in (process, *process.children(recursive=True))]
    return sum(part.user + part.system for part in times)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# Broker


def broker_records(folder: Path, most: int) -> Iterator[Row]:
    """Records of 100 B in 4 partitions, acks=all, page cache: millions of them in all."""
    total, data = 0, folder / "broker"
    with our_broker(data) as side:
        topic = side.create_topic(4)
        for until in (n for n in (1, 2, 5, 10, 20, 50) if n <= most):
            more = ("batch.size=131072", "linger.ms=10")
            measured = produce(side, topic, records=until * _MILLION - total, size=100, acks="all", more=more)
            total = until * _MILLION
            yield {"million records": until, **measured, "memory MB": side.memory_mb()}
    began = time.perf_counter()
    with our_broker(data) as side:
        ready_s = time.perf_counter() - began
        yield {"million records": "a start after it", "memory MB": side.memory_mb(), "ready s": ready_s}


def _one_each(side: Side, topics: Sequence[tuple[str, int]], batches: int) -> float:
    """CPU µs of the broker for a batch of one record, written to the partitions in turn."""
    settings = {
        "bootstrap.servers": side.bootstrap,
        "log_level": 0,
        "linger.ms": 5,
        "batch.num.messages": 1,
        "queue.buffering.max.messages": 1_000_000,
    }
    producer = Producer(settings)
    for warm in topics:
        producer.produce(warm[0], b"w", partition=warm[1])
        producer.poll(0)
    assert producer.flush(300) == 0
    before = side.cpu_s()
    for number in range(batches):
        topic, partition = topics[number % len(topics)]
        producer.produce(topic, b"x" * 100, partition=partition)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(300) == 0
    return (side.cpu_s() - before) * 1e6 / batches


def broker_partitions(folder: Path, most: int) -> Iterator[Row]:
    """A broker with so many partitions, in topics of 1,000."""
    for count in (n for n in (1, 100, 1000, 10_000, 100_000) if n <= most):
        data = folder / f"broker-{count}"
        with our_broker(data) as side:
            created = time.perf_counter()
            each = min(count, _TOPIC_PARTITIONS)
            names = [f"wide-{number}" for number in range(count // each)]
            for name in names:
                _create(side.bootstrap, [NewTopic(name, each, 1)])
            created = time.perf_counter() - created
            parts = [(name, number) for name in names for number in range(each)]
            cost = _one_each(side, parts[:_WRITTEN_TO], 20_000)
            time.sleep(2)
            idle = side.cpu_s()
            time.sleep(_IDLE_S)
            idle = (side.cpu_s() - idle) / _IDLE_S
            row: Row = {
                "partitions": count,
                "create s": created,
                "CPU µs/batch": cost,
                "metadata ms": _metadata_ms(side),
                "idle CPU %": idle * 100,
                "memory MB": side.memory_mb(),
            }
            stopped = time.perf_counter()
        row["stop s"] = time.perf_counter() - stopped
        started = time.perf_counter()
        with our_broker(data):
            row["start s"] = time.perf_counter() - started
        yield row


def _beside(side: Side, topic: str, work: Callable[[], object]) -> Row:
    """How long records with acks=all take, one after the other, while something else is done."""
    took_ms: list[float] = []
    ended = threading.Event()
    producer = Producer({"bootstrap.servers": side.bootstrap, "linger.ms": 0, "log_level": 0})

    def write() -> None:
        while not ended.is_set():
            began = time.perf_counter()
            producer.produce(topic, b"x" * 100, partition=0)
            assert producer.flush(300) == 0
            took_ms.append((time.perf_counter() - began) * 1000)
            time.sleep(0.002)

    writing = threading.Thread(target=write)
    writing.start()
    time.sleep(1)
    took_ms.clear()
    seconds = _timed(work)
    ended.set()
    writing.join()
    took_ms.sort()
    return {
        "s": seconds,
        "a record beside it, median ms": took_ms[len(took_ms) // 2],
        "99 % ms": took_ms[len(took_ms) * 99 // 100],
        "longest ms": took_ms[-1],
    }


def broker_changes(folder: Path, most: int) -> Iterator[Row]:
    """Partitions created and deleted by one request each, with one producer beside it."""
    with our_broker(folder / "broker") as side, Admin(ClientConfig(side.bootstrap, _PATIENT)) as admin:
        topic = side.create_topic(1)
        yield {"change": "nothing", **_beside(side, topic, lambda: time.sleep(2))}
        for count in (n for n in (100, 1000, 10_000) if n <= most):
            for each in (1, count) if count <= _TOPIC_PARTITIONS else (_TOPIC_PARTITIONS,):
                names = [f"new-{count}-{each}-{number}" for number in range(count // each)]
                new = [NewTopic(name, each, 1) for name in names]
                what = f"{len(names):,} topics of {each:,}"
                yield {"change": f"create {what}", **_beside(side, topic, lambda new=new: admin.create_topics(new))}
                yield {
                    "change": f"delete {what}",
                    **_beside(side, topic, lambda names=names: admin.delete_topics(names)),
                }


def broker_connections(folder: Path, most: int) -> Iterator[Row]:
    """Idle connections, each with one answered request."""
    with our_broker(folder / "broker") as side, contextlib.ExitStack() as stack:
        host, port = side.bootstrap.split(":")
        before, have = side.memory_mb(), 0
        for count in (n for n in (100, 1000, 4000, 8000) if n <= most):
            began = time.perf_counter()
            for _ in range(count - have):
                stack.enter_context(socket.create_connection((host, int(port))))
            have = count
            answered = _metadata_ms(side)
            yield {
                "connections": count,
                "KB each": (side.memory_mb() - before) * 1000 / count,
                "metadata ms": answered,
                "connect s": time.perf_counter() - began,
            }


# Connect


def _all_run(url: str, count: int) -> None:
    wait_until(lambda: sum(running(url).values()) == count, f"{count} tasks running", 600, pause_s=0.5)


def _workers(folder: Path, bootstrap: str, most: int, over: int) -> Iterator[Row]:
    for count in (n for n in (1, 10, 100, 1000) if n <= most and n >= over):
        properties = settings()
        group = [OurWorker(folder / f"{count}-{n}", bootstrap, properties) for n in range(over)]
        try:
            for worker in group:
                worker.start()
            url = group[0].url
            began = time.perf_counter()
            create(url, [f"c-{count}-{n}" for n in range(count)], folder)
            created = time.perf_counter() - began
            _all_run(url, count)
            ran = time.perf_counter() - began
            time.sleep(3)
            idle = sum(_cpu_s(worker.process.pid) for worker in group)
            time.sleep(_IDLE_S)
            idle = (sum(_cpu_s(worker.process.pid) for worker in group) - idle) / _IDLE_S
            memory = [pss_mb(worker.process.pid) for worker in group]
            row: Row = {
                "connectors": count,
                "create s": created,
                "all run s": ran,
                "status of all ms": _timed(lambda url=url: requests.get(f"{url}/connectors?expand=status")) * 1000,
                "status of one ms": _timed(
                    lambda url=url, count=count: requests.get(f"{url}/connectors/c-{count}-0/status")
                )
                * 1000,
                "idle CPU %": idle * 100,
                "memory MB": sum(part for part, _ in memory),
                "processes": sum(part for _, part in memory),
            }
            if over > 1:
                began = time.perf_counter()
                group[-1].stop()
                wait_until(
                    lambda url=url, count=count: sum((on := running(url)).values()) == count and len(on) == over - 1,
                    "the tasks of a worker that left running elsewhere",
                    600,
                    pause_s=0.5,
                )
                row["a worker leaves s"] = time.perf_counter() - began
            else:
                began = time.perf_counter()
                group[0].stop()
                row["stop s"] = time.perf_counter() - began
                again = OurWorker(folder / f"{count}-again", bootstrap, properties)
                group = [again]
                began = time.perf_counter()
                again.start()
                _all_run(again.url, count)
                row["start again s"] = time.perf_counter() - began
        finally:
            for worker in group:
                worker.stop()
        yield row


def worker_connectors(folder: Path, most: int) -> Iterator[Row]:
    """File sources of one task, on one worker over our broker."""
    with our_broker(folder / "broker") as side:
        yield from _workers(folder, side.bootstrap, most, 1)


def workers_apache(folder: Path, most: int) -> Iterator[Row]:
    """The same on three workers over an Apache Kafka that has 10,000 partitions besides."""
    kafka = KafkaBroker(folder / "kafka", jvm=FOR_SPEED)
    kafka.start()
    try:
        _create(kafka.bootstrap_servers, [NewTopic(f"wide-{number}", 1000, 1) for number in range(10)])
        yield from _workers(folder, kafka.bootstrap_servers, most, 3)
    finally:
        kafka.stop()


# Registry


def registry_schemas(folder: Path, most: int) -> Iterator[Row]:
    """Subjects with one Avro schema of ten fields each; requests over 8 connections that are kept."""
    with our_broker(folder / "broker") as side:
        have = 0
        for count in (n for n in (100, 1000, 10_000) if n <= most):
            with our_registry(folder, side.bootstrap, "_schemas") as registry:
                ready_s = registry.ready_s
                cpu = registry.cpu_s()

                def register(part: range, url: str = registry.url) -> None:
                    with requests.Session() as session:
                        for number in part:
                            body = {"schema": schema(f"R{number}")}
                            answer = session.post(f"{url}/subjects/s-{number}/versions", json=body, timeout=60)
                            assert answer.ok, answer.text

                with ThreadPoolExecutor(8) as pool:
                    began = time.perf_counter()
                    list(pool.map(register, (range(have + n, count, 8) for n in range(8))))
                took = time.perf_counter() - began
                cpu = registry.cpu_s() - cpu
                listed = _timed(lambda url=registry.url: requests.get(f"{url}/subjects")) * 1000
                yield {
                    "subjects": count,
                    "registered/s": (count - have) / took,
                    "CPU ms each": cpu * 1000 / (count - have),
                    "list ms": listed,
                    "memory MB": registry.memory_mb(),
                    "ready s, with those before": ready_s,
                }
                have = count


# Events


def events_subscribers(folder: Path, most: int) -> Iterator[Row]:
    """Idle subscribers, each on a connection of its own."""
    wide = {"cometd_max_sessions": "5000", "cometd_max_sessions_per_user": "5000"}
    for count in (n for n in (100, 500, 1000) if n <= most):
        row: Row = {"subscribers": count}
        for protocol, idle in (("Pub/Sub", _idle_pubsub), ("CometD", _idle_cometd)):
            with events_server(folder / f"{protocol[:3]}-{count}", **wide) as side:
                row[f"KB each, {protocol}"] = asyncio.run(idle(side, count, tls=False))
        yield row


# Console


def console_topics(folder: Path, most: int) -> Iterator[Row]:
    """The page of all topics, by a browser's request without its pictures."""
    with our_broker(folder / "broker") as side:
        have = 0
        for count in (n for n in (100, 1000, 10_000) if n <= most):
            _create(side.bootstrap, [NewTopic(f"topic-{number}", 1, 1) for number in range(have, count)])
            have = count
            (port,) = free_ports(1)
            properties = {"bootstrap.servers": side.bootstrap, "http.listen": f"127.0.0.1:{port}"}
            arguments = [argument for pair in properties.items() for argument in ("--set", "=".join(pair))]
            ready = folder / f"ready-{count}"
            process = ServerProcess(
                "the console",
                [sys.executable, "-m", "tidegate.cli", "serve", "console", *arguments, "--ready-file", str(ready)],
                log=folder / "console.log",
                ready=ready.exists,
            )
            process.start()
            try:
                url = f"http://127.0.0.1:{port}/topics"
                first = _timed(lambda url=url: requests.get(url).raise_for_status())
                again = _timed(lambda url=url: requests.get(url).raise_for_status())
                size = len(requests.get(url).content)
                yield {
                    "topics": count,
                    "first page ms": first * 1000,
                    "page ms": again * 1000,
                    "page KB": size / 1000,
                    "memory MB": psutil.Process(process.pid).memory_full_info().pss / 1e6,
                }
            finally:
                process.stop()


def _create(bootstrap: str, topics: Sequence[NewTopic]) -> None:
    """Returns when all partitions have a leader: a broker goes on to make their folders after it has answered."""
    with Admin(ClientConfig(bootstrap, _PATIENT)) as admin:
        at_once = max(1, _TOPIC_PARTITIONS // topics[0].partitions)  # Kafka refuses larger requests
        for begin in range(0, len(topics), at_once):
            admin.create_topics(topics[begin : begin + at_once])


SECTIONS: dict[str, tuple[Callable[[Path, int], Iterator[Row]], int]] = {
    "broker-records": (broker_records, 10),
    "broker-partitions": (broker_partitions, 10_000),
    "broker-changes": (broker_changes, 10_000),
    "broker-connections": (broker_connections, 4000),
    "worker-connectors": (worker_connectors, 1000),
    "workers-apache": (workers_apache, 1000),
    "registry-schemas": (registry_schemas, 10_000),
    "events-subscribers": (events_subscribers, 1000),
    "console-topics": (console_topics, 10_000),
}


def _shown(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.capacity")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--most", type=int, help="the largest row; by default the one of the page")
    arguments = parser.parse_args()
    unknown = set(arguments.sections) - SECTIONS.keys()
    if unknown:
        parser.error(f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    console = Console(width=140)
    for name in arguments.sections or SECTIONS:
        section, most = SECTIONS[name]
        now, load = datetime.now(UTC), os.getloadavg()[0]
        with tempfile.TemporaryDirectory(prefix="tidegate-capacity-") as folder, console.status(name):
            rows = list(section(Path(folder), arguments.most or most))
        table = Table(
            title=f"{name}, {now:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, load {load:.1f} to {os.getloadavg()[0]:.1f}",
            title_justify="left", box=None, header_style="bold", padding=(0, 2, 0, 0),
        )  # fmt: skip
        columns = list(dict.fromkeys(column for row in rows for column in row))
        for column in columns:
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(*(_shown(row.get(column)) for column in columns))
        console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
