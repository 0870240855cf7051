"""A search through a topic's records in steps, each bounded in time, bytes and hits, so that a page can show how far it is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidegate.console.faces import Faces
from tidegate.console.numbers import whole_number
from tidegate.console.prefilter import may_show
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.records.decoding import Decode, decoder
from tidegate.records.positions import chosen_partitions, parse_position, resolve
from tidegate.records.shown import condition_of, shown_record, value_text

if TYPE_CHECKING:
    from broker.client import Admin, BatchConsumer, FetchedBatches, KafkaRecord
    from registry.client import RegistryClient

__all__ = ["MOST_HITS", "Criteria", "Search", "record_at", "registry_of"]

MOST_HITS: Final = 1000
_STEP_S: Final = 1.0
_STEP_BYTES: Final = 32_000_000
_WAIT_MS: Final = 300
_MOST_PARTITIONS: Final = 1000
_LOOKS_AT_CLOCK: Final = 256
_BROKEN: Final = "This search can't be continued: its state is broken. Begin it anew"


@dataclass(frozen=True)
class Criteria:
    """Which records are hits. All that are given have to hold."""

    text: str = ""
    """Is in the key or the value, as they are shown; upper and lower case are the same."""
    key: str = ""
    """Is the key as it is shown."""
    condition: str = ""
    """A JSONPath condition (``tidegate.records.shown.condition_of``)."""

    def matcher(self) -> Callable[[Mapping[str, Any]], bool]:
        """Raises UsageError for a condition that is none."""
        holds, wanted = condition_of(self.condition), self.text.casefold()

        def matches(shown: Mapping[str, Any]) -> bool:
            if self.key and value_text(shown["key"]) != self.key:
                return False
            if wanted and not any(wanted in value_text(shown[part]).casefold() for part in ("key", "value")):
                return False
            return holds(dict(shown))

        return matches

    def prefilter(self, client: RegistryClient | None) -> Callable[[KafkaRecord], bool]:
        """Whether a record may match, told from its bytes; False only for one that does not."""
        of_text = may_show(self.text, client) if self.text else None
        of_key = may_show(self.key, client) if self.key else None

        def may_match(record: KafkaRecord) -> bool:
            if of_key is not None and not of_key(record.key):
                return False
            return of_text is None or of_text(record.value) or of_text(record.key)

        return may_match


class _Judge(NamedTuple):
    """Tells hits: ``matches`` of the records that ``may_match``, decoded."""

    decode: Decode
    may_match: Callable[[KafkaRecord], bool]
    matches: Callable[[Mapping[str, Any]], bool]


@dataclass
class Search:
    """Where a search is. A page carries it from one step to the next, so that the console keeps nothing."""

    topic: str
    criteria: Criteria
    at: dict[int, int]
    """The next offset of each partition."""
    ends: dict[int, int]
    """Where it ends."""
    newest_first: bool = False
    scanned: int = 0
    total: int = 0
    """How many offsets there were between the start and the end."""
    hits: list[dict[str, Any]] = field(default_factory=list)
    """The hits of the last step, shown as ``shown_record`` does, oldest first."""

    @property
    def is_over(self) -> bool:
        return all(offset >= self.ends[partition] for partition, offset in self.at.items())

    @property
    def state(self) -> str:
        """The text from which ``restored`` makes this search again, besides the criteria."""
        return json.dumps([list(self.at.items()), list(self.ends.items()), self.scanned, self.total, self.newest_first])

    @classmethod
    def restored(cls, topic: str, criteria: Criteria, state: str) -> Search:
        """Raises UsageError for text that is no ``state``."""
        try:
            at, ends, scanned, total, newest_first = json.loads(state)
            _require_numbers(scanned, total)
            made = cls(topic, criteria, _offsets(at), _offsets(ends), newest_first is True, scanned, total)
        except (ValueError, TypeError, RecursionError) as error:
            raise UsageError(_BROKEN) from error
        if made.at.keys() != made.ends.keys() or len(made.at) > _MOST_PARTITIONS:
            raise UsageError(_BROKEN)
        return made

    @classmethod
    async def begun(cls, admin: Admin, topic: str, criteria: Criteria, start: str, partition: str = "") -> Search:
        """A search from a position (``parse_position``) up to what are the ends now, of all partitions or one.

        Raises UsageError for a wrong position or partition, UnknownTopicOrPartition.
        """
        number = whole_number(partition)
        if partition and number is None:
            raise UsageError(f"{partition[:50]!r} is no number of a partition")
        position = parse_position(start)
        criteria.matcher()
        described = (await admin.describe_topics([topic]))[topic]
        chosen = chosen_partitions(described, [] if number is None else [number])
        if len(chosen) > _MOST_PARTITIONS:
            raise UsageError(
                f"topic {topic} has {len(chosen):,} partitions, and a search reads {_MOST_PARTITIONS:,} at most: choose one"
            )
        found = await resolve(admin, position, chosen)
        made = cls(
            topic,
            criteria,
            {p.partition: offset for p, (_, offset, _) in found.items()},
            {p.partition: end for p, (_, _, end) in found.items()},
            newest_first=bool(position.last),
        )
        made.total = sum(made.ends[number] - offset for number, offset in made.at.items())
        return made

    async def extend(self, faces: Faces) -> None:
        """Go on up to what are the ends now."""
        from broker.client import Admin, TopicPartition

        async with Admin(faces.kafka) as admin:
            ends = await admin.end_offsets([TopicPartition(self.topic, number) for number in self.at])
        for partition, end in ends.items():
            before = self.ends[partition.partition]
            self.ends[partition.partition] = max(before, end)
            self.total += max(0, end - before)

    async def step(self, faces: Faces, room: int) -> None:
        """Read on for a second, or less if there are ``room`` hits or the end before; ``hits`` has what was met."""
        from broker.client import BatchConsumer, TopicPartition

        self.hits = []
        left = [TopicPartition(self.topic, number) for number, at in self.at.items() if at < self.ends[number]]
        if not left:
            return
        deadline, size = time.monotonic() + _STEP_S, 0
        matches = self.criteria.matcher()
        async with registry_of(faces) as client:
            judge = _Judge(decoder(client), self.criteria.prefilter(client), matches)
            async with BatchConsumer(faces.kafka) as consumer:
                await consumer.assign(left)
                for partition in left:
                    await consumer.seek(partition, self.at[partition.partition])
                while not self.is_over and time.monotonic() < deadline and size < _STEP_BYTES and len(self.hits) < room:
                    for fetched in await consumer.fetch(max_wait_ms=_WAIT_MS):
                        if len(self.hits) >= room:
                            break
                        size += await asyncio.to_thread(self._read, fetched, judge, room, deadline)
                    if len(self.hits) < room and time.monotonic() < deadline:
                        await self._skip_gaps(consumer)
        self.hits.sort(key=lambda hit: (hit["timestamp"], hit["partition"], hit["offset"]))

    def _read(
        self,
        fetched: FetchedBatches,
        judge: _Judge,
        room: int,
        deadline: float,
    ) -> int:
        """Add the hits of a fetch, as far as the time and the room last; the size of what was read, in bytes."""
        number, size = fetched.topic_partition.partition, 0
        for record in fetched.records():
            if record.offset >= self.ends[number]:
                break
            size += len(record.value or b"") + len(record.key or b"")
            self.scanned += record.offset + 1 - self.at[number]
            self.at[number] = record.offset + 1
            if not judge.may_match(record):
                if record.offset % _LOOKS_AT_CLOCK == 0 and time.monotonic() > deadline:
                    break
                continue
            shown = shown_record(record, judge.decode)
            if judge.matches(shown):
                self.hits.append(shown | {"size": len(record.value) if record.value is not None else None})
            if len(self.hits) >= room or time.monotonic() > deadline:
                break
        return size

    async def _skip_gaps(self, consumer: BatchConsumer) -> None:
        """Offsets without a record, as compaction and transactions leave them, are read too."""
        for partition in consumer.assignment():
            number = partition.partition
            position = min(await consumer.position(partition), self.ends[number])
            self.scanned += max(0, position - self.at[number])
            self.at[number] = max(position, self.at[number])


async def record_at(admin: Admin, faces: Faces, topic: str, partition: int, offset: int) -> KafkaRecord | None:
    """The record at an offset; None if there is none, as after compaction and at the marker of a transaction."""
    from broker.client import BatchConsumer, TopicPartition

    where = TopicPartition(topic, partition)
    chosen_partitions((await admin.describe_topics([topic]))[topic], [partition])
    start, end = (await admin.beginning_offsets([where]))[where], (await admin.end_offsets([where]))[where]
    if not start <= offset < end:
        return None
    async with BatchConsumer(faces.kafka) as consumer:
        await consumer.assign([where])
        await consumer.seek(where, offset)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            for fetched in await consumer.fetch(max_wait_ms=_WAIT_MS):
                for record in fetched.records():
                    if record.offset >= offset:
                        return record if record.offset == offset else None
            if await consumer.position(where) > offset:
                return None
    return None


@asynccontextmanager
async def registry_of(faces: Faces) -> AsyncIterator[RegistryClient | None]:
    """A client of the registry; None without one, and if it does not answer: a search must not wait for it at each record."""
    if not faces.has_registry:
        yield None
        return
    try:
        await faces.kept("schema types", lambda: faces.registry.call("GET", "/schemas/types"))
    except TidegateError:
        yield None
        return
    with faces.registry_client() as client:
        yield client


def _offsets(pairs: Any) -> dict[int, int]:
    """Raises ValueError or TypeError for what are no pairs of a partition and an offset."""
    made: dict[int, int] = dict(pairs)
    _require_numbers(*made.keys(), *made.values())
    return made


def _require_numbers(*values: Any) -> None:
    """Raises ValueError unless all are whole, not negative, and fit 64 bits."""
    if not all(type(value) is int and 0 <= value < 1 << 63 for value in values):
        raise ValueError("these are no offsets")
