"""The letters in a dead letter queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tidegate.clients.topics import naming_topics
from tidegate.dead_letters import sent as notes
from tidegate.dead_letters.sent import NOTHING, Sent
from tidegate.records.positions import Position, resolve

if TYPE_CHECKING:
    from broker.client import Admin, ClientConfig, KafkaRecord, TopicPartition
    from tidegate.records.decoding import Decode

__all__ = ["MEMBERS", "POLLING", "REPLAYS", "Letter", "Queue", "group_of", "told_by_source"]

_PREFIX: Final = "__connect.errors."
"""Of the headers in which Connect says what went wrong (KIP-298)."""
REPLAYS: Final = "tidegate.dlq.replays"
"""The header that counts how often a record was sent back."""
MEMBERS: Final = (
    "partition",
    "offset",
    "timestamp",
    "topic",
    "from",
    "stage",
    "error",
    "message",
    "replays",
    "key",
    "value",
)
"""The fields of a letter as it is shown."""
POLLING: Final = "TASK_POLL"
"""Connect's stage of a letter that a source has written."""
_OF_SOURCES: Final = (
    frozenset({"file", "line", "row", "error", "text"}),
    frozenset({"listener", "sender", "error", "message"}),
)
"""The fields of the values that sources write: of files, and of what comes over the network."""


