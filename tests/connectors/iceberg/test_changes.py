"""The Iceberg sink changes rows by key: the table is what the records say at their ends."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from connect.api import ConnectError, RecordBatch, Schema, SchemaType
from tests.connectors.iceberg.records import commit, partition, rows, sink
from tests.support.iceberg import duckdb_rows, iceberg_rows, iceberg_table, local_catalog

I64, TEXT = Schema(SchemaType.INT64), Schema(SchemaType.STRING)
KEY = Schema.struct({"id": I64})
ROW = Schema.struct({"id": I64, "name": TEXT.as_optional(), "n": I64.as_optional()})
ENVELOPE = Schema.struct(
    {
        "before": ROW.as_optional(),
        "after": ROW.as_optional(),
        "source": Schema.struct({"table": TEXT}),
        "op": TEXT,
    },
    name="shop.orders.Envelope",
)
UPSERT = {"tables__upsert_mode_enabled": "true"}


def changes(
    *values: tuple[int, dict[str, Any] | None], first: int = 0, schema: Schema = ROW, part: int = 0
) -> RecordBatch:
    """Records with keys; None deletes."""
    keys = [{"id": key} for key, _ in values]
    return rows([value for _, value in values], schema.as_optional(), first=first, part=part, keys=keys, key_schema=KEY)


def row(key: int, n: int = 0) -> dict[str, Any]:
    return {"id": key, "name": f"name {key}", "n": n}


def event(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any]:
    return {"before": before, "after": after, "source": {"table": "orders"}, "op": op}


def there(folder: Path) -> dict[int, Any]:
    found = iceberg_rows(local_catalog(folder), "shop.orders").to_pylist()
    assert len({each["id"] for each in found}) == len(found), "each key is there once"
    by_duckdb = duckdb_rows(local_catalog(folder), "shop.orders", "SELECT id, n FROM rows") if found else []
    assert sorted((each["id"], each["n"]) for each in by_duckdb) == sorted((each["id"], each["n"]) for each in found)
    return {each["id"]: each["n"] for each in found}


def test_the_last_change_of_a_key_is_what_stays(tmp_path: Path) -> None:
    with sink(tmp_path, **UPSERT) as running:
        batch = changes(
            (1, row(1, 1)), (2, row(2, 1)), (1, row(1, 2)), (2, None), (3, row(3, 1)), (3, None), (3, row(3, 2))
        )
        commit(running, batch)
        assert there(tmp_path) == {1: 2, 3: 2}
        commit(running, changes((1, None), (2, row(2, 5)), (4, None), (3, row(3, 3)), first=7))
        assert there(tmp_path) == {2: 5, 3: 3}
        assert running.context.errant == []
    table = iceberg_table(local_catalog(tmp_path), "shop.orders")
    assert len(table.snapshots()) == 2, "one snapshot has the deletes, the rows and the offsets"
    assert table.schema().identifier_field_names() == {"id"}, "the key's fields identify rows"


def test_debeziums_change_events_become_rows(tmp_path: Path) -> None:
    with sink(tmp_path, **UPSERT) as running:
        events = [
            (1, event("r", None, row(1, 1))),
            (2, event("c", None, row(2, 1))),
            (1, event("u", row(1, 1), row(1, 2))),
            (2, event("d", row(2, 1), None)),
            (2, None),
            (3, event("c", None, row(3, 1))),
        ]
        commit(running, changes(*events, schema=ENVELOPE))
        assert there(tmp_path) == {1: 2, 3: 1}
        commit(running, changes((3, event("d", row(3), None)), (9, event("m", None, None)), first=6, schema=ENVELOPE))
        assert there(tmp_path) == {1: 2}
        commit(running, changes((1, event("t", None, None)), first=8, schema=ENVELOPE))
        assert "a truncate event is not applied" in str(running.context.errant[0][1])
    fields = iceberg_table(local_catalog(tmp_path), "shop.orders").schema().fields
    assert [field.name for field in fields] == ["id", "name", "n"]


def test_events_without_keys_are_known_by_the_id_columns(tmp_path: Path) -> None:
    with sink(tmp_path, tables__default_id_columns="id", **UPSERT) as running:
        commit(running, rows([event("c", None, row(1, 1)), event("c", None, row(2, 1))], ENVELOPE))
        commit(running, rows([event("u", None, row(1, 2)), event("d", row(2), None)], ENVELOPE, first=2))
    assert there(tmp_path) == {1: 2}


@pytest.mark.parametrize("field", ["op", "_cdc.op"])
def test_a_field_says_what_a_record_does(tmp_path: Path, field: str) -> None:
    def marked(op: str, key: int, n: int) -> dict[str, Any]:
        return {**row(key, n), "op": op, "_cdc": {"op": op}}

    schema = Schema.struct(
        {"id": I64, "name": TEXT.as_optional(), "n": I64, "op": TEXT, "_cdc": Schema.struct({"op": TEXT})}
    )
    more = {"tables__cdc_field": field, "tables__default_id_columns": "id"}
    with sink(tmp_path, **more) as running:
        values = [
            marked("I", 1, 1),
            marked("INSERT", 2, 1),
            marked("r", 3, 1),
            marked("U", 1, 2),
            marked("delete", 2, 0),
        ]
        commit(running, rows(values, schema))
        commit(running, rows([marked("D", 3, 0), marked("c", 4, 1)], schema, first=5))
    assert there(tmp_path) == {1: 2, 4: 1}


def test_several_columns_identify_a_row(tmp_path: Path) -> None:
    schema = Schema.struct({"id": I64, "region": TEXT, "n": I64})
    with sink(
        tmp_path, tables__default_id_columns="id,region", tables__default_partition_by="region", **UPSERT
    ) as running:
        commit(running, rows([{"id": i, "region": r, "n": 0} for i in range(3) for r in "ab"], schema))
        commit(running, rows([{"id": 1, "region": "a", "n": 1}, {"id": 1, "region": "c", "n": 1}], schema, first=6))
    found = iceberg_rows(local_catalog(tmp_path), "shop.orders").to_pylist()
    assert sorted((each["id"], each["region"], each["n"]) for each in found) == sorted(
        [*((i, r, 0) for i in range(3) for r in "ab" if (i, r) != (1, "a")), (1, "a", 1), (1, "c", 1)]
    )


def files(table: Table) -> set[str]:
    return {task.file.file_path for task in table.scan().plan_files()}


def test_only_files_that_have_the_keys_are_written_anew(tmp_path: Path) -> None:
    with sink(tmp_path, **UPSERT) as running:
        for start in range(0, 40, 10):
            commit(running, changes(*((key, row(key)) for key in range(start, start + 10)), first=start))
        before = files(iceberg_table(local_catalog(tmp_path), "shop.orders"))
        commit(running, changes((12, row(12, 1)), (13, None), (100, None), first=40))
    after = files(iceberg_table(local_catalog(tmp_path), "shop.orders"))
    assert len(before) == 4 and len(before & after) == 3 and len(after) == 5
    assert there(tmp_path) == {key: int(key == 12) for key in range(40) if key != 13}


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_by_two_tasks_come_to_the_same_rows(tmp_path: Path, seed: int) -> None:
    """The tasks' commits meet, and a task is replaced in the middle."""
    chance = random.Random(seed)
    expected: dict[int, int] = {}
    offsets = [0, 0]

    def some(part: int) -> RecordBatch:
        made = []
        for _ in range(chance.randint(1, 15)):
            key = chance.randrange(20) * 2 + part
            if chance.random() < 0.3:
                expected.pop(key, None)
                made.append((key, None))
            else:
                expected[key] = chance.randrange(1000)
                made.append((key, row(key, expected[key])))
        offsets[part] += len(made)
        return changes(*made, first=offsets[part] - len(made), part=part)

    for _ in range(3):
        with sink(tmp_path, 0, **UPSERT) as first, sink(tmp_path, 1, **UPSERT) as second:
            for _ in range(4):
                first.task.put([some(0)])
                second.task.put([some(1)])
            first.task.flush()
            second.task.flush()
    assert there(tmp_path) == expected


