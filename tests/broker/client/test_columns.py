"""Arrow columns to batches and back, against two readers and writers of record batches that are not this code."""

from __future__ import annotations

import gc
import sys
import types
from typing import Any

import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.client import FetchedBatches
from broker.client.batches import EncodedBatch, encode_records, split
from broker.client.columns import HEADERS_TYPE, Columns, encode_batches
from broker.errors import CorruptMessage, UnsupportedCompressionType, UnsupportedForMessageFormat
from broker.protocol.compression import Codec
from broker.protocol.records import HEADER_SIZE, Record, decode_batch, encode_batch, with_append_time
from tidegate.kit.errors import UsageError

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
BYTES = st.none() | st.binary(max_size=40)
ROWS = st.lists(
    st.tuples(BYTES, BYTES, st.integers(0, 1 << 45), st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3)),
    min_size=1,
    max_size=60,
)


def as_fetched(batches: list[bytes], offset: int = 0) -> FetchedBatches:
    split_up = tuple(split(memoryview(b"".join(batches)), check_crc=True, where="t-0"))
    following = split_up[-1].header.last_offset + 1
    return FetchedBatches("t", 0, offset, following, following, split_up)


def in_log(encoded: list[EncodedBatch]) -> list[bytes]:
    """The batches as a broker keeps them: one behind the other, with their offsets."""
    base, laid = 0, []
    for batch in encoded:
        laid.append(base.to_bytes(8, "big") + batch.stamp(7, 0, base, transactional=False)[8:])
        base += batch.count
    return laid


def columns_of(rows: Any) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    keys, values, times, headers = zip(*rows, strict=True)
    named = [[{"key": key, "value": value} for key, value in row] for row in headers]
    return (
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(times, pa.int64()),
        pa.array(named, HEADERS_TYPE),
    )


@given(rows=ROWS, codec=st.sampled_from(CODECS), max_bytes=st.sampled_from([62, 200, 1000, 1_000_000]))
def test_encoded_columns_are_read_alike_by_all(rows: Any, codec: str, max_bytes: int) -> None:
    keys, values, times, headers = columns_of(rows)
    laid = in_log(encode_batches(keys, values, times, headers, compression=codec, max_bytes=max_bytes))
    expected = [Record(key, value, tuple(row), time, offset) for offset, (key, value, time, row) in enumerate(rows)]
    assert [record for data in laid for record in decode_batch(memoryview(data))] == expected
    fetched = as_fetched(laid)
    by_library = [Record(r.key, r.value, r.headers, r.timestamp_ms, r.offset) for r in fetched.records()]
    assert by_library == expected
    columns = fetched.columns()
    assert columns.offsets.to_pylist() == list(range(len(rows)))
    assert columns.keys.to_pylist() == keys.to_pylist()
    assert columns.values.to_pylist() == values.to_pylist()
    assert columns.timestamps_ms.to_pylist() == times.to_pylist()
    assert (columns.headers or pa.array([[]] * len(rows), HEADERS_TYPE)).to_pylist() == headers.to_pylist()


@given(rows=ROWS, codec=st.sampled_from(list(Codec)), base=st.integers(0, 1 << 40))
def test_batches_of_another_writer_become_the_same_columns(rows: Any, codec: Codec, base: int) -> None:
    """Offsets with gaps, as compaction leaves them: every second record of the batch is gone."""
    builder = DefaultRecordBatchBuilder(2, int(codec), 0, -1, -1, -1, 1 << 20)
    for number, (key, value, time, headers) in enumerate(rows):
        builder.append(2 * number, time, key, value, headers)
    data = base.to_bytes(8, "big") + bytes(builder.build())[8:]
    columns = as_fetched([data]).columns()
    assert columns.offsets.to_pylist() == [base + 2 * number for number in range(len(rows))]
    assert columns.keys.to_pylist() == [row[0] for row in rows]
    assert columns.values.to_pylist() == [row[1] for row in rows]
    assert columns.timestamps_ms.to_pylist() == [row[2] for row in rows]


