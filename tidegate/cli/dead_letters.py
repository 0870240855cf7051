"""``tidegate dlq``: the records that sinks could not handle, and why; edited and sent back."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

import click

from tidegate.cli.connectors.reach import path_of, rest_of
from tidegate.cli.credentials import registry_client
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.kafka.decoding import decoder, encoded_like, readable
from tidegate.cli.kafka.positions import POSITION, Position, resolve
from tidegate.cli.options import json_option, print_json, print_table, time_text
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from broker.client import Admin, BatchProducer, ClientConfig, KafkaRecord, TopicPartition
    from registry.client import RegistryClient
    from tidegate.cli.rest import Rest

__all__ = ["dlq"]

F = TypeVar("F", bound=Callable[..., Any])

_PREFIX: Final = "__connect.errors."
"""Of the headers in which Connect says what went wrong (KIP-298)."""
_REPLAYS: Final = "tidegate.dlq.replays"
"""The header that counts how often a record was sent back."""
_TOPIC: Final = "errors.deadletterqueue.topic.name"
_IN_A_TRANSACTION: Final = 500
_EXAMPLES: Final = 3


@click.group()
def dlq() -> None:
    """Look at the dead letters of sinks, by cause, and send them back."""


def _dlq_options(function: F) -> F:
    for option in (
        click.option("--registry", metavar="URL", help="The registry that knows the schemas."),
        click.option("--connect", metavar="URL", help="The Connect worker to ask for the queue's topic."),
        click.option(
            "--topic", metavar="TOPIC", help="The queue's topic; by default the connector's configuration says it."
        ),
    ):
        function = option(function)
    return kafka_options(function)


_start_option = click.option(
    "--from",
    "start",
    type=POSITION,
    help="Where to start in the queue; by default the letters that were not sent back.",
)


@dataclass(frozen=True)
class _Letter:
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
        text = self._header(_REPLAYS) or "0"
        return int(text) if text.isdigit() else 0

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers that the record had before it failed."""
        return [
            (name, value) for name, value in self.record.headers if not name.startswith(_PREFIX) and name != _REPLAYS
        ]

    @property
    def cause(self) -> tuple[str, str, str]:
        """Stage, error and first line of its message."""
        message = (self.fact("exception.message") or "").strip().partition("\n")[0]
        return self.fact("stage") or "", (self.fact("exception.class.name") or "").rpartition(".")[2], message

    def _header(self, name: str) -> str | None:
        values = [value for key, value in self.record.headers if key == name and value is not None]
        return values[-1].decode(errors="replace") if values else None

    def shown(self, decode: Callable[[bytes | None], Any]) -> dict[str, Any]:
        stage, error, message = self.cause
        return {
            "partition": self.record.partition,
            "offset": self.record.offset,
            "timestamp": self.record.timestamp_ms,
            "topic": self.fact("topic"),
            "from": f"{self.fact('partition')}:{self.fact('offset')}",
            "stage": stage,
            "error": error,
            "message": message,
            "replays": self.replays,
            "key": decode(self.record.key),
            "value": decode(self.record.value),
        }


@dlq.command("list")
@click.option("--connect", metavar="URL", help="The Connect worker to ask.")
@kafka_options
@json_option
def list_queues(connect: str | None, as_json: bool, data: Path, **where: Any) -> None:
    """List the connectors that have a dead letter queue, with how many records lie in it, and how many were not sent back."""
    rest = rest_of(data, connect)
    expanded = rest.call("GET", "/connectors", expand="info")
    topics = {name: entry["info"]["config"].get(_TOPIC) or "" for name, entry in sorted(expanded.items())}
    config = client_config(data, **where)

    async def ask() -> list[dict[str, Any]]:
        from broker.client import Admin

        async with Admin(config) as admin:
            there = set(await admin.list_topics(internal=True))
            rows = []
            for name, topic in topics.items():
                if not topic:
                    continue
                queue = _Queue(config, name, topic)
                sizes = (await queue.sizes(admin)) if topic in there else []
                left = [letter.where async for letter in queue.open_letters(admin)] if topic in there else []
                rows.append({"connector": name, "topic": topic, "records": sum(sizes), "not sent back": len(left)})
            return rows

    rows = asyncio.run(ask())
    if as_json:
        print_json(rows)
    else:
        print_table(["connector", "topic", "records", "not sent back"], [list(row.values()) for row in rows])