def test_an_old_task_does_not_undo_the_changes_of_a_new_one(tmp_path: Path) -> None:
    with sink(tmp_path, control__commit__interval_ms="3600000", **UPSERT) as old:
        old.task.put([changes((1, row(1, 1)))])
        with sink(tmp_path, **UPSERT) as new:
            commit(new, changes((1, row(1, 1)), (1, row(1, 2))))
        old.task.flush()
        assert old.context.rewinds == {partition(): 2}
    assert there(tmp_path) == {1: 2}


def test_the_schema_follows_changes_too(tmp_path: Path) -> None:
    grown = Schema.struct({"id": I64, "name": TEXT.as_optional(), "n": I64.as_optional(), "b": TEXT.as_optional()})
    more = {"tables__evolve_schema_enabled": "true", "control__commit__interval_ms": "3600000", **UPSERT}
    with sink(tmp_path, **more) as running:
        running.task.put([changes((1, row(1, 1)), (2, row(2, 1)))])
        running.task.put([changes((1, {**row(1, 2), "b": "b"}), (3, None), first=2, schema=grown)])
        running.task.put([changes((4, row(4, 1)), first=4)])
        running.task.flush()
        assert running.context.errant == []
    found = {each["id"]: each for each in iceberg_rows(local_catalog(tmp_path), "shop.orders").to_pylist()}
    assert found == {1: {**row(1, 2), "b": "b"}, 2: {**row(2, 1), "b": None}, 4: {**row(4, 1), "b": None}}
    with sink(tmp_path, **more) as running:
        running.task.put([changes((2, None), first=5, schema=grown)])
        running.task.flush()
    assert there(tmp_path) == {1: 2, 4: 1}


