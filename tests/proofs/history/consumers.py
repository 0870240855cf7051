"""Consumers (librdkafka's) that record what they read, and groups of them that commit.

Events: ``read`` (topic, partition, isolation, session, records as [offset, id]), ``commit`` (group, offsets, began: it was
acknowledged), ``fetched offsets`` (group, offsets, began). Offsets are {"topic/partition": offset}.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.proofs.history.plan import Reader
from tests.proofs.history.producers import World, identity

__all__ = ["begin_group", "place", "read_alone", "read_in_group", "record_reads", "watch_group"]

_SESSIONS = itertools.count()
_LOST = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)


def place(topic: str, partition: int) -> str:
    return f"{topic}/{partition}"


def record_reads(world: World, who: str, isolation: str, session: int, messages: Iterable[Message]) -> None:
    reads: dict[tuple[str, int], list[list[int]]] = {}
    for message in messages:
        where = (message.topic(), message.partition())
        reads.setdefault(where, []).append([message.offset(), identity(message.value())])
    for (topic, partition), records in reads.items():
        what = {"topic": topic, "partition": partition, "isolation": isolation, "session": session}
        world.history.add(who, "read", **what, records=records)


def _settings(reader: Reader, world: World) -> dict[str, object]:
    return world.settings(
        **reader.settings,
        **{
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": reader.isolation,
            "check.crcs": True,
        },
    )


def read_alone(world: World, reader: Reader) -> None:
    """Read everything from the start, in one session as long as the log does not lose what was read."""
    consumer = Consumer(_settings(reader, world) | {"group.id": reader.name})
    everything = [TopicPartition(name, n, 0) for name in reader.topics for n in range(world.partitions[name])]
    consumer.assign(everything)
    session = next(_SESSIONS)
    last: dict[tuple[str, int], int] = {}
    while not world.drained.is_set():
        messages = consumer.consume(500, 0.05)
        good = [message for message in messages if message.error() is None]
        record_reads(world, reader.name, reader.isolation, session, good)
        last |= {(message.topic(), message.partition()): message.offset() + 1 for message in good}
        lost = [message for message in messages if message.error() is not None and message.error().code() in _LOST]
        for message in lost:  # a power cut took what had been read; what comes in its place is read where it stands
            where = (message.topic(), message.partition())
            _seek(consumer, TopicPartition(*where, last.get(where, 0)))
    consumer.close()


def _seek(consumer: Consumer, where: TopicPartition) -> None:
    time.sleep(0.05)
    try:
        consumer.seek(where)
    except KafkaException:
        pass  # not fetched at the moment; the next error brings us here again


def begin_group(world: World, reader: Reader) -> None:
    """Commit offset 0 everywhere, so that a member never has to guess where to begin."""
    consumer = Consumer(_settings(reader, world) | {"group.id": reader.name})
    for _ in range(5):
        try:
            consumer.commit(
                offsets=[
                    TopicPartition(topic, n, 0) for topic in reader.topics for n in range(world.partitions[topic])
                ],
                asynchronous=False,
            )
            break
        except KafkaException:
            time.sleep(0.1)
    consumer.close()


def read_in_group(world: World, reader: Reader, member: int) -> None:
    """One member: read, then commit what was read."""
    group = reader.name
    who = f"{group}-{member}"
    session = next(_SESSIONS)
    owned: dict[tuple[str, int], int] = {}

    def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        nonlocal session
        session = next(_SESSIONS)
        owned.update({(partition.topic, partition.partition): -1 for partition in partitions})
        fetched = _fetch_offsets(world, who, group, consumer, partitions)
        owned.update({where: offset for where, offset in fetched.items() if where in owned})

    def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            owned.pop((partition.topic, partition.partition), None)

    consumer = Consumer(_settings(reader, world) | {"group.id": group})
    consumer.subscribe(list(reader.topics), on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while not world.drained.is_set():
        messages = consumer.consume(200, 0.05)
        good = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None and message.error().code() in _LOST:
                where = (message.topic(), message.partition())
                if owned.get(where, -1) >= 0:
                    _seek(consumer, TopicPartition(*where, owned[where]))
        record_reads(world, who, reader.isolation, session, good)
        positions = {(m.topic(), m.partition()): m.offset() + 1 for m in good}
        owned.update({where: offset for where, offset in positions.items() if where in owned})
        offsets = [TopicPartition(*where, offset) for where, offset in positions.items() if where in owned]
        if offsets:
            _commit(world, who, group, consumer, offsets)
    consumer.close()


def watch_group(world: World, reader: Reader) -> None:
    """Ask for a group's offsets again and again, as a tool does."""
    consumer = Consumer(_settings(reader, world) | {"group.id": reader.name})
    everything = [TopicPartition(topic, n) for topic in reader.topics for n in range(world.partitions[topic])]
    while not world.drained.wait(0.2):
        _fetch_offsets(world, f"{reader.name}-watch", reader.name, consumer, everything)
    _fetch_offsets(world, f"{reader.name}-watch", reader.name, consumer, everything)
    consumer.close()


def _fetch_offsets(
    world: World, who: str, group: str, consumer: Consumer, partitions: list[TopicPartition]
) -> dict[tuple[str, int], int]:
    began = world.history.now()
    try:
        committed = consumer.committed(partitions, 5)
    except KafkaException:
        return {}
    known = {(partition.topic, partition.partition): partition.offset for partition in committed if not partition.error}
    offsets = {place(*where): offset for where, offset in known.items()}
    world.history.add(who, "fetched offsets", group=group, offsets=offsets, began=began)
    return known


def _commit(world: World, who: str, group: str, consumer: Consumer, offsets: list[TopicPartition]) -> None:
    began = world.history.now()
    try:
        done = consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        world.history.add(who, "commit failed", group=group, error=str(error), began=began)
        return
    known = {
        place(partition.topic, partition.partition): partition.offset
        for partition in done or offsets
        if not partition.error
    }
    world.history.add(who, "commit", group=group, offsets=known, began=began)
