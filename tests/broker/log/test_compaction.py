"""Compaction keeps the last record of each key at its offset, and a crash at any step of it loses no record."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import shutil
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import CorruptMessage, KafkaStorageError
from broker.log import compaction, compaction_run, keyed_records
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.log.recovery import open_partition
from broker.log.swap import Swap
from broker.protocol.compression import Codec
from broker.protocol.records import HEADER_SIZE, BatchHeader, Record, batches, decode_batch, encode_batch
from broker.work import MOST_COMPACTED
from tests.support.faults import FaultyDisk
from tests.support.hostile import many_records

NOW = 1_700_000_000_000
DAY = 24 * 60 * 60 * 1000
COMPACT = LogConfig(
    cleanup_policy=["compact"],
    segment_bytes=600,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.0,
    retention_ms=-1,
)


class Started:
    """A directory with one compacted log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = LogDirectory(path, COMPACT)
        self.directory.open()
        self.log = self.directory.get("t", 0) or self.directory.create("t", 0, uuid.uuid4(), COMPACT)

    def again(self) -> Started:
        self.directory.close()
        return Started(self.path)


@pytest.fixture
def started(tmp_path: Path) -> Started:
    return Started(tmp_path)


def put(log: PartitionLog, *pairs: tuple[bytes, bytes | None], codec: Codec | None = None, at: int = NOW) -> None:
    log.append(encode_batch([Record(key, value, (), at) for key, value in pairs], compression=codec), now_ms=at)


def contents(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(record.offset, record.key, record.value) for record in log.iter_records()]


