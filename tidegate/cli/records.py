"""``tidegate produce`` and ``tidegate consume``: records as JSON lines, Avro encoded and decoded by the registry's schemas."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from tidegate.cli.credentials import registry_client
from tidegate.cli.kafka import client_config, kafka_options
from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from broker.client import Admin, ClientConfig, KafkaRecord, TopicDescription
    from registry.client import RegistryClient

__all__ = ["consume", "produce"]

_TOPIC_WAIT_S: Final = 30.0
_PAUSE_S: Final = 0.25


@click.command()
@click.argument("topic")
@click.option("--from-beginning", is_flag=True, help="Start with the oldest record rather than with new ones.")
@click.option("-n", "count", type=click.IntRange(min=0), help="Stop after so many records.")
@click.option("--to-end", is_flag=True, help="Stop at the offsets that were the ends when the command began.")
@click.option("--registry", metavar="URL", help="The registry that knows the schemas.")
@kafka_options
def consume(
    topic: str,
    from_beginning: bool,
    count: int | None,
    to_end: bool,
    registry: str | None,
    data: Path,
    bootstrap_servers: str | None,
    properties: tuple[str, ...],
    command_config: Path | None,
) -> None:
    """Print a topic's records, one JSON object a line: topic, partition, offset, timestamp, key, value, headers.

    Without --to-end it waits up to 30 s for a topic that does not exist yet.
    """

    config = client_config(data, bootstrap_servers, properties, command_config)
    with registry_client(data, registry) as client:
        decode = _decoder(client)
        asyncio.run(
            _consume(config, topic, from_beginning, count, to_end, lambda record: click.echo(_line(record, decode)))
        )


async def _consume(
    config: ClientConfig,
    topic: str,
    from_beginning: bool,
    count: int | None,
    to_end: bool,
    show: Callable[[KafkaRecord], None],
) -> None:
    from broker.client import Admin, BatchConsumer, TopicPartition

    ends: Mapping[tuple[str, int], int]
    async with Admin(config) as admin:
        described = await _described(admin, topic, 0 if to_end else _TOPIC_WAIT_S)
        partitions = [TopicPartition(topic, p.partition) for p in described.partitions]
        ends = {(p.topic, p.partition): end for p, end in (await admin.end_offsets(partitions)).items()}
    if count == 0:
        return
    shown = 0
    async with BatchConsumer(config) as consumer:
        await consumer.assign(partitions)
        if from_beginning or to_end:
            await consumer.seek_to_beginning(*partitions)
        else:
            await consumer.seek_to_end(*partitions)
        while not (to_end and all([await consumer.position(p) >= end for p, end in ends.items()])):
            for fetched in await consumer.fetch(max_wait_ms=500):
                for record in fetched.records():
                    if to_end and record.offset >= ends[record.topic, record.partition]:
                        continue
                    show(record)
                    shown += 1
                    if shown == count:
                        return


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
            click.echo(f"waiting for topic {topic} ({wait_s:.0f} s at most)", err=True)
            noted = True
        await asyncio.sleep(_PAUSE_S)


def _decoder(client: RegistryClient) -> Callable[[bytes | None], Any]:
    """Decode bytes for display: Avro by its schema, else JSON, else text, else base64."""
    from registry.serde import decode_record

    def decode(data: bytes | None) -> Any:
        if data is None:
            return None
        if data[:1] == b"\x00" and len(data) >= 5:
            try:
                return decode_record(data, client.schema)[2]
            except TidegateError as error:
                return {"undecodable": str(error), "base64": base64.b64encode(data).decode()}
        try:
            return json.loads(data)
        except ValueError:
            pass
        try:
            return data.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(data).decode()}

    return decode


def _line(record: KafkaRecord, decode: Callable[[bytes | None], Any]) -> str:
    shown: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": decode(record.key),
        "value": decode(record.value),
    }
    if record.headers:
        shown["headers"] = {name: decode(value) for name, value in record.headers}
    return json.dumps(shown, default=_readable, ensure_ascii=False)


def _readable(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


@click.command()
@click.argument("topic")
@click.argument("file", type=click.File(), default="-")
@click.option("--subject", help="Encode values as Avro with the newest schema of this subject (usually TOPIC-value).")
@click.option("--registry", metavar="URL", help="The registry that knows the schemas.")
@kafka_options
def produce(
    topic: str,
    file: TextIO,
    subject: str | None,
    registry: str | None,
    data: Path,
    bootstrap_servers: str | None,
    properties: tuple[str, ...],
    command_config: Path | None,
) -> None:
    """Write JSON lines to a topic: each the value, or an object of "value" with "key", "headers" or "partition".

    Values are written as JSON, or as Avro with --subject.
    """

    from broker.client.errors import ClusterAuthorizationFailed, TopicAuthorizationFailed

    config = client_config(data, bootstrap_servers, properties, command_config)
    encode: Callable[[Any], bytes] = lambda value: json.dumps(value, ensure_ascii=False).encode()  # noqa: E731
    if subject is not None:
        with registry_client(data, registry) as client:
            encode = _avro_encoder(client, subject)
    if file.seekable():  # a file: nothing is written if one of its lines is wrong
        for _ in _encoded(_messages(file), encode):
            pass
        file.seek(0)
    try:
        written = asyncio.run(_produce(config, topic, _encoded(_messages(file), encode)))
    except (ClusterAuthorizationFailed, TopicAuthorizationFailed) as error:
        raise type(error)(f"topic {topic}: {error}") from error
    print(f"{written} records written to {topic}", file=sys.stderr)


def _avro_encoder(client: RegistryClient, subject: str) -> Callable[[Any], bytes]:
    from registry.serde import encode_record

    registered = client.version(subject)
    schema = client.parsed(registered)
    return lambda value: encode_record(schema, value, registered.id)


def _messages(file: TextIO) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each message with its line number."""
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            message = json.loads(line)
        except json.JSONDecodeError as error:
            raise UsageError(f"line {number} is not JSON: {error}") from error
        whole = (
            isinstance(message, dict)
            and "value" in message
            and set(message) <= {"key", "value", "headers", "partition"}
        )
        yield number, message if whole else {"value": message}


