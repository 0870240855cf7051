"""Row sources: dicts, DataFrames and Arrow tables become batches with a growing schema and stored offsets."""

from __future__ import annotations

import datetime as dt
import decimal
import threading
import time
from concurrent.futures import Future

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from connect.api import (
    ConnectError,
    DataError,
    Record,
    RecordBatch,
    RetriableConnectError,
    Rows,
    RowsConfig,
    RowsTask,
    Schema,
    SchemaType,
    SourceConnector,
)
from connect.task.sources.offsets import OffsetKeys, SubmittedBatches
from connect.testing import Bench, SourceSuite
from connect.testing.sources import check_batch


def position(batch):
    """The source offset without the schemas that the runtime keeps there."""
    return {name: value for name, value in batch.source_offset.items() if name != "tidegate.schemas"}


class CountTask(RowsTask[RowsConfig]):
    """A hundred numbers, one a row, from the one after the position."""

    key_columns, offset_column = ("n",), "n"

    def rows(self, offset):
        for n in range(offset["n"] + 1 if offset else 0, 100):
            yield {"n": n, "half": n / 2, "name": f"number {n}" if n % 2 else None}


class CountSource(SourceConnector[RowsConfig]):
    config_class, task_class = RowsConfig, CountTask


class TestCountSource(SourceSuite):
    connector_class = CountSource

    @pytest.fixture
    def properties(self):
        return {"topic": "numbers", "poll.interval.ms": "20", "batch.max.rows": "7"}

    @pytest.fixture
    def expected_rows(self):
        return 100


def task_of(*items, **attributes):
    """A source whose rows are these, as a task on a bench."""
    task = type("GivenTask", (RowsTask,), {"rows": lambda self, offset: iter(items), **attributes})
    source = type("GivenSource", (SourceConnector,), {"config_class": RowsConfig, "task_class": task})
    return Bench(source, {"topic": "given", "poll.interval.ms": "1"}).task()


def delivered(*items, **attributes):
    """The batches of so many polls that bring some: a generator may be slow on a machine under load."""
    records = []
    with task_of(*items, **attributes) as running:
        for _ in items:
            while not (batches := running.task.poll()):
                pass
            records += batches
    return records


FRAME = {"id": [1, 2], "name": ["a", None], "price": [1.5, None]}
SAME = [{"id": 1, "name": "a", "price": 1.5}, {"id": 2, "name": None, "price": None}]


@pytest.mark.parametrize(
    "data",
    [SAME, pd.DataFrame(FRAME), pl.DataFrame(FRAME), pa.table(FRAME), pa.RecordBatch.from_pydict(FRAME)],
    ids=["dicts", "pandas", "polars", "arrow table", "arrow batch"],
)
def test_rows_of_any_form_are_the_same_records(data):
    (batch,) = delivered(data)
    assert batch.values.to_pylist() == SAME
    assert [(f.name, f.schema.type, f.schema.optional) for f in batch.value_schema.fields] == [
        ("id", SchemaType.INT64, True),
        ("name", SchemaType.STRING, True),
        ("price", SchemaType.FLOAT64, True),
    ]


def test_dicts_one_by_one_are_gathered():
    (batch,) = delivered(*SAME)[:1]
    assert batch.values.to_pylist() == SAME


def test_the_schema_grows_and_stays_grown():
    first, second, third = delivered([{"id": 1}], [{"id": 2.5, "name": "b"}], [{"name": "c"}])
    assert first.values.to_pylist() == [{"id": 1}]
    assert second.values.to_pylist() == [{"id": 2.5, "name": "b"}]
    assert third.values.to_pylist() == [{"id": None, "name": "c"}]
    assert third.value_schema == second.value_schema


def test_a_column_of_nulls_waits_for_its_first_value():
    first, second = delivered([{"id": 1, "note": None}], [{"id": 2, "note": dt.date(2026, 1, 2)}])
    assert first.value_schema.field_names == ("id",)
    assert second.values.to_pylist() == [{"id": 2, "note": dt.date(2026, 1, 2)}]


def test_exact_numbers_and_times_stay_so():
    at = dt.datetime(2026, 1, 2, 3, 4, 5, 678900)
    (batch,) = delivered([{"d": decimal.Decimal("12.50"), "at": at, "raw": b"\0", "tags": ["x"], "in": {"y": 1}}])
    (row,) = batch.values.to_pylist()
    assert row == {
        "d": decimal.Decimal("12.50"),
        "at": at.replace(microsecond=678000, tzinfo=dt.UTC),
        "raw": b"\0",
        "tags": ["x"],
        "in": {"y": 1},
    }


def test_a_type_that_cannot_widen_is_told():
    with pytest.raises(ConnectError, match="the rows for given have changed in type"):
        delivered([{"id": 1}], [{"id": "one"}])