def test_the_time_of_the_append_counts_where_the_broker_set_it() -> None:
    batch = encode_batch([Record(b"k", b"v", (), 5, 0), Record(b"k", b"w", (), 6, 1)], base_offset=0)
    fetched = as_fetched([with_append_time(memoryview(batch), 77)])
    assert fetched.columns().timestamps_ms.to_pylist() == [77, 77]
    assert [record.timestamp_ms for record in fetched.records()] == [77, 77]


@given(rows=ROWS, data=st.data())
def test_records_before_the_position_are_left_out(rows: Any, data: st.DataObject) -> None:
    laid = in_log(encode_batches(*columns_of(rows)))
    offset = data.draw(st.integers(0, len(rows)))
    columns = as_fetched(laid, offset).columns()
    assert columns.offsets.to_pylist() == list(range(offset, len(rows)))
    assert columns.values.to_pylist() == [row[1] for row in rows[offset:]]
    if columns.headers is not None:
        assert [len(row) for row in columns.headers.to_pylist()] == [len(row[3]) for row in rows[offset:]]


@settings(max_examples=300)
@given(rows=ROWS, position=st.integers(0, 4000), byte=st.integers(0, 255), cut=st.integers(0, 200))
def test_damaged_batches_are_an_error_of_ours(rows: Any, position: int, byte: int, cut: int) -> None:
    """CRC checks are off, so that the damage reaches the decoder; a change that does no damage may pass."""
    data = bytearray(in_log(encode_batches(*columns_of(rows)))[0])
    data[16 + position % (len(data) - 16)] = byte
    whole = bytes(data)[: len(data) - cut] if cut % 3 == 0 else bytes(data)
    try:
        batches = tuple(split(memoryview(whole), check_crc=False, where="t-0"))
        columns = FetchedBatches("t", 0, 0, 1, 1, batches).columns()
    except (CorruptMessage, UnsupportedForMessageFormat, UnsupportedCompressionType):
        return
    assert isinstance(columns, Columns)


@given(st.binary(max_size=300))
def test_any_bytes_behind_a_header_are_an_error_of_ours(junk: bytes) -> None:
    data = bytearray(in_log(encode_batches(None, pa.array([b"v"])))[0][:HEADER_SIZE] + junk)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    batches = tuple(split(memoryview(bytes(data)), check_crc=False, where="t-0"))
    try:
        FetchedBatches("t", 0, 0, 1, 1, batches).columns()
    except CorruptMessage:
        pass


def test_a_wrong_crc_is_refused_by_offset() -> None:
    data = bytearray(in_log(encode_batches(None, pa.array([b"value"])))[0])
    data[-3] ^= 1
    with pytest.raises(CorruptMessage, match="t-0: the batch at offset 0 does not have the CRC"):
        list(split(memoryview(bytes(data)), check_crc=True, where="t-0"))


def test_a_piece_of_a_batch_at_the_end_is_left_out() -> None:
    laid = b"".join(in_log(encode_batches(None, pa.array([b"a", b"b"]), max_bytes=1)))
    assert len(list(split(memoryview(laid[:-1]), check_crc=True, where="t-0"))) == 1


def test_batches_keep_to_their_bytes_and_one_large_row_is_alone() -> None:
    values = pa.array([b"x" * 100] * 50 + [b"y" * 5000] + [b"z"] * 3)
    encoded = encode_batches(None, values, max_bytes=1000)
    sizes = [(len(batch) <= 1000, batch.count) for batch in encoded]
    assert [size for size in sizes if not size[0]] == [(False, 1)]
    assert sum(batch.count for batch in encoded) == len(values)


