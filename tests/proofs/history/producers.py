"""Producers (librdkafka's) that record what they send and what they are told of it.

Events: ``send`` (id, topic, partition, and of a transaction its number in ``txn``), ``ack`` (id, offset), ``nack`` (id, error).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.proofs.history.history import History
from tests.proofs.history.plan import Sender

__all__ = ["IDS_A_SENDER", "PATIENCE_S", "World", "body", "fatal", "identity", "send", "send_records"]

IDS_A_SENDER = 1_000_000
PATIENCE_S = 180
"""Time for the last responses: on a disk that flushes for four seconds each batch is sent twice
(``request.timeout.ms``) and takes as long.
"""


class World:
    """Objects that the clients of one run share. ``stop`` is set when they should finish."""

    def __init__(self, bootstrap_servers: str, history: History, partitions: dict[str, int]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.history = history
        self.partitions = partitions
        self.stop = threading.Event()
        self.drained = threading.Event()
        self.problems: list[str] = []

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "error_cb": lambda _: None, **more}


def body(number: int, size: int) -> bytes:
    """A record's value: its id, and as many bytes as the id says."""
    text = b"%d:" % number
    return text + b"%d" % (number % 10) * max(number * 31 % size - len(text), 0)


def identity(value: bytes | None) -> int:
    """The id in a value; -1 if it is none of ours, or not whole."""
    head, _, rest = (value or b"").partition(b":")
    if not head.isdigit() or (rest and rest.strip(b"%d" % (int(head) % 10))):
        return -1
    return int(head)


def send(
    world: World,
    producer: Producer,
    sender: Sender,
    number: int,
    where: tuple[str, int],
    stop: Callable[[], bool] = lambda: False,
    **what: Any,
) -> None:
    """Hand one record to the producer; ``what`` goes into its ``send`` event."""
    topic, partition = where
    history = world.history

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            # None: a repeated batch that the broker knows only by its sequence.
            offset = message.offset()
            history.add(sender.name, "ack", id=number, offset=-1 if offset is None else offset)
        else:
            history.add(sender.name, "nack", id=number, error=str(error))

    history.add(sender.name, "send", id=number, topic=topic, partition=partition, **what)
    value = what.get("value") or body(number, sender.size)
    while True:
        try:
            producer.produce(topic, value, b"%d" % (number % 7), partition, on_delivery=delivered)
            break
        except BufferError:
            producer.poll(0.05)
            if stop():
                history.add(sender.name, "nack", id=number, error="not sent: the queue was full")
                return
    producer.poll(0)


def send_records(world: World, sender: Sender, base: int, chance: random.Random) -> None:
    """A plain or an idempotent producer, until the world stops."""
    producer = Producer(world.settings(**sender.settings))
    number = base
    partition = chance.randrange(10)
    while not world.stop.is_set():
        topic = chance.choice(sender.topics)
        if chance.random() < 0.1:
            partition = chance.randrange(10)
        for _ in range(chance.choice([1, 1, 5, 20])):
            where = (topic, partition % world.partitions[topic])
            send(world, producer, sender, number, where, world.drained.is_set)
            number += 1
            time.sleep(chance.random() * 2 / sender.rate)
            if world.stop.is_set():
                break
    left = producer.flush(PATIENCE_S)
    if left:
        world.problems.append(f"{sender.name}: {left} records were neither acknowledged nor refused in {PATIENCE_S} s")


def fatal(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and bool(error.args[0].fatal())