def test_a_value_without_rows_is_refused():
    with pytest.raises(ConnectError, match="cannot be read from a int"):
        delivered(7)
    with pytest.raises(ConnectError, match="have to be dicts by column name, not int"):
        delivered([7])


def test_a_missing_key_column_is_named():
    with pytest.raises(ConnectError, match="needs the column 'key'; its rows have: id"):
        delivered([{"id": 1}], key_columns=("key",))


def test_several_key_columns_are_a_struct():
    (batch,) = delivered([{"a": 1, "b": "x", "c": 2}], key_columns=("a", "b"))
    assert batch.keys.to_pylist() == [{"a": 1, "b": "x"}]
    assert batch.key_schema.name == "given.Key"


def test_a_schema_that_is_given_is_kept():
    schema = Schema.struct({"id": Schema(SchemaType.INT32), "name": Schema(SchemaType.STRING, optional=True)})
    (batch,) = delivered([{"id": 1, "more": True}], schema=schema)
    assert batch.value_schema == schema and batch.values.to_pylist() == [{"id": 1, "name": None}]


def test_rows_may_say_their_position_and_topic():
    with task_of(Rows([{"id": 1}], offset={"page": 4}, topic="other")) as running:
        (batch,) = running.task.poll()
    assert (batch.topic, batch.source_partition) == ("other", {"connector": "bench"})
    assert position(batch) == {"page": 4}


def test_a_large_frame_is_cut_into_batches_below_the_limit():
    frame = pa.table({"text": ["x" * 1000] * 20_000})
    batches = delivered(frame)
    assert sum(map(len, batches)) == 20_000
    assert max(batch.nbytes for batch in batches) < 8 * 1024 * 1024


def test_each_batch_of_a_large_frame_holds_the_position_back():
    """The first pieces have no position; a refused row in one of them must not be passed by the last one's."""
    frame = Rows(pa.table({"text": ["x" * 1000] * 20_000}), offset={"page": 1})
    batches = delivered(frame)
    submitted = SubmittedBatches(OffsetKeys("c", {}))
    refused = Future()
    refused.set_exception(OSError("refused"))
    for batch, futures in zip(batches, [[refused], *([] for _ in batches[1:])], strict=True):
        check_batch(batch)
        submitted.add(batch.source_partition, batch.source_offset, futures)
    assert len(batches) > 1 and position(batches[-1]) == {"page": 1}
    assert submitted.take_safe() == []


def test_topics_have_a_schema_each():
    batches = (Rows([{"id": 1}], topic="a"), Rows([{"id": "x"}], topic="b"), Rows([{"id": 2}], topic="a"))
    first, second, third = delivered(*batches)
    assert [batch.values.to_pylist() for batch in (first, second, third)] == [[{"id": 1}], [{"id": "x"}], [{"id": 2}]]
    assert third.value_schema == first.value_schema != second.value_schema


class Unreadable:
    """A frame whose first look raises an error."""

    def __init__(self, error):
        self._error = error

    def __arrow_c_stream__(self, requested_schema=None):
        raise self._error


def test_rows_of_a_poll_that_raises_are_delivered_by_the_next():
    troubles = [RetriableConnectError("away")]

    def rows(self, offset):
        for n in range(offset["n"] + 1 if offset else 0, 3):
            yield {"n": n}
            if n == 1 and troubles:
                yield Rows(Unreadable(troubles.pop()))

    seen = []
    with task_of(rows=rows, offset_column="n") as running:
        with pytest.raises(RetriableConnectError, match="away"):
            while True:
                seen += running.task.poll()
        while sum(map(len, seen)) < 3:
            seen += running.task.poll()
    assert [row["n"] for batch in seen for row in batch.values.to_pylist()] == [0, 1, 2]


def test_rows_go_out_while_their_generator_waits():
    """A burst, then silence: the next row, which the old form waited for, never comes."""

    def rows(self, offset):
        yield from ({"n": n} for n in range(3))
        self.context.stopping.wait()

    with task_of(rows=rows) as running:
        assert [row["n"] for batch in running.poll_rows(3) for row in batch.values.to_pylist()] == [0, 1, 2]


def test_rows_before_an_error_are_delivered():
    def rows(self, offset):
        yield {"n": 0}
        raise ConnectError("the feed is gone")

    with task_of(rows=rows, offset_column="n") as running:
        (batch,) = running.poll_rows(1)
        assert position(batch) == {"n": 0}
        with pytest.raises(ConnectError, match="the feed is gone"):
            running.task.poll()


