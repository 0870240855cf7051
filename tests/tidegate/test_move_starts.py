"""The last step of a move, in which the connectors start at the target: cut off, or with one that cannot be started."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.backup.platform_move import _STARTING, PlatformMove
from tidegate.backup.store import BackupStore
from tidegate.cli.move import _EventAccounts
from tidegate.kit.errors import TidegateError

TOLD = {"changes": [], "problems": []}
OFFSETS = [{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": 5}}]


class Worker:
    """A worker's REST API. As the real one's, it changes the offsets of stopped connectors only."""

    def __init__(self, states: dict[str, str], failing: str = "") -> None:
        self.states, self.failing, self.asked = states, failing, list[tuple[str, str]]()

    def call(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        if path == "/connectors":
            listed = {name: {"status": {"connector": {"state": state}}} for name, state in self.states.items()}
            return listed if query else list(listed)
        name, what = path.removeprefix("/connectors/").split("/")
        self.asked.append((name, what))
        if name == self.failing:
            raise TidegateError("the database is away")
        if what == "offsets":
            assert self.states[name] == "STOPPED" and body == {"offsets": OFFSETS}
            return {"message": "altered"}
        self.states[name] = "RUNNING"
        return None


def move(folder: Path, worker: Worker) -> PlatformMove:
    @contextmanager
    def target() -> Any:
        yield SimpleNamespace(worker=worker)

    store = BackupStore(str(folder))
    noted = {"connectors": ["a", "b", "c"], "sink_offsets": {"a": OFFSETS, "b": OFFSETS}, "told": TOLD}
    store.write_json(_STARTING, noted)
    return PlatformMove(store, target, target, progress_of=None, tell=print)  # type: ignore[arg-type]


def test_a_start_that_was_cut_off_goes_on_with_those_that_do_not_run_yet(tmp_path: Path) -> None:
    worker = Worker({"a": "RUNNING", "b": "STOPPED", "c": "UNASSIGNED"})  # made just now: it has no status yet
    done = move(tmp_path, worker).cut_over()
    assert worker.asked == [("b", "offsets"), ("b", "resume"), ("c", "resume")]
    assert [row[0] for row in done["changes"]] == ["connectors a", "connectors b", "connectors c"]


def test_one_that_cannot_be_started_holds_nobody_up_and_is_tried_again(tmp_path: Path) -> None:
    worker = Worker(dict.fromkeys("abc", "STOPPED"), failing="a")
    with pytest.raises(TidegateError, match=r"has moved, but a could not be started there: the database is away"):
        move(tmp_path, worker).cut_over()
    assert worker.states == {"a": "STOPPED", "b": "RUNNING", "c": "RUNNING"}
    worker.failing = ""
    move(tmp_path, worker).cut_over()
    assert worker.states == dict.fromkeys("abc", "RUNNING")


def test_accounts_that_cannot_be_copied_are_told(tmp_path: Path) -> None:
    (tmp_path / "here" / "events").mkdir(parents=True)
    (tmp_path / "here" / "events" / "accounts.json").write_text("{}")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "events").write_text("no folder")
    with pytest.raises(TidegateError, match=r"accounts\.json could not be copied to .*: File exists"):
        _EventAccounts(tmp_path / "here", tmp_path / "there").copy()
