"""``tidegate consume``: records as JSON lines, decoded by the registry's schemas."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tidegate.cli.credentials import registry_client
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.kafka.positions import POSITION
from tidegate.clients.topics import naming_topics
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError
from tidegate.records.decoding import Decode, decoder, is_framed
from tidegate.records.exact_json import json_text
from tidegate.records.positions import Position, chosen_partitions, resolve
from tidegate.records.shown import condition_of, shown_record, value_text

if TYPE_CHECKING:
    from broker.client import Admin, BatchConsumer, ClientConfig, KafkaRecord, TopicDescription, TopicPartition

__all__ = ["consume"]

_TOPIC_WAIT_S: Final = 30.0
_PAUSE_S: Final = 0.25


@dataclass(frozen=True)
class _Reading:
    """The records to read, and when to stop."""

    topic: str
    start: Position
    partitions: tuple[int, ...]
    """All of them if empty."""
    group: str | None
    count: int | None
    to_end: bool


@click.command()
@click.argument("topic")
@click.option("--from-beginning", is_flag=True, help="Start with the oldest record rather than with new ones.")
@click.option(
    "--from",
    "start",
    type=POSITION,
    help="Start at an offset (42), so many records before the end (-100), an age (-15m) or a time (2026-11-25T10:00).",
)
@click.option("-n", "count", type=click.IntRange(min=0), help="Stop after so many records.")
@click.option("--to-end", is_flag=True, help="Stop at the offsets that were the ends when the command began.")
@click.option("--partition", "partitions", multiple=True, type=click.IntRange(min=0), help="Only this partition.")
@click.option("--key", "key", help="Only records with this key, as it is printed.")
@click.option(
    "--filter",
    "condition",
    metavar="EXPRESSION",
    help="Only records for which this JSONPath condition holds: '@.value.amount > 10 && @.partition == 0'.",
)
@click.option("--no-headers", is_flag=True, help="Leave out the records' headers.")
@click.option("--values", is_flag=True, help="Print only the values.")
@click.option(
    "--group",
    metavar="GROUP",
    help="Read as a member of this group, from where it stands, and commit what was printed.",
)
@click.option("--registry", metavar="URL", help="The registry that knows the schemas.")
@kafka_options
def consume(
    topic: str,
    from_beginning: bool,
    start: Position | None,
    count: int | None,
    to_end: bool,
    partitions: tuple[int, ...],
    key: str | None,
    condition: str | None,
    no_headers: bool,
    values: bool,
    group: str | None,
    registry: str | None,
    data: Path,
    bootstrap_servers: str | None,
    properties: tuple[str, ...],
    command_config: Path | None,
) -> None:
    """Print a topic's records, one JSON object a line: topic, partition, offset, timestamp, key, value, headers.

    With --to-end it starts with the oldest record, unless another start is given. Without it, it waits up to 30 s for a
    topic that does not exist yet.
    """

    if from_beginning and start is not None:
        raise click.UsageError("give --from-beginning or --from, not both")
    if group is not None and (start is not None or partitions):
        raise click.UsageError(
            "--group reads from where the group stands: `tidegate groups reset` moves it; --from and --partition are for "
            "reading without a group"
        )
    start = start or (Position(offset=0) if from_beginning or to_end else Position(last=0))
    if group is not None:
        reset = "earliest" if from_beginning or to_end else "latest"
        properties = (*properties, f"group.id={group}", f"auto.offset.reset={reset}", "enable.auto.commit=false")
    config = client_config(data, bootstrap_servers, properties, command_config)
    matches = _condition(condition)
    reading = _Reading(topic, start, partitions, group, count, to_end)
    with _decoder(data, registry) as decode:

        def show(record: KafkaRecord) -> bool:
            """Print a record, unless an option leaves it out."""
            shown = shown_record(record, decode, headers=not no_headers)
            if key is not None and value_text(shown["key"]) != key:
                return False
            if not matches(shown):
                return False
            click.echo(json_text(shown["value"] if values else shown, constants=True))
            return True

        asyncio.run(_consume(config, reading, show))


@contextmanager
def _decoder(data: Path, registry: str | None) -> Iterator[Decode]:
    """Decodes by the registry's schemas. A platform without a registry is no error until a value looks as if it had a schema, and
    then only a line on standard error.
    """
    try:
        client = registry_client(data, registry)
    except UsageError as error:
        if registry is not None:
            raise
        reason: str | None = str(error)
    else:
        with client:
            yield decoder(client)
        return
    without = decoder(None)

    def decode(value: bytes | None) -> Any:
        nonlocal reason
        if reason is not None and value is not None and is_framed(value):
            click.echo(f"values are shown without their schemas: {reason}", err=True)
            reason = None
        return without(value)

    yield decode


async def _consume(config: ClientConfig, reading: _Reading, show: Callable[[KafkaRecord], bool]) -> None:
    """Show records until enough of them are shown, or all up to the end."""
    from broker.client import Admin

    async with Admin(config) as admin, naming_topics(admin, [reading.topic]):
        described = await _described(admin, reading.topic, 0 if reading.to_end else _TOPIC_WAIT_S)
        chosen = chosen_partitions(described, reading.partitions)
        positions = await resolve(admin, reading.start, chosen, committed=config.reads_committed)
    asked, furthest = reading.start.offset, max(end for _, _, end in positions.values())
    if asked is not None and asked > furthest:
        new = "nothing is printed" if reading.to_end else "only new records are printed"
        click.echo(f"offset {asked} is beyond the end of {reading.topic}, which is {furthest}: {new}", err=True)
    elif reading.start.time_ms is not None and reading.to_end and all(at == end for _, at, end in positions.values()):
        click.echo(f"no record of {reading.topic} is so new: nothing is printed", err=True)
    if reading.count == 0:
        return
    ends = {partition: end for partition, (_, _, end) in positions.items()}
    shown = 0
    async with _assigned(config, reading, positions) as consumer:
        while not (reading.to_end and await _is_at_end(consumer, ends)):
            done: dict[TopicPartition, int] = {}
            for fetched in await consumer.fetch(max_wait_ms=500):
                for record in fetched.records():
                    where = fetched.topic_partition
                    if reading.to_end and record.offset >= ends[where]:
                        continue
                    shown += show(record)
                    done[where] = record.offset + 1
                    if shown == reading.count:
                        break
                if shown == reading.count:
                    break
            if done and reading.group is not None:
                await consumer.commit(done)
            if shown == reading.count:
                return


@asynccontextmanager
async def _assigned(
    config: ClientConfig, reading: _Reading, positions: Mapping[TopicPartition, tuple[int, int, int]]
) -> AsyncIterator[BatchConsumer]:
    """A consumer of these partitions from these positions, or of the group's share from its offsets."""
    from broker.client import BatchConsumer

    async with BatchConsumer(config) as consumer:
        if reading.group is not None:
            await consumer.subscribe([reading.topic])
        else:
            await consumer.assign(positions)
            for partition, (_, offset, _) in positions.items():
                await consumer.seek(partition, offset)
        yield consumer


