from __future__ import annotations

import pyarrow as pa
import pytest

from connect.api import DataError, Header, Origin, PluginType, Record, RecordBatch, Schema, SchemaType
from connect.config.connector import SinkConfig
from connect.plugins.registry import load_plugins
from connect.transforms.chain import TransformChain
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

PLUGINS = load_plugins(entry_points=False)
APACHE = "org.apache.kafka.connect.transforms"
ROW = Schema.struct({"id": Schema(SchemaType.INT32), "name": Schema(SchemaType.STRING, optional=True)}, name="Row")


def batch(*values, topic="orders", schema=ROW, **more):
    records = [
        Record(topic, value, schema, offset=10 + n, timestamp_ms=1000 + n, **more) for n, value in enumerate(values)
    ]
    return RecordBatch.from_records(records, origin=Origin(topic, 3))


def chain(*steps, predicates=()):
    properties = {"name": "c", "connector.class": "x", "topics": "t"}
    properties["transforms"] = ",".join(f"t{n}" for n in range(len(steps)))
    for n, (kind, options) in enumerate(steps):
        properties[f"transforms.t{n}.type"] = f"{APACHE}.{kind}"
        properties.update({f"transforms.t{n}.{name}": value for name, value in options.items()})
    properties["predicates"] = ",".join(alias for alias, _, _ in predicates)
    for alias, kind, options in predicates:
        properties[f"predicates.{alias}.type"] = f"{APACHE}.predicates.{kind}"
        properties.update({f"predicates.{alias}.{name}": value for name, value in options.items()})
    return TransformChain.configured(PLUGINS, parse(SinkConfig, properties), properties)


def apply(made, rows):
    return made.apply(rows, lambda stage, component, batch, operation: operation(batch))


def values(batches):
    return [record.value for batch in batches for record in batch.records()]


ONE, TWO = {"id": 1, "name": "a"}, {"id": 2, "name": None}


def test_insert_field_adds_what_it_knows_of_a_record():
    options = {"topic.field": "t", "partition.field": "p!", "offset.field": "o", "timestamp.field": "at",
               "static.field": "s", "static.value": "v"}  # fmt: skip
    (made,) = apply(chain(("InsertField$Value", options)), batch(ONE, TWO))
    first = values([made])[0]
    assert {name: first[name] for name in ("t", "p", "o", "s")} == {"t": "orders", "p": 3, "o": 10, "s": "v"}
    assert first["at"].timestamp() == 1
    assert made.value_schema.field("t").schema.optional and not made.value_schema.field("p").schema.optional
    assert made.values.type == made.value_schema.arrow_type


def test_tombstones_pass_insert_field():
    (made,) = apply(chain(("InsertField$Value", {"static.field": "s", "static.value": "v"})), batch(ONE, None))
    assert values([made]) == [{**ONE, "s": "v"}, None]
    made.values.validate(full=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"exclude": "name"}, {"id": 1}),
        ({"blacklist": "name"}, {"id": 1}),
        ({"include": "name"}, {"name": "a"}),
        ({"whitelist": "name"}, {"name": "a"}),
        ({"renames": "id:number"}, {"number": 1, "name": "a"}),
        ({"exclude": "name", "renames": "id:number,name:x"}, {"number": 1}),
        ({"exclude": "id,name"}, {}),
    ],
)
def test_replace_field(options, expected):
    assert values(apply(chain(("ReplaceField$Value", options)), batch(ONE))) == [expected]


def test_value_to_key_and_extract_field():
    steps = ("ValueToKey", {"fields": "id"}), ("ExtractField$Key", {"field": "id"})
    (made,) = apply(chain(*steps), batch(ONE, TWO))
    assert made.keys.to_pylist() == [1, 2]
    assert made.key_schema == Schema(SchemaType.INT32)


def test_a_missing_field_is_named():
    with pytest.raises(DataError, match="nope.*there are: id, name"):
        apply(chain(("ValueToKey", {"fields": "nope"})), batch(ONE))
    with pytest.raises(DataError, match="Unknown field: nope"):
        apply(chain(("ExtractField$Value", {"field": "nope"})), batch(ONE))