def _encoded(
    messages: Iterator[tuple[int, dict[str, Any]]], encode: Callable[[Any], bytes]
) -> Iterator[tuple[bytes | None, bytes | None, list[tuple[str, bytes]], int | None]]:
    """Key, value, headers and partition of each message. Raises UsageError that names the line."""
    from registry.serde import SerializationError

    for number, message in messages:
        key, headers = message.get("key"), message.get("headers") or {}
        if not isinstance(headers, dict):
            raise UsageError(f'line {number}: "headers" must be an object, not {json.dumps(headers)}')
        try:
            value = None if message["value"] is None else encode(message["value"])
        except SerializationError as error:
            raise UsageError(f"line {number} does not fit the schema: {error}") from error
        yield (
            None if key is None else key.encode() if isinstance(key, str) else json.dumps(key).encode(),
            value,
            [(name, str(text).encode()) for name, text in headers.items()],
            message.get("partition"),
        )


async def _produce(
    config: ClientConfig,
    topic: str,
    records: Iterator[tuple[bytes | None, bytes | None, list[tuple[str, bytes]], int | None]],
) -> int:
    """Write the records; the number of them. An error in one of them says how many were written before."""
    from broker.client import BatchProducer

    wrong: UsageError | None = None
    async with BatchProducer(config) as producer:
        acks = []
        while True:
            try:
                key, value, headers, partition = next(records)
            except StopIteration:
                break
            except UsageError as error:  # what is wrong with a line, not what the broker refuses
                wrong = error
                break
            acks.append(await producer.enqueue(topic, key, value, headers, partition=partition))
        await producer.flush()
        for ack in acks:
            await ack
    if wrong is not None:
        raise UsageError(f"{wrong}; the {len(acks)} records before it are written") from wrong
    return len(acks)
