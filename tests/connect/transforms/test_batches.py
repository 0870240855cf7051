"""Transforming a batch gives the same result as transforming its records one by one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import DataError, Header, Origin, PluginType, RecordBatch, Schema, SchemaType
from connect.data.headers import column_of
from connect.data.java.date_format import date_format
from connect.plugins.registry import load_plugins
from connect.transforms.cast_columns import cast_column
from connect.transforms.cast_values import cast_value
from tests.support.schemas import values_of
from tidegate.kit.config import parse

PLUGINS = load_plugins(entry_points=False)
TYPES = {
    "i8": Schema(SchemaType.INT8, optional=True),
    "i64": Schema(SchemaType.INT64, optional=True),
    "f32": Schema(SchemaType.FLOAT32, optional=True),
    "f64": Schema(SchemaType.FLOAT64, optional=True),
    "flag": Schema(SchemaType.BOOLEAN, optional=True),
    "text": Schema(SchemaType.STRING, optional=True, default="none"),
    "raw": Schema(SchemaType.BYTES, optional=True),
    "price": Schema.decimal(2, 20, optional=True),
    "day": Schema.date(optional=True),
    "at": Schema.timestamp(optional=True),
}
ROW = Schema.struct(TYPES, name="s.Value", optional=True)
SOURCE = Schema.struct({"ts_ms": Schema(SchemaType.INT64), "table": Schema(SchemaType.STRING)})
ENVELOPE = Schema.struct(
    {"before": ROW, "after": ROW, "source": SOURCE, "op": Schema(SchemaType.STRING)}, name="s.Envelope"
)
KAFKA, DEBEZIUM = "org.apache.kafka.connect.transforms", "io.debezium.transforms"
STEPS = [
    (f"{KAFKA}.Cast$Value", {"spec": "i8:string,i64:int8,f32:int32,f64:string,flag:int8,at:int64,day:string,price:float64"}),
    (f"{KAFKA}.TimestampConverter$Value", {"field": "at", "target.type": "string", "format": "yyyy-MM-dd HH:mm:ss.SSS"}),
    (f"{KAFKA}.TimestampConverter$Value", {"field": "i64", "target.type": "Date", "unix.precision": "nanoseconds"}),
    (f"{KAFKA}.InsertField$Value", {"static.field": "s", "static.value": "v", "offset.field": "o"}),
    (f"{KAFKA}.ReplaceField$Value", {"exclude": "raw", "renames": "i8:small"}),
    (f"{KAFKA}.ExtractField$Value", {"field": "text"}),
    (f"{KAFKA}.HoistField$Value", {"field": "whole"}),
    (f"{KAFKA}.TimestampRouter", {}),
    (f"{KAFKA}.HeaderFrom$Value", {"fields": "i64,day", "headers": "a,b", "operation": "move"}),
    (f"{KAFKA}.MaskField$Value", {"fields": "text,i64", "replacement": "7"}),
]  # fmt: skip
MODES = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone")


def transformation(name, options):
    loaded = PLUGINS.find(name, PluginType.TRANSFORMATION).load()
    return loaded(parse(loaded.config_class, options))


def batch(values, schema):
    rows = len(values)
    return RecordBatch(
        "t",
        pa.array(values, schema.arrow_type),
        schema,
        timestamps_ms=pa.array([n * 50_000_000 for n in range(rows)], pa.int64()),
        headers=column_of([[Header("h", b"x")] if n % 2 else [] for n in range(rows)]),
        origin=Origin("t", 0),
        offsets=pa.array(range(rows), pa.int64()),
    )


def outcome(made, rows):
    """The records that come of a batch, or the reason why none do."""
    try:
        return [repr(record) for batch in made.apply(rows) for record in batch.records()]
    except DataError:
        return None


def alike(made, rows):
    whole, singles = outcome(made, rows), [outcome(made, rows.slice(n, 1)) for n in range(len(rows))]
    expected = None if None in singles else [record for single in singles for record in single]
    # A tombstone by itself has no schema to change.
    assert whole == expected or any("value=None" in record for record in whole or ())


@pytest.mark.parametrize(("name", "options"), STEPS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_kafkas_transformations_treat_a_batch_like_single_rows(name, options, data):
    row = ROW.as_optional(False)
    values = data.draw(st.lists(values_of(row), min_size=1, max_size=4))
    alike(transformation(name, options), batch(values, row))


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_debeziums_transformations_treat_a_batch_like_single_rows(mode, data):
    events = st.fixed_dictionaries(
        {
            "before": values_of(ROW),
            "after": values_of(ROW),
            "source": st.just({"ts_ms": 1, "table": "t"}),
            "op": st.sampled_from("cud"),
        }
    )
    values = data.draw(st.lists(st.none() | events, min_size=1, max_size=5))
    options = {"delete.tombstone.handling.mode": mode, "add.fields": "op,ts_ms:at_ms", "add.headers": "op,table"}
    alike(transformation(f"{DEBEZIUM}.ExtractNewRecordState", options), batch(values, ENVELOPE))


TARGETS = [
    kind for kind in SchemaType if kind.value[:3] in ("int", "flo", "boo", "str") and kind is not SchemaType.STRUCT
]


@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_casts_of_columns_are_casts_of_values(name, data):
    schema = TYPES[name]
    texts = st.sampled_from(["1", "-7", "+5", "300", "1.5", "true", "x", "", "1e3", "99999999999999999999"])
    drawn = texts if name == "text" else values_of(schema)
    values = data.draw(st.lists(st.none() | drawn, min_size=1, max_size=4))
    target = data.draw(st.sampled_from(TARGETS))
    try:
        expected = pa.array([cast_value(schema, value, target) for value in values], Schema(target).arrow_type)
    except DataError:
        expected = None
    try:
        made = cast_column(schema, pa.array(values, schema.arrow_type), target)
    except DataError:
        made = None
    assert (made is None) == (expected is None)
    assert made is None or repr(made.to_pylist()) == repr(expected.to_pylist())


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(-(10**14), 3 * 10**14), min_size=1, max_size=5),
    st.sampled_from(
        ["yyyy-MM-dd", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "dd MMM yyyy h:mm a", "yyyyMMddHHmmssSSS", "D yyyy"]
    ),
)
def test_dates_are_written_and_read_as_columns(times, pattern):
    form = date_format(pattern)
    texts = form.format_column(pa.array(times, pa.int64()))
    assert texts.to_pylist() == [form.format(ms) for ms in times]
    read, wrong = form.parse_column(texts)
    assert read.to_pylist() == [form.parse(text) for text in texts.to_pylist()] and not wrong


@settings(max_examples=80, deadline=None)
@given(st.text("yMdHhmsSaEGzZX'-:/ T", max_size=12), st.text(max_size=20))
def test_any_pattern_is_taken_or_refused(pattern, text):
    try:
        form = date_format(pattern)
    except ValueError:
        return
    form.format(1_709_201_472_123)
    form.parse(text)
