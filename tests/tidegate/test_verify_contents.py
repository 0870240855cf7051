"""The comparison of `tidegate verify sink`: states of rows column by column, and rows of every database and format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from connect.api import Origin, Record, RecordBatch, Schema, SchemaType, TargetRows
from connect.bench import Bench
from connectors.local.sink import LocalSinkConnector
from connectors.s3.sink import S3SinkConnector
from tests.connectors.jdbc.sink_databases import (
    KEY,
    PLACE,
    DuckDbDatabase,
    MariaDbDatabase,
    PostgresDatabase,
    SinkDatabase,
    SqliteDatabase,
    put,
)
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tidegate.verify.rows import RowStates
from tidegate.verify.states import States

keys, cells = st.integers(-3, 3), st.one_of(st.none(), st.integers(-2, 2), st.sampled_from(["", "a", "-1"]))
rows = st.dictionaries(keys, st.fixed_dictionaries({"x": cells, "y": cells}))


def columns(made: Iterable[tuple[int, Any]], *names: str) -> dict[str, list[Any]]:
    listed = list(made)
    return {"id": [key for key, _ in listed], **{name: [row[name] for _, row in listed] for name in names}}


HOSTILE_KEYS = (
    "[" * 2_000,
    "[" * 900 + "]" * 900,
    '{"id": 123456789012345678901234567890}',
    "9" * 4_400,
    '{"id": "\\ud800"}',
    '{"id": NaN}',
    '{"id": -Infinity}',
    "{}",
    "[]",
    "",
)


@settings(max_examples=40, deadline=None)
@given(texts=st.sets(st.one_of(st.text(), st.integers().map(str), st.sampled_from(HOSTILE_KEYS)), max_size=12))
@example(texts=set(HOSTILE_KEYS))
def test_any_key_is_in_a_range(texts: set[str]) -> None:
    made = [(text.encode("utf-8", "replace").decode(), b"x") for text in texts]
    with States() as states, States(("1", "b")) as limited:
        states.put(0, "t", made)
        limited.put(0, "t", made)
        assert sum(each.left for each in states.ranges(3)) == states.count(0)
        assert sum(each.differing for each in limited.ranges(3)) == limited.count(0) <= states.count(0)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    left=rows, steps=st.lists(st.tuples(st.sampled_from(["replace", "y only", "insert", "delete"]), rows), max_size=4)
)
def test_states_differ_where_dictionaries_do(left: dict[int, Any], steps: list[tuple[str, dict[int, Any]]]) -> None:
    model: dict[int, dict[str, Any]] = {}
    with RowStates() as states:
        states.append(0, "t", columns(left.items(), "x", "y"), ["id"])
        for action, changed in steps:
            made = columns(changed.items(), "x", "y")
            if action == "replace":
                states.replace(1, "t", made, ["id"])
                model |= changed
            elif action == "y only":
                states.replace(1, "t", columns(changed.items(), "y"), ["id"])
                model |= {key: model.get(key, {}) | {"y": row["y"]} for key, row in changed.items()}
            elif action == "insert":
                states.insert(1, "t", made, ["id"])
                model = changed | model
            else:
                states.delete(1, "t", {"id": made["id"]}, ["id"])
                model = {key: row for key, row in model.items() if key not in changed}
        told = {json.loads(each.key)["id"]: each for each in states.differences(100)}
        expected: dict[int, Any] = dict.fromkeys(left.keys() - model.keys(), "only left")
        expected |= dict.fromkeys(model.keys() - left.keys(), "only right")
        for key in left.keys() & model.keys():
            unlike = [
                name for name in ("x", "y") if name in model[key] and repr(model[key][name]) != repr(left[key][name])
            ]
            if unlike:
                expected[key] = tuple(unlike)
        assert {key: each.columns or each.kind for key, each in told.items()} == expected
        assert states.differing() == len(expected)
        counted = states.ranges(3)
        assert sum(each.differing for each in counted) == len(expected)
        assert sum(each.left for each in counted) == len(left)
        first = [each.first for each in counted]
        assert first == sorted(first), "numbers are sorted by value"
        states.touch("t", {"id": list(expected)[:1]}, ["id"])
        assert states.differing() == max(len(expected) - 1, 0)


@settings(max_examples=40, deadline=None)
@given(left=st.lists(st.tuples(keys, cells), max_size=8), right=st.lists(st.tuples(keys, cells), max_size=8))
def test_rows_without_a_key_are_counted(left: list[Any], right: list[Any]) -> None:
    with RowStates() as states:
        for side, made in ((0, left), (1, right)):
            for start in range(0, len(made), 3):
                some = made[start : start + 3]
                states.append(side, "t", {"id": [key for key, _ in some], "x": [cell for _, cell in some]})
        counts = [Counter(map(repr, made)) for made in (left, right)]
        assert states.differing() == sum(counts[0][row] != counts[1][row] for row in counts[0] | counts[1])
        by_key = [
            {key: sorted(repr(cell) for each, cell in made if each == key) for key, _ in made} for made in (left, right)
        ]
    with RowStates(("-1", "2")) as states:
        for side, made in ((0, left), (1, right)):
            for key, cell in made:
                states.append(side, "t", {"id": [key], "x": [cell]}, ["id"])
        within = {key for key in by_key[0].keys() | by_key[1].keys() if -1 <= key <= 2}
        assert states.differing() == sum(by_key[0].get(key) != by_key[1].get(key) for key in within)


def compared(states: RowStates, side: int, made: Iterable[TargetRows]) -> None:
    for each in made:
        getattr(states, each.action)(side, each.target, each.values(), each.keys)


@pytest.fixture(
    params=[
        "sqlite",
        "duckdb",
        pytest.param("postgres", marks=pytest.mark.servers),
        pytest.param("mariadb", marks=pytest.mark.servers),
    ]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SinkDatabase]:
    if request.param in ("sqlite", "duckdb"):
        yield SqliteDatabase(tmp_path) if request.param == "sqlite" else DuckDbDatabase(tmp_path)
        return
    made: dict[str, Callable[[Any], Any]] = {"postgres": PostgresDatabase, "mariadb": MariaDbDatabase}
    opened = made[request.param](request.getfixturevalue(f"{request.param}_server"))
    yield opened
    opened.close()


KINDS: dict[str, tuple[Schema, list[Any]]] = {
    "id": (Schema(SchemaType.INT64), [-(1 << 63), -1, 0, 7]),
    "i8": (Schema(SchemaType.INT8), [-128, 127, 0, None]),
    "i16": (Schema(SchemaType.INT16), [-1, 1, None, 2]),
    "i32": (Schema(SchemaType.INT32), [1 << 30, None, -5, 0]),
    "f32": (Schema(SchemaType.FLOAT32), [0.1, -0.0, None, 16777216.0]),
    "f64": (Schema(SchemaType.FLOAT64), [0.1, 1e300, None, -2.0]),
    "b": (Schema(SchemaType.BOOLEAN), [True, False, None, True]),
    "s": (Schema(SchemaType.STRING), ["", "it's ä\n", None, "%s ☃"]),
    "raw": (Schema(SchemaType.BYTES), [b"\x00\xff", b"", None, b"a"]),
    "d": (
        Schema.decimal(2, 9),
        [Decimal("1234567.89"), Decimal("-0.10"), None, Decimal("5.00")],
    ),
    "day": (Schema.date(), [date(2026, 2, 28), date(1970, 1, 1), None, date(1969, 1, 2)]),
    "t": (Schema.time(), [time(3, 4, 5), time(0), None, time(23, 59, 59)]),
    "at": (
        Schema.timestamp(),
        [
            datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
            None,
            datetime(1969, 5, 1, tzinfo=UTC),
        ],
    ),
}
ALL = Schema.struct({name: schema.as_optional(name != "id") for name, (schema, _) in KINDS.items()})


def records(without: frozenset[str] = frozenset()) -> RecordBatch:
    schema = Schema.struct({name: ALL.field(name).schema for name in KINDS if name not in without})
    made = [
        Record(
            "t",
            {name: values[n] for name, (_, values) in KINDS.items() if name not in without},
            schema,
            key={"id": KINDS["id"][1][n]},
            key_schema=KEY,
            offset=n,
            origin=Origin("t", 0),
            timestamp_ms=1,
        )
        for n in range(4)
    ]
    return RecordBatch.from_records(made)


def test_values_of_all_types_are_alike_in_every_database(database: SinkDatabase) -> None:
    batch = records()
    bench = database.bench(
        insert_mode="upsert",
        pk_mode="record_key",
        auto_create="true",
        delete_enabled="true",
        db_timezone="America/New_York",
        tidegate_offsets_table="offsets",
    )
    with bench.sink(PLACE) as running:
        put(running, [batch])
        assert running.context.errant == []
    with RowStates() as states, closing(bench.unstarted().contents({})) as contents:
        assert contents.positions([PLACE]) == {PLACE: 4}
        compared(states, 1, contents.expected(batch))
        compared(states, 0, contents.stored())
        assert contents.positions_after([PLACE]) == {PLACE: 4}
        assert (states.count(0), states.count(1)) == (4, 4)
        assert states.differences(10) == []
    database.run("UPDATE t SET s = 'other' WHERE id = 7")
    with RowStates() as states, closing(bench.unstarted().contents({})) as contents:
        compared(states, 1, contents.expected(batch))
        compared(states, 0, contents.stored())
        assert [(each.key, each.columns) for each in states.differences(10)] == [('{"id":7}', ("s",))]


@pytest.mark.parametrize("format_class", ["AvroFormat", "ParquetFormat", "JsonFormat"])
def test_values_of_all_types_are_alike_in_files(format_class: str, tmp_path: Path) -> None:
    batch = records()
    bench = Bench(
        LocalSinkConnector,
        {
            "topics": "t",
            "store.url": str(tmp_path),
            "format.class": f"x.{format_class}",
            "flush.size": "3",
            "store.kafka.keys": "true",
            "keys.format.class": f"x.{format_class}",
        },
    )
    with bench.sink(PLACE) as running:
        running.task.put([batch])
        running.task.finish()
    with RowStates() as states, closing(bench.unstarted().contents({})) as contents:
        contents.positions([PLACE])
        compared(states, 1, [*contents.expected(batch), *contents.rest()])
        compared(states, 0, contents.stored())
        assert (states.count(0), states.count(1), states.differing()) == (4, 4, 0)


@pytest.mark.servers
def test_objects_of_a_bucket_are_read_back(s3_server: S3Server) -> None:
    batch = records()
    with bucket_on(s3_server) as bucket:
        properties = {
            "topics": "t",
            "format.class": "x.ParquetFormat",
            "flush.size": "2",
            "topics.dir": "lake",
            **bucket.access,
        }
        bench = Bench(S3SinkConnector, properties)
        with bench.sink(PLACE) as running:
            running.task.put([batch])
            running.task.finish()
        bucket.put("lake/t/partition=0/_SUCCESS", b"of somebody else")
        with RowStates() as states, closing(bench.unstarted().contents({})) as contents:
            contents.positions([PLACE])
            compared(states, 1, [*contents.expected(batch), *contents.rest()])
            compared(states, 0, contents.stored())
            assert (states.count(0), states.count(1), states.differing()) == (4, 4, 0)


@pytest.mark.parametrize("depth", [100, 300, *range(800, 1_000, 40)])
def test_a_value_that_is_nested_deeper_than_the_stack_is_compared(depth: int, tmp_path: Path) -> None:
    texts = ['{"a":' * depth + str(number) + "}" * depth for number in range(2)]
    made = RecordBatch("t", pa.array(texts), None, origin=Origin("t", 0), offsets=pa.array([0, 1]))
    properties = {"topics": "t", "store.url": str(tmp_path), "format.class": "x.JsonFormat", "flush.size": "1"}
    bench = Bench(LocalSinkConnector, properties)
    with bench.sink(PLACE) as running:
        running.task.put([made])
    for keys in ((), ("a",)):
        with RowStates() as states, closing(bench.unstarted().contents({})) as contents:
            contents.positions([PLACE])
            for each in [*contents.expected(made.slice(0, 1)), *contents.rest()]:
                states.append(1, each.target, each.values(), keys if "a" in each.values() else ())
            for each in contents.stored():
                states.append(0, each.target, each.values(), keys if "a" in each.values() else ())
            assert (states.count(0), states.count(1), states.differing()) == (2, 1, 1)