def table(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    last = {record.key: record.value for record in log.iter_records()}
    return {key: value for key, value in last.items() if value is not None}


@pytest.mark.parametrize("codec", [None, Codec.ZSTD])
def test_only_the_last_record_of_each_key_stays_at_its_offset(started: Started, codec: Codec | None) -> None:
    log = started.log
    for number in range(40):
        put(log, (b"a", b"%d" % number), (b"b%d" % (number % 3), b"x" * 30), codec=codec)
    before, size = contents(log), log.size
    end, closed_end = log.log_end_offset, log.active.base_offset
    assert compaction.compact(log, NOW)
    after = contents(log)
    closed = [entry for entry in before if entry[0] < closed_end]
    last = {key: offset for offset, key, _ in closed}
    assert after == [entry for entry in before if entry[0] >= closed_end or last[entry[1] or b""] == entry[0]]
    assert log.size < size
    assert log.log_end_offset == end
    assert not compaction.compact(log, NOW)
    assert contents(started.again().log) == after


def test_every_offset_stays_readable(started: Started) -> None:
    log = started.log
    for number in range(60):
        put(log, (b"k%d" % (number % 7), b"%d" % number))
    compaction.compact(log, NOW)
    for offset in range(log.log_end_offset):
        data = log.read(offset, 1000).read()
        assert BatchHeader.parse(data).last_offset >= offset


def test_a_tombstone_stays_for_its_time_and_takes_the_key_with_it(started: Started) -> None:
    log = started.log
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    for number in range(20):
        put(log, (b"b", b"%d" % number * 20))
    compaction.compact(log, NOW)
    assert (1, b"a", None) in contents(log)
    assert 0 not in [offset for offset, _, _ in contents(log)]
    for number in range(20):
        put(log, (b"b", b"%d" % number * 20))
    compaction.compact(log, NOW + DAY - 1)
    assert (1, b"a", None) in contents(log)
    for number in range(20):
        put(log, (b"b", b"%d" % number * 20))
    compaction.compact(log, NOW + DAY)
    assert b"a" not in [key for _, key, _ in contents(log)]


def test_little_dirt_and_young_records_are_left_alone(started: Started) -> None:
    log = started.log
    for number in range(20):
        put(log, (b"a", b"%d" % number * 30))
    log.config = LogConfig(cleanup_policy=["compact"], segment_bytes=600, min_compaction_lag_ms=1000)
    assert not compaction.compact(log, NOW + 999)
    assert compaction.compact(log, NOW + 1000)
    put(log, *[(b"a", b"x" * 30)] * 5)
    log.appender.roll(NOW)
    log.config = LogConfig(cleanup_policy=["compact"], segment_bytes=600, min_cleanable_dirty_ratio=1.0)
    assert not compaction.compact(log, NOW + 1000)


def test_aborted_records_go_and_open_transactions_are_not_touched(started: Started) -> None:
    log = started.log

    def transactional(producer: int, sequence: int, key: bytes) -> None:
        batch = encode_batch(
            [Record(key, b"v" * 100, (), NOW)],
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        log.append(batch, now_ms=NOW)

    transactional(1, 0, b"committed")
    log.append_marker(1, 0, commit=True, now_ms=NOW)
    transactional(2, 0, b"committed")
    log.append_marker(2, 0, commit=False, now_ms=NOW)
    for number in range(10):
        put(log, (b"b", b"%d" % number * 50))
    transactional(3, 0, b"open")
    for number in range(10):
        put(log, (b"b", b"%d" % number * 50))
    stable = log.last_stable_offset
    compaction.compact(log, NOW)
    assert [record.value for record in log.iter_records() if record.key == b"committed"] == [b"v" * 100]
    assert [record.offset for record in log.iter_records() if record.offset >= stable] == list(
        range(stable, log.log_end_offset)
    )
    again = started.again().log
    assert again.last_stable_offset == stable


def test_a_plan_can_be_run_in_another_process_and_is_dropped_when_the_log_went_on(started: Started) -> None:
    log = started.log
    for number in range(20):
        put(log, (b"a", b"%d" % number * 30))
    work = compaction.plan_compaction(log, NOW)
    assert work is not None
    done = pickle.loads(pickle.dumps(compaction.run(pickle.loads(pickle.dumps(work)))))
    assert (done.records_before, done.records_after) == (len(work.dirty) * 4, 1) or done.records_after == 1
    log.delete_records(log.segments[1].base_offset)
    log.enforce_retention(NOW)
    assert not compaction.finish_compaction(log, done)
    assert not list(log.directory.glob("*.cleaned"))


def test_more_keys_than_memory_allows_are_done_in_rounds(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    log = started.log
    for number in range(200):
        put(log, (b"k%d" % (number % 50), b"%d" % number))
    before = table(log)
    rounds = 0
    while (work := compaction.plan_compaction(log, NOW)) is not None:
        done = compaction.run(
            compaction.CompactionPlan(
                work.directory, work.clean, work.dirty, work.aborted, work.config, work.now_ms, max_keys=9
            )
        )
        assert compaction.finish_compaction(log, done)
        rounds += 1
    assert rounds > 3
    assert table(log) == before


def test_a_batch_of_more_records_than_memory_is_for_stays_as_it_is(started: Started) -> None:
    log = started.log
    log.config = LogConfig(cleanup_policy=["compact"], segment_bytes=1 << 20, min_cleanable_dirty_ratio=0.0)
    put(log, (b"k", b"before"))
    log.append(many_records(Codec.ZSTD, MOST_COMPACTED + 1), now_ms=NOW)  # all of them with the key k
    for number in range(10):
        put(log, (b"k", b"%d" % number))
    log.appender.roll()
    put(log, (b"k", b"last"))
    assert compaction.compact(log, NOW)
    headers = [BatchHeader.parse(batch) for batch in log.iter_batches()]
    assert [(batch.base_offset, batch.record_count) for batch in headers] == [
        (1, MOST_COMPACTED + 1),
        (MOST_COMPACTED + 11, 1),
        (MOST_COMPACTED + 12, 1),
    ]


def fill_groups(log: PartitionLog) -> None:
    """Fill the log such that several groups of segments lose some of their records."""
    for number in range(60):
        put(log, (b"k%d" % (number % 5), b"%d" % number), (b"once%d" % number, b"1"))
    log.config = LogConfig(cleanup_policy=["compact"], segment_bytes=2000, min_cleanable_dirty_ratio=0.0)


def test_a_crash_at_any_step_keeps_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = Started(tmp_path / "data")
    log = started.log
    fill_groups(log)
    before, size = table(log), log.size
    work = compaction.plan_compaction(log, NOW)
    assert work is not None
    done = compaction.run(work)
    assert len(done.groups) > 1
    crashes: list[Path] = []

    def crash() -> None:
        crashes.append(shutil.copytree(tmp_path / "data", tmp_path / f"crash-{len(crashes)}"))

    def crashing(change: Callable[..., Path]) -> Callable[..., Path]:
        def changed(self: Path, *args: object, **kwargs: object) -> Path:
            made = change(self, *args, **kwargs)
            crash()
            return made

        return changed

    crash()
    with monkeypatch.context() as patch:
        for name in ("rename", "replace", "unlink"):
            patch.setattr(Path, name, crashing(getattr(Path, name)))
        assert compaction.finish_compaction(log, done)
    assert len(crashes) > 6 * len(done.groups)
    after = contents(log)
    for crashed in crashes:
        opened = Started(crashed).log
        assert table(opened) == before
        assert not [
            file.name for file in opened.directory.iterdir() if file.suffix in (".swap", ".cleaned", ".deleted")
        ]
    assert opened.size < size
    assert contents(opened) == after


def put_in_place(path: Path, first: int, count: int) -> bool:
    """Let some of the steps fail by which the result takes its place; whether there were so many."""
    path.mkdir()
    with FaultyDisk(path) as disk:
        started = Started(path / "data")
        log = started.log
        fill_groups(log)
        before = table(log)
        work = compaction.plan_compaction(log, NOW)
        assert work is not None
        done = compaction.run(work)
        disk.fail(first, count)
        with suppress(KafkaStorageError):
            compaction.finish_compaction(log, done)
        taken = len(disk.mend())
        started.directory.repair()
        started.directory.reopen_damaged()
        assert log.failure is None
        assert table(log) == before
        put(log, (b"k1", b"more"))
        assert log.flush() == log.log_end_offset
        compaction.compact(log, NOW)
        assert table(log) == before | {b"k1": b"more"}
        again = started.again()
        assert table(again.log) == before | {b"k1": b"more"}
        again.directory.close()
    return taken > first


@pytest.mark.parametrize("count", [1, *(pytest.param(n, marks=pytest.mark.proof) for n in (2, 10**6))])
def test_a_disk_that_fails_at_any_step_keeps_every_key(tmp_path: Path, count: int) -> None:
    for step in itertools.count():
        if not put_in_place(tmp_path / str(step), step, count):
            assert step > 6
            break


def test_between_the_steps_others_come_and_the_disk_knows_before_anything_goes(started: Started) -> None:
    log = started.log
    fill_groups(log)
    work = compaction.plan_compaction(log, NOW)
    assert work is not None
    bases = [segment.base_offset for segment in work.dirty]
    under_way = log.read(0, 10_000)
    first = under_way.read()
    swap = Swap(log, compaction.run(work))
    steps = iter(swap)
    next(steps)()
    assert (log.directory / "00000000000000000000.log.swap").exists()
    assert [segment.base_offset for segment in log.segments][:-1] == bases
    assert log.read(0, 10_000).read() == first
    put(log, (b"b", b"meanwhile"))
    for sync in steps:
        sync()
    assert swap.is_done
    assert [(key, value) for _, key, value in contents(log)][-1] == (b"b", b"meanwhile")
    # The old files keep their bytes for who reads them, and wait to be removed by someone who has time.
    assert under_way.read() == first
    assert len(list(log.directory.glob("*.log.*.deleted"))) == len(bases)
    started.directory.graves.clear(all_of_them=True)
    assert not list(log.directory.glob("*.deleted"))


@pytest.mark.parametrize("what", ["deleted", "retired", "repaired", "failed"])
def test_a_log_that_changed_between_the_steps_stays_as_it_is(started: Started, what: str) -> None:
    log = started.log
    fill_groups(log)
    log.flush()
    work = compaction.plan_compaction(log, NOW)
    assert work is not None
    before = contents(log)
    swap = Swap(log, compaction.run(work))
    steps = iter(swap)
    next(steps)
    if what == "deleted":
        log.delete_records(log.segments[1].base_offset)
        log.enforce_retention(NOW)
        before = contents(log)
    elif what == "retired":
        log.retire()
    elif what == "repaired":
        log.reset()
        open_partition(log, clean=False, recovery_point=log.flushed_offset, log_start_offset=0)
        before = contents(log)
    if what == "failed":
        del steps  # as when the disk does not take the names
    else:
        assert not list(steps)
    assert not swap.is_done
    assert contents(log) == before
    assert not list(log.directory.glob("*.swap")) + list(log.directory.glob("*.cleaned"))


@settings(max_examples=30, deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 6), st.none() | st.integers(0, 99), st.sampled_from([0, 0, 0, 1])), max_size=80
    )
)
def test_whatever_was_written_the_table_stays_the_same(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int | None, int]]
) -> None:
    started = Started(tmp_path_factory.mktemp("compact"))
    now = NOW
    for key, value, compact in changes:
        put(started.log, (b"key-%d" % key, None if value is None else b"%d" % value * 9), at=now)
        if compact:
            before = table(started.log)
            compaction.compact(started.log, now)
            assert table(started.log) == before
            now += DAY
    assert table(started.again().log) == table(started.log)


