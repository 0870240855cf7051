"""Compares both sides at the end."""

from __future__ import annotations

import io
import json
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow.parquet as pq
import requests

from broker.client import ClientConfig
from broker.client.blocking import Admin, BatchConsumer
from tests.proofs.chaos.load import Load
from tests.proofs.chaos.scene import ROWS_A_FILE, Scene
from tests.proofs.test_events_kills import judge as judge_events
from tests.proofs.test_registry_cluster import settled as registries_settled
from tests.servers.process import wait_until

__all__ = ["judge"]

_WAIT_S = 120


class Row(NamedTuple):
    """A committed record of a topic; the value decoded, None for a tombstone."""

    partition: int
    offset: int
    key: bytes | None
    value: Any


class Topics:
    def __init__(self, bootstrap: str, registry: str) -> None:
        self._config = ClientConfig(bootstrap, {"isolation.level": "read_committed", "auto.offset.reset": "earliest"})
        self._registry, self._schemas = registry, dict[int, Any]()

    def rows(self, topic: str, decode: Callable[[bytes], Any]) -> list[Row]:
        rows: list[Row] = []
        with Admin(self._config) as admin, BatchConsumer(self._config) as consumer:
            parts = [(topic, part.partition) for part in admin.describe_topics([topic])[topic].partitions]
            ends = {tuple(part): end for part, end in admin.end_offsets(parts).items()}
            consumer.assign(parts)
            consumer.seek_to_beginning(*parts)
            left = {part: end for part, end in ends.items() if end}
            while left:
                for batch in consumer.fetch():
                    for record in batch.records():
                        value = None if record.value is None else decode(record.value)
                        rows.append(Row(batch.partition, record.offset, record.key, value))
                    if batch.next_offset >= left.get((batch.topic, batch.partition), 0):
                        left.pop((batch.topic, batch.partition), None)
        return sorted(rows)

    def avro(self, framed: bytes) -> Any:
        magic, number = struct.unpack(">bi", framed[:5])
        assert magic == 0
        if number not in self._schemas:
            text = requests.get(f"{self._registry}/schemas/ids/{number}", timeout=30).json()["schema"]
            self._schemas[number] = fastavro.parse_schema(json.loads(text))
        return fastavro.schemaless_reader(io.BytesIO(framed[5:]), self._schemas[number], None)

    def committed(self, group: str) -> dict[int, int]:
        with Admin(self._config) as admin:
            return {part.partition: offset for part, offset in admin.group_offsets(group).items()}


def judge(scene: Scene, load: Load) -> dict[str, Any]:
    """Raises AssertionError with everything that is wrong; returns figures."""
    topics = Topics(scene.bootstrap, scene.registries[0])
    figures: dict[str, Any] = {}
    wrong: list[str] = []

    def hold(condition: object, what: str) -> None:
        if not condition:
            wrong.append(what)

    _lines(scene, load, topics, hold, figures)
    _orders(scene, topics, hold, figures)
    _accounts(scene, topics, hold, figures)
    _registrations(scene, load, hold, figures)
    _events(load, hold, figures)
    assert not wrong, "\n".join(wrong)
    return figures


Hold = Callable[[object, str], None]


def _patiently(condition: Callable[[], bool]) -> bool:
    try:
        wait_until(condition, "", _WAIT_S, 1)
    except TimeoutError:
        return False
    return True


def _lines(scene: Scene, load: Load, topics: Topics, hold: Hold, figures: dict[str, Any]) -> None:
    got: list[int] = []

    def complete() -> bool:
        got[:] = [int(row.value) for row in topics.rows("lines", bytes.decode)]
        return set(got) >= set(range(load.written))

    hold(_patiently(complete), f"{load.written - len(set(got))} of {load.written} lines are missing")
    hold(got == sorted(set(got)), f"lines, exactly once: {len(got) - len(set(got))} are there twice, or out of order")
    figures["lines"] = len(got)


