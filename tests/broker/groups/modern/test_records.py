"""The codec of coordinator records, with the records of all types of groups."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptMessage
from broker.groups.consumer import records as consumer
from broker.groups.modern.records import RecordTypes, decode_entry, encode_entry
from broker.groups.share import records as share
from broker.groups.streams import records as streams
from broker.protocol.fields import Message

TYPES: RecordTypes = {**consumer.RECORDS, **share.RECORDS, **streams.RECORDS}

_NUMBERS = {"int8": 7, "int16": 15, "uint16": 16, "int32": 31, "int64": 63}


def values(kind: str | type[Message]) -> st.SearchStrategy[Any]:
    if isinstance(kind, type):
        return messages(kind)
    if kind in _NUMBERS:
        return st.integers(0, (1 << _NUMBERS[kind]) - 1)
    return {"string": st.text(max_size=5), "bytes": st.binary(max_size=5), "uuid": st.uuids()}[kind]


def messages(cls: type[Message]) -> st.SearchStrategy[Any]:
    given_fields = {}
    for field in cls.FIELDS:
        strategy = values(field.kind)
        if field.array:
            strategy = st.lists(strategy, max_size=2)
        given_fields[field.name] = st.none() | strategy if field.null_since == 0 else strategy
    return st.builds(cls, **given_fields)


def test_every_type_of_kafka_4_3_is_known() -> None:
    assert sorted(TYPES) == [*range(3, 9), *range(10, 18), *range(19, 24)]


@given(st.data())
def test_a_written_record_is_read_back(data: st.DataObject) -> None:
    key_class, value_class = TYPES[data.draw(st.sampled_from(sorted(TYPES)))]
    record = data.draw(messages(key_class)), data.draw(st.none() | messages(value_class))
    assert decode_entry(TYPES, *encode_entry(record)) == record


@given(st.sampled_from(sorted(TYPES)), st.binary(max_size=60), st.none() | st.binary(max_size=90))
def test_bytes_that_are_no_record_are_reported(number: int, key: bytes, value: bytes | None) -> None:
    with contextlib.suppress(CorruptMessage):
        decode_entry(TYPES, number.to_bytes(2) + key, value if value is None else b"\0\0" + value)


def test_later_versions_are_not_guessed_at() -> None:
    key, _ = encode_entry((consumer.ConsumerGroupMetadataKey(group_id="g"), None))
    for value in (b"\0\1\0\0\0\1\0", b"", b"\0"):
        with pytest.raises(CorruptMessage, match="version"):
            decode_entry(TYPES, key, value)


def test_a_member_of_the_consumer_protocol_says_so_with_a_null() -> None:
    value = consumer.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["t"],
        subscribed_topic_regex="",
        rebalance_timeout_ms=1,
        classic_member_metadata=None,
    )
    _, data = encode_entry((consumer.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), value))
    assert data == b"\0\0" + b"\0\0" + b"\x02c\x03/h" + b"\x02\x02t" + b"\x01" + b"\0\0\0\1" + b"\0" + b"\1\0\1\0"