@dlq.command()
@click.argument("connector")
@_start_option
@click.option("--records", is_flag=True, help="Print every record as a JSON line, which `dlq replay --edits` takes.")
@_dlq_options
@json_option
def show(
    connector: str,
    start: Position | None,
    records: bool,
    topic: str | None,
    connect: str | None,
    registry: str | None,
    as_json: bool,
    data: Path,
    **where: Any,
) -> None:
    """Show why records of a connector lie in its dead letter queue: each cause with its count and examples.

    Example: tidegate dlq show orders-sink --records > letters.jsonl
    """
    queue = _Queue(client_config(data, **where), connector, topic or _queue_of(rest_of(data, connect), connector))
    with registry_client(data, registry) as client:
        decode = decoder(client)
        letters = [letter.shown(decode) for letter in queue.letters(start)]
    if records:
        for shown in letters:
            click.echo(json.dumps(shown, default=readable, ensure_ascii=False))
        return
    causes = Counter((shown["stage"], shown["error"], shown["message"]) for shown in letters)
    examples = {
        cause: [shown for shown in letters if (shown["stage"], shown["error"], shown["message"]) == cause][:_EXAMPLES]
        for cause in causes
    }
    if as_json:
        print_json(
            {
                "connector": connector,
                "topic": queue.topic,
                "records": len(letters),
                "causes": [
                    {"stage": c[0], "error": c[1], "message": c[2], "count": n, "examples": examples[c]}
                    for c, n in causes.most_common()
                ],
            }
        )
        return
    click.echo(f"{len(letters)} records of {connector} in {queue.topic}")
    for cause, count in causes.most_common():
        stage, error, message = cause
        click.echo(f"\n{count} times {error} in {stage}: {message}")
        rows = [
            [f"{s['partition']}:{s['offset']}", s["topic"], s["from"], time_text(s["timestamp"]), _short(s["value"])]
            for s in examples[cause]
        ]
        print_table(["letter", "topic", "record", "time", "value"], rows)


@dlq.command()
@click.argument("connector")
@_start_option
@click.option(
    "--edits",
    type=click.File(),
    help="What `dlq show --records` printed, edited: only its lines are sent, with their key and value.",
)
@click.option("--again", is_flag=True, help="Those that were sent back before and failed once more, and only those.")
@click.option("--to", "target", metavar="TOPIC", help="Send it there, in place of the topic it came from.")
@click.option("--execute", is_flag=True, help="Do it; without it the command only shows what it would do.")
@_dlq_options
@json_option
def replay(
    connector: str,
    start: Position | None,
    edits: TextIO | None,
    again: bool,
    target: str | None,
    execute: bool,
    topic: str | None,
    connect: str | None,
    registry: str | None,
    as_json: bool,
    data: Path,
    **where: Any,
) -> None:
    """Send dead letters of a connector back to the topic and partition they came from, where the sink reads them again.

    Every other reader of that topic gets them again, too; --to names another topic. One transaction holds the records and
    the position in the queue, so that the command goes on where it stopped. A record that fails once more is left out:
    --again sends those, and keeps a position for them. A --from behind the position sends
    letters without moving it, since it would pass others.

    Example: tidegate dlq replay orders-sink --execute
    """
    queue = _Queue(client_config(data, **where), connector, topic or _queue_of(rest_of(data, connect), connector))
    with registry_client(data, registry) as client:
        plan = _Plan(queue, None if edits is None else _Edits(edits, client), again, target)
        plan.rehearse(start)
        if execute:
            plan.execute(start)
    sent, skipped = plan.sent, plan.skipped
    if as_json:
        print_json({"connector": connector, "executed": execute, "sent": dict(sent), "skipped": dict(skipped)})
        return
    for name, count in sorted(sent.items()):
        click.echo(f"{count} records {'are sent' if execute else 'would be sent'} to {name}")
    for why, count in sorted(skipped.items()):
        click.echo(f"{count} records are left out: {why}")
    if not sent and not skipped:
        click.echo(f"nothing of {connector} is left in {queue.topic}")
    if not execute:
        click.echo("nothing is changed: --execute does it")