def test_records_without_their_id_are_reported(tmp_path: Path) -> None:
    schema = Schema.struct({"id": I64.as_optional(), "n": I64})
    with sink(tmp_path, tables__default_id_columns="id", **UPSERT) as running:
        commit(running, rows([{"id": None, "n": 1}, {"id": 2, "n": 1}], schema))
        commit(running, rows([None, {"id": 3, "n": 1}], schema.as_optional(), first=2))
        errors = [(record.offset, str(error)) for record, error in running.context.errant]
    assert [offset for offset, _ in errors] == [0, 2]
    assert "no value for id" in errors[0][1] and "a delete has no value for id column id" in errors[1][1]
    assert there(tmp_path) == {2: 1, 3: 1}


def test_rows_without_any_key_are_an_error_that_says_what_to_set(tmp_path: Path) -> None:
    with (
        sink(tmp_path, **UPSERT) as running,
        pytest.raises(ConnectError, match=r"iceberg.table.shop.orders.id-columns"),
    ):
        running.task.put([rows([row(1)], ROW)])


def test_without_a_mode_tombstones_are_skipped_and_envelopes_are_rows(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        assert commit(running, changes((1, event("c", None, row(1, 1))), (1, None), schema=ENVELOPE)) == {
            partition(): 2
        }
    (found,) = iceberg_rows(local_catalog(tmp_path), "shop.orders").to_pylist()
    assert found == event("c", None, row(1, 1))


def test_deletes_of_a_table_that_is_not_there_have_nothing_to_do(tmp_path: Path) -> None:
    with sink(tmp_path, **UPSERT) as running:
        batch = rows([None, None], None, keys=[{"id": 1}, {"id": 2}], key_schema=KEY)
        assert commit(running, batch) == {partition(): 2}
        assert running.context.errant == []
