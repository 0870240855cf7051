"""Takes a backup: first the positions of groups and connectors, then the ends of the logs, then the records up to there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tidegate.backup.manifest import Partition, Point, RecordFile, Topic, newest
from tidegate.backup.memory import keep_buffers
from tidegate.backup.records import RecordWriter, fetched_tables
from tidegate.backup.store import BackupStore
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from broker.client import ClientConfig
    from broker.client.blocking import Admin

__all__ = ["READING", "Progress", "begin_point", "continue_point", "read_groups", "take_records"]

READING: Final = {
    "isolation.level": "read_committed",
    "auto.offset.reset": "none",
    "fetch.max.wait.ms": "20",  # records up to a known end are there; waiting for more would only hold up the next partition
    "max.partition.fetch.bytes": str(8 * 1024 * 1024),
}
"""The settings of the consumer that reads records for a backup."""
_NOTE_S: Final = 10.0
Progress = Callable[[int, int, str], None]
"""Is told the units done, all units, and what is being worked on."""


def begin_point(admin: Admin) -> Point:
    """A point in time, still empty. Its id is the time in UTC."""
    now = datetime.now(UTC)
    return Point(
        f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z",
        admin.cluster_id(),
        now.isoformat(timespec="milliseconds"),
    )


def continue_point(point: Point, before: Point) -> None:
    """Let a point begin where an earlier one began, also where the log has deleted records since: who restored the earlier
    one has these records, and counts them. Raises UsageError where a topic was made again since.
    """
    for name, topic in point.topics.items():
        earlier = before.topics.get(name)
        if earlier is None:
            continue
        if not _same(topic, earlier):
            raise UsageError(
                f"topic {name} was deleted and made again since its records were copied: delete the copy, then begin anew"
            )
        known = {partition.partition: partition for partition in earlier.partitions}
        for partition in topic.partitions:
            if (first := known.get(partition.partition)) is not None:
                paths = {file.path for file in partition.files}
                partition.start = first.start
                partition.files = [file for file in first.files if file.path not in paths] + partition.files


def read_groups(
    admin: Admin, topics: Sequence[str], tell: Callable[[str], None]
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, list[dict[str, Any]]]]:
    """The offsets that groups have committed for these topics, and those that share groups start at. ``tell`` gets a line for
    each group that can't be read.
    """
    from broker.client.errors import UnsupportedVersion

    groups: dict[str, list[dict[str, Any]]] = {}
    share_groups: dict[str, list[dict[str, Any]]] = {}
    chosen = set(topics)
    for group in admin.list_groups():
        if group.type == "share":
            try:
                starts = admin.share_group_offsets(group.group_id)
            except UnsupportedVersion as error:
                tell(f"share group {group.group_id} is left out: {error}")
                continue
            if offsets := [
                {"topic": tp.topic, "partition": tp.partition, "offset": offset}
                for tp, offset in sorted(starts.items())
                if tp.topic in chosen
            ]:
                share_groups[group.group_id] = offsets
            continue
        committed = admin.group_offsets_with_notes(group.group_id)
        if offsets := [
            {"topic": tp.topic, "partition": tp.partition, "offset": offset, "note": note}
            for tp, (offset, note) in sorted(committed.items())
            if tp.topic in chosen
        ]:
            groups[group.group_id] = offsets
    return groups, share_groups


def take_records(
    config: ClientConfig,
    admin: Admin,
    store: BackupStore,
    point: Point,
    topics: Sequence[str],
    *,
    full: bool,
    reads: bool = True,
    progress: Progress,
) -> int:
    """Write the records of topics that no earlier backup in ``store`` has, and note all files in ``point``.

    Returns the number of records written. Without ``reads``, only note which offsets there are. A topic that was made again under its name begins anew, and so does one whose
    oldest records are newer than what was written before; ``full`` has all begin anew.
    """
    from broker.client import TopicPartition
    from broker.client.blocking import BatchConsumer

    keep_buffers()
    earlier = newest(store)
    described = admin.describe_topics(topics)
    partitions = [TopicPartition(t.name, p.partition) for t in described.values() for p in t.partitions]
    starts = admin.beginning_offsets(partitions)
    ends = admin.end_offsets(partitions, committed=True)
    for name, description in described.items():
        configs = {
            entry.name: entry.value
            for entry in admin.describe_configs(name).values()
            if entry.source == "DYNAMIC_TOPIC_CONFIG" and entry.value is not None
        }
        point.topics[name] = Topic(name, str(description.topic_id), [], configs)
    todo = []
    for tp in sorted(partitions):
        topic = point.topics[tp.topic]
        kept = None if full else _continued(topic, tp.partition, starts[tp], ends[tp], earlier)
        if kept is None:
            known = any(_same(topic, before.topics.get(topic.name)) for before in earlier)
            kept = Partition(tp.partition, starts[tp], starts[tp])
            # files that earlier backups refer to stay as they are
            todo.append((tp, kept, point.id if known else topic.topic_id[:8]))
        else:
            first = kept.files[0].path if kept.files else ""
            todo.append((tp, kept, first.rpartition("/")[2].rpartition("-")[0] or topic.topic_id[:8]))
        topic.partitions.append(kept)
    total = sum(ends[tp] - kept.end for tp, kept, _ in todo)
    done = written = 0
    next_note = time.monotonic() + _NOTE_S
    with BatchConsumer(config) as consumer:
        for tp, kept, name in todo:
            start, end = kept.end, ends[tp]

            def note(file: RecordFile, kept: Partition = kept) -> None:
                nonlocal next_note, written
                kept.files.append(file)
                kept.end = file.next_offset
                written += file.records
                if time.monotonic() >= next_note:
                    point.store_unfinished(store)
                    next_note = time.monotonic() + _NOTE_S

            if start < end and reads:
                folder = f"records/topic={tp.topic}/partition={tp.partition}"
                tables = fetched_tables(consumer, tp.topic, tp.partition, start, end)
                shown = _shown(progress, done - start, total, str(tp), tables)
                RecordWriter(store, folder, name, note).write(shown, start, end)
            kept.end = end
            done += end - start
            progress(done, total, str(tp))
    return written


def _shown(
    progress: Progress, before: int, total: int, note: str, tables: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Tell the progress with each table that passes; ``before`` is what to add to its last offset."""
    for batch in tables:
        progress(before + batch.column(0)[-1].as_py() + 1, total, note)
        yield batch


def _same(topic: Topic, other: Topic | None) -> bool:
    return other is not None and other.topic_id == topic.topic_id


def _continued(topic: Topic, number: int, start: int, end: int, earlier: Sequence[Point]) -> Partition | None:
    """A partition with the files that it shares with an earlier backup, up to where that ends; None if there is none."""
    for point in earlier:
        before = point.topics.get(topic.name)
        if before is None or not _same(topic, before):
            continue
        known = next((p for p in before.partitions if p.partition == number), None)
        if known is not None and start <= known.end <= end:
            return Partition(number, start, known.end, [f for f in known.files if f.next_offset > start])
    return None