def test_strings_chunks_and_slices_are_taken() -> None:
    values = pa.chunked_array([pa.array(["a", "b", "c"]).slice(1), pa.array(["ü", None])])
    keys = pa.array([b"0", b"1", b"2", b"3", b"4"]).slice(1)
    columns = as_fetched(in_log(encode_batches(keys, values))).columns()
    assert columns.values.to_pylist() == [b"b", b"c", "ü".encode(), None]
    assert columns.keys.to_pylist() == [b"1", b"2", b"3", b"4"]


def test_null_timestamps_are_now() -> None:
    columns = as_fetched(
        in_log(encode_batches(None, pa.array([b"v", b"w"]), pa.array([None, 5], pa.int64())))
    ).columns()
    assert columns.timestamps_ms[1].as_py() == 5
    assert columns.timestamps_ms[0].as_py() > 1_700_000_000_000


def test_no_rows_make_no_batch() -> None:
    assert encode_batches(None, pa.array([], pa.binary())) == []


@pytest.mark.parametrize(
    ("keys", "values", "headers", "message"),
    [
        (pa.array([b"k"]), pa.array([b"v", b"w"]), None, "keys has 1 rows, values has 2"),
        (None, pa.array([1, 2]), None, "values is a column of int64"),
        (None, pa.array([b"v"]), pa.array([[{"key": None, "value": b""}]], HEADERS_TYPE), "a header has no key"),
    ],
)
def test_columns_that_are_no_records_are_named(keys: Any, values: Any, headers: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        encode_batches(keys, values, None, headers)


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(UnsupportedCompressionType, match="'brotli' is none of none, gzip, snappy, lz4, zstd"):
        encode_batches(None, pa.array([b"v"]), compression="brotli")


def python_calls(work: Any) -> int:
    """Calls of Python and C functions while ``work`` runs."""
    count = 0

    def profile(frame: types.FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # a collection would call finalizers and hooks of others, and they would be counted
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
@pytest.mark.parametrize("with_headers", [False, True])
def test_calls_do_not_grow_with_rows(codec: str, with_headers: bool) -> None:
    """10,000 rows in one batch cost as many Python calls as 1,000 rows in one, out and in."""
    encoding, decoding = [], []
    for rows in (1_000, 10_000):
        keys = pa.array([b"key-%d" % row for row in range(rows)])
        values = pa.array([b"v" * (row % 50) for row in range(rows)])
        times = pa.array(range(rows), pa.int64())
        headers = pa.array([[{"key": "h", "value": b"1"}]] * rows, HEADERS_TYPE) if with_headers else None
        made: list[list[EncodedBatch]] = []

        def encode() -> None:
            made.append(encode_batches(keys, values, times, headers, compression=codec, max_bytes=1 << 30))

        encode()
        encoding.append(python_calls(encode))
        assert len(made[-1]) == 1
        fetched = as_fetched(in_log(made[-1]))
        fetched.columns()  # the first call of a process imports
        decoding.append(python_calls(fetched.columns))
    assert abs(encoding[1] - encoding[0]) < 50  # one more round for the longer numbers, nothing per row
    assert abs(decoding[1] - decoding[0]) < 50


@settings(max_examples=20, deadline=None)
@given(ROWS, st.sampled_from(CODECS), st.integers(70, 2000))
def test_records_become_the_batches_that_columns_become(rows: Any, codec: str, max_bytes: int) -> None:
    records = [(key, value, timestamp_ms) for key, value, timestamp_ms, _ in rows]
    encoded = encode_records(records, compression=codec, max_bytes=max_bytes)
    assert all(batch.count == 1 or codec != "none" or len(batch) <= max_bytes for batch in encoded)
    decoded = list(as_fetched(in_log(encoded)).records())
    assert [(record.key, record.value, record.timestamp_ms) for record in decoded] == records
    assert [record.offset for record in decoded] == list(range(len(records)))


def test_records_are_compressed_by_a_codec_there_is() -> None:
    assert encode_records([]) == []
    with pytest.raises(UnsupportedCompressionType, match="brotli"):
        encode_records([(b"k", b"v", 1)], compression="brotli")
