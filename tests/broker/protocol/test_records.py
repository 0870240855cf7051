"""Record batches are read back by us and by others as they were written; invalid bytes raise only CorruptMessage."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import BrokerError, CorruptMessage, UnsupportedCompressionType
from broker.protocol.compression import Codec, compress, decompress
from broker.protocol.records import (
    HEADER_SIZE,
    BatchHeader,
    Record,
    batches,
    crc_is_right,
    decode_batch,
    decode_marker,
    encode_batch,
    encode_marker,
    repacked_batch,
    with_append_time,
)

optional_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), optional_bytes), max_size=3).map(tuple)
records = st.lists(
    st.builds(Record, key=optional_bytes, value=optional_bytes, headers=headers, timestamp_ms=st.integers(0, 2**50)),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(records=records, codec=st.sampled_from(list(Codec)), base=st.integers(0, 2**60))
def test_encoded_records_are_decoded_again(records: list[Record], codec: Codec, base: int) -> None:
    batch = memoryview(encode_batch(records, base_offset=base, compression=codec))
    ((position, header),) = batches(batch)
    assert crc_is_right(batch, position, header)
    assert (header.base_offset, header.last_offset, header.record_count) == (
        base,
        base + len(records) - 1,
        len(records),
    )
    assert header.max_timestamp == max(record.timestamp_ms for record in records)
    assert decode_batch(batch) == [record._replace(offset=base + n) for n, record in enumerate(records)]


@pytest.mark.parametrize("codec", list(Codec))
def test_another_implementation_reads_our_batches(codec: Codec) -> None:
    written = [Record(b"k%d" % n, b"v" * n * 300, (("h", b"x"), ("n", None)), 1000 + n) for n in range(40)]
    decoded: list[Any] = []
    stored: Any = MemoryRecords(encode_batch(written, base_offset=5, compression=codec))
    while stored.has_next():
        batch = stored.next_batch()
        assert batch.validate_crc()
        decoded += batch
    assert [(r.offset, r.key, r.value, r.timestamp) for r in decoded] == [
        (5 + n, r.key, r.value, r.timestamp_ms) for n, r in enumerate(written)
    ]


def test_raw_snappy_as_some_clients_send_it_is_read() -> None:
    import cramjam

    data = b"abc" * 1000
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_that_would_fill_the_memory_is_refused(codec: Codec) -> None:
    assert decompress(codec, compress(codec, bytes(1_000_000)), 1_000_000) == bytes(1_000_000)
    with pytest.raises(CorruptMessage):
        decompress(codec, compress(codec, bytes(1_000_001)), 1_000_000)


def test_append_time_stands_for_all_records() -> None:
    batch = encode_batch([Record(b"k", b"v", (), 5), Record(b"k", b"v", (), 6)], compression=Codec.ZSTD)
    stamped = memoryview(with_append_time(memoryview(batch), 99))
    assert crc_is_right(stamped, 0, BatchHeader.parse(stamped))
    assert [record.timestamp_ms for record in decode_batch(stamped)] == [99, 99]


def test_a_marker_says_how_the_transaction_ended() -> None:
    for commit in (True, False):
        batch = encode_marker(7, 1, 40, commit=commit, coordinator_epoch=3, timestamp_ms=5)
        header = BatchHeader.parse(batch)
        assert (header.is_control, header.is_transactional, header.base_offset) == (True, True, 40)
        assert decode_marker(decode_batch(batch)[0]) == (commit, 3)
    with pytest.raises(CorruptMessage, match="offset 9 is no transaction marker"):
        decode_marker(Record(b"", b"", (), 0, 9))


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_noise_is_no_batch(data: bytes) -> None:
    with pytest.raises(CorruptMessage):
        list(batches(memoryview(data))) or decode_batch(data)
    with pytest.raises(CorruptMessage):
        decode_batch(data)


@settings(max_examples=300, deadline=None)
@given(
    records=records,
    codec=st.sampled_from(list(Codec)),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_a_damaged_batch_raises_nothing_but_ours(
    records: list[Record], codec: Codec, changes: list[tuple[int, int]]
) -> None:
    batch = bytearray(encode_batch(records, compression=codec))
    for at, byte in changes:
        batch[at % len(batch)] = byte
    try:
        for position, header in batches(memoryview(batch)):
            view = memoryview(batch)[position : position + header.size]
            decode_batch(view)
    except BrokerError:
        pass


def test_an_unknown_codec_is_named() -> None:
    batch = bytearray(encode_batch([Record(b"k", b"v", (), 5)]))
    batch[22] = 7
    with pytest.raises(UnsupportedCompressionType, match="compression codec 7"):
        decode_batch(bytes(batch))


def test_sizes_that_lie_are_refused() -> None:
    batch = encode_batch([Record(b"k", b"v", (), 5)])
    for length in (-1, 0, 48, len(batch) - 11, 2**31 - 1):
        wrong = batch[:8] + length.to_bytes(4, "big", signed=True) + batch[12:]
        with pytest.raises(CorruptMessage):
            list(batches(memoryview(wrong)))
    assert len(batch) > HEADER_SIZE


def test_bytes_after_the_last_record_are_refused() -> None:
    batch = repacked_batch(BatchHeader.parse(encode_batch([])), b"\x00" * 3, 0, 5)
    with pytest.raises(CorruptMessage, match="the batch at offset 0 goes on after its 0 records"):
        decode_batch(batch)
