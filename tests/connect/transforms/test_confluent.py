from __future__ import annotations

import pyarrow as pa
import pytest

from connect.api import DataError, Header, PluginType, Record, RecordBatch, Schema, SchemaType
from connect.plugins.registry import load_plugins
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

PLUGINS = load_plugins(entry_points=False)
PLACE = Schema.struct({"city": Schema(SchemaType.STRING, optional=True)})
ROW = Schema.struct({"to": Schema(SchemaType.STRING, optional=True), "place": PLACE})


def make(name, **options):
    plugin = PLUGINS.find(f"io.confluent.connect.transforms.{name}", PluginType.TRANSFORMATION)
    loaded = plugin.load()
    return loaded(parse(loaded.config_class, {key.replace("__", "."): value for key, value in options.items()}))


def batch(*values, schema=ROW, **more):
    return RecordBatch.from_records(
        [Record("orders", value, schema, offset=n, **more) for n, value in enumerate(values)]
    )


A, B = {"to": "a", "place": {"city": "Bern"}}, {"to": None, "place": {"city": "Ulm"}}


def test_a_field_becomes_the_topic():
    assert [(each.topic, len(each)) for each in make("ExtractTopic$Value", field="to").apply(batch(A, A))] == [("a", 2)]
    skipping = make("ExtractTopic$Value", field="to", skip__missing__or__null="true")
    assert [each.topic for each in skipping.apply(batch(A, B, A))] == ["a", "orders", "a"]
    with pytest.raises(DataError, match="names no topic") as caught:
        make("ExtractTopic$Value", field="to").apply(batch(A, B))
    assert caught.value.rows == (1,)
    for path in ("$.place.city", "$['place']['city']"):
        nested = make("ExtractTopic$Value", field=path, field__format="JSON_PATH")
        assert [each.topic for each in nested.apply(batch(A, B))] == ["Bern", "Ulm"]


def test_a_header_the_key_and_data_without_schema_name_topics():
    headed = batch(A, headers=(Header("h", b"there"),))
    assert make("ExtractTopic$Header", field="h").apply(headed)[0].topic == "there"
    keyed = batch(A, key="k", key_schema=Schema(SchemaType.STRING))
    assert make("ExtractTopic$Key").apply(keyed)[0].topic == "k"
    plain = RecordBatch("orders", pa.array(['{"to":"x"}', '"y"']), None)
    with pytest.raises(DataError):
        make("ExtractTopic$Value", field="to").apply(plain)
    assert [each.topic for each in make("ExtractTopic$Value", field="to").apply(plain.slice(0, 1))] == ["x"]


def test_a_time_in_the_message_becomes_part_of_the_topic():
    router = make("MessageTimestampRouter", topic__format="foo-${topic}-${timestamp}", message__timestamp__format="yyyy-MM-dd",
                  topic__timestamp__format="yyyy.MM.dd", message__timestamp__keys="timestamp,time,ts")  # fmt: skip
    plain = RecordBatch("bar", pa.array(['{"time":"2019-08-06"}', '{"ts":1709201472123}']), None)
    assert [batch.topic for batch in router.apply(plain)] == ["foo-bar-2019.08.06", "foo-bar-2024.02.29"]
    with pytest.raises(DataError, match="no time") as caught:
        router.apply(RecordBatch("bar", pa.array(['{"time":"2019-08-06"}', '{"time":"x"}']), None))
    assert caught.value.rows == (1,)


def test_tombstones_are_dropped_or_refused():
    rows = batch(A, None)
    assert [len(each) for each in make("TombstoneHandler").apply(rows)] == [1]
    assert [len(each) for each in make("TombstoneHandler", behavior="ignore").apply(rows)] == [2]
    with pytest.raises(DataError) as caught:
        make("TombstoneHandler", behavior="fail").apply(rows)
    assert caught.value.rows == (1,)


def test_drop_leaves_nothing_of_a_side():
    rows = batch(A, key="k", key_schema=Schema(SchemaType.STRING))
    (made,) = make("Drop$Key").apply(rows)
    assert made.keys is None and made.key_schema is None
    (made,) = make("Drop$Value", schema__behavior="force_optional").apply(rows)
    assert made.values.null_count == 1 and made.value_schema == ROW.as_optional()
    with pytest.raises(DataError, match="not optional"):
        make("Drop$Value", schema__behavior="validate").apply(rows)


def cities(**options):
    rows = batch(A, B, {"to": "a", "place": {"city": None}})
    (made,) = make("Filter$Value", **options).apply(rows)
    return [value["place"]["city"] for value in made.values.to_pylist()]


@pytest.mark.parametrize(
    "condition, kept",
    [
        ("$[?(@.to == 'a')]", ["Bern", None]),
        ("$.[?(@.to)]", ["Bern", "Ulm", None]),  # null is there, as in Jayway's
        ("$[?(@.to == 'a' && @.place.city =~ /B.*/)]", ["Bern"]),
        ("$.place[?(@.city == 'Bern' || @.city == \"Ulm\")]", ["Bern", "Ulm"]),
        ("$[?(@.nothing > 5)]", []),
        ("$[?(@.place.city in ['Ulm'])]", ["Ulm"]),
    ],
)
def test_a_path_lets_records_through(condition, kept):
    assert cities(filter__condition=condition, filter__type="include") == kept
    every = ["Bern", "Ulm", None]
    assert cities(filter__condition=condition, filter__type="exclude") == [city for city in every if city not in kept]


def test_a_path_without_a_match_counts_as_missing():
    path = {"filter__condition": "$.place.city", "filter__type": "include"}
    assert cities(**path, missing__or__null__behavior="exclude") == ["Bern", "Ulm"]
    assert cities(**path, missing__or__null__behavior="include") == ["Bern", "Ulm", None]
    with pytest.raises(DataError, match="is null or has no") as caught:
        cities(**path)
    assert caught.value.rows == (2,)
    plain = RecordBatch("orders", pa.array(['{"n":[{"x":1},{"x":9}]}', None]), None)
    options = {
        "filter__condition": "$.n[?(@.x > 5)]",
        "filter__type": "include",
        "missing__or__null__behavior": "exclude",
    }
    assert [len(batch) for batch in make("Filter$Value", **options).apply(plain)] == [1]
    assert [len(batch) for batch in make("Filter$Key", **options).apply(plain)] == [0]


@pytest.mark.parametrize("condition", ["$[?(", "nonsense[", "$[?(@.a ==)]", "$[?(@.a =~ /(/)]", "$[?(@.a nin [1])]"])
def test_a_path_that_is_none_is_refused(condition):
    with pytest.raises(ConfigError, match="is not a JSONPath"):
        make("Filter$Value", filter__condition=condition, filter__type="include")
