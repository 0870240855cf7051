"""Sending dead letters back: which, with what in them, each once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from tidegate.clients.topics import naming_topics
from tidegate.dead_letters.letter_queue import MEMBERS, REPLAYS, Letter, Queue, group_of
from tidegate.dead_letters.sent import Sent, written
from tidegate.dead_letters.trying import MOST_TRIED, MOST_TRIED_BYTES, Outgoing
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError
from tidegate.kit.texts import time_text
from tidegate.records.decoding import encoded_like, subject_encoder
from tidegate.records.exact_json import json_text, parsed_json
from tidegate.records.positions import Position

if TYPE_CHECKING:
    from broker.client import Admin, BatchProducer, TopicPartition
    from registry.client import RegistryClient

__all__ = ["Edits", "Plan"]

_IN_A_TRANSACTION: Final = 500
_STAYS: Final = "not in the edits; still to be sent"
_COUNTED_AS_DONE: Final = "not in the edits; --skip-others counts that as done"


class Plan:
    """The letters to send back, and the decisions about the others.

    ``edits`` name letters, those that failed once more too. Otherwise it is all letters that were not sent back, or with
    ``again`` those that failed once more. ``skip_others`` counts letters that edits leave out in between as sent.
    """

    def __init__(
        self, queue: Queue, edits: Edits | None, target: str | None, *, again: bool, skip_others: bool
    ) -> None:
        self._queue, self._edits, self._target, self._skip_others = queue, edits, target, skip_others
        self._kinds = (False, True) if edits is not None and not again else (again,)
        """Whether letters that came for the first time, and those that failed again, are meant."""
        self._on_purpose = False
        self._noted: dict[TopicPartition, list[Sent]] = {}
        """The letters that were sent the first time, and again."""
        self._last_ms = 0
        """When letters of the queue were sent back last, before this command; 0 where that is not known."""
        self._cursor: dict[TopicPartition, int] = {}
        """The first offset that nothing is decided about."""
        self.sent: Counter[str] = Counter()
        """By topic."""
        self.skipped: dict[str, list[str]] = defaultdict(list)
        """By reason, each with its place in the queue."""
        self.first: list[Outgoing] = []
        """The first to send, of a rehearsal: ``MOST_TRIED`` at most, of ``MOST_TRIED_BYTES`` in all."""
        self._tried_bytes = 0

    def rehearse(self, start: Position | None) -> None:
        """Decide about every letter without sending it. Raises UsageError for one that cannot be sent."""
        self.first.clear()
        self._tried_bytes = 0

        async def run() -> None:
            from broker.client import Admin

            async with Admin(self._queue.config) as admin:
                if self._target is not None:
                    async with naming_topics(admin, [self._target]):
                        await admin.describe_topics(
                            [self._target]
                        )  # a misspelt one would be created by the first record
                ranges = await self._begin(admin, start)
            async with aclosing(self._queue.read(ranges)) as letters:
                async for letter in letters:
                    outgoing = self._outgoing(letter)
                    if outgoing is not None:
                        self._try_later(Outgoing(letter, outgoing))
            self._end()

        asyncio.run(run())

    def _try_later(self, outgoing: Outgoing) -> None:
        self._tried_bytes += outgoing.size
        if len(self.first) < MOST_TRIED and self._tried_bytes <= MOST_TRIED_BYTES:
            self.first.append(outgoing)

    def execute(self, start: Position | None) -> None:
        """Send them, in transactions that hold what is noted about the queue, too."""
        asyncio.run(self._execute(start))

    async def _execute(self, start: Position | None) -> None:
        from broker.client import Admin, BatchProducer

        # The id keeps two commands from sending the same records: the later one fences the earlier one.
        config = self._queue.config.with_properties({"transactional.id": group_of(self._queue.connector)})
        async with BatchProducer(config) as producer:
            async with Admin(self._queue.config) as admin:  # after another command with this id was fenced
                ranges = await self._begin(admin, start)
            batch: list[Letter] = []
            async with aclosing(self._queue.read(ranges)) as letters:
                async for letter in letters:
                    batch.append(letter)
                    if len(batch) == _IN_A_TRANSACTION:
                        await self._send(producer, batch)
                        batch = []
            if batch:
                await self._send(producer, batch)
        self._end()

    async def _send(self, producer: BatchProducer, batch: list[Letter]) -> None:
        from broker.client import Transaction

        async with Transaction(producer):
            acks = [
                await producer.enqueue(**outgoing)
                for letter in batch
                if (outgoing := self._outgoing(letter)) is not None
            ]
            await producer.flush()
            for ack in acks:
                await ack
            for partition in {letter.topic_partition for letter in batch if self._is_reached(letter)}:
                position, note = written(*self._noted[partition])
                await producer.send_offsets({partition: position}, group_of(self._queue.connector), note=note)

    async def _begin(self, admin: Admin, start: Position | None) -> dict[TopicPartition, tuple[int, int]]:
        """The range to read in each partition; nothing is decided yet."""
        self.sent.clear()
        self.skipped.clear()
        self._on_purpose = start is not None
        log = await self._queue.ranges(admin, Position(offset=0))
        self._noted = {p: list(sent) for p, sent in (await self._queue.sent(admin, log)).items()}
        self._last_ms = max((kind.at_ms for sent in self._noted.values() for kind in sent), default=0)
        if start is not None:
            ranges = await self._queue.ranges(admin, start)
        else:
            kinds = self._kinds if self._edits is None else (False, True)
            ranges = {
                p: (max(begin, min(self._noted[p][again].first_open for again in kinds)), end)
                for p, (begin, end) in log.items()
            }
        self._cursor = {p: begin for p, (begin, _) in ranges.items()}
        if self._edits is not None:
            self._edits.begin()
            named, reached = self._edits.ranges, log if start is None else ranges
            first = {p: max(begin, named[p.partition][0]) for p, (begin, _) in reached.items() if p.partition in named}
            self._cursor |= first
            ranges = {p: (min(begin, first.get(p, end)), end) for p, (begin, end) in ranges.items()}
        return ranges

    def _end(self) -> None:
        for where in self._edits.left if self._edits is not None else ():
            self._skip(where, "the queue has no such letter there" + (", or --from leaves it out" * self._on_purpose))
        for letters in self.skipped.values():
            letters.sort(key=lambda where: [int(number) for number in where.split(":")])
        for sent in self._noted.values():
            written(*sent)  # too many gaps are an error before anything is sent

    def _outgoing(self, letter: Letter) -> dict[str, Any] | None:
        """The arguments of ``BatchProducer.enqueue`` for a letter; None to leave it out. Notes the decision."""
        if not self._is_reached(letter):
            self._pass(letter)
            return None
        outgoing, stays = self._decided(letter)
        partition, offset = letter.topic_partition, letter.record.offset
        now_ms = int(time.time() * 1000)
        for again in (False, True):
            noted, cursor = self._noted[partition][again], self._cursor[partition]
            if again in self._kinds:
                open_here = stays and again == letter.is_again
                at_ms = noted.at_ms if outgoing is None or again != letter.is_again else now_ms
                self._noted[partition][again] = noted.having(cursor, offset + (not open_here), at_ms)
            elif again != letter.is_again and noted.position >= cursor:  # no letter of this kind is behind it
                self._noted[partition][again] = noted.having(cursor, offset + 1, noted.at_ms)
        self._cursor[partition] = offset + 1
        return outgoing

    def _is_reached(self, letter: Letter) -> bool:
        """Whether something is decided about it: edits say nothing about the letters before and after those they name."""
        if self._edits is None:
            return True
        first, end = self._edits.ranges.get(letter.record.partition, (0, 0))
        return first <= letter.record.offset < end

    def _pass(self, letter: Letter) -> None:
        """Report a letter that stays as it is."""
        is_sent = letter.record.offset in self._noted[letter.topic_partition][letter.is_again]
        if self._queue.is_of_connector(letter) and not is_sent:
            self._skip(letter.where, _STAYS)

    def _decided(self, letter: Letter) -> tuple[dict[str, Any] | None, bool]:
        """The record to send, and whether its letter is left in the queue."""
        if not self._queue.is_of_connector(letter):
            return None, False
        again = letter.is_again
        named = self._edits is None or letter.where in self._edits
        if again not in self._kinds:
            if self._edits is not None and named:
                self._edits.see(letter.where)
                self._skip(letter.where, "not sent back before, so --again leaves them out")
            elif self._edits is not None:
                self._pass(letter)
            elif again:
                self._skip(letter.where, "sent back before and failed once more (--again)")
            return None, False
        noted = self._noted[letter.topic_partition][again]
        was_sent = letter.record.offset in noted
        if not named:
            if not was_sent:
                self._skip(letter.where, _COUNTED_AS_DONE if self._skip_others else _STAYS)
            return None, not was_sent and not self._skip_others
        if self._edits is not None:
            self._edits.see(letter.where)
        if was_sent and not self._on_purpose:
            if self._edits is not None:
                when = (
                    f" (letters of the queue were sent last at {time_text(self._last_ms)} UTC)" if self._last_ms else ""
                )
                self._skip(
                    letter.where,
                    f"sent back before{when}; --from beginning sends them once more, and what failed again lies in the queue as "
                    "another letter",
                )
            return None, False
        return self._sent(letter), False

    def _sent(self, letter: Letter) -> dict[str, Any]:
        record = letter.record
        key, value = (record.key, record.value) if self._edits is None else self._edits.of(letter)
        origin = letter.fact("topic")
        if self._target is None and origin is None:
            raise UsageError(
                f"{self._queue.topic} {record.partition}:{record.offset} does not say where it came from "
                "(a source wrote it, or errors.deadletterqueue.context.headers.enable was not true): give --to TOPIC"
            )
        partition = letter.fact("partition")
        topic = self._target or str(origin)
        self.sent[topic] += 1
        known = self._target is None and partition is not None and partition.isdigit()
        return {
            "topic": topic,
            "key": key,
            "value": value,
            "headers": [*letter.headers, (REPLAYS, str(letter.replays + 1).encode())],
            "partition": int(partition) if known and partition is not None else None,
        }

    def _skip(self, where: tuple[int, int], why: str) -> None:
        self.skipped[why].append(f"{where[0]}:{where[1]}")


class Edits:
    """Keys and values from lines of ``dlq show --records``, by partition and offset in the queue."""

    def __init__(self, file: TextIO, client: RegistryClient, subject: str | None = None) -> None:
        """With ``subject`` values that were changed are Avro of its newest schema, whatever they were.

        Raises UsageError for a line that is none.
        """
        self._client = client
        self._encode_value = None if subject is None else subject_encoder(client, subject)
        self._lines: dict[tuple[int, int], tuple[int, Mapping[str, Any]]] = {}
        self._seen: set[tuple[int, int]] = set()
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            with _named_line(number):
                edit = _checked(parsed_json(line, constants=True))
                where = edit["partition"], edit["offset"]
                if where in self._lines:
                    raise UsageError(f"{where[0]}:{where[1]} is line {self._lines[where][0]}, too")
                self._lines[where] = number, edit
        grouped = _grouped(self._lines).items()
        self.ranges: Mapping[int, tuple[int, int]] = {p: (min(offsets), max(offsets) + 1) for p, offsets in grouped}
        """By partition, the offset of the first line and the one after the last."""

    def __contains__(self, where: tuple[int, int]) -> bool:
        return where in self._lines

    def begin(self) -> None:
        self._seen.clear()

    def see(self, where: tuple[int, int]) -> None:
        self._seen.add(where)

    @property
    def left(self) -> list[tuple[int, int]]:
        """The letters that the lines name and nobody has seen."""
        return sorted(self._lines.keys() - self._seen)

    def of(self, letter: Letter) -> tuple[bytes | None, bytes | None]:
        """The key and value for a letter that a line names."""
        number, edit = self._lines[letter.where]
        with _named_line(number):
            record = letter.record
            return (
                encoded_like(record.key, edit["key"], self._client),
                encoded_like(record.value, edit["value"], self._client, self._encode_value),
            )


def _checked(edit: Any) -> Mapping[str, Any]:
    """A line of edits. Raises ValueError or TypeError with what is wrong in it."""
    if not isinstance(edit, dict):
        raise TypeError("it is no object")
    for name in edit:
        if name not in MEMBERS:
            near = nearest_name(name, MEMBERS)
            raise ValueError(f"it has {name}, which no letter has" + (f"; is {near} meant?" if near else ""))
    if missing := [name for name in ("partition", "offset", "key", "value") if name not in edit]:
        raise ValueError(f"it lacks {' and '.join(missing)}")
    for name in ("partition", "offset"):
        if isinstance(edit[name], bool) or not isinstance(edit[name], int):
            raise TypeError(f"{name} is {json_text(edit[name])}, which is no whole number")
    return edit


def _grouped(places: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    grouped: dict[int, list[int]] = defaultdict(list)
    for partition, offset in places:
        grouped[partition].append(offset)
    return grouped


@contextmanager
def _named_line(number: int) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"line {number} of the edits is not a record as `dlq show --records` prints it: {error}"
        ) from error
    except UsageError as error:
        raise UsageError(f"line {number} of the edits: {error}") from error
