"""Walking over records gives the same results as decoding them, with less memory."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import BrokerError, CorruptMessage
from broker.protocol.compression import Codec, compress, most_unpacked
from broker.protocol.record import SMALLEST, Record
from broker.protocol.records import BatchHeader, decode_batch, encode_batch, with_append_time, with_payload
from broker.protocol.walks import checked, first_since, keyless, newest_from, opened, renumbered, timestamps
from broker.work import OFF_THE_LOOP, ON_THE_LOOP, Allowance, Budget, TooMuchWork
from tests.support.hostile import many_records

BASE = 1_700_000_000_000
drawn = st.lists(
    st.builds(
        Record,
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=200),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=3).map(tuple),
        st.integers(BASE - 10**6, BASE + 10**6),
    ),
    min_size=1,
    max_size=30,
)
codecs = st.sampled_from(list(Codec))


def allowed() -> Allowance:
    """The allowance that a process has for it, with enough time for a machine under load."""
    return Allowance(OFF_THE_LOOP._replace(seconds=3600))


def walked(batch: bytes) -> None:
    """Run all walks over a batch, whatever they find."""
    header = BatchHeader.parse(batch)
    data = opened(header, batch, allowed())
    keyless(header, data, allowed(), most_named=5)
    list(timestamps(header, data, allowed()))
    first_since(header, data, allowed(), timestamp_ms=BASE, from_offset=0)
    newest_from(header, data, allowed(), from_offset=0)
    checked(header, data, allowed())
    renumbered(header, data, allowed())


@settings(deadline=None)
@given(drawn, codecs, st.integers(0, 10**9), st.integers(-(10**6), 10**6), st.integers(-1, 31), st.booleans())
def test_walks_find_what_the_records_say(
    records: list[Record], codec: Codec, base_offset: int, shift: int, skipped: int, stamped: bool
) -> None:
    batch = encode_batch(records, base_offset=base_offset, compression=codec)
    if stamped:
        batch = with_append_time(memoryview(batch), BASE)
    decoded_records = decode_batch(batch)
    header = BatchHeader.parse(batch)
    data = opened(header, batch, allowed())
    missing = [number for number, record in enumerate(decoded_records) if record.key is None]
    assert keyless(header, data, allowed(), most_named=3) == (len(missing), missing[:3])
    own_timestamps = [record.timestamp_ms for record in records]
    assert list(timestamps(header, data, allowed())) == own_timestamps
    assert checked(header, data, allowed()) == (max(own_timestamps) - header.base_timestamp, True)
    timestamp, start = BASE + shift, base_offset + skipped
    since = [(r.timestamp_ms, r.offset) for r in decoded_records if r.timestamp_ms >= timestamp and r.offset >= start]
    expected = since[0] if since else None
    assert first_since(header, data, allowed(), timestamp_ms=timestamp, from_offset=start) == expected
    newest = max((record.timestamp_ms for record in decoded_records if record.offset >= start), default=None)
    assert newest_from(header, data, allowed(), from_offset=start) == newest


@settings(deadline=None)
@given(drawn, st.lists(st.integers(0, 10**6), min_size=30, max_size=30))
def test_records_are_numbered_anew(records: list[Record], numbers: list[int]) -> None:
    mixed = [record._replace(offset=number) for record, number in zip(records, numbers, strict=False)]
    batch = encode_batch(mixed, keep_offsets=True, last_offset_delta=len(mixed) - 1)
    header = BatchHeader.parse(batch)
    data = opened(header, batch, allowed())
    assert checked(header, data, allowed())[1] == (numbers[: len(mixed)] == list(range(len(mixed))))
    made = with_payload(header, renumbered(header, data, allowed()), Codec.NONE, header.max_timestamp)
    assert decode_batch(made) == [record._replace(offset=number) for number, record in enumerate(records)]


@settings(max_examples=300, deadline=None)
@given(drawn, codecs, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4))
def test_damage_raises_nothing_but_ours(records: list[Record], codec: Codec, changes: list[tuple[int, int]]) -> None:
    batch = bytearray(encode_batch(records, compression=codec))
    for at, byte in changes:
        batch[at % len(batch)] = byte
    try:
        walked(bytes(batch))
    except (BrokerError, TooMuchWork):
        pass


@pytest.mark.parametrize("count", [0, 1, 2, 4, -1, 2**31 - 1])
def test_another_number_of_records_than_the_header_says_is_refused(count: int) -> None:
    batch = encode_batch([Record(b"k", b"v", (), BASE)] * 3)
    header = BatchHeader.parse(batch)._replace(record_count=count)
    data = opened(header, batch, allowed())
    with pytest.raises(CorruptMessage):
        keyless(header, data, allowed(), most_named=1)
    with pytest.raises(CorruptMessage):
        checked(header, data, allowed())


def test_an_allowance_ends_a_walk() -> None:
    batch = many_records(Codec.ZSTD, 100_000)
    header = BatchHeader.parse(batch)
    for budget in (Budget(99_999, 1 << 20, 0, 60.0), Budget(200_000, 1 << 20, 0, -1.0)):
        data = opened(header, batch, allowed())
        with pytest.raises(TooMuchWork):
            keyless(header, data, Allowance(budget), most_named=1)
        with pytest.raises(TooMuchWork):
            checked(header, data, Allowance(budget))
    with pytest.raises(TooMuchWork):
        opened(header, batch, Allowance(ON_THE_LOOP._replace(unpacked_bytes=799_999)))
    with pytest.raises(TooMuchWork):
        compress(Codec.ZSTD, bytes(100), None, Allowance(ON_THE_LOOP._replace(packed_bytes=99)))


def test_a_walk_takes_no_memory_for_records() -> None:
    batch = many_records(Codec.NONE, 100_000)
    header = BatchHeader.parse(batch)
    data = opened(header, batch, allowed())
    tracemalloc.start()
    try:
        keyless(header, data, allowed(), most_named=10)
        newest_from(header, data, allowed(), from_offset=0)
        checked(header, data, allowed())
        assert tracemalloc.get_traced_memory()[1] < 64 * 1024
    finally:
        tracemalloc.stop()


@settings(deadline=None)
@given(codecs, st.sampled_from([b"\0", b"abc", bytes(range(256))]), st.integers(1, 20_000))
def test_no_codec_unpacks_to_more_than_it_can(codec: Codec, pattern: bytes, times: int) -> None:
    data = pattern * times
    assert len(data) <= most_unpacked(codec, len(compress(codec, data)))


def test_the_smallest_record_is_as_small_as_it_is_said_to_be() -> None:
    batch = encode_batch([Record(None, None, (), BASE)])
    assert len(batch) - 61 == SMALLEST