def test_a_generator_ends_before_what_start_opened_is_released():
    ends = []

    class OpeningTask(RowsTask[RowsConfig]):
        def start(self):
            super().start()
            self.resources.callback(ends.append, "client")

        def rows(self, offset):
            try:
                while not self.context.stopping.wait(0.001):
                    yield {"n": 1}
            finally:
                ends.append("rows")

    class OpeningSource(SourceConnector[RowsConfig]):
        config_class, task_class = RowsConfig, OpeningTask

    with Bench(OpeningSource, {"topic": "t", "batch.max.rows": "5"}).task() as running:
        running.poll_rows(20)
    assert ends == ["rows", "client"]


def test_rows_are_asked_for_again_when_those_before_have_ended():
    """A poll that fails gives a generator up that may be in the middle of a call: two never run at once."""
    running_now, most, released = [], [], threading.Event()

    def rows(self, offset):
        running_now.append(1)
        most.append(len(running_now))
        try:
            yield from [{"n": 1}, {"n": "x"}] if len(most) == 1 else [{"n": 2}]
            while not released.is_set() and not self.context.stopping.wait(0.01):
                pass
        finally:
            running_now.pop()

    with task_of(rows=rows) as running:
        with pytest.raises(ConnectError, match="cannot be put into columns|have changed in type"):
            while True:
                running.task.poll()
        assert running.task.poll() == [] and len(most) == 1
        released.set()
        (batch,) = running.poll_rows(1)
    assert batch.values.to_pylist() == [{"n": 2}] and set(most) == {1}


def test_a_generator_is_no_further_ahead_than_a_batch():
    asked = []

    def rows(self, offset):
        for n in range(1000):
            asked.append(n)
            yield {"n": n}

    task = type("EagerTask", (RowsTask,), {"rows": rows})
    source = type("EagerSource", (SourceConnector,), {"config_class": RowsConfig, "task_class": task})
    with Bench(source, {"topic": "t", "batch.max.rows": "10"}).task() as running:
        running.poll_rows(10)
        time.sleep(0.05)
        assert len(asked) <= 21


def test_a_batch_of_two_topics_is_refused():
    records = [Record("a", 1, Schema(SchemaType.INT64)), Record("b", 2, Schema(SchemaType.INT64))]
    with pytest.raises(DataError, match="record 1 is for topic b, the batch for a"):
        RecordBatch.from_records(records)


class PricesTask(RowsTask[RowsConfig]):
    """A price and later another one, in the type in which each comes."""

    offset_column = "n"
    prices = (1.5, 2, None, 3)

    def rows(self, offset):
        assert not offset or list(offset) == ["n"]
        n = offset["n"] + 1 if offset else 0
        if n < len(self.prices):
            yield {"n": n, "price": self.prices[n], **({"note": "last"} if n == 3 else {})}


class PricesSource(SourceConnector[RowsConfig]):
    config_class, task_class = RowsConfig, PricesTask


def test_rows_after_a_restart_go_on_in_the_types_of_those_before_it():
    bench = Bench(PricesSource, {"topic": "prices", "poll.interval.ms": "0"})
    seen = []
    for _ in PricesTask.prices:
        with bench.task() as running:
            seen += running.poll_rows(1)
            bench.commit(seen)
    types = [[(field.name, field.schema.type) for field in batch.value_schema.fields] for batch in seen]
    known = [("n", SchemaType.INT64), ("price", SchemaType.FLOAT64)]
    assert types == [known, known, known, [*known, ("note", SchemaType.STRING)]]
    assert [row["price"] for batch in seen for row in batch.values.to_pylist()] == [1.5, 2.0, None, 3.0]
    for batch in seen:
        check_batch(batch)


def test_schemas_of_several_topics_are_kept_and_an_unknown_position_has_none():
    class TwoTask(RowsTask[RowsConfig]):
        def rows(self, offset):
            n = (offset or {"n": 0})["n"]
            for topic in ("a", "b"):
                yield Rows([{topic: 0.5 if n == 0 else 1}], offset={"n": n + 1}, topic=topic)

    class TwoSource(SourceConnector[RowsConfig]):
        config_class, task_class = RowsConfig, TwoTask

    bench = Bench(TwoSource, {"topic": "t", "poll.interval.ms": "0"})
    for _ in range(2):
        with bench.task() as running:
            seen = running.poll_rows(2)
            bench.commit(seen)
    assert [batch.value_schema.fields[0].schema.type for batch in seen] == [SchemaType.FLOAT64] * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '{"prices": 5}',
        '{"prices": {"type": "nothing"}}',
        '{"prices": {"type": "int64"}}',
        "[" * 100_000,
    ],
)
def test_schemas_that_somebody_broke_are_named(text):
    bench = Bench(PricesSource, {"topic": "prices", "poll.interval.ms": "0"})
    with bench.task() as running:
        (batch,) = running.poll_rows(1)
    batch.source_offset["tidegate.schemas"] = text
    bench.commit([batch])
    with pytest.raises(ConnectError, match="which are no schemas by topic"), bench.task():
        pass
