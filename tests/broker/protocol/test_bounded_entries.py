"""The number of entries in a request is limited, and checked before they are read."""

from __future__ import annotations

import struct

import pytest

from broker.protocol.api import read_request_header
from broker.protocol.fetch import FetchRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker.protocol.primitives import MOST_ENTRIES, MalformedMessage, write_uvarint
from broker.protocol.produce import ProduceRequest
from broker.protocol.schema import encode

TOO_MANY = f"more than {MOST_ENTRIES} entries; it has to be split"


def commit(topics: int, partitions: int) -> memoryview:
    of_one = [OffsetCommitRequestPartition(partition_index=number) for number in range(partitions)]
    named = [OffsetCommitRequestTopic(name=f"{number}", partitions=of_one) for number in range(topics)]
    return memoryview(bytes(encode(OffsetCommitRequest(group_id="g", topics=named), 8)))


def test_as_many_entries_as_may_be_are_read_again_and_again() -> None:
    names = [MetadataRequestTopic(name="a")] * MOST_ENTRIES
    data = memoryview(bytes(encode(MetadataRequest(topics=names), 9)))
    for _ in range(2):
        assert len(MetadataRequest.read(data, 9, 0).topics or ()) == MOST_ENTRIES


def test_more_entries_are_refused() -> None:
    data = memoryview(struct.pack(">i", MOST_ENTRIES + 1) + bytes(2 * MOST_ENTRIES + 10))
    with pytest.raises(MalformedMessage, match=TOO_MANY):
        MetadataRequest.read(data, 4, 0)


def test_entries_of_all_arrays_count_together() -> None:
    assert len(OffsetCommitRequest.read(commit(20, 1_000), 8, 0).topics) == 20
    with pytest.raises(MalformedMessage, match=TOO_MANY):
        OffsetCommitRequest.read(commit(50, 1_000), 8, 0)


def test_tagged_fields_are_entries() -> None:
    """Unknown ones are passed over, each in some tenths of a microsecond: a frame could have tens of millions."""
    data = bytearray(encode(MetadataRequest(topics=None), 9)[:-1])
    write_uvarint(data, MOST_ENTRIES + 1)
    data += b"\x7f\0" * (MOST_ENTRIES + 1)
    with pytest.raises(MalformedMessage, match=TOO_MANY):
        MetadataRequest.read(memoryview(bytes(data)), 9, 0)
    header = bytearray(struct.pack(">hhih", 3, 9, 1, -1))
    write_uvarint(header, 101)
    header += b"\x7f\0" * 101
    with pytest.raises(MalformedMessage, match="101 tagged fields; at most 100"):
        read_request_header(memoryview(bytes(header)), True)


def test_produce_and_fetch_which_are_read_by_hand_have_the_bound_too() -> None:
    partitions = struct.pack(">i", MOST_ENTRIES + 1) + struct.pack(">ii", 0, -1) * (MOST_ENTRIES + 1)
    produce = struct.pack(">hhii", -1, 1, 1_000, 1) + b"\0\1t" + partitions
    with pytest.raises(MalformedMessage, match=TOO_MANY):
        ProduceRequest.read(memoryview(produce), 7, 0)
    partitions = struct.pack(">i", MOST_ENTRIES + 1) + struct.pack(">iqi", 0, 0, 1) * (MOST_ENTRIES + 1)
    fetch = struct.pack(">iiiib", -1, 0, 1, 1, 0) + struct.pack(">i", 1) + b"\0\1t" + partitions
    with pytest.raises(MalformedMessage, match=TOO_MANY):
        FetchRequest.read(memoryview(fetch), 4, 0)
