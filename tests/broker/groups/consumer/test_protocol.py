"""The subscriptions and assignments that members of the classic protocol write."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InconsistentGroupProtocol
from broker.groups.consumer.protocol import decode_assignment, decode_subscription, encode_assignment
from tests.support.groups import ListTopics

TOPICS = ListTopics(a=3, b=1)


def test_an_assignment_is_what_clients_read() -> None:
    a, b = TOPICS.by_name("a"), TOPICS.by_name("b")
    assert a is not None
    assert b is not None
    assigned = {a.id: frozenset({2, 0}), b.id: frozenset({0})}
    for version in range(4):
        data = encode_assignment(assigned, TOPICS, version.to_bytes(2))
        assert data[:2] == version.to_bytes(2)
        assert decode_assignment(data).assigned(TOPICS) == assigned
    assert data == bytes.fromhex("0003 00000002 0001 61 00000002 00000000 00000002 0001 62 00000001 00000000 ffffffff")


def test_a_subscription_says_what_is_owned_and_where_from() -> None:
    data = bytes.fromhex("0003 00000001 0001 61 ffffffff 00000001 0001 61 00000001 00000002 00000007 0004 7261636b")
    read = decode_subscription(data)
    assert (list(read.topics), read.generation_id, read.rack_id) == (["a"], 7, "rack")
    topic = TOPICS.by_name("a")
    assert topic is not None
    assert read.owned(TOPICS) == {topic.id: frozenset({2})}
    assert list(decode_subscription(b"\x00\x09" + data[2:] + b"more").topics) == ["a"]


@given(st.binary(max_size=60))
def test_bytes_that_are_none_are_refused(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        with contextlib.suppress(InconsistentGroupProtocol):
            decode(data)


def test_empty_bytes_are_no_subscription() -> None:
    with pytest.raises(InconsistentGroupProtocol):
        decode_subscription(b"")
