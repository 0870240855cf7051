"""Which offsets of which partitions a read takes: the options and the log, as ranges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from broker.client import ClientConfig, TopicPartition
from broker.client.blocking import Admin
from pyspark_tidegate.options import EARLIEST, LATEST, Offsets, Options
from tidegate.kit.errors import UsageError

__all__ = ["OffsetRange", "Positions", "config_of", "end_positions", "ranges", "selected", "split", "start_positions"]

Positions = dict[TopicPartition, int]

_NO_TIME: Final = -1


@dataclass(frozen=True)
class OffsetRange:
    """Offsets ``start`` to ``stop`` - 1 of one partition."""

    topic: str
    partition: int
    start: int
    stop: int


def config_of(options: Options) -> ClientConfig:
    """The cluster of the options, and their client settings."""
    rest = {name: value for name, value in options.kafka.items() if name != "bootstrap.servers"}
    return ClientConfig(options.kafka["bootstrap.servers"], rest)


def selected(admin: Admin, options: Options) -> list[TopicPartition]:
    """The partitions that the options name. Raises UsageError for a topic or a partition that the cluster lacks."""
    if options.pattern:
        try:
            pattern = re.compile(options.pattern)
        except re.error as error:
            raise UsageError(f"the option subscribePattern is {options.pattern!r}: {error}") from error
        names = [name for name in admin.list_topics() if pattern.fullmatch(name)]
    else:
        names = list(options.topics or options.assigned)
    described = admin.describe_topics(names) if names else {}
    existing = [TopicPartition(name, part.partition) for name in names for part in described[name].partitions]
    if not options.assigned:
        return existing
    assigned = [TopicPartition(name, number) for name, numbers in options.assigned.items() for number in numbers]
    missing = [str(partition) for partition in assigned if partition not in existing]
    if missing:
        raise UsageError(f"the option assign names {', '.join(missing)}, which the cluster does not have")
    return assigned


def start_positions(admin: Admin, options: Options, partitions: Iterable[TopicPartition]) -> Positions:
    """The offset at which the read of each partition starts.

    An offset that the log has deleted is an error; with failOnDataLoss=false it is the log's first.
    """
    chosen = list(partitions)
    first, last = admin.beginning_offsets(chosen), _ends(admin, options, chosen)
    if options.starting_times is not None:
        return _by_time(admin, options.starting_times, chosen, last, must_match=not options.latest_if_later)
    starts = _resolved("startingOffsets", options.starting, chosen, first, last)
    for partition, offset in starts.items():
        if first[partition] <= offset <= last[partition]:
            continue
        if options.fail_on_data_loss:
            raise UsageError(
                f"startingOffsets is {offset} for {partition}, whose offsets are {first[partition]} to {last[partition]}: "
                "records were deleted or never written (failOnDataLoss=false reads what there is)"
            )
        starts[partition] = min(max(offset, first[partition]), last[partition])
    return starts


def end_positions(admin: Admin, options: Options, partitions: Iterable[TopicPartition]) -> Positions:
    """The offset before which each partition's read ends: never beyond the log's end."""
    chosen = list(partitions)
    last = _ends(admin, options, chosen)
    if options.ending_times is not None:
        return _by_time(admin, options.ending_times, chosen, last)
    stops = _resolved("endingOffsets", options.ending, chosen, last, last)
    return {partition: min(offset, last[partition]) for partition, offset in stops.items()}


def _ends(admin: Admin, options: Options, partitions: list[TopicPartition]) -> Positions:
    committed = options.kafka.get("isolation.level", "read_uncommitted").lower() == "read_committed"
    return dict(admin.end_offsets(partitions, committed=committed))


def _resolved(
    name: str, asked: int | Offsets, partitions: list[TopicPartition], first: Positions, last: Positions
) -> Positions:
    if not isinstance(asked, int):
        known = {(partition.topic, partition.partition) for partition in partitions}
        strange = [f"{topic}-{n}" for topic, numbers in asked.items() for n in numbers if (topic, n) not in known]
        if strange:
            raise UsageError(f"the option {name} names {', '.join(strange)}, which is not read")
    ends = {EARLIEST: first, LATEST: last}
    resolved = {}
    for partition in partitions:
        offset = _asked(asked, partition, LATEST)
        resolved[partition] = ends[offset][partition] if offset in ends else offset
    return resolved


def _by_time(
    admin: Admin, asked: int | Offsets, partitions: list[TopicPartition], last: Positions, *, must_match: bool = False
) -> Positions:
    """The first offset at or after a time. The log's end where there is none, or where the option has no time for a partition.

    With ``must_match`` a partition that has no record at or after its time raises UsageError.
    """
    times = {partition: at for partition in partitions if (at := _asked(asked, partition, _NO_TIME)) != _NO_TIME}
    at_times = admin.offsets_for_times(times) if times else {}
    without = next((partition for partition in times if at_times.get(partition) is None), None)
    if must_match and without is not None:
        raise UsageError(
            f"{without} has no record at or after its starting timestamp {times[without]} "
            "(startingOffsetsByTimestampStrategy=latest begins at its end)"
        )
    return {p: record.offset if (record := at_times.get(p)) is not None else last[p] for p in partitions}


def _asked(asked: int | Offsets, partition: TopicPartition, default: int) -> int:
    """The number for all partitions, or that of a partition by topic and number."""
    return asked if isinstance(asked, int) else asked.get(partition.topic, {}).get(partition.partition, default)


def ranges(starts: Mapping[TopicPartition, int], stops: Mapping[TopicPartition, int]) -> Iterator[OffsetRange]:
    """The range of each partition that has one, in the order of topics and partitions."""
    for partition in sorted(stops):
        start = starts.get(partition, 0)
        if start < stops[partition]:
            yield OffsetRange(partition.topic, partition.partition, start, stops[partition])


def split(whole: list[OffsetRange], at_least: int) -> list[OffsetRange]:
    """The ranges, large ones divided so that there are about ``at_least`` of them (Spark's ``minPartitions``)."""
    total = sum(part.stop - part.start for part in whole)
    if len(whole) >= at_least or not total:
        return whole
    made: list[OffsetRange] = []
    for part in whole:
        length = part.stop - part.start
        pieces = min(length, max(1, round(at_least * length / total)))
        bounds = [part.start + length * n // pieces for n in range(pieces + 1)]
        made += [OffsetRange(part.topic, part.partition, a, b) for a, b in pairwise(bounds)]
    return made
