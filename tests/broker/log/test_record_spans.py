"""Spans are the records that decoding finds, and their bytes make the same records again."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptMessage
from broker.log.record_spans import spans
from broker.protocol.records import BatchHeader, Record, decode_batch, encode_batch, opened_batch, repacked_batch

records = st.lists(
    st.builds(
        Record,
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=9000),
        st.just(()) | st.just((("h", b"v"),)),
        st.integers(0, 2**42),
    ),
    min_size=1,
    max_size=9,
)


@given(records, st.data())
def test_what_stays_is_as_it_was(made: list[Record], data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.integers(1, 9000), min_size=len(made), max_size=len(made)))
    offset, placed = 40, []
    for record, gap in zip(made, gaps, strict=True):
        placed.append(record._replace(offset=offset))
        offset += gap
    batch = encode_batch(placed, base_offset=40, keep_offsets=True)
    header, opened = opened_batch(batch)
    found = spans(opened, header.record_count)
    assert found.keys == [one.key for one in placed]
    assert [40 + delta for delta in found.deltas] == [one.offset for one in placed]
    assert found.tombstones == [one.value is None for one in placed]
    kept = sorted(data.draw(st.sets(st.integers(0, len(made) - 1), min_size=1)))
    newest = found.largest_timestamp(kept, header.base_timestamp)
    smaller = repacked_batch(header, found.bytes_of(kept), len(kept), newest)
    assert decode_batch(smaller) == [placed[number] for number in kept]
    assert BatchHeader.parse(smaller).max_timestamp == max(placed[number].timestamp_ms for number in kept)


@given(st.binary(max_size=60), st.integers(0, 5))
def test_noise_is_refused(data: bytes, count: int) -> None:
    with suppress(CorruptMessage):
        assert all(end <= len(data) for end in spans(data, count).ends)
