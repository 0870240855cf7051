"""Recovery after a crash, wherever the log was cut off; damage to files that can be rebuilt does not matter."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import KafkaStorageError
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.protocol.compression import Codec
from broker.protocol.records import Record, encode_batch
from tests.support.times import offset_for_time

NOW = 1_700_000_000_000
_DAMAGE = {
    "empty": b"",
    "odd": b"1234567",
    "noise": b"\xff\x01" * 120,
    "zeros": bytes(240),
    "askew": b"\x00\x00\x00\x02\x00\x00\x00\x33",
}
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)


def opened(path: Path) -> tuple[LogDirectory, PartitionLog]:
    directory = LogDirectory(path, SMALL)
    directory.open()
    return directory, directory.get("t", 0) or directory.create("t", 0, uuid.uuid4())


def fill(log: PartitionLog, batches: int, *, producer: int = -1, first_sequence: int = 0) -> None:
    for number in range(batches):
        records = [Record(b"k", b"v%d" % number, (), NOW + number) for _ in range(3)]
        sequence = (
            {}
            if producer < 0
            else {"producer_id": producer, "producer_epoch": 0, "base_sequence": first_sequence + 3 * number}
        )
        log.append(encode_batch(records, compression=Codec(number % 5), **sequence), now_ms=NOW)  # type: ignore[arg-type]


def crash(directory: LogDirectory, to: Path) -> Path:
    """A copy of the files as they are, as after ``kill -9``."""
    for log in directory.all():
        log.recovery_files.save_indexes()
    shutil.copytree(directory.path, to)
    directory.close()
    return to


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 4000), junk=st.binary(max_size=100))
def test_a_torn_tail_is_cut_off_wherever_it_begins(
    tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
) -> None:
    path = tmp_path_factory.mktemp("torn")
    directory, log = opened(path / "data")
    ends = [0]
    for _ in range(30):
        fill(log, 1)
        ends.append(log.size)
    sizes = [(segment.path.name, segment.size) for segment in log.segments]
    before = list(log.iter_records())
    copy = crash(directory, path / "copy")
    keep = min(cut, log.size)
    remaining = keep
    for name, size in sizes:
        file = copy / "t-0" / name
        if remaining < size:
            os.truncate(file, remaining)
            with file.open("ab") as out:
                out.write(junk)
            for later, _ in sizes[[n for n, _ in sizes].index(name) + 1 :]:
                (copy / "t-0" / later).unlink()
            break
        remaining -= size
    again_directory, again = opened(copy)
    whole = max(number for number, end in enumerate(ends) if end <= keep)
    assert list(again.iter_records()) == before[: 3 * whole]
    fill(again, 2)
    assert [record.offset for record in again.iter_records()] == list(range(3 * whole + 6))
    again_directory.close()


def test_a_flipped_bit_ends_the_log_there(tmp_path: Path) -> None:
    directory, log = opened(tmp_path / "data")
    fill(log, 30)
    copy = crash(directory, tmp_path / "copy")
    file = copy / "t-0" / log.segments[2].path.name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)
    _, again = opened(copy)
    assert log.segments[2].base_offset <= again.log_end_offset < log.segments[3].base_offset
    assert len(again.segments) == 3
    assert not (copy / "t-0" / log.segments[3].path.name).exists()


def test_segments_below_the_recovery_point_are_trusted(tmp_path: Path) -> None:
    directory, log = opened(tmp_path / "data")
    fill(log, 30)
    log.flush()
    directory.checkpoint()
    fill(log, 3)
    copy = crash(directory, tmp_path / "copy")
    first = copy / "t-0" / log.segments[0].path.name
    before = first.stat().st_mtime_ns, first.read_bytes()
    _, again = opened(copy)
    assert again.log_end_offset == 99
    assert (first.stat().st_mtime_ns, first.read_bytes()) == before


@pytest.mark.parametrize("damage", ["missing", "empty", "odd", "noise", "zeros", "askew"])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_damaged_index_is_rebuilt(tmp_path: Path, damage: str, suffix: str) -> None:
    directory, log = opened(tmp_path)
    fill(log, 40)
    before = list(log.iter_records())
    directory.close()
    for file in (tmp_path / "t-0").glob(f"*{suffix}"):
        if damage == "missing":
            file.unlink()
        else:
            file.write_bytes(_DAMAGE[damage])
    _, again = opened(tmp_path)
    assert list(again.iter_records()) == before
    for offset in range(0, 120, 5):
        assert again.read(offset, 100).size > 0
    assert offset_for_time(again, NOW + 20) == (NOW + 20, 60)


def test_repeated_batches_are_known_after_a_clean_stop_and_after_a_crash(tmp_path: Path) -> None:
    directory, log = opened(tmp_path / "data")
    fill(log, 20, producer=7)
    records = [Record(b"k", b"v", (), NOW)] * 3
    last_five = [
        encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=sequence) for sequence in range(45, 60, 3)
    ]
    copy = crash(directory, tmp_path / "copy")
    for path in (tmp_path / "data", copy):
        _, again = opened(path)
        for number, batch in enumerate(last_five):
            assert again.append(batch, now_ms=NOW).base_offset == 45 + 3 * number
        assert again.log_end_offset == 60


def test_a_damaged_snapshot_is_made_up_for_by_the_log(tmp_path: Path) -> None:
    directory, log = opened(tmp_path)
    fill(log, 20, producer=7)
    directory.close()
    for file in (tmp_path / "t-0").glob("*.snapshot"):
        file.write_bytes(file.read_bytes()[:-1] + b"!")
    _, again = opened(tmp_path)
    batch = encode_batch([Record(b"k", b"v", (), NOW)] * 3, producer_id=7, producer_epoch=0, base_sequence=57)
    assert again.append(batch, now_ms=NOW).base_offset == 57


def test_open_and_aborted_transactions_survive_a_crash(tmp_path: Path) -> None:
    directory, log = opened(tmp_path / "data")
    record = [Record(b"k", b"v", (), NOW)]
    for producer in (1, 2, 3):
        log.append(
            encode_batch(record, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True),
            now_ms=NOW,
        )
    log.append_marker(1, 0, commit=False)
    log.append_marker(3, 0, commit=True)
    assert log.last_stable_offset == 1
    aborted = list(log.aborted)
    assert [(entry.producer_id, entry.first_offset, entry.last_offset) for entry in aborted] == [(1, 0, 3)]
    copy = crash(directory, tmp_path / "copy")
    for path in (copy, tmp_path / "data"):
        _, again = opened(path)
        assert again.last_stable_offset == 1
        assert again.aborted == aborted
        again.append_marker(2, 0, commit=True)
        assert again.last_stable_offset == again.log_end_offset


def test_start_offsets_and_deletions_survive_a_restart(tmp_path: Path) -> None:
    directory, log = opened(tmp_path)
    fill(log, 30)
    log.delete_records(50)
    directory.checkpoint_start_offsets()
    directory.close()
    _, again = opened(tmp_path)
    assert again.log_start_offset == 50
    assert next(again.iter_records()).offset == 50


def test_a_second_broker_is_kept_out(tmp_path: Path) -> None:
    directory, _ = opened(tmp_path)
    with pytest.raises(KafkaStorageError, match="in use by another broker"):
        LogDirectory(tmp_path).open()
    directory.close()
    opened(tmp_path)[0].close()


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    opened(tmp_path)[0].close()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n5\nt 0 7\n")
    with pytest.raises(KafkaStorageError, match="recovery-point-offset-checkpoint is not an offset checkpoint"):
        LogDirectory(tmp_path).open()


@settings(max_examples=60, deadline=None)
@given(
    junk=st.binary(max_size=400),
    index=st.binary(max_size=64),
    times=st.binary(max_size=64),
    snapshot=st.binary(max_size=64),
)
def test_files_full_of_noise_are_an_empty_log(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, index: bytes, times: bytes, snapshot: bytes
) -> None:
    path = tmp_path_factory.mktemp("noise")
    opened(path)[0].close()
    (path / ".kafka_cleanshutdown").unlink()
    for suffix, content in (
        (".log", junk),
        (".index", index),
        (".timeindex", times),
        (".txnindex", times),
        (".snapshot", snapshot),
    ):
        (path / "t-0" / f"{0:020d}{suffix}").write_bytes(content)
    directory, log = opened(path)
    assert log.log_end_offset == 0
    assert log.active.path.stat().st_size == 0
    fill(log, 1)
    assert len(list(log.iter_records())) == 3
    directory.close()


@settings(max_examples=60, deadline=None)
@given(index=st.binary(max_size=64), times=st.binary(max_size=64), transactions=st.binary(max_size=64))
def test_noise_in_the_indexes_does_no_harm_after_a_clean_stop(
    tmp_path_factory: pytest.TempPathFactory, index: bytes, times: bytes, transactions: bytes
) -> None:
    path = tmp_path_factory.mktemp("noise")
    directory, log = opened(path)
    fill(log, 20)
    before = list(log.iter_records())
    directory.close()
    for name in [name[:20] for name in os.listdir(path / "t-0") if name.endswith(".log")]:
        for suffix, content in ((".index", index), (".timeindex", times), (".txnindex", transactions)):
            (path / "t-0" / f"{name}{suffix}").write_bytes(content)
    directory, log = opened(path)
    assert log.log_end_offset == 60
    assert list(log.iter_records()) == before
    directory.close()