def test_a_log_is_compacted_by_the_age_of_its_oldest_dirty_record(started: Started) -> None:
    log = started.log
    log.config = LogConfig(cleanup_policy=["compact"], segment_bytes=1 << 20)
    put(log, *((b"k%d" % number, b"x" * 50) for number in range(100)))
    log.appender.roll(NOW)
    assert compaction.compact(log, NOW)
    log.config = LogConfig(
        cleanup_policy=["compact"],
        segment_bytes=1 << 20,
        min_cleanable_dirty_ratio=0.9,
        max_compaction_lag_ms=1000,
    )
    put(log, (b"a", b"first"))
    put(log, (b"a", b"second"), at=NOW + 500)
    assert len(log.segments) == 2
    # a record later than the lag closes the segment: only closed segments are compacted
    put(log, (b"a", b"third"), at=NOW + 1001)
    assert len(log.segments) == 3
    assert not compaction.compact(log, NOW + 1000)
    assert compaction.compact(log, NOW + 1001)
    assert [value for _, key, value in contents(log) if key == b"a"] == [b"second", b"third"]


def test_compaction_takes_its_time_where_it_is_told_to(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    log = started.log
    for number in range(40):
        put(log, (b"a", b"%d" % number * 30))
    work = compaction.plan_compaction(log, NOW)
    assert work is not None
    slept: list[float] = []
    monkeypatch.setattr(compaction_run, "sleep", slept.append)
    monkeypatch.setattr(compaction_run, "monotonic", lambda: sum(slept))
    done = compaction.run(dataclasses.replace(work, bytes_per_s=1000))
    size = sum(segment.size for segment in work.dirty)
    assert 2 * size / 1000 <= sum(slept) <= 3 * size / 1000  # read twice, and what stays is written
    assert compaction.finish_compaction(log, done)


def test_a_batch_that_is_not_whole_is_refused(started: Started) -> None:
    log = started.log
    for number in range(40):
        put(log, (b"a", b"%d" % number * 30))
    work = compaction.plan_compaction(log, NOW)
    assert work is not None
    path = log.directory / "00000000000000000000.log"
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:30], b"", whole[:16] + b"\x07" + whole[17:], whole[:8] + b"\x7f" + whole[9:]):
        path.write_bytes(damaged)
        with pytest.raises(CorruptMessage, match="000.log: no whole batch at position"):
            compaction.run(work)
    path.write_bytes(whole)
    assert compaction.finish_compaction(log, compaction.run(work))


