"""The rules applied to hand-made histories: a correct one, and one for each kind of violation.

Also power cuts, on files.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.proofs.history.disk import Disk
from tests.proofs.history.history import Event, History
from tests.proofs.history.plan import plan
from tests.proofs.history.producers import body, identity
from tests.proofs.history.rules import judge

LOG = {"do": "log", "who": "run", "topic": "t", "partition": 0, "start": 0}


def events(**changed: Any) -> list[Event]:
    """Two records of an idempotent producer and a transaction of two, of which a group read all."""
    made = [
        {"who": "run", "do": "sender", "name": "idempotent-0", "kind": "idempotent", "reorders": False},
        {"who": "run", "do": "sender", "name": "transactional-1", "kind": "transactional", "reorders": False},
        *({"who": "idempotent-0", "do": "send", "id": n, "topic": "t", "partition": 0} for n in (1, 2)),
        *({"who": "idempotent-0", "do": "ack", "id": n, "offset": n - 1} for n in (1, 2)),
        {"who": "transactional-1", "do": "txn", "txn": 7, "phase": "begun"},
        *({"who": "transactional-1", "do": "send", "id": n, "topic": "t", "partition": 0, "txn": 7} for n in (11, 12)),
        *({"who": "transactional-1", "do": "ack", "id": n, "offset": n - 9} for n in (11, 12)),
        {"who": "transactional-1", "do": "txn", "txn": 7, "phase": "committing"},
        {"who": "transactional-1", "do": "txn", "txn": 7, "phase": changed.get("ended", "committed")},
        read(changed.get("read", [[0, 1], [1, 2], [2, 11], [3, 12]])),
        {"who": "group-0", "do": "commit", "group": "group", "offsets": {"t/0": 4}},
        {"who": "group-0", "do": "fetched offsets", "group": "group", "offsets": {"t/0": changed.get("fetched", 4)}},
        {**LOG, "isolation": "read_uncommitted", "end": 5, "records": changed.get("log", [[0, 1], [1, 2], [2, 11], [3, 12]])},
        {**LOG, "isolation": "read_committed", "end": changed.get("stable", 5),
         "records": changed.get("committed", changed.get("log", [[0, 1], [1, 2], [2, 11], [3, 12]]))},
    ]  # fmt: skip
    for at, event in enumerate(made):
        event["t"] = event["began"] = float(at)
    return made


def read(records: list[list[int]]) -> Event:
    where = {"topic": "t", "partition": 0, "isolation": "read_committed", "session": 1}
    return {"who": "group-0", "do": "read", **where, "records": records}


def test_a_correct_history_has_no_violations() -> None:
    assert judge(History(events())) == []


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"log": [[0, 1], [2, 11], [3, 12]]}, "acknowledged is there: record 2 from idempotent-0"),
        ({"log": [[0, 1], [1, 2], [2, 11], [3, 12], [4, 99]]}, "only what was sent: record 99, which nobody sent,"),
        ({"log": [[0, 1], [1, 2], [2, 11], [3, 12], [4, 2]]}, "once: record 2"),
        ({"log": [[0, 2], [1, 1], [2, 11], [3, 12]]}, "in order: record 1"),
        ({"read": [[0, 1], [2, 11], [3, 12]]}, "reads agree: group-0 read t-0 from 0 to 3"),
        ({"read": [[0, 1], [1, 2], [3, 12], [2, 11]]}, "reads agree: group-0 read offset 2 of t-0"),
        ({"ended": "aborted"}, "only committed: record 11"),
        ({"committed": [[0, 1], [1, 2], [2, 11]]}, "whole transactions: transaction 7 (committed)"),
        ({"ended": "unknown", "committed": [[0, 1], [1, 2], [2, 11]]}, "whole transactions: transaction 7 (unknown)"),
        ({"stable": 2}, "whole transactions: readers of committed data come to offset 2"),
        ({"fetched": 3}, "offsets never go back: group-0 got offset 3"),
        ({"read": [[0, 1], [1, 2], [2, 11]]}, "groups skip nothing: group-0 committed offset 4"),
    ],
)  # fmt: skip
def test_errors_are_reported(changed: dict[str, Any], rule: str) -> None:
    violations = judge(History(events(**changed)))
    assert any(line.startswith(rule) for line in violations), violations


def test_a_history_is_judged_alike_when_it_is_read_again(tmp_path: Path) -> None:
    history = History(events(log=[[0, 1]]))
    history.save(tmp_path / "history.jsonl")
    assert judge(History.load(tmp_path / "history.jsonl")) == judge(history) != []


def test_a_seed_is_a_plan() -> None:
    assert plan(5) == plan(5) != plan(6)
    assert [identity(body(n, 200)) for n in (1, 77)] == [1, 77]
    assert identity(body(77, 200)[:-1] + b"x") == -1


WRITER = """
import os, sys
from pathlib import Path
from tests.proofs.history.disk import watch
root = Path(sys.argv[1])
watch(root, Path(sys.argv[2]))
log = os.open(root / "a.log", os.O_RDWR | os.O_CREAT)
os.pwritev(log, [b"durable"], 0)
os.fdatasync(log)
folder = os.open(root, os.O_RDONLY)
os.fsync(folder)
os.pwritev(log, [b" and not"], 7)
(root / "new").write_bytes(b"x")
(root / "state").write_bytes(b"1")
os.replace(root / "state", root / "a.state")
os.kill(os.getpid(), 9)
"""


def test_a_power_cut_takes_what_was_not_synced_and_nothing_else(tmp_path: Path) -> None:
    taken = set()
    for seed in range(8):
        root, disk = tmp_path / f"{seed}", Disk(tmp_path / f"{seed}-disk")
        root.mkdir()
        (root / "a.state").write_bytes(b"0")
        subprocess.run([sys.executable, "-c", WRITER, str(root), str(disk.folder)], check=False)
        assert (root / "a.log").read_bytes() == b"durable and not"
        done = disk.cut_power(root, random.Random(seed))
        assert (root / "a.log").read_bytes().startswith(b"durable")
        taken |= {
            (root / "a.log").stat().st_size < 15,
            (root / "a.state").read_bytes() == b"0",
            (root / "new").exists(),
        }
        assert disk.cut_power(root, random.Random(seed)) == [], f"after {done} everything is on the disk"
    assert taken == {True, False}
