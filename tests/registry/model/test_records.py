import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.formats.parsed import Reference
from registry.model.records import (
    InvalidRecord,
    KeyType,
    RecordKey,
    SchemaVersion,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from registry.model.state import State


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (RecordKey(KeyType.NOOP), b'{"keytype":"NOOP","magic":0}'),
        (RecordKey(KeyType.SCHEMA, "s-value", 1), b'{"keytype":"SCHEMA","subject":"s-value","version":1,"magic":1}'),
        (RecordKey(KeyType.CONFIG), b'{"keytype":"CONFIG","magic":0}'),
        (RecordKey(KeyType.CONFIG, "s-value"), b'{"keytype":"CONFIG","subject":"s-value","magic":0}'),
        (RecordKey(KeyType.MODE, "s3"), b'{"keytype":"MODE","subject":"s3","magic":0}'),
        (RecordKey(KeyType.DELETE_SUBJECT, "d"), b'{"keytype":"DELETE_SUBJECT","subject":"d","magic":0}'),
        (RecordKey(KeyType.CLEAR_SUBJECT, "ü"), '{"keytype":"CLEAR_SUBJECT","subject":"ü","magic":0}'.encode()),
    ],
)
def test_keys_are_confluents_bytes(key: RecordKey, expected: bytes) -> None:
    assert encode_key(key) == expected
    assert decode_key(expected) == key


def test_a_schema_value_comes_back() -> None:
    key = RecordKey(KeyType.SCHEMA, "s", 2)
    value = SchemaVersion(
        "s", 2, 9, '"int"', references=(Reference("n", "t", 1),), metadata='{"properties":{"a":"b"}}', deleted=True
    )
    assert decode_value(key, encode_value(value)) == value
    assert json.loads(encode_value(value)) == {
        "subject": "s",
        "version": 2,
        "id": 9,
        "schemaType": "AVRO",
        "references": [{"name": "n", "subject": "t", "version": 1}],
        "metadata": {"properties": {"a": "b"}},
        "schema": '"int"',
        "deleted": True,
    }


def schema(subject: str, version: int, schema_id: int, text: str = '"int"') -> tuple[bytes, bytes]:
    """A record as Karapace writes it: no schemaType for Avro."""
    key = RecordKey(KeyType.SCHEMA, subject, version)
    value = {"subject": subject, "version": version, "id": schema_id, "schema": text, "deleted": False}
    return encode_key(key), json.dumps(value).encode()


def test_an_empty_value_deletes_as_a_null_does() -> None:
    for nothing in (b"", None):
        state = State()
        key, value = schema("s", 1, 5)
        state.apply(key, value)
        assert [version.id for version in state.versions("s")] == [5]
        state.apply(key, nothing)
        assert state.subjects() == []
        assert state.by_id(".", 5) == []
        assert state.next_id(".") == 6


def test_karapaces_global_config_counts_and_its_key_is_remembered_for_deletion() -> None:
    state = State()
    foreign = b'{"keytype":"CONFIG","subject":null,"magic":0}'
    state.apply(foreign, b'{"compatibilityLevel":"FULL"}')
    assert state.configs[None]["compatibilityLevel"] == "FULL"
    assert state.foreign_keys(RecordKey(KeyType.CONFIG)) == (foreign,)
    state.apply(foreign, b"")
    assert state.configs == {}
    assert state.foreign_keys(RecordKey(KeyType.CONFIG)) == ()


def test_a_deleted_subject_takes_its_versions_up_to_the_named_one() -> None:
    state = State()
    for version in (1, 2, 3):
        state.apply(*schema("s", version, version, f'"{version}"'))
    key = RecordKey(KeyType.DELETE_SUBJECT, "s")
    state.apply(encode_key(key), encode_value({"subject": "s", "version": 2}))
    assert [version.version for version in state.versions("s")] == [3]
    assert [version.version for version in state.versions("s", deleted=True)] == [1, 2, 3]


def test_contexts_and_associations_are_read_and_forgotten() -> None:
    state = State()
    context = b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}'
    association = (
        b'{"keytype":"ASSOC","tenant":"default","resourceName":"t","resourceNamespace":"lkc","resourceType":"topic",'
        b'"associationType":"value","subject":"s","magic":0}'
    )
    value = b'{"guid":"g","tenant":"default","resourceId":"i","subject":"s","lifecycle":"WEAK","frozen":false}'
    state.apply(context, b'{"tenant":"default","context":".c"}')
    state.apply(association, value, timestamp_ms=5)
    state.apply(association, value, timestamp_ms=7)
    assert state.contexts() == [".", ".c"]
    associations = state.associations.of_subject("s")
    assert [(each.created_ms, each.updated_ms, each.frozen) for each in associations] == [(5, 7, False)]
    with pytest.raises(InvalidRecord, match="an association needs a guid"):
        state.apply(association, b'{"x":1}')
    for key in (context, association):
        assert encode_key(decode_key(key)) == key
        state.apply(key, None)
    assert state.contexts() == ["."]
    assert state.associations.of_subject("s") == []
    assert state.subjects() == []


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
keys = st.fixed_dictionaries(
    {},
    optional={
        "keytype": st.sampled_from([kind.value for kind in KeyType]) | json_like,
        "subject": st.sampled_from(["a", "b", None]) | json_like,
        "version": st.integers(-1, 3) | json_like,
        "magic": st.integers(0, 1),
    },
)
values = st.fixed_dictionaries(
    {},
    optional={
        "subject": st.sampled_from(["a", "b"]) | json_like,
        "version": st.integers(0, 3) | json_like,
        "id": st.integers(0, 3) | json_like,
        "schema": st.just('"int"') | json_like,
        "schemaType": st.just("AVRO") | json_like,
        "references": st.lists(st.fixed_dictionaries({"subject": st.just("a"), "version": st.just(1)}) | json_like)
        | json_like,
        "mode": st.just("IMPORT") | json_like,
        "compatibilityLevel": json_like,
        "deleted": st.booleans() | json_like,
    },
)
raw = st.binary(max_size=20)
records = st.tuples(
    raw | keys.map(json.dumps).map(str.encode), st.none() | raw | values.map(json.dumps).map(str.encode)
)


@given(st.lists(records, max_size=12))
def test_whatever_is_in_the_topic_the_state_stays_whole(written: list[tuple[bytes, bytes | None]]) -> None:
    state = State()
    for key, value in written:
        before = state.subjects()
        try:
            state.apply(key, value)
        except InvalidRecord:
            assert state.subjects() == before
    for subject in state.subjects():
        numbers = [version.version for version in state.versions(subject, deleted=True)]
        assert numbers == sorted(set(numbers))
        for version in state.versions(subject, deleted=True):
            assert version in state.by_id(".", version.id)
            assert state.next_id(".") > version.id