async def _is_at_end(consumer: BatchConsumer, ends: Mapping[TopicPartition, int]) -> bool:
    """Whether everything assigned is read up to ``ends``. A member without partitions waits for some."""
    assigned = consumer.assignment()
    return bool(assigned) and all([await consumer.position(p) >= ends.get(p, 0) for p in assigned])


async def _described(admin: Admin, topic: str, wait_s: float) -> TopicDescription:
    """The topic, waiting for it if it isn't there yet: a connector that was just created creates its topic in a moment."""
    from broker.client.errors import UnknownTopicOrPartition

    deadline = time.monotonic() + wait_s
    noted = False
    while True:
        try:
            return (await admin.describe_topics([topic]))[topic]
        except UnknownTopicOrPartition:
            if time.monotonic() > deadline:
                raise
        if not noted:
            near = nearest_name(topic, await admin.list_topics(internal=True))
            hint = f"; did you mean {near}?" if near else ""
            click.echo(f"waiting for topic {topic} ({wait_s:.0f} s at most){hint}", err=True)
            noted = True
        await asyncio.sleep(_PAUSE_S)


def _condition(expression: str | None) -> Callable[[dict[str, Any]], bool]:
    try:
        return condition_of(expression or "")
    except UsageError as error:
        raise click.UsageError(f"--filter {error}") from error
