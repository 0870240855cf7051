"""``tidegate produce``: lines to records, encoded by the registry's schemas where asked."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

import click

from tidegate.cli.credentials import naming_subjects, registry_client
from tidegate.cli.kafka.client import client_config, kafka_options, key_values
from tidegate.clients.topics import with_admin
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError
from tidegate.kit.texts import counted
from tidegate.records.decoding import subject_encoder
from tidegate.records.encoding import json_bytes, text_bytes
from tidegate.records.exact_json import json_text, parsed_json

if TYPE_CHECKING:
    from broker.client import Admin, ClientConfig
    from registry.client import RegistryClient

__all__ = ["produce"]

_Encode: TypeAlias = Callable[[Any, str | None], bytes]
"""Takes a value, and its JSON as it stood in the line if that is known."""
_Record: TypeAlias = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int | None]
"""Key, value, headers and partition."""
_Lines: TypeAlias = Iterable[tuple[int, bytes]]
"""Lines with their numbers, from 1. They may have their line ends."""
_ALIKE: Final = 0.8
"""How alike a misspelt name is (difflib's ratio)."""
_READ_BYTES: Final = 64 * 1024
_MOST_LINE_BYTES: Final = 64 * 1024 * 1024
"""Of a line; no broker takes so large a record, and a stream without line ends would fill the memory."""


@dataclass(frozen=True)
class _Form:
    """How lines become records."""

    key: str | None
    key_field: str | None
    headers: Mapping[str, str]
    partition: int | None
    raw: bool
    constants: bool
    """Whether NaN and Infinity are numbers, as a double of a schema may be."""
    encode_key: _Encode
    encode_value: _Encode
    compacted: str | None
    """The topic if it is compacted: its records need keys."""


@click.command()
@click.argument("topic")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--subject", help="Encode values as Avro with the newest schema of this subject (usually TOPIC-value).")
@click.option("--key-subject", metavar="SUBJECT", help="Encode keys so, too (usually TOPIC-key).")
@click.option("--key", help="The key of every record that brings none.")
@click.option("--key-field", metavar="FIELD", help="The field of the value that is the key.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record.")
@click.option("--partition", type=click.IntRange(min=0), help="The partition of every record that names none.")
@click.option("--raw", is_flag=True, help="Each line is a value as it is, not JSON.")
@click.option(
    "--text", is_flag=True, help="Write values that are JSON strings without quotes, for topics of plain text."
)
@click.option(
    "--create", is_flag=True, help="Create the topic if it does not exist, though its name is like another's."
)
@click.option("--registry", metavar="URL", help="The registry that knows the schemas.")
@kafka_options
def produce(
    topic: str,
    file: BinaryIO,
    subject: str | None,
    key_subject: str | None,
    key: str | None,
    key_field: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    raw: bool,
    text: bool,
    create: bool,
    registry: str | None,
    data: Path,
    bootstrap_servers: str | None,
    properties: tuple[str, ...],
    command_config: Path | None,
) -> None:
    """Write lines to a topic: each the JSON of a value, or of an object of "value" with "key", "headers" or "partition".

    Values are written as JSON, with --subject by a schema, with --raw as they are. Lines of a pipe are written as they come.
    It takes the lines that `consume` prints, and ignores their "topic", "offset" and "timestamp". By a schema, a decimal is "12.50",
    bytes are base64, dates and times as in "2026-11-25 10:30:00+00:00"; where a union has several types that a value
    fits, {"bytes": "AP8="} names one.
    """

    from broker.client import NewTopic
    from broker.client.errors import ClusterAuthorizationFailed, TopicAuthorizationFailed

    if raw and (subject is not None or key_field is not None):
        raise click.UsageError("--raw values have no fields and no schema: leave out --subject and --key-field")
    if text and (raw or subject is not None):
        raise click.UsageError("--text is for values that are JSON: leave out --raw and --subject")
    if key is not None and key_field is not None:
        raise click.UsageError("give --key or --key-field, not both")
    config = client_config(data, bootstrap_servers, properties, command_config)
    encode_key: _Encode = text_bytes
    encode_value: _Encode = _raw_line if raw else text_bytes if text else json_bytes
    if subject is not None or key_subject is not None:
        with registry_client(data, registry) as client, naming_subjects(client):
            encode_value = encode_value if subject is None else _of_subject(client, subject)
            encode_key = encode_key if key_subject is None else _of_subject(client, key_subject)
    is_there, needs_key = with_admin(config, lambda admin: _looked_up(admin, topic, create=create))
    common = key_values(headers, "--header")
    compacted = topic if needs_key else None
    form = _Form(key, key_field, common, partition, raw, subject is not None, encode_key, encode_value, compacted)
    if file.seekable():  # a file: nothing is written if one of its lines is wrong
        for _ in _records(_lines_of(file), form):
            pass
        file.seek(0)
    if create and not is_there:
        with_admin(config, lambda admin: admin.create_topics([NewTopic(topic, -1, -1)], exist_ok=True))
    try:
        written = asyncio.run(_produce(config, topic, file, form))
    except (ClusterAuthorizationFailed, TopicAuthorizationFailed) as error:
        raise type(error)(f"topic {topic}: {error}") from error
    if not is_there and (written or create):
        print(f"topic {topic} is created", file=sys.stderr)
    print(f"{counted(written, 'record')} written to {topic}", file=sys.stderr)


async def _looked_up(admin: Admin, topic: str, *, create: bool) -> tuple[bool, bool]:
    """Whether the topic exists, and whether it is compacted, so that its records need keys.

    Raises UsageError if it does not exist and its name is like another's, unless it is to be created.
    """
    from broker.client.errors import ClusterAuthorizationFailed, TopicAuthorizationFailed, UnknownTopicOrPartition

    try:
        await admin.describe_topics([topic])
    except UnknownTopicOrPartition:
        if not create and (near := _meant(topic, await admin.list_topics())):
            raise UsageError(f"there is no topic {topic}; did you mean {near}? --create makes {topic}") from None
        return False, False
    except (ClusterAuthorizationFailed, TopicAuthorizationFailed):  # the write says which right is missing
        return True, False
    try:
        entry = (await admin.describe_configs(topic)).get("cleanup.policy")
    except (ClusterAuthorizationFailed, TopicAuthorizationFailed):  # whoever may write need not see it
        return True, False
    return True, entry is not None and "compact" in (entry.value or "")


def _meant(topic: str, names: Iterable[str]) -> str | None:
    """The topic that a name is a misspelling of. A name that has other digits is not."""
    others = [name for name in names if _letters(name) != _letters(topic)]
    return nearest_name(topic, others, likeness=_ALIKE)


def _letters(name: str) -> str:
    return re.sub(r"[\d._-]", "", name)


def _of_subject(client: RegistryClient, subject: str) -> _Encode:
    encode = subject_encoder(client, subject)
    return lambda value, _: encode(value)


def _raw_line(line: bytes, _: str | None) -> bytes:
    return line


_PRINTED = frozenset({"topic", "offset", "timestamp"})
"""Fields that ``consume`` prints and that are not parts of a record."""
_PARTS = frozenset({"key", "value", "headers", "partition"})


def _messages(lines: _Lines, form: _Form) -> Iterator[tuple[int, dict[str, Any], str | None]]:
    """The parts of each message, with its line number, and the line if that is the value."""
    for number, data in lines:
        if form.raw:
            yield number, {"value": data.removesuffix(b"\n").removesuffix(b"\r")}, None
            continue
        if not data.strip():
            continue
        try:
            line = data.decode()
            message = parsed_json(line, constants=form.constants)
        except UnicodeDecodeError as error:
            raise UsageError(
                f"line {number} is not UTF-8 text ({error.reason} at byte {error.start + 1}); --raw takes lines as they are"
            ) from error
        except json.JSONDecodeError as error:
            raise UsageError(f"line {number} is not JSON: {error}; --raw takes lines as they are") from error
        except ValueError as error:
            raise UsageError(f"line {number}: {error}; --raw takes lines as they are") from error
        whole = isinstance(message, dict) and "value" in message and set(message) <= _PARTS | _PRINTED
        yield (number, message, None) if whole else (number, {"value": message}, line.strip(" \t\r\n"))


class _WrongLine(UsageError):
    """A line is wrong, which is not what the broker refuses."""


def _records(lines: _Lines, form: _Form) -> Iterator[_Record]:
    """The records of lines. Raises _WrongLine that names the line."""
    try:
        yield from _encoded(lines, form)
    except UsageError as error:
        raise _WrongLine(str(error)) from error


def _encoded(lines: _Lines, form: _Form) -> Iterator[_Record]:
    common: list[tuple[str, bytes | None]] = [(name, text.encode()) for name, text in form.headers.items()]
    for number, message, line in _messages(lines, form):
        headers = _header_pairs(message.get("headers") or {}, number)
        partition = message.get("partition", form.partition)
        if partition is not None and (isinstance(partition, bool) or not isinstance(partition, int) or partition < 0):
            raise UsageError(f'line {number}: "partition" must be the number of one, not {json_text(partition)}')
        key, value = message.get("key", form.key), message["value"]
        if form.key_field is not None and "key" not in message:
            if not isinstance(value, dict) or form.key_field not in value:
                raise UsageError(f"line {number} has no field {form.key_field}, which --key-field takes as the key")
            key = value[form.key_field]
        with _named(f"line {number}"):
            encoded = None if value is None else form.encode_value(value, line)
        with _named(f"line {number}: the key"):
            encoded_key = None if key is None else form.encode_key(key, None)
        if encoded_key is None and form.compacted is not None:
            raise UsageError(
                f"line {number} has no key, and topic {form.compacted} is compacted: it keeps the newest record of each key; "
                'give --key-field or --key, or a "key" in the line'
            )
        with _named(f"line {number}: a header"):
            named = [(name, None if text is None else text_bytes(text)) for name, text in headers]
        yield encoded_key, encoded, common + named, partition


def _header_pairs(headers: Any, number: int) -> list[tuple[str, Any]]:
    """The headers in one of the two forms that ``consume`` prints."""
    if isinstance(headers, dict):
        return list(headers.items())
    if isinstance(headers, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in headers
    ):
        return [(name, value) for name, value in headers]
    raise UsageError(
        f'line {number}: "headers" must be an object, or an array of [name, value] pairs, not {json_text(headers)}'
    )


@contextmanager
def _named(part: str) -> Iterator[None]:
    """Says in errors which part of which line cannot be written."""
    from registry.serde import SerializationError

    try:
        yield
    except SerializationError as error:
        raise UsageError(f"{part} does not fit the schema: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{part} is nested too deep") from error
    except ValueError as error:
        raise UsageError(f"{part}: {error}") from error


async def _produce(config: ClientConfig, topic: str, file: BinaryIO, form: _Form) -> int:
    """Write the records; the number of them. An error in one of them says how many were written before."""
    from broker.client import BatchProducer

    wrong: _WrongLine | None = None
    written = 0
    async with BatchProducer(config) as producer:
        acks: deque[asyncio.Future[Any]] = deque()
        try:
            async for lines in _line_groups(file):
                for key, value, headers, partition in _records(lines, form):
                    acks.append(await producer.enqueue(topic, key, value, headers, partition=partition))
                while acks and acks[0].done():
                    await acks.popleft()
                    written += 1
        except _WrongLine as error:
            wrong = error
        await producer.flush()
        for ack in acks:
            await ack
        written += len(acks)
    if wrong is not None:
        before = f"{counted(written, 'record')} before it {'is' if written == 1 else 'are'} written"
        raise UsageError(f"{wrong}; {before if written else 'nothing is written'}") from wrong
    return written


def _lines_of(file: BinaryIO) -> _Lines:
    """The lines of a file. Raises _WrongLine for one that is too long."""
    number = 0
    while line := file.readline(_MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > _MOST_LINE_BYTES:
            raise _too_long(number)
        yield number, line


def _too_long(number: int) -> _WrongLine:
    return _WrongLine(
        f"line {number} is longer than {_MOST_LINE_BYTES >> 20} MiB, which no record can be: each line is one record"
    )


async def _line_groups(file: BinaryIO) -> AsyncIterator[_Lines]:
    """All lines of a file at once. Those of a pipe or a terminal as they come, while the event loop sends those before."""
    if file.seekable():
        yield _lines_of(file)
        return
    number = 1
    parts: list[bytes] = []  # of a line whose end is to come
    size = 0
    while data := await _read(file.fileno()):
        parts.append(data)
        size += len(data)
        if b"\n" in data:
            lines = b"".join(parts).split(b"\n")
            parts = [lines.pop()]
            size = len(parts[0])
            yield enumerate(lines, number)
            number += len(lines)
        if size > _MOST_LINE_BYTES:
            raise _too_long(number)
    if rest := b"".join(parts):
        yield enumerate([rest], number)


async def _read(file: int) -> bytes:
    """Read what there is, once there is some; empty at the end."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(file, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(file)
    return os.read(file, _READ_BYTES)