def _orders(scene: Scene, topics: Topics, hold: Hold, figures: dict[str, Any]) -> None:
    ids = {number for (number,) in scene.database.rows("SELECT id FROM orders")}
    rows: list[Row] = []

    def read() -> bool:
        rows[:] = topics.rows("p-orders", topics.avro)
        return {row.value["id"] for row in rows} >= ids

    hold(_patiently(read), f"{len(ids - {row.value['id'] for row in rows})} of {len(ids)} orders are not in the topic")
    logged = Counter(row.value["id"] for row in rows)
    figures |= {"orders": len(ids), "orders written again to the topic": logged.total() - len(logged)}
    copied: Counter[int] = Counter()

    def copy() -> bool:
        copied.clear()
        copied.update(number for (number,) in scene.database.rows("SELECT id FROM orders_copy"))
        return copied == logged

    hold(
        _patiently(copy),
        f"JDBC sink, exactly once: missing {_some(logged - copied)}, too many {_some(copied - logged)}",
    )
    for sink, folder in (("orders-disk", scene.disk), ("orders-s3", scene.objects.store / "lake")):
        committed: dict[int, int] = {}

        def near(sink: str = sink, committed: dict[int, int] = committed) -> bool:
            committed.update(topics.committed(f"connect-{sink}"))
            left = Counter(row.partition for row in rows if row.offset >= committed.get(row.partition, 0))
            return all(count < ROWS_A_FILE for count in left.values())

        hold(_patiently(near), f"{sink}: files of {ROWS_A_FILE} rows are still missing; committed: {committed}")
        expected = Counter(row.value["id"] for row in rows if row.offset < committed.get(row.partition, 0))
        stored, files = _stored(folder)
        hold(
            stored == expected,
            f"{sink}: rows in no file {_some(expected - stored)}, in too many {_some(stored - expected)}",
        )
        figures[f"{sink} files"] = files


def _stored(folder: Path) -> tuple[Counter[int], int]:
    files = sorted(folder.rglob("*.parquet"))
    return Counter(number for file in files for number in pq.read_table(file).column("id").to_pylist()), len(files)


def _accounts(scene: Scene, topics: Topics, hold: Hold, figures: dict[str, Any]) -> None:
    truth = dict(scene.database.rows("SELECT id, v FROM accounts"))
    copy: dict[int, int] = {}

    def same() -> bool:
        copy.clear()
        copy.update(scene.database.rows("SELECT id, v FROM accounts_copy"))
        return copy == truth

    hold(
        _patiently(same), f"changes: {_differing(truth, copy)} rows of the copy differ: {truth.items() ^ copy.items()}"
    )
    rows = topics.rows("c.public.accounts", topics.avro)
    last: dict[bytes | None, tuple[int, int]] = {}
    again = early = 0
    seen: set[tuple[int, int]] = set()
    for row in rows:
        if row.value is None:
            continue
        # Within a key the first of each change come in the order of the database's log.
        position = (row.value["source"]["lsn"] or 0, row.value["ts_ms"] and 0)
        if (row.key, position[0]) in seen:  # type: ignore[comparison-overlap]
            again += 1
            continue
        seen.add((row.key, position[0]))  # type: ignore[arg-type]
        early += position < last.get(row.key, (0, 0))
        last[row.key] = max(position, last.get(row.key, (0, 0)))
    hold(not early, f"changes: {early} are out of order within their key")
    figures |= {"changes": len(seen), "changes written again": again}


def _differing(one: Mapping[int, int], other: Mapping[int, int]) -> int:
    return len({key for key, _ in one.items() ^ other.items()})


def _registrations(scene: Scene, load: Load, hold: Hold, figures: dict[str, Any]) -> None:
    for url, versions in registries_settled(scene.registries).items():
        known = {version["schema"]: (version["subject"], version["id"]) for version in versions}
        lost = [schema for schema, position in load.registered.items() if known.get(schema) != position]
        hold(not lost, f"{url} lacks {len(lost)} of {len(load.registered)} registrations: {lost[:2]}")
    ids = [number for _, number in load.registered.values()]
    hold(len(ids) == len(set(ids)), "an id was given twice")
    figures["registrations"] = len(ids)


def _events(load: Load, hold: Hold, figures: dict[str, Any]) -> None:
    expected = {number for kind in load.events.acknowledged.values() for number in kind}

    def complete() -> bool:
        got = ({number for _, number in received} for received in (load.events.pubsub, load.events.cometd))
        return all(expected <= numbers for numbers in got)

    hold(_patiently(complete), "acknowledged events are missing at a subscriber")
    load.events.stop_listening()
    try:
        figures["events twice without an id"] = judge_events(load.events)
    except AssertionError as error:
        hold(condition=False, what=f"events: {str(error)[:600]}")
    figures["events"] = len(expected)


def _some(counts: Counter[int]) -> str:
    return f"{counts.total()} {sorted(counts)[:5]}"