def test_a_record_that_is_not_as_its_batch_says_is_refused(started: Started) -> None:
    log = started.log
    for number in range(40):
        put(log, (b"a", b"%d" % number * 30))
    work = compaction.plan_compaction(log, NOW)
    assert work is not None
    path = log.directory / "00000000000000000000.log"
    whole = path.read_bytes()
    length, key_length = HEADER_SIZE, HEADER_SIZE + 4
    for at, byte in ((length, 2), (length, 0x7E), (key_length, 0x7E), (HEADER_SIZE - 1, 2)):
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        with pytest.raises(CorruptMessage, match="batch at offset 0 |batches from offset 0 "):
            compaction.run(work)


@pytest.mark.parametrize("codec", [None, Codec.ZSTD])
def test_a_damaged_batch_is_refused_and_the_log_stays_as_it_was(started: Started, codec: Codec | None) -> None:
    log = started.log
    for number in range(40):
        put(log, (b"a", b"%d" % number * 30), (b"b%d" % number, b"x" * 30), codec=codec)
    work = compaction.plan_compaction(log, NOW)
    assert work is not None
    path = log.directory / "00000000000000000000.log"
    whole = path.read_bytes()
    (_, at), *_ = [(header, at) for at, header in batches(memoryview(whole)) if header.base_offset == 2]
    end = at + BatchHeader.parse(whole, at).size
    path.write_bytes(whole[: end - 2] + bytes([whole[end - 2] ^ 1]) + whole[end - 1 :])  # in the last value
    with pytest.raises(CorruptMessage, match="00000000000000000000.log: the batch at offset 2 is damaged"):
        compaction.run(work)
    assert not list(log.directory.glob("*.cleaned"))
    with pytest.raises(CorruptMessage):
        compaction.compact(log, NOW)
    path.write_bytes(whole)
    assert compaction.compact(log, NOW)
    # segments that were compacted before are opened again when they lose records
    for number in range(40):
        put(log, (b"b%d" % number, b"y" * 30), codec=codec)
    whole = path.read_bytes()
    last = [header for _, header in batches(memoryview(whole))][-1]
    end = len(whole)
    path.write_bytes(whole[: end - 2] + bytes([whole[end - 2] ^ 1]) + whole[end - 1 :])
    with pytest.raises(CorruptMessage, match=f"000.log: the batch at offset {last.base_offset} is damaged"):
        compaction.compact(log, NOW)


