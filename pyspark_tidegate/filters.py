"""Filters that Spark hands to a reader (Spark 4.1), as a narrower choice of offsets.

Only filters that narrow without loss are used: those on topic, partition and offset, and the lower bound of a timestamp. (The log
knows the first record at or after a time; later records may be older again.) Spark evaluates all filters once more.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.client import TopicPartition
from broker.client.blocking import Admin
from pyspark_tidegate.offsets import Positions

__all__ = ["Narrowed", "narrowed"]


@dataclass(frozen=True)
class Narrowed:
    """Topics and partitions (None: any), the offsets from ``first`` to ``stop`` - 1 in each, and the time since when."""

    topics: frozenset[str] | None = None
    numbers: frozenset[int] | None = None
    first: int = 0
    stop: int | None = None
    since_ms: int | None = None

    def partitions(self, chosen: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [
            partition
            for partition in chosen
            if (self.topics is None or partition.topic in self.topics)
            and (self.numbers is None or partition.partition in self.numbers)
        ]

    def starts(self, admin: Admin, starts: Positions, ends: Positions) -> Positions:
        """The offsets at which reads start; ``ends`` are for partitions without a record since the time."""
        starts = {partition: max(start, self.first) for partition, start in starts.items()}
        if self.since_ms is None or not starts:
            return starts
        times = admin.offsets_for_times(dict.fromkeys(starts, self.since_ms))
        return {p: max(start, ends[p] if (at := times.get(p)) is None else at.offset) for p, start in starts.items()}

    def stops(self, stops: Positions) -> Positions:
        return {p: stop if self.stop is None else min(stop, self.stop) for p, stop in stops.items()}


def narrowed(filters: Iterable[Any], columns: Collection[str] = ()) -> Narrowed:
    """The choice that filters of ``pyspark.sql.datasource`` make; those that don't narrow it are passed over.

    ``columns`` are the columns of the source that are read; empty: all. Others of such a name are fields of values.
    """
    choice = Narrowed()
    for condition in filters:
        path: tuple[str, ...] = getattr(condition, "attribute", ())
        if columns and path and path[0] not in columns:
            continue
        value = getattr(condition, "value", None)
        apply = _APPLY.get((".".join(path), type(condition).__name__))
        if apply is not None and value is not None:
            choice = apply(choice, value)
    return choice


def _topics(choice: Narrowed, names: Iterable[str]) -> Narrowed:
    names = frozenset(names)
    return replace(choice, topics=names if choice.topics is None else choice.topics & names)


def _numbers(choice: Narrowed, numbers: Iterable[int]) -> Narrowed:
    numbers = frozenset(numbers)
    return replace(choice, numbers=numbers if choice.numbers is None else choice.numbers & numbers)


def _from(choice: Narrowed, offset: int) -> Narrowed:
    return replace(choice, first=max(choice.first, offset))


def _before(choice: Narrowed, offset: int) -> Narrowed:
    return replace(choice, stop=offset if choice.stop is None else min(choice.stop, offset))


def _since(choice: Narrowed, moment: dt.datetime) -> Narrowed:
    at_ms = int(moment.timestamp() * 1000 // 1)
    return replace(choice, since_ms=at_ms if choice.since_ms is None else max(choice.since_ms, at_ms))


_APPLY: Final[dict[tuple[str, str], Callable[[Narrowed, Any], Narrowed]]] = {
    ("topic", "EqualTo"): lambda choice, name: _topics(choice, [name]),
    ("topic", "In"): _topics,
    ("partition", "EqualTo"): lambda choice, number: _numbers(choice, [number]),
    ("partition", "In"): _numbers,
    ("offset", "EqualTo"): lambda choice, offset: _before(_from(choice, offset), offset + 1),
    ("offset", "GreaterThan"): lambda choice, offset: _from(choice, offset + 1),
    ("offset", "GreaterThanOrEqual"): _from,
    ("offset", "LessThan"): _before,
    ("offset", "LessThanOrEqual"): lambda choice, offset: _before(choice, offset + 1),
    ("timestamp", "EqualTo"): _since,
    ("timestamp", "GreaterThan"): _since,
    ("timestamp", "GreaterThanOrEqual"): _since,
}
