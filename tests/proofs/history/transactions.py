"""Transactional producers (librdkafka's), and those that copy from topic to topic in one transaction with their offsets.

Events: ``txn`` (txn: its number; phase: begun, committing, committed, aborting, aborted, unknown; of a copier's ``committing`` also
group and offsets). The records of a transaction are ``send`` events that bear its number; a copy's also ``source``, as
[topic, partition, offset, id].
"""

from __future__ import annotations

import itertools
import random
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.proofs.history.consumers import place, record_reads
from tests.proofs.history.plan import PATIENT, Sender
from tests.proofs.history.producers import World, send

__all__ = ["copy_records", "finish_transactions", "send_transactions"]

_NUMBERS = itertools.count()
_TRY_S = 5.0


class _Unfinished(Exception):
    """The producer cannot go on; a new one with its id can."""


class Transactions:
    """One transactional id: one producer at a time, and its current transaction."""

    def __init__(self, world: World, sender: Sender) -> None:
        self.world, self.sender = world, sender
        self.number = -1
        self.phase = "none"
        self.producer = self._made()

    def _made(self) -> Producer:
        producer = Producer(self.world.settings(**self.sender.settings))
        while True:
            try:
                producer.init_transactions(_TRY_S)
                return producer
            except KafkaException as error:
                if self.world.drained.is_set():
                    raise _Unfinished from error
                if not error.args[0].retriable():
                    producer = Producer(self.world.settings(**self.sender.settings))
                    time.sleep(0.1)

    def note(self, phase: str, **what: Any) -> None:
        self.phase = phase
        self.world.history.add(self.sender.name, "txn", txn=self.number, phase=phase, **what)

    def begin(self) -> None:
        self.number = next(_NUMBERS)
        self.producer.begin_transaction()
        self.note("begun")

    def end(self, *, commit: bool, **what: Any) -> bool:
        """Whether it was certainly committed. Raises _Unfinished where only a new producer can continue."""
        if commit:
            # Said before anything else: from here on its records may be seen.
            self.note("committing", **what)
            try:
                self._insist(self.producer.commit_transaction)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    self.note("unknown", error=str(error))
                    raise _Unfinished from error
            else:
                self.note("committed")
                return True
        self.note("aborting")
        try:
            self._insist(self.producer.abort_transaction)
        except KafkaException as error:
            self.note("aborted", error=str(error))  # whatever comes: nobody will commit it
            raise _Unfinished from error
        self.note("aborted")
        return False

    def _insist(self, do: Any) -> None:
        while True:
            try:
                do(_TRY_S)
                return
            except KafkaException as error:
                if not error.args[0].retriable() or self.world.drained.is_set():
                    raise

    def offsets(self, positions: list[TopicPartition], group: Any) -> None:
        # Not tried again: librdkafka 2.16 may then never come back from the call.
        self.producer.send_offsets_to_transaction(positions, group, _TRY_S)

    def renew(self) -> None:
        """As after a crash of the client: another producer takes over the id, which ends an open transaction."""
        if self.phase == "begun":
            self.note("aborted", error="the producer was left")
        self.producer.purge()
        self.producer = self._made()


def send_transactions(world: World, sender: Sender, base: int, chance: random.Random) -> None:
    number = base
    try:
        transactions = Transactions(world, sender)
        while not world.stop.is_set():
            try:
                transactions.begin()
                for _ in range(chance.randint(*sender.lengths)):
                    topic = chance.choice(sender.topics)
                    where = (topic, chance.randrange(world.partitions[topic]))
                    send(
                        world,
                        transactions.producer,
                        sender,
                        number,
                        where,
                        world.drained.is_set,
                        txn=transactions.number,
                    )
                    number += 1
                    time.sleep(chance.random() * 2 / sender.rate)
                if chance.random() < sender.abandons:
                    transactions.renew()
                else:
                    transactions.end(commit=chance.random() >= sender.aborts)
            except (KafkaException, _Unfinished):
                transactions.renew()
    except _Unfinished:
        pass


def copy_records(world: World, sender: Sender, base: int, chance: random.Random) -> None:
    """Read committed records of all topics and write each to ``copies``, exactly once."""
    group = f"{sender.name}-group"
    consumer = Consumer(
        world.settings(**{key: PATIENT[key] for key in PATIENT if "message" not in key and "request" not in key})
        | {
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    number, positions = base, {(t, n): 0 for t in sender.topics for n in range(world.partitions[t])}
    consumer.assign([TopicPartition(*where, 0) for where in positions])
    session = 0
    try:
        transactions = Transactions(world, sender)
        while not world.drained.is_set():
            messages = [m for m in consumer.consume(chance.randint(1, 100), 0.1) if m.error() is None]
            good = [m for m in messages if m.offset() >= positions[m.topic(), m.partition()]]
            if not good:
                continue
            record_reads(world, sender.name, "read_committed", session, good)
            ends = positions | {(m.topic(), m.partition()): m.offset() + 1 for m in good}
            try:
                transactions.begin()
                for message in good:
                    source = [
                        message.topic(),
                        message.partition(),
                        message.offset(),
                        int(message.value().split(b":")[0]),
                    ]
                    where = ("copies", number % world.partitions["copies"])
                    send(world, transactions.producer, sender, number, where, world.drained.is_set,
                         txn=transactions.number, source=source)  # fmt: skip
                    number += 1
                offsets = [TopicPartition(*where, offset) for where, offset in ends.items()]
                transactions.offsets(offsets, consumer.consumer_group_metadata())
                known = {place(*where): offset for where, offset in ends.items()}
                committed = transactions.end(commit=chance.random() >= sender.aborts, group=group, offsets=known)
            except (KafkaException, _Unfinished):
                transactions.renew()
                committed = False
            positions = _go_on(world, consumer, group, positions, ends, committed)
            session += not committed  # which reads again what it has seen
    except _Unfinished:
        pass
    finally:
        consumer.close()


def _go_on(world: World, consumer: Consumer, group: str, before: Any, ends: Any, committed: bool) -> Any:
    """Where to continue reading: after a commit at its end, else at the group's offsets."""
    if committed:
        return ends
    while True:
        began = world.history.now()
        try:
            committed_offsets = consumer.committed([TopicPartition(*where) for where in before], 5)
        except KafkaException:
            if world.drained.is_set():
                return before
            continue
        known = {(partition.topic, partition.partition): max(partition.offset, 0) for partition in committed_offsets}
        world.history.add("copier", "fetched offsets", group=group, began=began,
                          offsets={place(*where): offset for where, offset in known.items()})  # fmt: skip
        consumer.assign([TopicPartition(*where, offset) for where, offset in known.items()])
        return known


def finish_transactions(world: World, sender: Sender) -> None:
    """Take the id once more, so that nothing it began stays open."""
    producer = Producer(world.settings(**sender.settings))
    for _ in range(10):
        try:
            producer.init_transactions(_TRY_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
    world.problems.append(f"{sender.name}: its transactional id could not be taken again in 50 s")
