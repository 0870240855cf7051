"""Compares two topics, of one cluster or of two, up to the ends that they have at the beginning."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.backup.records import fetched_tables
from tidegate.backup.taking import READING
from tidegate.clients.topics import with_admin
from tidegate.kit.errors import UsageError
from tidegate.verify.states import States

if TYPE_CHECKING:
    import pyarrow as pa

    from broker.client import Admin, ClientConfig

__all__ = ["RecordsDiffer", "Side", "compare_keys", "compare_records", "key_text"]

Progress = Callable[[int, int, str], None]


class Side(NamedTuple):
    """A topic of a cluster."""

    config: ClientConfig
    topic: str


class RecordsDiffer(NamedTuple):
    """The first record of a partition that is another one on the right; offsets are None where there is none more."""

    partition: int
    left_offset: int | None
    right_offset: int | None


def _ranges(side: Side) -> list[tuple[int, int, int]]:
    """Partitions with their first offset and the end of what is committed."""
    from broker.client import TopicPartition

    async def asked(admin: Admin) -> list[tuple[int, int, int]]:
        described = (await admin.describe_topics([side.topic]))[side.topic]
        partitions = [TopicPartition(side.topic, entry.partition) for entry in described.partitions]
        starts, ends = await admin.beginning_offsets(partitions), await admin.end_offsets(partitions, committed=True)
        return [(tp.partition, starts[tp], ends[tp]) for tp in partitions]

    return with_admin(side.config, asked, topics=[side.topic])


def key_text(key: bytes) -> str:
    """A key as text, or as base64 where it is no text."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    return text if text.isprintable() and text else "base64:" + base64.b64encode(key).decode()


def compare_keys(left: Side, right: Side, states: States, progress: Progress) -> int:
    """Put the newest value of each key of both topics into ``states``. Returns the number of records without a key, which
    are not compared. Headers and timestamps are not compared.
    """
    from broker.client.blocking import BatchConsumer

    ranges = [_ranges(side) for side in (left, right)]
    total = sum(end - start for side_ranges in ranges for _, start, end in side_ranges)
    done = without = 0
    for number, side in enumerate((left, right)):
        with BatchConsumer(side.config.with_properties(READING)) as consumer:
            for partition, start, end in ranges[number]:
                for batch in fetched_tables(consumer, side.topic, partition, start, end):
                    keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
                    rows = [(key_text(key), value) for key, value in zip(keys, values, strict=True) if key is not None]
                    without += len(keys) - len(rows)
                    states.put(number, "", rows)
                    progress(done + batch.column(0)[-1].as_py() + 1 - start, total, f"{side.topic}-{partition}")
                done += end - start
    return without


def compare_records(left: Side, right: Side, progress: Progress) -> tuple[int, list[RecordsDiffer]]:
    """Compare the records of both topics in their order, partition by partition: keys, values, headers and timestamps.

    Returns the number of records that are alike, and the first difference of each partition. Raises UsageError for
    topics with different numbers of partitions.
    """
    from broker.client.blocking import BatchConsumer

    ranges = [_ranges(side) for side in (left, right)]
    if len(ranges[0]) != len(ranges[1]):
        raise UsageError(
            f"{left.topic} has {len(ranges[0])} partitions and {right.topic} {len(ranges[1])}: their records can't be in "
            "the same order; compare the newest values of keys, without --records"
        )
    total = sum(end - start for _, start, end in ranges[0])
    alike, differing = 0, []
    with (
        BatchConsumer(left.config.with_properties(READING)) as first,
        BatchConsumer(right.config.with_properties(READING)) as second,
    ):
        for (partition, start, end), (_, other_start, other_end) in zip(*ranges, strict=True):
            same, difference = _compared(
                fetched_tables(first, left.topic, partition, start, end),
                fetched_tables(second, right.topic, partition, other_start, other_end),
            )
            alike += same
            progress(alike, total, f"{left.topic}-{partition}")
            if difference is not None:
                differing.append(RecordsDiffer(partition, *difference))
    return alike, differing


def _compared(
    left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
) -> tuple[int, tuple[int | None, int | None] | None]:
    """How many records are alike before the first that is not, with the offsets of that."""
    alike = 0
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None:
        length = min(len(one), len(other))
        parts = one.slice(0, length), other.slice(0, length)
        if not all(a.equals(b) for a, b in zip(parts[0].columns[1:], parts[1].columns[1:], strict=True)):
            at = _first_unlike(*parts)
            return alike + at, (parts[0].column(0)[at].as_py(), parts[1].column(0)[at].as_py())
        alike += length
        one = one.slice(length) if length < len(one) else next(left, None)
        other = other.slice(length) if length < len(other) else next(right, None)
    if one is None and other is None:
        return alike, None
    ends: list[Any] = [None if rest is None else rest.column(0)[0].as_py() for rest in (one, other)]
    return alike, (ends[0], ends[1])


def _first_unlike(left: pa.RecordBatch, right: pa.RecordBatch) -> int:
    low, high = 0, len(left)  # alike before low, and not alike up to high
    while high - low > 1:
        middle = (low + high) // 2
        same = all(
            a.slice(low, middle - low).equals(b.slice(low, middle - low))
            for a, b in zip(left.columns[1:], right.columns[1:], strict=True)
        )
        low, high = (middle, high) if same else (low, middle)
    return low