def batches_in(
    log: PartitionLog, segments: Iterable[compaction.SourceSegment]
) -> list[tuple[BatchHeader, list[Record]]]:
    parsed = []
    for segment in segments:
        view = memoryview((log.directory / f"{segment.base_offset:020d}.log").read_bytes())[: segment.size]
        parsed += [(header, decode_batch(view[at : at + header.size])) for at, header in batches(view)]
    return parsed


def expected(log: PartitionLog, work: compaction.CompactionPlan, until: int) -> list[tuple[BatchHeader, list[Record]]]:
    """The records that compaction leaves according to its definition."""
    latest = {
        record.key: record.offset
        for _, records in batches_in(log, work.dirty)
        for record in records
        if record.offset < until
    }
    sources = (*work.clean, *work.dirty)
    left = []
    for header, records in batches_in(log, [segment for segment in sources if segment.base_offset < until]):
        horizon = header.delete_horizon_ms
        expired = horizon is not None and horizon <= work.now_ms
        stays = [
            segment
            for segment in records
            if segment.offset >= latest.get(segment.key, -1)
            and segment.key is not None
            and not (segment.value is None and expired)
        ]
        if stays:
            left.append((header, stays))
    return left + batches_in(log, [segment for segment in sources if segment.base_offset >= until])


steps = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.integers(0, 9), st.none() | st.integers(0, 40), st.integers(-50, 50)), min_size=1, max_size=9
        ),
        st.sampled_from([None, Codec.ZSTD, Codec.SNAPPY]),
        st.sampled_from([None, None, None, 3, 6, 1000]),
        st.sampled_from([1, DAY // 2, DAY]),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=steps, chunk=st.sampled_from([64, 500, 1 << 20]), part=st.sampled_from([1, 300, 1 << 20]))
def test_compaction_keeps_the_records_that_its_definition_says(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[list[tuple[int, int | None, int]], Codec | None, int | None, int]],
    chunk: int,
    part: int,
) -> None:
    """With several records in a batch, rounds that end within a segment, and clean and dirty parts, read in pieces of
    any size.
    """
    log, now = Started(tmp_path_factory.mktemp("compact")).log, NOW
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction_run, "_CHUNK", chunk)
        patch.setattr(keyed_records, "_PART_BYTES", part)
        for records, codec, max_keys, wait in steps:
            made = [
                Record(
                    (b"a key of more than thirty-two bytes %d" if key > 7 else b"%d") % key,
                    None if value is None else b"v" * value,
                    (("h", b"x"),) if key == 5 else (),
                    now + drift,
                )
                for key, value, drift in records
            ]
            log.append(encode_batch(made, compression=codec), now_ms=now)
            now += wait
            work = compaction.plan_compaction(log, now) if max_keys else None
            if work is None:
                continue
            done = compaction.run(dataclasses.replace(work, max_keys=max_keys))
            left = expected(log, work, done.clean_until)
            assert compaction.finish_compaction(log, done)
            planned = [segment for segment in log.segments if segment.base_offset < work.dirty[-1].next_offset]
            parsed = batches_in(
                log,
                [
                    compaction.SourceSegment(segment.base_offset, segment.next_offset, segment.size, 0, 0)
                    for segment in planned
                ],
            )
            assert [records for _, records in parsed] == [records for _, records in left]
            for (before, _), (after, stayed) in zip(left, parsed, strict=True):
                assert (after.base_offset, after.last_offset) == (before.base_offset, before.last_offset)
                assert after.max_timestamp == max(record.timestamp_ms for record in stayed)