@dataclass(frozen=True)
class Letter:
    """A record of a dead letter queue."""

    record: KafkaRecord

    @property
    def where(self) -> tuple[int, int]:
        """Partition and offset in the queue."""
        return self.record.partition, self.record.offset

    @property
    def topic_partition(self) -> TopicPartition:
        from broker.client import TopicPartition

        return TopicPartition(self.record.topic, self.record.partition)

    def fact(self, name: str) -> str | None:
        """A header of Connect's about it: topic, partition, offset, connector.name, stage, exception.message, ..."""
        return self._header(_PREFIX + name)

    @property
    def replays(self) -> int:
        text = self._header(REPLAYS) or "0"
        return int(text) if text.isdigit() else 0

    @property
    def is_again(self) -> bool:
        """Whether it was sent back before and failed once more."""
        return self.replays > 0

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers that the record had before it failed."""
        return [
            (name, value) for name, value in self.record.headers if not name.startswith(_PREFIX) and name != REPLAYS
        ]

    @property
    def cause(self) -> tuple[str, str, str]:
        """Stage, error and first line of its message."""
        message = (self.fact("exception.message") or "").strip().partition("\n")[0]
        return self.fact("stage") or "", (self.fact("exception.class.name") or "").rpartition(".")[2], message

    def _header(self, name: str) -> str | None:
        values = [value for key, value in self.record.headers if key == name and value is not None]
        return values[-1].decode(errors="replace") if values else None

    @property
    def has_context(self) -> bool:
        """Whether headers say where it came from and why it failed (errors.deadletterqueue.context.headers.enable)."""
        return any(name.startswith(_PREFIX) for name, _ in self.record.headers)

    def shown(self, decode: Decode) -> dict[str, Any]:
        """Its facts, for people. A letter of a source has no headers with the reason: its value says what was wrong."""
        stage, error, message = self.cause
        topic, partition, offset = self.fact("topic"), self.fact("partition"), self.fact("offset")
        origin = None if partition is None or offset is None else f"{partition}:{offset}"
        context = {"topic": topic, "from": origin, "stage": stage, "error": error, "message": message}
        key, value = decode(self.record.key), decode(self.record.value)
        if not self.has_context:
            told = told_by_source(value)
            context = {} if told is None else {"stage": POLLING, "error": "", "message": str(told["error"])}
        return {
            "partition": self.record.partition,
            "offset": self.record.offset,
            "timestamp": self.record.timestamp_ms,
            **{name: text for name, text in context.items() if text is not None},
            "replays": self.replays,
            "key": key,
            "value": value,
        }


class Queue:
    """The letters of a connector in its dead letter queue.

    Which of them were sent back is noted in the offsets of a group, apart for letters that came for the first time and
    those that came again.
    """

    def __init__(self, config: ClientConfig, connector: str, topic: str) -> None:
        self.config, self.connector, self.topic = config, connector, topic

    def letters(self, start: Position | None) -> list[Letter]:
        """The records of the connector up to the present end."""

        async def read() -> list[Letter]:
            from broker.client import Admin

            async with Admin(self.config) as admin:
                if start is None:
                    return [letter async for letter in self.open_letters(admin)]
                ranges = await self.ranges(admin, start)
            async with aclosing(self.read(ranges)) as letters:
                return [letter async for letter in letters if self.is_of_connector(letter)]

        return asyncio.run(read())

    async def open_letters(self, admin: Admin) -> AsyncGenerator[Letter, None]:
        """Those that were not sent back since they came, the first time or again."""
        ranges = await self.ranges(admin, Position(offset=0))
        sent = await self.sent(admin, ranges)
        ranges = {p: (min(kind.first_open for kind in sent[p]), end) for p, (_, end) in ranges.items()}
        async with aclosing(self.read(ranges)) as letters:
            async for letter in letters:
                is_sent = letter.record.offset in sent[letter.topic_partition][letter.is_again]
                if self.is_of_connector(letter) and not is_sent:
                    yield letter

    async def sizes(self, admin: Admin) -> list[int]:
        """The numbers of offsets in its partitions."""
        return [end - begin for begin, end in (await self.ranges(admin, Position(offset=0))).values()]

    def is_of_connector(self, letter: Letter) -> bool:
        return letter.fact("connector.name") in (None, self.connector)

    async def ranges(self, admin: Admin, start: Position) -> dict[TopicPartition, tuple[int, int]]:
        """The offset of a position in each partition, and the partition's end."""
        from broker.client import TopicPartition

        async with naming_topics(admin, [self.topic]):
            described = (await admin.describe_topics([self.topic]))[self.topic]
        partitions = [TopicPartition(self.topic, p.partition) for p in described.partitions]
        return {
            p: (begin, end) for p, (_, begin, end) in (await resolve(admin, start, partitions, committed=True)).items()
        }

    async def sent(
        self, admin: Admin, log: Mapping[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, tuple[Sent, Sent]]:
        """The offsets that were sent back, the first time and again, of partitions with their first and their end offset."""
        committed = await admin.group_offsets_with_notes(group_of(self.connector))
        noted = {p: notes.read(*committed[p]) if p in committed else (NOTHING, NOTHING) for p in log}
        return {p: (noted[p][0].within(begin, end), noted[p][1].within(begin, end)) for p, (begin, end) in log.items()}

    async def read(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> AsyncGenerator[Letter, None]:
        from broker.client import BatchConsumer

        left = {partition: end for partition, (begin, end) in ranges.items() if begin < end}
        async with BatchConsumer(self.config.with_properties({"isolation.level": "read_committed"})) as consumer:
            await consumer.assign(left)
            for partition in left:
                await consumer.seek(partition, ranges[partition][0])
            while left:
                for fetched in await consumer.fetch(max_wait_ms=500):
                    end = ranges[fetched.topic_partition][1]
                    for record in fetched.records():
                        if record.offset < end:
                            yield Letter(record)
                left = {p: end for p, end in left.items() if await consumer.position(p) < end}


def told_by_source(value: Any) -> Mapping[str, Any] | None:
    """The fields that a source has written into the value of its letter, with or without the schema of JsonConverter; None for any other
    value.
    """
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        value = value["payload"]
    return value if isinstance(value, dict) and value.keys() in _OF_SOURCES else None


def group_of(connector: str) -> str:
    """The group whose offsets say which of a connector's dead letters were sent back."""
    return f"tidegate-dlq-{connector}"