class _Queue:
    """The letters of a connector in its dead letter queue."""

    def __init__(self, config: ClientConfig, connector: str, topic: str) -> None:
        self.config, self.connector, self.topic = config, connector, topic

    def letters(self, start: Position | None) -> list[_Letter]:
        """The records of the connector up to the present end."""

        async def read() -> list[_Letter]:
            from broker.client import Admin

            async with Admin(self.config) as admin:
                if start is None:
                    return [letter async for letter in self.open_letters(admin)]
                ranges = await self.range(admin, start)
            async with aclosing(self.read(ranges)) as letters:
                return [letter async for letter in letters if self.is_of_connector(letter)]

        return asyncio.run(read())

    async def open_letters(self, admin: Admin) -> AsyncGenerator[_Letter, None]:
        """Those that were not sent back since they came, the first time or again."""
        first, again = await self.range(admin, None), await self.range(admin, None, again=True)
        ranges = {p: (min(first[p][0], again[p][0]), end) for p, (_, end) in first.items()}
        async with aclosing(self.read(ranges)) as letters:
            async for letter in letters:
                position = (again if letter.replays else first)[letter.topic_partition][0]
                if self.is_of_connector(letter) and letter.record.offset >= position:
                    yield letter

    async def sizes(self, admin: Admin) -> list[int]:
        """The numbers of offsets in its partitions."""
        return [end - begin for begin, end in (await self.range(admin, Position(offset=0))).values()]

    def is_of_connector(self, letter: _Letter) -> bool:
        return letter.fact("connector.name") in (None, self.connector)

    async def range(
        self, admin: Admin, start: Position | None, *, again: bool = False
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Where to start in each partition, and its end: by default after the letters that were sent back, or sent ``again``."""
        from broker.client import TopicPartition

        described = (await admin.describe_topics([self.topic]))[self.topic]
        partitions = [TopicPartition(self.topic, p.partition) for p in described.partitions]
        resolved = await resolve(admin, start or Position(offset=0), partitions)
        committed = await admin.group_offsets(_group(self.connector, again=again)) if start is None else {}
        return {p: (min(max(begin, committed.get(p, 0)), end), end) for p, (_, begin, end) in resolved.items()}

    async def read(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> AsyncGenerator[_Letter, None]:
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
                            yield _Letter(record)
                left = {p: end for p, end in left.items() if await consumer.position(p) < end}


class _Plan:
    """The records to send back, and the counts of decisions."""

    def __init__(self, queue: _Queue, edits: _Edits | None, again: bool, target: str | None) -> None:
        self._queue, self._edits, self._again, self._target = queue, edits, again, target
        self._group = _group(queue.connector, again=again)
        self._positions: dict[TopicPartition, int] = {}
        """How far the letters are sent back."""
        self._moves: set[TopicPartition] = set()
        """The partitions whose position moves: a later start would pass letters that nobody has sent."""
        self.sent: Counter[str] = Counter()
        """By topic."""
        self.skipped: Counter[str] = Counter()
        """By reason."""

    def rehearse(self, start: Position | None) -> None:
        """Decide about every letter without sending it. Raises UsageError for one that cannot be sent."""

        async def run() -> None:
            from broker.client import Admin

            async with Admin(self._queue.config) as admin:
                if self._target is not None:
                    await admin.describe_topics([self._target])  # a misspelt one would be created by the first record
                ranges = await self._range(admin, start)
            async with aclosing(self._queue.read(ranges)) as letters:
                async for letter in letters:
                    self._outgoing(letter)

        asyncio.run(run())

    def execute(self, start: Position | None) -> None:
        """Send them, in transactions that hold the position in the queue, too."""
        self.sent.clear()
        self.skipped.clear()
        asyncio.run(self._execute(start))

    async def _execute(self, start: Position | None) -> None:
        from broker.client import Admin, BatchProducer

        # The id keeps two commands from sending the same records: the later one fences the earlier one.
        config = self._queue.config.with_properties({"transactional.id": self._group})
        async with BatchProducer(config) as producer:
            async with Admin(self._queue.config) as admin:  # after another command with this id was fenced
                ranges = await self._range(admin, start)
                self._positions = {p: begin for p, (begin, _) in (await self._range(admin, None)).items()}
            self._moves = {p for p, (begin, _) in ranges.items() if begin <= self._positions[p]}
            batch: list[_Letter] = []
            async with aclosing(self._queue.read(ranges)) as letters:
                async for letter in letters:
                    batch.append(letter)
                    if len(batch) == _IN_A_TRANSACTION:
                        await self._send(producer, batch)
                        batch = []
            if batch:
                await self._send(producer, batch)

    async def _send(self, producer: BatchProducer, batch: list[_Letter]) -> None:
        from broker.client import Transaction

        async with Transaction(producer):
            acks = []
            for letter in batch:
                if (outgoing := self._outgoing(letter)) is not None:
                    acks.append(await producer.enqueue(**outgoing))
                where = letter.topic_partition
                if where in self._moves:
                    self._positions[where] = max(self._positions[where], letter.record.offset + 1)
            await producer.flush()
            for ack in acks:
                await ack
            if self._moves:
                await producer.send_offsets({p: self._positions[p] for p in self._moves}, self._group)

    def _outgoing(self, letter: _Letter) -> dict[str, Any] | None:
        """The arguments of ``BatchProducer.enqueue`` for a letter; None to leave it out. Counts it either way."""
        if not self._queue.is_of_connector(letter):
            return None
        if self._again != bool(letter.replays):
            if not self._again:
                self.skipped["they were sent back before and failed once more (--again)"] += 1
            return None
        changed = (letter.record.key, letter.record.value) if self._edits is None else self._edits.of(letter)
        if changed is None:
            self.skipped["the edits do not have them"] += 1
            return None
        origin = letter.fact("topic")
        if self._target is None and origin is None:
            raise UsageError(
                f"{self._queue.topic} {letter.record.partition}:{letter.record.offset} does not say where it came from "
                "(errors.deadletterqueue.context.headers.enable was not true): give --to TOPIC"
            )
        partition = letter.fact("partition")
        topic = self._target or str(origin)
        self.sent[topic] += 1
        return {
            "topic": topic,
            "key": changed[0],
            "value": changed[1],
            "headers": [*letter.headers, (_REPLAYS, str(letter.replays + 1).encode())],
            "partition": int(partition)
            if self._target is None and partition is not None and partition.isdigit()
            else None,
        }

    async def _range(self, admin: Admin, start: Position | None) -> dict[TopicPartition, tuple[int, int]]:
        """The range to read. Edits say nothing about letters that came after they were printed."""
        ranges = await self._queue.range(admin, start, again=self._again)
        if self._edits is None:
            return ranges
        return {p: (begin, min(end, self._edits.ends.get(p.partition, begin))) for p, (begin, end) in ranges.items()}


class _Edits:
    """Keys and values from lines of ``dlq show --records``."""

    def __init__(self, file: TextIO, client: RegistryClient) -> None:
        self._client = client
        self._lines: dict[tuple[int, int], tuple[int, dict[str, Any]]] = {}
        self.ends: dict[int, int] = {}
        """By partition of the queue, the offset after its last line."""
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            with _named_line(number):
                edit = json.loads(line)
                partition, offset = int(edit["partition"]), int(edit["offset"])
                self._lines[partition, offset] = number, edit
                self.ends[partition] = max(self.ends.get(partition, 0), offset + 1)

    def of(self, letter: _Letter) -> tuple[bytes | None, bytes | None] | None:
        """The key and value for a letter; None without a line."""
        if letter.where not in self._lines:
            return None
        number, edit = self._lines[letter.where]
        with _named_line(number):
            record = letter.record
            return (
                encoded_like(record.key, edit["key"], self._client),
                encoded_like(record.value, edit["value"], self._client),
            )


def _group(connector: str, *, again: bool = False) -> str:
    """The group whose offsets say how far a connector's dead letters were sent back.

    Letters that were sent back before have a position of their own, so that each letter is sent once.
    """
    return f"tidegate-dlq-{connector}{'-again' * again}"


def _queue_of(rest: Rest, connector: str) -> str:
    config = rest.call("GET", path_of(connector, "/config"))
    if not config.get(_TOPIC):
        raise UsageError(f"connector {connector} has no dead letter queue: {_TOPIC} names it")
    return str(config[_TOPIC])


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


def _short(value: Any, longest: int = 60) -> str:
    text = json.dumps(value, default=readable, ensure_ascii=False)
    return text if len(text) <= longest else text[: longest - 1] + "…"
