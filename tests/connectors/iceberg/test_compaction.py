"""Small files become large ones while the sink goes on, and no row is lost or there twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation

from connectors.iceberg.compaction import compact
from tests.connectors.iceberg.records import batch, bench, commit, partition, sink
from tests.connectors.iceberg.test_changes import UPSERT, changes, row
from tests.servers.process import wait_until
from tests.support.iceberg import iceberg_rows, iceberg_table, local_catalog


def loaded(folder: Path) -> Table:
    return iceberg_table(local_catalog(folder), "shop.orders")


def sizes(folder: Path) -> list[int]:
    return [task.file.file_size_in_bytes for task in loaded(folder).scan().plan_files()]


def ids(folder: Path) -> list[int]:
    return sorted(iceberg_rows(local_catalog(folder), "shop.orders", "id").column("id").to_pylist())


class Meanwhile(threading.Event):
    """Does something while the first file is read."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._acts = [act]

    def is_set(self) -> bool:
        if self._acts:
            self._acts.pop()()
        return super().is_set()


def test_a_sink_goes_on_while_its_files_are_put_together(tmp_path: Path) -> None:
    made = bench(tmp_path, tables__default_partition_by="bucket(id, 2)")
    made.properties |= {"tidegate.compact.interval.ms": "1", "tidegate.compact.min.input.files": "2"}
    with made.sink(partition()) as running:
        for start in range(0, 150, 10):
            commit(running, batch(start, start + 10))

        def is_compact() -> bool:
            running.task.pre_commit({})
            return len(sizes(tmp_path)) == 2

        wait_until(is_compact, "one file a partition", 60)
    table = loaded(tmp_path)
    assert ids(tmp_path) == list(range(150))
    operations = [each.summary.operation for each in table.snapshots() if each.summary is not None]
    assert operations.count(Operation.APPEND) == 15
    assert set(operations) == {Operation.APPEND, Operation.REPLACE}, "whoever follows the table sees no row again"
    table.maintenance.expire_snapshots().older_than(datetime.now(UTC)).commit()
    assert len(table.snapshots()) == 1
    with sink(tmp_path) as running:
        assert running.context.rewinds == {partition(): 149}, "the newest snapshot has the offsets too"


def test_files_are_put_together_on_top_of_what_was_appended_meanwhile(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        for start in range(0, 50, 10):
            commit(running, batch(start, start + 10))
        compact(loaded(tmp_path), "main", {}, 5, Meanwhile(lambda: commit(running, batch(50, 60))))
        assert len(sizes(tmp_path)) == 2
        commit(running, batch(60, 70))
    assert ids(tmp_path) == list(range(70))


@pytest.mark.parametrize("values", [[(1, row(1, 5))], [(1, None), (3, None)]])
def test_what_is_changed_meanwhile_stays_changed(tmp_path: Path, values: list[tuple[int, None]]) -> None:
    with sink(tmp_path, **UPSERT) as running:
        for key in range(5):
            commit(running, changes((key, row(key)), first=key))
        meanwhile = Meanwhile(lambda: commit(running, changes(*values, first=5)))
        compact(loaded(tmp_path), "main", {}, 5, meanwhile)
        expected = dict.fromkeys(range(5), 0) | {key: made and made["n"] for key, made in values}
        expected = {key: n for key, n in expected.items() if n is not None}
        for _ in range(2):  # what was left alone is put together the next time
            found = iceberg_rows(local_catalog(tmp_path), "shop.orders").to_pylist()
            assert sorted((each["id"], each["n"]) for each in found) == sorted(expected.items())
            compact(loaded(tmp_path), "main", {}, 2, threading.Event())
    assert len(sizes(tmp_path)) == 1
    known = set(loaded(tmp_path).inspect.all_data_files().column("file_path").to_pylist())
    assert {f"file://{path}" for path in (tmp_path / "warehouse").rglob("*.parquet")} <= known, "no orphans are left"


def test_files_are_as_large_as_the_table_wants_them(tmp_path: Path) -> None:
    """Few small files stay, and so do those that are not small."""
    with sink(tmp_path) as running:
        for start in range(0, 40, 10):
            commit(running, batch(start, start + 10))
    compact(loaded(tmp_path), "main", {}, 5, threading.Event())
    small = sizes(tmp_path)
    assert len(small) == 4
    compact(loaded(tmp_path), "main", {"write.target-file-size-bytes": str(min(small))}, 5, threading.Event())
    assert sizes(tmp_path) == small
    stopped = threading.Event()
    stopped.set()
    compact(loaded(tmp_path), "main", {}, 4, stopped)
    assert sizes(tmp_path) == small, "nothing is committed by half"
    compact(loaded(tmp_path), "main", {}, 4, threading.Event())
    assert len(sizes(tmp_path)) == 1
    assert ids(tmp_path) == list(range(40))
