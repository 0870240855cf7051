"""Readers of committed data get every aborted transaction that they need, at whatever offset they begin and however
small their fetches are.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log import compaction
from broker.log.config import LogConfig
from broker.log.partition import PartitionLog
from broker.log.recovery import open_partition
from broker.protocol.records import BatchHeader, Record, decode_batch, encode_batch

PRODUCERS = 4
steps = st.lists(
    st.tuples(st.integers(0, PRODUCERS - 1), st.sampled_from(["write", "write", "write", "commit", "abort", "plain"])),
    max_size=60,
)


def opened(directory: Path) -> PartitionLog:
    config = LogConfig(segment_bytes=1024, index_interval_bytes=200)
    log = PartitionLog(directory, "t", 0, uuid.UUID(int=7), config)
    open_partition(log, clean=False, recovery_point=0, log_start_offset=0)
    return log


def fill(log: PartitionLog, todo: list[tuple[int, str]]) -> dict[int, bytes]:
    """Carry the steps out; the values that were committed, by their offsets."""
    committed: dict[int, bytes] = {}
    pending: dict[int, dict[int, bytes]] = {}
    sequences: dict[int, int] = {}
    for number, (producer, step) in enumerate(todo):
        value = b"%d" % number
        if step == "plain":
            at = log.append(encode_batch([Record(b"k", value, (), 1)])).base_offset
            committed[at] = value
        elif step == "write":
            sequence = sequences.get(producer, 0)
            sequences[producer] = sequence + 1
            batch = encode_batch(
                [Record(b"k", value, (), 1)],
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=True,
            )
            pending.setdefault(producer, {})[log.append(batch).base_offset] = value
        else:
            log.append_marker(producer, 0, commit=step == "commit", now_ms=number % 2)
            ended = pending.pop(producer, {})
            committed |= ended if step == "commit" else {}
    return {offset: value for offset, value in committed.items() if offset < log.last_stable_offset}


def read(log: PartitionLog, offset: int, max_bytes: int) -> tuple[dict[int, bytes], int]:
    """Read like a client: one slice, without the batches of aborted transactions.

    Returns also the offset to continue at.
    """
    batches = log.read(offset, max_bytes, until=log.last_stable_offset)
    aborted = sorted(log.reader.aborted_within(offset, batches), key=lambda transaction: transaction.first_offset)
    view = memoryview(batches.read())
    aborting: set[int] = set()
    values: dict[int, bytes] = {}
    position = 0
    while len(view) - position >= 61:
        header = BatchHeader.parse(view, position)
        if position + header.size > len(view):
            break
        batch = view[position : position + header.size]
        position += header.size
        while aborted and aborted[0].first_offset <= header.last_offset:
            aborting.add(aborted.pop(0).producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            values |= {
                record.offset: bytes(record.value or b"") for record in decode_batch(batch) if record.offset >= offset
            }
        offset = header.last_offset + 1
    return values, offset


@settings(max_examples=40, deadline=None)
@given(steps, st.integers(1, 900), st.booleans())
def test_readers_get_what_was_committed_and_nothing_else(
    todo: list[tuple[int, str]], max_bytes: int, again: bool
) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        log = opened(directory)
        expected = fill(log, todo)
        if again:
            log.flush()
            log = opened(directory)
        for start in range(log.last_stable_offset + 1):
            values_read: dict[int, bytes] = {}
            offset = start
            while offset < log.last_stable_offset:
                values, behind = read(log, offset, max_bytes)
                assert behind > offset
                values_read, offset = values_read | values, behind
            assert values_read == {offset: value for offset, value in expected.items() if offset >= start}
    finally:
        shutil.rmtree(directory)


keyed_steps = st.lists(
    st.tuples(
        st.integers(0, PRODUCERS - 1),
        st.sampled_from(["write", "write", "write", "delete", "commit", "abort", "compact"]),
        st.sampled_from([b"a", b"b", b"c"]),
    ),
    max_size=60,
)


def table(log: PartitionLog) -> dict[bytes, bytes]:
    """The last committed value of each key, as a reader of committed data finds it."""
    last: dict[bytes, bytes] = {}
    offset = log.log_start_offset
    while offset < log.last_stable_offset:
        batches = log.read(offset, 100_000, until=log.last_stable_offset)
        if not batches.size:
            break
        values, behind = read(log, offset, 100_000)
        for at in sorted(values):
            key, _, value = values[at].partition(b"=")
            last[key] = value
        offset = behind
    return {key: value for key, value in last.items() if value}


@settings(max_examples=40, deadline=None)
@given(keyed_steps)
def test_compaction_changes_nothing_for_readers_of_committed_data(todo: list[tuple[int, str, bytes]]) -> None:
    directory = Path(tempfile.mkdtemp())
    try:
        log = opened(directory)
        log.config = LogConfig(
            segment_bytes=400, index_interval_bytes=100, cleanup_policy=["compact"], min_cleanable_dirty_ratio=0.0,
            delete_retention_ms=50, segment_ms=1 << 40,
        )  # fmt: skip
        expected: dict[bytes, bytes] = {}
        pending: dict[int, dict[bytes, bytes]] = {}
        sequences: dict[int, int] = {}
        now = 1_000
        for number, (producer, step, key) in enumerate(todo):
            now += 20
            if step in ("write", "delete"):
                value = b"" if step == "delete" else b"%d" % number
                sequence = sequences.get(producer, 0)
                sequences[producer] = sequence + 1
                # The value names the key, for the reader above knows values only; an empty one is a tombstone in effect.
                batch = encode_batch(
                    [Record(key, key + b"=" + value, (), now)],
                    producer_id=producer,
                    producer_epoch=0,
                    base_sequence=sequence,
                    transactional=True,
                )
                log.append(batch, now_ms=now)
                pending.setdefault(producer, {})[key] = value
            elif step == "compact":
                compaction.compact(log, now)
            else:
                log.append_marker(producer, 0, commit=step == "commit", now_ms=now)
                pending.pop(producer, None)
            if step in ("commit", "abort") and not pending:
                expected = table(log)
                log.appender.roll(now)
                compaction.compact(log, now)
                compaction.compact(log, now + 1_000)
                assert table(log) == expected
                log.flush()
                again = opened(directory)
                assert table(again) == expected
                assert again.last_stable_offset == log.last_stable_offset
    finally:
        shutil.rmtree(directory)


def test_records_deleted_within_an_open_transaction_leave_the_stable_offset_behind_the_start(tmp_path: Path) -> None:
    log = opened(tmp_path)
    fill(log, [(0, "write"), (1, "plain"), (1, "plain"), (1, "plain")])
    assert (log.log_start_offset, log.last_stable_offset) == (0, 0)
    log.delete_records(2)
    assert (log.log_start_offset, log.last_stable_offset) == (2, 2)
    log.append_marker(0, 0, commit=False, now_ms=1)
    assert log.last_stable_offset == log.log_end_offset
    assert read(log, 2, 10_000) == ({2: b"2", 3: b"3"}, 5)


@pytest.mark.parametrize("version", [0, 2])
def test_late_markers_of_the_second_version_are_refused(tmp_path: Path, version: int) -> None:
    from broker.errors import InvalidProducerEpoch

    log = opened(tmp_path)
    fill(log, [(0, "write")])
    if version == 2:
        with pytest.raises(InvalidProducerEpoch):
            log.append_marker(0, 0, commit=True, transaction_version=2)
        log.append_marker(0, 1, commit=True, transaction_version=2)
        log.append_marker(0, 1, commit=True, transaction_version=2)
    else:
        log.append_marker(0, 0, commit=True, transaction_version=0)
    assert log.last_stable_offset == log.log_end_offset
