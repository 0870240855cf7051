"""Decoding a consumer's subscription."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.groups.classic.subscription import subscribed_topics


def subscription(*topics: str, version: int = 3, rest: bytes = b"\0\0\0\0") -> bytes:
    names = b"".join(struct.pack(">h", len(topic.encode())) + topic.encode() for topic in topics)
    return struct.pack(">hi", version, len(topics)) + names + rest


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5), st.binary(max_size=20))
def test_topics_are_read_whatever_follows_them(topics: list[str], rest: bytes) -> None:
    assert subscribed_topics(subscription(*topics, rest=rest)) == frozenset(topics)


@pytest.mark.parametrize(
    "metadata",
    [b"", b"\0", subscription("t", version=-1), subscription("topic", rest=b"")[:-1], b"\0\0\xff\xff\xff\xff"],
)
def test_an_unreadable_subscription_counts_as_unknown(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_not_known(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None or metadata