def test_value_to_key_names_the_rows_without_a_value():
    with pytest.raises(DataError) as caught:
        apply(chain(("ValueToKey", {"fields": "id"})), batch(ONE, None, TWO))
    assert caught.value.rows == (1,)


@pytest.mark.parametrize(
    ("regex", "replacement", "topic"),
    [
        ("(.*)", "x-$1", "x-orders"),
        ("ord", "no", "orders"),
        ("o(?<mid>.*)s", "${mid}", "rder"),
        ("orders", "\\$1", "$1"),
    ],
)
def test_regex_router(regex, replacement, topic):
    (made,) = apply(chain(("RegexRouter", {"regex": regex, "replacement": replacement})), batch(ONE))
    assert made.topic == topic and made.origin == Origin("orders", 3)


def test_a_wrong_expression_is_a_configuration_error():
    with pytest.raises(ConfigError, match="regex"):
        chain(("RegexRouter", {"regex": "(", "replacement": "x"}))
    with pytest.raises(ConfigError, match="replacement"):
        chain(("RegexRouter", {"regex": "a", "replacement": "$1"}))


def test_filter_leaves_out_what_its_predicate_holds_for():
    made = chain(("Filter", {"predicate": "dead"}), predicates=[("dead", "RecordIsTombstone", {})])
    (kept,) = apply(made, batch(ONE, None, TWO))
    assert values([kept]) == [ONE, TWO] and kept.offsets.to_pylist() == [10, 12]


def test_a_negated_predicate_holds_for_the_others():
    made = chain(("Filter", {"predicate": "dead", "negate": "true"}), predicates=[("dead", "RecordIsTombstone", {})])
    assert values(apply(made, batch(ONE, None, TWO))) == [None]


def test_records_keep_their_order_where_a_predicate_picks_some():
    made = chain(
        ("InsertField$Value", {"static.field": "s", "static.value": "v", "predicate": "marked"}),
        predicates=[("marked", "HasHeaderKey", {"name": "mark"})],
    )
    records = [
        Record("t", {"id": n, "name": None}, ROW, offset=n, headers=(Header("mark", b"1"),) if n % 3 else ())
        for n in range(7)
    ]
    rows = RecordBatch.from_records(records, origin=Origin("t", 0))
    batches = apply(made, rows)
    assert [value["id"] for value in values(batches)] == list(range(7))
    assert [("s" in value) for value in values(batches)] == [bool(n % 3) for n in range(7)]
    assert [offset for batch in batches for offset in batch.offsets.to_pylist()] == list(range(7))


def test_a_topic_predicate_looks_at_the_topic_as_it_is_then():
    made = chain(
        ("RegexRouter", {"regex": ".*", "replacement": "new"}),
        ("Filter", {"predicate": "new"}),
        predicates=[("new", "TopicNameMatches", {"pattern": "new"})],
    )
    assert apply(made, batch(ONE)) == []


def test_data_without_schema_is_transformed_too():
    rows = RecordBatch("t", pa.array(['{"id":1,"x":[2]}', None, '{"id":3}']), None)
    steps = [
        ("InsertField$Value", {"static.field": "s", "static.value": "v"}),
        ("ReplaceField$Value", {"renames": "id:n", "exclude": "x"}),
    ]
    (made,) = apply(chain(*steps), rows)
    assert values([made]) == [{"n": 1, "s": "v"}, None, {"n": 3, "s": "v"}]
    (keyed,) = apply(chain(("ValueToKey", {"fields": "id"})), rows.filter(rows.values.is_valid()))
    assert keyed.keys.to_pylist() == ['{"id":1}', '{"id":3}']


def test_every_transform_and_predicate_is_listed_by_its_java_name():
    listed = {plugin.name for plugin in PLUGINS.listed((PluginType.TRANSFORMATION, PluginType.PREDICATE))}
    assert f"{APACHE}.InsertField$Value" in listed and f"{APACHE}.predicates.HasHeaderKey" in listed
    for plugin in PLUGINS.listed((PluginType.TRANSFORMATION, PluginType.PREDICATE)):
        assert plugin.load().config_class
