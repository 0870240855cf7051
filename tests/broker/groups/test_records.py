"""The byte format of ``__consumer_offsets``."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.committed_offset import CommittedOffset
from broker.errors import CorruptMessage
from broker.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    decode_group,
    decode_key,
    decode_offset,
    encode_group,
    encode_group_key,
    encode_offset,
    encode_offset_key,
)

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
members = st.builds(
    MemberMetadata,
    member_id=names,
    group_instance_id=st.none() | names,
    client_id=names,
    client_host=names,
    rebalance_timeout=st.integers(0, 1 << 30),
    session_timeout=int32s,
    subscription=st.binary(max_size=30),
    assignment=st.binary(max_size=30),
)
groups = st.builds(
    GroupMetadataValue,
    protocol_type=names,
    generation=int32s,
    protocol=st.none() | names,
    leader=st.none() | names,
    current_state_timestamp=int64s,
    members=st.lists(members, max_size=3),
)
offsets = st.builds(
    CommittedOffset,
    int64s,
    int32s,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    st.none() | st.uuids(version=4),
    int64s,
)


@given(names, names, int32s)
def test_keys_come_back(group: str, topic: str, partition: int) -> None:
    assert decode_key(encode_offset_key(group, topic, partition)) == OffsetCommitKey(
        group_id=group, topic=topic, partition=partition
    )
    assert decode_key(encode_group_key(group)) == GroupMetadataKey(group_id=group)


@given(offsets)
def test_offsets_come_back(committed: CommittedOffset) -> None:
    assert decode_offset(encode_offset(committed)) == committed


@given(groups)
def test_groups_come_back(group: GroupMetadataValue) -> None:
    assert decode_group(encode_group(group)) == group


def test_a_retention_of_the_clients_own_is_kept_and_takes_version_1() -> None:
    committed = CommittedOffset(5, -1, "m", None, 1_000, 2_000)
    assert encode_offset(committed)[:2] == b"\0\1"
    assert decode_offset(encode_offset(committed)) == committed


TOPIC_ID = uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("0000 0000000000000007 0001 61 0000000000000009", CommittedOffset(7, -1, "a", None, 9)),
        ("0001 0000000000000007 0000 0000000000000009 000000000000000a", CommittedOffset(7, -1, "", None, 9, 10)),
        ("0002 0000000000000007 0000 0000000000000009", CommittedOffset(7, -1, "", None, 9)),
        ("0003 0000000000000007 00000003 0000 0000000000000009", CommittedOffset(7, 3, "", None, 9)),
        ("0004 0000000000000007 00000003 02 61 0000000000000009 00", CommittedOffset(7, 3, "a", None, 9)),
        (
            "0004 0000000000000007 00000003 01 0000000000000009 01 00 10 000102030405060708090a0b0c0d0e0f",
            CommittedOffset(7, 3, "", TOPIC_ID, 9),
        ),
        (
            "0004 0000000000000007 00000003 01 0000000000000009 02 00 10 " + "00" * 16 + " 05 02 abcd",
            CommittedOffset(7, 3, "", None, 9),
        ),
    ],
)
def test_every_version_of_a_committed_offset_is_read(data: str, expected: CommittedOffset) -> None:
    assert decode_offset(bytes.fromhex(data)) == expected


MEMBER = MemberMetadata(
    member_id="m",
    client_id="c",
    client_host="/h",
    rebalance_timeout=500,
    session_timeout=500,
    subscription=b"s",
    assignment=b"a",
)


def generation(protocol: str | None, leader: str | None, since_ms: int, *members: MemberMetadata) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="p",
        generation=2,
        protocol=protocol,
        leader=leader,
        current_state_timestamp=since_ms,
        members=members,
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            "0000 0001 70 00000002 0001 72 0001 6d 000000010001 6d 0001 63 0002 2f68 000001f4 00000001 73 00000001 61",
            generation("r", "m", -1, MEMBER),
        ),
        (
            "0001 0001 70 00000002 0001 72 0001 6d 00000001"
            "0001 6d 0001 63 0002 2f68 000001f4 000001f4 00000001 73 00000001 61",
            generation("r", "m", -1, MEMBER),
        ),
        ("0002 0001 70 00000002 ffff ffff 0000000000000009 00000000", generation(None, None, 9)),
        (
            "0004 02 70 00000002 02 72 02 6d 0000000000000009 02"
            "02 6d 00 02 63 03 2f68 000001f4 000001f4 02 73 02 61 00 00",
            generation("r", "m", 9, MEMBER),
        ),
    ],
)
def test_every_version_of_a_group_is_read(data: str, expected: GroupMetadataValue) -> None:
    assert decode_group(bytes.fromhex(data)) == expected


def test_keys_of_other_kinds_are_passed_over() -> None:
    assert decode_key(b"\0\0\0\1g\0\1t\0\0\0\3") == OffsetCommitKey(group_id="g", topic="t", partition=3)
    assert decode_key(b"\0\3\0\1g") is None


@pytest.mark.parametrize("decode", [decode_offset, decode_group])
@pytest.mark.parametrize("version", [-1, 5])
def test_an_unknown_version_is_named(decode: object, version: int) -> None:
    with pytest.raises(CorruptMessage, match=f"version {version}"):
        decode(version.to_bytes(2, signed=True) + bytes(50))  # type: ignore[operator]


@given(st.binary(max_size=120), st.sampled_from([b"", b"\0\0", b"\0\1", b"\0\2", b"\0\3", b"\0\4"]))
def test_bytes_of_any_kind_are_read_or_refused(data: bytes, start: bytes) -> None:
    for decode in (decode_key, decode_offset, decode_group):
        try:
            decode(start + data)
        except CorruptMessage as error:
            assert str(error)


@given(groups, st.data())
def test_a_cut_record_is_refused(group: GroupMetadataValue, data: st.DataObject) -> None:
    whole = encode_group(group)
    with pytest.raises(CorruptMessage):
        decode_group(whole[: data.draw(st.integers(0, len(whole) - 1))])
