"""A partition's log through its public interface: append, read, look up, delete, reopen."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    OffsetOutOfRange,
    RecordListTooLarge,
)
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.protocol.compression import Codec
from broker.protocol.records import BatchHeader, Record, decode_batch, encode_batch
from tests.support.times import newest, offset_for_time

NOW = 1_700_000_000_000


def batch(count: int = 3, *, at: int = NOW, codec: Codec | None = None) -> bytes:
    records = [Record(b"k%d" % n, b"v" * 50, (("h", b"x"),), at + n) for n in range(count)]
    return encode_batch(records, compression=codec)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[LogDirectory]:
    opened = LogDirectory(tmp_path / "data")
    opened.open()
    yield opened
    opened.close()


@pytest.fixture
def log(directory: LogDirectory) -> PartitionLog:
    return directory.create("t", 0, uuid.uuid4(), LogConfig(segment_bytes=2000, index_interval_bytes=100))


def append(log: PartitionLog, records: bytes, now_ms: int = NOW) -> tuple[int, int]:
    appended = log.append(records, now_ms=now_ms)
    return appended.base_offset, appended.last_offset


def test_appended_records_come_back_with_their_offsets(log: PartitionLog) -> None:
    assert append(log, batch(3)) == (0, 2)
    assert append(log, batch(2)) == (3, 4)
    records = list(log.iter_records())
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]
    assert records[4] == Record(b"k1", b"v" * 50, (("h", b"x"),), NOW + 1, 4)


def test_a_read_gives_the_batch_that_holds_the_offset(log: PartitionLog) -> None:
    for _ in range(40):
        append(log, batch(3))
    assert len(log.segments) > 3
    for offset in range(120):
        data = log.read(offset, 10_000).read()
        assert BatchHeader.parse(data).base_offset == offset - offset % 3
        assert any(record.offset == offset for record in decode_batch(data))
    assert log.read(120, 10_000).size == 0


def test_offsets_outside_the_log_are_refused(log: PartitionLog) -> None:
    append(log, batch(3))
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange, match=rf"offset {offset} of t-0 is not within 0 to 3"):
            log.read(offset, 100)


def test_the_first_batch_comes_whole_however_small_the_limit_is(log: PartitionLog) -> None:
    data = batch(3)
    append(log, data)
    append(log, data)
    assert log.read(0, 1).size == len(data)
    assert log.read(0, 1, minimum_one=False).size == 0
    assert log.read(0, len(data) + 5).size == len(data) + 5


def test_batches_that_break_a_rule_are_refused_and_change_nothing(log: PartitionLog) -> None:
    good = batch(2)
    wrong_crc = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(CorruptMessage, match="checksum"):
        log.append(wrong_crc, now_ms=NOW)
    with pytest.raises(InvalidRecord):
        log.append(good[:-1], now_ms=NOW)
    with pytest.raises(InvalidRecord, match="magic 1"):
        log.append(good[:16] + b"\x01" + good[17:], now_ms=NOW)
    with pytest.raises(InvalidRecord, match="last offset delta"):
        log.append(encode_batch([Record(b"k", b"v", (), NOW)], last_offset_delta=4), now_ms=NOW)
    with pytest.raises(InvalidRecord, match="control"):
        log.append(encode_batch([Record(b"k", b"v", (), NOW)], control=True), now_ms=NOW)
    with pytest.raises(InvalidRecord, match="no record batch"):
        log.append(b"", now_ms=NOW)
    with pytest.raises(InvalidTimestamp, match="message.timestamp.after.max.ms"):
        log.append(batch(2, at=NOW + 4_000_000), now_ms=NOW)
    log.config = LogConfig(max_message_bytes=100)
    with pytest.raises(MessageTooLarge, match="max.message.bytes, 100"):
        log.append(good, now_ms=NOW)
    assert log.log_end_offset == 0
    assert log.size == 0


@pytest.mark.parametrize("codec", list(Codec))
def test_a_time_is_looked_up_inside_of_batches(log: PartitionLog, codec: Codec) -> None:
    for step in range(30):
        append(log, batch(10, at=NOW + step * 10, codec=codec), NOW + step * 10)
    for timestamp in range(NOW, NOW + 300, 7):
        assert offset_for_time(log, timestamp) == (timestamp, timestamp - NOW)
    assert offset_for_time(log, NOW - 1000) == (NOW, 0)
    assert offset_for_time(log, NOW + 300) is None
    assert newest(log) == (NOW + 299, 299)


def test_records_deleted_from_the_front_are_out_of_range_and_out_of_time(log: PartitionLog) -> None:
    for step in range(30):
        append(log, batch(10, at=NOW + step * 10))
    segments = len(log.segments)
    assert log.delete_records(155) == 155
    assert log.enforce_retention(NOW + 300) > 0
    assert len(log.segments) < segments
    with pytest.raises(OffsetOutOfRange):
        log.read(154, 100)
    assert next(log.iter_records()).offset == 155
    assert offset_for_time(log, NOW) == (NOW + 155, 155)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records(301)
    assert log.delete_records(-1) == 300


def test_old_segments_go_by_age_and_by_size(log: PartitionLog) -> None:
    for step in range(30):
        append(log, batch(10, at=NOW + step * 1000))
    log.config = LogConfig(segment_bytes=2000, retention_ms=-1, retention_bytes=5000)
    log.enforce_retention(NOW)
    assert 5000 <= log.size < 8000
    assert log.log_start_offset == log.segments[0].base_offset > 0
    log.config = LogConfig(segment_bytes=2000, retention_ms=1000)
    log.enforce_retention(NOW + 10_000_000)
    assert log.size == 0
    assert log.log_start_offset == log.log_end_offset == 300
    assert append(log, batch(1)) == (300, 300)


def test_append_time_replaces_the_records_own(log: PartitionLog) -> None:
    log.config = LogConfig(message_timestamp_type="LogAppendTime")
    appended = log.append(batch(3, at=5), now_ms=NOW)
    assert appended.append_time_ms == NOW
    assert {record.timestamp_ms for record in log.iter_records()} == {NOW}


def test_a_topic_may_ask_for_its_own_codec(log: PartitionLog) -> None:
    log.config = LogConfig(compression_type="zstd")
    append(log, batch(50, codec=Codec.GZIP))
    assert BatchHeader.parse(log.read(0, 10_000).read()).codec == Codec.ZSTD
    assert len(list(log.iter_records())) == 50


def test_the_records_that_are_out_of_time_are_named_but_not_without_end(log: PartitionLog) -> None:
    log.config = LogConfig(message_timestamp_after_max_ms=1000)
    for count, named in ((3, [2]), (20_000, [])):
        late = [Record(b"k", b"v", (), NOW + (5000 if n == count - 1 else 0)) for n in range(count)]
        with pytest.raises(InvalidTimestamp) as caught:
            log.append(encode_batch(late, compression=Codec.ZSTD), now_ms=NOW)
        assert [index for index, _ in caught.value.records] == named
    log.config = LogConfig(cleanup_policy=["compact"])
    with pytest.raises(InvalidRecord) as refused:
        log.append(encode_batch([Record(None, b"v", (), NOW)] * 20_000, compression=Codec.ZSTD), now_ms=NOW)
    assert len(refused.value.records) == 10_000


def test_a_compacted_topic_takes_no_record_without_a_key(log: PartitionLog) -> None:
    log.config = LogConfig(cleanup_policy=["compact"])
    with pytest.raises(InvalidRecord, match="1 records of a batch have no key, .* the first is record 1"):
        log.append(encode_batch([Record(b"k", b"v", (), NOW), Record(None, b"v", (), NOW)]), now_ms=NOW)


def test_a_slice_outlives_the_segment_it_is_of(log: PartitionLog) -> None:
    for _ in range(40):
        append(log, batch(3))
    view = log.read(0, 500)
    before = view.read()
    log.delete_records(-1)
    log.enforce_retention(NOW)
    assert view.read() == before


def test_segments_deleted_before_their_flush_do_not_make_it_fail(log: PartitionLog) -> None:
    for _ in range(40):
        append(log, batch(3))
    snapshot = log.segments.snapshot()
    log.delete_records(-1)
    log.enforce_retention(NOW)
    log.segments.replace(snapshot)  # what a flush in another thread still has in hand
    assert log.flush() == 120


def test_only_segments_in_use_keep_their_indexes_in_memory(log: PartitionLog) -> None:
    for _ in range(60):
        append(log, batch(3))
    for offset in range(0, 180, 9):
        log.read(offset, 100)
        in_memory = [segment for segment in log.segments if len(segment.index)]
        assert len(in_memory) <= 2


def test_a_marker_may_be_the_latest_record(log: PartitionLog) -> None:
    records = [Record(b"k", b"v", (), NOW)]
    log.append(encode_batch(records, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True), now_ms=NOW)
    log.append_marker(1, 0, commit=True, now_ms=NOW + 5)
    assert newest(log) == (NOW + 5, 1)
    assert offset_for_time(log, NOW + 1) == (NOW + 5, 1)
    assert [record.offset for record in log.iter_records()] == [0]


def test_a_batch_that_recompression_makes_too_large_is_refused(log: PartitionLog) -> None:
    batch = encode_batch([Record(b"k", bytes(5000), (), NOW)], compression=Codec.ZSTD)
    log.config = LogConfig(compression_type="uncompressed", max_message_bytes=1000)
    with pytest.raises(MessageTooLarge, match=r"becomes 50\d\d with compression.type=uncompressed"):
        log.append(batch, now_ms=NOW)
    log.config = LogConfig(compression_type="gzip", max_message_bytes=1000)
    assert log.append(batch, now_ms=NOW).base_offset == 0


def test_a_batch_larger_than_a_segment_is_refused(log: PartitionLog) -> None:
    with pytest.raises(RecordListTooLarge, match="more than a segment may have, 2000"):
        log.append(encode_batch([Record(b"k", bytes(3000), (), NOW)]), now_ms=NOW)


def test_preallocated_space_is_given_back(log: PartitionLog) -> None:
    log.config = LogConfig(preallocate=True, segment_bytes=1 << 16)
    for number in range(4):
        log.append(encode_batch([Record(b"k", bytes(30_000), (), NOW + number)]), now_ms=NOW)
    sizes = [segment.path.stat().st_size for segment in log.segments]
    assert sizes[-1] == 1 << 16
    assert sizes[:-1] == [segment.size for segment in log.segments][:-1]
    log.trim()
    log.close()
    assert log.active.path.stat().st_size == log.active.size


def test_the_indexes_of_a_segment_closed_where_the_flush_stands_are_flushed_with_the_next(
    log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr("broker.log.segment.sync_file", lambda path: synced.append(Path(path).name))
    append(log, batch())
    log.flush()
    log.appender.roll()
    append(log, batch())
    log.flush()
    assert {"00000000000000000000.index", "00000000000000000000.timeindex"} <= set(synced)
