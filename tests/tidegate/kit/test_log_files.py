"""Log files that begin anew while processes append to them."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from tests.tidegate.kit.test_supervisor import CHILD, child, until
from tidegate.kit import supervisor as module
from tidegate.kit.log_files import rotate
from tidegate.kit.supervisor import ChildSpec, Supervisor


def test_earlier_contents_are_kept_up_to_a_number(tmp_path: Path) -> None:
    log = tmp_path / "connect.log"
    with log.open("ab", buffering=0) as appending:
        for number in range(5):
            appending.write(b"%d" % number * 10)
            assert not rotate(log, max_bytes=10, backups=3)
            appending.write(b"x")
            assert rotate(log, max_bytes=10, backups=3)
        appending.write(b"newest")
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert kept == {
        "connect.log": b"newest",
        "connect.log.1": b"4" * 10 + b"x",
        "connect.log.2": b"3" * 10 + b"x",
        "connect.log.3": b"2" * 10 + b"x",
    }
    assert rotate(log, max_bytes=1, backups=0) and log.read_bytes() == b"" and not (tmp_path / "connect.log.4").exists()


def test_who_may_read_a_log_stays_so(tmp_path: Path) -> None:
    log = tmp_path / "connect.log"
    log.write_text("a secret")
    log.chmod(0o600)
    rotate(log, max_bytes=1, backups=1)
    assert (tmp_path / "connect.log.1").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_costs_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "connect.log"
    for content in ("first", "second", "third"):
        log.write_text(content)
        assert rotate(log, max_bytes=1, backups=2)
    log.write_text("fourth")
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    def full(source: object, target: Any, length: int) -> None:
        target.write(b"a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    for _ in range(3):
        with pytest.raises(OSError, match="No space left"):
            rotate(log, max_bytes=1, backups=2)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_the_supervisor_keeps_the_logs_of_its_children_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOGS_S", 0.01)
    says = "import threading, time\ndef say():\n    while True:\n        print('word ' * 20, flush=True)\n        time.sleep(0.001)\n"
    noisy = child(tmp_path, code=says + "threading.Thread(target=say, daemon=True).start()\n" + CHILD)
    logs = tmp_path / "logs"

    async def run() -> None:
        supervisor = Supervisor(
            [ChildSpec(noisy.name, noisy.command)],
            run_dir=tmp_path / "run",
            log_dir=logs,
            log_max_bytes=5_000,
            log_backups=2,
        )
        await supervisor.start()
        await until((logs / "toy.log.2").exists)
        await supervisor.stop()

    asyncio.run(run())
    assert sorted(path.name for path in logs.iterdir()) == ["toy.log", "toy.log.1", "toy.log.2"]
    for path in logs.iterdir():
        lines = [line for line in path.read_text().splitlines() if "[info " not in line]
        assert set(lines) <= {"word " * 20}, path
