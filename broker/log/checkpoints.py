"""Kafka's small text files: offset checkpoints, a partition's metadata, leader epochs, the clean-shutdown marker."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from broker.errors import KafkaStorageError
from broker.log.files import write_at, write_atomically

__all__ = [
    "CLEAN_SHUTDOWN",
    "parse_offsets",
    "read_offsets",
    "read_topic_id",
    "uuid_from_text",
    "uuid_text",
    "write_clean_shutdown",
    "write_leader_epochs",
    "write_lines",
    "write_offsets",
    "write_topic_id",
]

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
_TOPIC_ID_FILE: Final = "partition.metadata"
_EPOCHS_FILE: Final = "leader-epoch-checkpoint"

Offsets = Mapping[tuple[str, int], int]


def uuid_text(value: uuid.UUID) -> str:
    """A UUID as Kafka writes it: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def uuid_from_text(text: str) -> uuid.UUID:
    """Raises ValueError if ``text`` is not 16 bytes of URL-safe base64."""
    try:
        return uuid.UUID(bytes=base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except binascii.Error as error:
        raise ValueError(f"{text!r} is no UUID of 22 base64 characters") from error


def write_offsets(path: Path, offsets: Offsets) -> None:
    """Write an OffsetCheckpointFile (version 0): one offset for each (topic, partition)."""
    write_lines(path, [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())])


def write_lines(path: Path, entries: Collection[str]) -> None:
    """Like ``write_offsets``, for formatted lines."""
    write_atomically(path, "\n".join(["0", str(len(entries)), *entries, ""]).encode())


def parse_offsets(text: str) -> dict[tuple[str, int], int]:
    """Raises ValueError if ``text`` is not a complete checkpoint file.

    An empty one is valid: Kafka leaves it before the first write.
    """
    if not text:
        return {}
    version, count, *entries = text.splitlines()
    if version != "0" or int(count) != len(entries):
        raise ValueError(f"version {version!r} with {len(entries)} of {count} entries")
    offsets = {}
    for entry in entries:
        topic, partition, offset = entry.split(" ")
        offsets[topic, int(partition)] = int(offset)
    return offsets


def read_offsets(path: Path) -> dict[tuple[str, int], int]:
    """The offsets; empty if the file does not exist. Raises KafkaStorageError for a damaged file."""
    try:
        return parse_offsets(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise KafkaStorageError(
            f"{path} is not an offset checkpoint: {error}; remove it to have everything checked"
        ) from error


def write_topic_id(directory: str | Path, topic_id: uuid.UUID) -> None:
    """For a new directory. Its first flush makes the file durable."""
    write_at(f"{directory}/{_TOPIC_ID_FILE}", f"version: 0\ntopic_id: {uuid_text(topic_id)}\n".encode(), 0)


def read_topic_id(directory: str | Path) -> uuid.UUID | None:
    """None if the file is missing or empty, as after a power cut. Raises KafkaStorageError if it is damaged."""
    path = f"{directory}/{_TOPIC_ID_FILE}"
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a start with 10,000 partitions has to be quick
            text = file.read().decode()
    except FileNotFoundError:
        return None
    if not text.strip("\0"):
        return None
    try:
        fields = dict(line.split(": ", 1) for line in text.splitlines())
        return uuid_from_text(fields["topic_id"])
    except (ValueError, KeyError) as error:
        raise KafkaStorageError(f"{path} does not tell the topic's id: {error}") from error


def write_leader_epochs(directory: str | Path, start_offset: int) -> None:
    """Write Kafka's file for tools; it is not read here.

    One node leads everything in epoch 0, from the log's first offset on.
    """
    write_at(f"{directory}/{_EPOCHS_FILE}", f"0\n1\n0 {start_offset}\n".encode(), 0)


def write_clean_shutdown(directory: Path) -> None:
    write_atomically(directory / CLEAN_SHUTDOWN, json.dumps({"version": 0, "brokerEpoch": -1}).encode())
