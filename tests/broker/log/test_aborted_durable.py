"""After a flush the transaction index is durable too, both its content and its name, whichever code wrote it."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest

from broker.log import flusher as flusher_module
from broker.log import recovery as recovery_module
from broker.log import segment as segment_module
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.log.transaction_index import TransactionIndex
from broker.protocol.records import Record, encode_batch

NOW = 1_700_000_000_000


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files and directories that were brought to the disk by name."""
    names: list[str] = []

    def noting(module: object, name: str) -> None:
        real = getattr(module, name)

        def sync(path: Path | str) -> None:
            names.append(Path(path).name)
            real(path)

        monkeypatch.setattr(module, name, sync)

    noting(segment_module, "sync_file")
    noting(flusher_module, "sync_directory")
    noting(recovery_module, "sync_file")
    noting(recovery_module, "sync_directory")
    return names


def opened(path: Path) -> tuple[LogDirectory, PartitionLog]:
    directory = LogDirectory(path)
    directory.open()
    return directory, directory.get("t", 0) or directory.create("t", 0, uuid.uuid4())


def aborted(log: PartitionLog, sequence: int) -> None:
    record = Record(b"k", b"v", (), NOW)
    log.append(
        encode_batch([record], producer_id=1, producer_epoch=0, base_sequence=sequence, transactional=True), now_ms=NOW
    )
    log.append_marker(1, 0, commit=False, now_ms=NOW)


def test_the_first_flush_after_an_abort_brings_its_entry_and_its_name(tmp_path: Path, synced: list[str]) -> None:
    directory, log = opened(tmp_path)
    log.append(encode_batch([Record(b"k", b"v", (), NOW)]), now_ms=NOW)
    log.flush()
    synced.clear()
    aborted(log, 0)
    log.flush()
    assert synced == ["00000000000000000000.txnindex", "t-0"]
    synced.clear()
    aborted(log, 1)
    log.flush()
    assert synced == ["00000000000000000000.txnindex"]
    directory.close()


def test_a_flush_beside_an_abort_does_not_reach_the_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, log = opened(tmp_path)
    positions = []
    real = TransactionIndex.append

    def append(self: TransactionIndex, *entry: object) -> bool:
        positions.append((log.flush(), log.log_end_offset))
        return real(self, *entry)  # type: ignore[arg-type]

    monkeypatch.setattr(TransactionIndex, "append", append)
    aborted(log, 0)
    assert positions == [(1, 2)]
    assert log.flush() == 2
    directory.close()


def test_files_of_a_killed_process_do_not_count_as_durable(tmp_path: Path, synced: list[str]) -> None:
    killed, log = opened(tmp_path / "killed")
    aborted(log, 0)
    shutil.copytree(tmp_path / "killed", tmp_path / "again")
    synced.clear()
    again, _ = opened(tmp_path / "again")
    assert synced == ["00000000000000000000.txnindex", "t-0"]
    again.close()
    killed.close()
