"""Runs one seed: starts a broker, runs the plan's clients and faults, then reads all records."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.proofs.history.broker_process import WatchedBroker
from tests.proofs.history.consumers import begin_group, place, read_alone, read_in_group, watch_group
from tests.proofs.history.history import History
from tests.proofs.history.plan import Fault, Plan
from tests.proofs.history.producers import IDS_A_SENDER, PATIENCE_S, World, identity, send_records
from tests.proofs.history.transactions import copy_records, finish_transactions, send_transactions
from tests.servers.kafka import KafkaBroker

__all__ = ["APACHE_FAULTS", "run"]

APACHE_FAULTS = ("kill", "stop", "restart")
"""The faults for Apache Kafka: it responds before records are on disk, so its power is not cut."""

Broker = WatchedBroker | KafkaBroker
_SENDERS: dict[str, Callable[..., None]] = {
    "plain": send_records,
    "idempotent": send_records,
    "transactional": send_transactions,
    "copier": copy_records,
}


def run(plan: Plan, directory: Path, *, broken: str | None = None, apache: bool = False) -> History:
    """Carry out a plan; the history, also when the broker could not be brought back (a ``problem`` event)."""
    history = History()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    history.add("run", "plan", seed=plan.seed, settings=plan.settings, broken=broken, last=plan.last_fault)
    # A plain producer of librdkafka's sends the next batch before it tries one again that was refused.
    refusing = any(fault.kind in ("disk full", "flush fails") for fault in plan.faults)
    for sender in plan.senders:
        flight = sender.settings["max.in.flight.requests.per.connection"]
        reorders = sender.kind == "plain" and (flight != 1 or refusing)
        history.add("run", "sender", name=sender.name, kind=sender.kind, reorders=reorders)
    broker: Broker = KafkaBroker(directory) if apache else WatchedBroker(directory, plan.settings, broken)
    if apache:
        broker.start()  # type: ignore[union-attr]
    else:
        broker.process.start()
    try:
        _live(plan, broker, history, random.Random(plan.seed))
    except Exception as error:
        history.add("run", "problem", text=f"{type(error).__name__}: {error}")
    finally:
        broker.process.stop()
    return history


def _live(plan: Plan, broker: Broker, history: History, chance: random.Random) -> None:
    world = World(broker.bootstrap_servers, history, {topic.name: topic.partitions for topic in plan.topics})
    _create_topics(plan, broker)
    for reader in plan.readers:
        if reader.members:
            begin_group(world, reader)
    senders = [
        _thread(
            world,
            sender.name,
            _SENDERS[sender.kind],
            world,
            sender,
            IDS_A_SENDER * (n + 1),
            random.Random(plan.seed * 100 + n),
        )
        for n, sender in enumerate(plan.senders)
    ]
    readers = []
    for reader in plan.readers:
        if reader.members:
            readers.append(_thread(world, f"{reader.name}-watch", watch_group, world, reader))
            readers += [
                _thread(world, f"{reader.name}-{n}", read_in_group, world, reader, n) for n in range(reader.members)
            ]
        else:
            readers.append(_thread(world, reader.name, read_alone, world, reader))
    began = time.monotonic()
    for fault in plan.faults:
        time.sleep(max(0.0, fault.at - (time.monotonic() - began)))
        commit(fault, broker, history, chance)
    time.sleep(max(0.0, plan.seconds - (time.monotonic() - began)))
    world.stop.set()
    copiers = [thread for thread, sender in zip(senders, plan.senders, strict=True) if sender.kind == "copier"]
    for thread in senders:
        if thread not in copiers:
            thread.join(PATIENCE_S + 15)
    time.sleep(0.2)  # for readers to see some of the end as it is written
    if plan.last_fault != "none":
        commit(Fault(plan.seconds, plan.last_fault, 0), broker, history, chance)
    world.drained.set()
    for thread in (*senders, *readers):
        thread.join(30 if thread in copiers else 60)
        if thread in copiers and thread.is_alive():
            # Its client hangs in a call, and holds nothing up: its transactional id is taken from it below.
            history.add("run", "client hangs", name=thread.name)
        elif thread.is_alive():
            world.problems.append(f"{thread.name} did not end")
    for sender in plan.senders:
        if sender.kind in ("transactional", "copier"):
            finish_transactions(world, sender)
    _read_everything(plan, world)
    for problem in world.problems:
        history.add("run", "problem", text=problem)


def _thread(world: World, name: str, do: Callable[..., None], *arguments: Any) -> threading.Thread:
    def guarded() -> None:
        try:
            do(*arguments)
        except Exception as error:
            world.problems.append(f"{name} ended with {type(error).__name__}: {error}")

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


def _create_topics(plan: Plan, broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    new_topics = [NewTopic(topic.name, topic.partitions, 1, config=topic.config) for topic in plan.topics]
    for future in admin.create_topics(new_topics).values():
        future.result(60)


def commit(fault: Fault, broker: Broker, history: History, chance: random.Random) -> None:
    """Do it, to its end: the broker runs again after."""
    process = broker.process
    note: dict[str, Any] = {}
    began = history.now()
    match fault.kind:
        case "kill":
            process.kill()
            time.sleep(fault.lasts)
            process.start()
        case "power cut":
            assert isinstance(broker, WatchedBroker)
            process.kill()
            began = history.now()
            note["did"] = broker.disk.cut_power(broker.data, chance)
            time.sleep(fault.lasts)
            process.start()
        case "restart":
            process.stop()
            time.sleep(fault.lasts)
            process.start()
        case "stop":
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(fault.lasts)
            os.kill(process.pid, signal.SIGCONT)
        case "disk full":
            assert isinstance(broker, WatchedBroker)
            broker.disk.fill(chance.choice([0, chance.randrange(20_000)]))
            time.sleep(fault.lasts)
            broker.disk.mend()
        case "flush fails":
            assert isinstance(broker, WatchedBroker)
            broker.disk.break_flushes()
            time.sleep(min(fault.lasts, 0.5))
            broker.disk.mend()
            process.kill()
            process.start()
    event = history.add("run", "fault", kind=fault.kind, until=history.now(), **note)
    event["t"] = began


def _read_everything(plan: Plan, world: World) -> None:
    for table in plan.topics:
        for partition in range(table.partitions):
            for isolation in ("read_uncommitted", "read_committed"):
                _read_log(world, table.name, partition, isolation)
    for sender in plan.senders:
        if sender.kind == "copier":
            consumer = Consumer(world.settings(**{"group.id": f"{sender.name}-group"}))
            where = [TopicPartition(topic, n) for topic in sender.topics for n in range(world.partitions[topic])]
            known = {
                place(committed.topic, committed.partition): max(committed.offset, 0)
                for committed in consumer.committed(where, 20)
            }
            world.history.add("run", "final offsets", copier=sender.name, offsets=known)
            consumer.close()


def _read_log(world: World, topic: str, partition: int, isolation: str) -> None:
    consumer = Consumer(
        world.settings(
            **{
                "group.id": "everything",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "check.crcs": True,
            }
        )
    )
    where = TopicPartition(topic, partition, 0)
    start, _ = consumer.get_watermark_offsets(where, 20)
    consumer.assign([TopicPartition(topic, partition, start)])
    records: list[list[int]] = []
    end, deadline = None, time.monotonic() + 60
    while end is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic}-{partition} was not read to its end ({isolation}): {len(records)} records")
        for message in consumer.consume(1000, 0.5):
            error = message.error()
            if error is None:
                records.append([message.offset(), identity(message.value())])
            elif error.code() == KafkaError._PARTITION_EOF:
                end = message.offset()
            elif not error.retriable() and error.code() not in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT):
                raise KafkaException(error)
    with contextlib.suppress(KafkaException):
        consumer.close()
    what = {"topic": topic, "partition": partition, "isolation": isolation, "start": start, "end": end}
    world.history.add("run", "log", **what, records=records)
