"""Records read as columns equal those that decoding gives, and their bytes give the same records again."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptMessage
from broker.log.keyed_records import keyed_records
from broker.protocol.compression import Codec
from broker.protocol.records import BatchHeader, Record, decode_batch, encode_batch, repacked_batch

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


def placed(made: list[Record], gaps: list[int], offset: int) -> list[Record]:
    records = []
    for record, gap in zip(made, gaps, strict=False):
        records.append(record._replace(offset=offset))
        offset += gap
    return records


def sparse(made: list[Record], base: int, codec: Codec | None = None) -> tuple[BatchHeader, memoryview]:
    batch = encode_batch(made, base_offset=base, keep_offsets=True, compression=codec)
    return BatchHeader.parse(batch), memoryview(batch)


@given(st.lists(records, min_size=1, max_size=3), st.lists(st.integers(1, 9000), min_size=9, max_size=9), st.data())
def test_kept_records_stay_unchanged(made: list[list[Record]], gaps: list[int], data: st.DataObject) -> None:
    batches, everything, base = [], [], 40
    for batch in made:
        everything.append(placed(batch, gaps if data.draw(st.booleans()) else [1] * 9, base))
        batches.append(sparse(everything[-1], base, data.draw(st.sampled_from([None, Codec.LZ4]))))
        base = batches[-1][0].last_offset + 1
    (keyed,) = keyed_records(batches)
    flat = [record for batch in everything for record in batch]
    assert [key and key[:32] for key in keyed.keys if not key or len(key) <= 32] == [
        batch.key for batch in flat if not batch.key or len(batch.key) <= 32
    ]
    assert len(set(keyed.keys)) == len({batch.key for batch in flat})
    assert max(len(key or b"") for key in keyed.keys) <= 33
    assert keyed.offsets.tolist() == [batch.offset for batch in flat]
    assert keyed.tombstones.tolist() == [batch.value is None for batch in flat]
    number = data.draw(st.integers(0, len(made) - 1))
    header, mine = batches[number][0], everything[number]
    kept = sorted(data.draw(st.sets(st.integers(0, len(mine) - 1), min_size=1)))
    chosen = np.array(kept) + keyed.firsts[number]
    newest = header.base_timestamp + int(keyed.time_deltas[chosen].max())
    smaller = repacked_batch(header, keyed.bytes_of(chosen), len(kept), newest)
    assert decode_batch(smaller) == [mine[number] for number in kept]
    assert BatchHeader.parse(smaller).max_timestamp == max(mine[number].timestamp_ms for number in kept)


@given(st.binary(max_size=60), st.integers(-2, 5), st.integers(-2, 9))
def test_noise_is_refused(data: bytes, count: int, last: int) -> None:
    header = BatchHeader.parse(encode_batch([]))._replace(record_count=count, last_offset_delta=last)
    with suppress(CorruptMessage):
        for keyed in keyed_records([(header, memoryview(bytes(61) + data))]):
            assert keyed.edges[-1] == len(data)
            assert len(keyed.keys) == count == len(keyed.offsets)


def test_offsets_that_do_not_ascend_are_refused_and_named() -> None:
    made = [Record(b"k", b"v", (), 5, offset) for offset in (40, 44, 42, 46)]
    with pytest.raises(CorruptMessage, match="record 2 of the batch at offset 40 has an offset out of order"):
        list(keyed_records([sparse(made, 40)]))


def test_offsets_beyond_the_batch_are_refused() -> None:
    header, batch = sparse([Record(b"k", b"v", (), 5, offset) for offset in (40, 44)], 40)
    with pytest.raises(CorruptMessage, match="record 1 of the batch at offset 40"):
        list(keyed_records([(header._replace(last_offset_delta=3), batch)]))


def test_in_a_batch_without_gaps_the_place_of_a_record_counts() -> None:
    header, batch = sparse([Record(b"k", b"v", (), 5, 40) for _ in range(3)], 40)
    (keyed,) = keyed_records([(header._replace(last_offset_delta=2), batch)])
    assert keyed.offsets.tolist() == [40, 41, 42]
