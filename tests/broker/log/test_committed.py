"""The committed records of a log with transactions."""

from __future__ import annotations

from broker.log.committed import committed_records
from broker.protocol.records import Record, encode_batch, encode_marker


def batch(*keys: bytes, producer_id: int | None = None, at: int = 0) -> bytes:
    records = [Record(key, b"v", (), 1_000) for key in keys]
    if producer_id is None:
        return encode_batch(records, base_offset=at)
    return encode_batch(
        records, base_offset=at, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


def keys(*batches: bytes) -> list[bytes]:
    return [bytes(record.key or b"") for record in committed_records(batches)]


def marker(producer_id: int, *, committed: bool) -> bytes:
    return encode_marker(producer_id, 0, 9, commit=committed, coordinator_epoch=0, timestamp_ms=1_000)


def test_a_transactions_records_count_from_its_commit_on() -> None:
    first, second = batch(b"a", producer_id=1), batch(b"b", producer_id=2)
    log = [first, second, batch(b"c"), marker(2, committed=True), marker(1, committed=True)]
    assert keys(*log) == [b"c", b"b", b"a"]


def test_aborted_and_open_transactions_do_not_count() -> None:
    aborted, open_ = batch(b"a", producer_id=1), batch(b"b", producer_id=2)
    assert keys(aborted, open_, batch(b"c"), marker(1, committed=False)) == [b"c"]


def test_a_batch_that_cannot_be_read_is_left_out() -> None:
    broken = bytearray(batch(b"a"))
    broken[61:] = b"\xff" * (len(broken) - 61)
    assert keys(bytes(broken), batch(b"b")) == [b"b"]
