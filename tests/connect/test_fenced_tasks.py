"""Source tasks whose transactional producer was fenced: they start again where they are still to run, and only there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from broker.client.errors import InvalidProducerEpoch, ProducerFenced
from connect.api import ConnectError, PluginType
from connect.config.connector import CommonConfig
from connect.errors import RemoteError
from connect.plugins.registry import PluginRegistry
from connect.worker.host import tasks
from connect.worker.host.restarts import Restarts, was_fenced
from connect.worker.host.tasks import HostedTask, TaskSetup
from tests.servers.process import wait_until
from tidegate.kit.config import parse

pytestmark = pytest.mark.usefixtures("impatient")
COMMON = parse(CommonConfig, {"name": "n", "connector.class": "c", "task.restart.backoff.ms": "1"})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_ASKED_AGAIN_S", 0.01)


def fenced(kind: type[Exception] = ProducerFenced) -> ConnectError:
    error = ConnectError("records could not be written")
    error.__cause__ = kind("a newer producer")
    return error


class _Link:
    """A worker that answers each question with nothing, and takes down the states."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.refusal: Exception | None = None

    def event(self, name: str, /, **values: Any) -> None:
        if name == "task_state":
            self.states.append(values["state"])

    def call(self, _: str, /, **__: Any) -> list[Any]:
        if self.refusal is not None:
            raise self.refusal
        return []

    def submit(self, _: str, /, **__: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result([])
        return done


class _Task(HostedTask):
    """A task whose starts end as they are told to; None is a run that ends in order."""

    def __init__(self, outcomes: Sequence[Exception | None]) -> None:
        self.told, self.outcomes = _Link(), list(outcomes)
        setup = TaskSetup("c", 0, 1, {}, {}, [], {})
        super().__init__(setup, PluginRegistry([]), self.told, paused=False)  # type: ignore[arg-type]

    def _resolved(self) -> Any:
        return SimpleNamespace(common=COMMON, plugin=SimpleNamespace(type=PluginType.SOURCE))

    def _assembled(self, resolved: Any, offsets: Sequence[Mapping[str, Any]]) -> Any:
        error = self.outcomes.pop(0)
        if error is not None:
            raise error
        return SimpleNamespace(run=lambda: None)


def states_of(*outcomes: Exception | None) -> list[str]:
    task = _Task(outcomes)
    task.start()
    wait_until(lambda: not task._thread.is_alive(), "the end of the task")
    assert task.outcomes == [], "not started again"
    return task.told.states


def test_it_starts_again() -> None:
    assert states_of(fenced(), fenced(InvalidProducerEpoch), None) == ["RESTARTING", "RESTARTING", "STOPPED"]


MOVED = RemoteError("Cannot start source task c-0: it has already been revoked from this worker", 409)


def test_where_it_has_moved_away_it_leaves_the_word_to_its_successor_until_it_is_stopped() -> None:
    task = _Task([fenced(), *[MOVED] * 1000])
    task.start()
    wait_until(lambda: len(task.outcomes) < 999, "it asks again")
    assert task.stop(60)
    assert task.told.states == ["RESTARTING"]
    assert states_of(MOVED) == ["FAILED"]  # as in Kafka Connect


def test_where_it_has_come_back_it_goes_on() -> None:
    assert states_of(fenced(), MOVED, MOVED, None) == ["RESTARTING", "STOPPED"]


def test_one_that_is_told_to_stop_while_it_starts_has_not_failed() -> None:
    assert states_of(RemoteError("task 0 of c is not to run any more", 404)) == ["STOPPED"]


@pytest.mark.parametrize("error", [ConnectError("no"), RemoteError("no", 500)])
def test_another_failure_stays(error: Exception) -> None:
    assert states_of(fenced(), error) == ["RESTARTING", "FAILED"]


def test_one_whose_offsets_cannot_be_read_does_not_end_without_a_word() -> None:
    task = _Task([fenced()])
    task.told.refusal = RemoteError("the offsets cannot be read")
    task.start()
    wait_until(lambda: not task._thread.is_alive(), "the end of the task")
    assert task.told.states == ["RESTARTING", "FAILED"]


def test_one_that_is_fenced_again_and_again_fails() -> None:
    now = [0.0]
    restarts = Restarts(COMMON, lambda: now[0])
    for _ in range(10):
        assert restarts.after_fencing() == 0.001
        now[0] += 59
    assert restarts.after_fencing() is None
    now[0] += 11  # the first is ten minutes ago
    assert restarts.after_fencing() == 0.001
    assert states_of(*(fenced() for _ in range(11))) == [*["RESTARTING"] * 10, "FAILED"]


def test_only_the_producer_s_errors_are_fencings() -> None:
    assert was_fenced(ProducerFenced("a newer producer")) and was_fenced(fenced())
    assert not was_fenced(ConnectError("ProducerFenced"))
