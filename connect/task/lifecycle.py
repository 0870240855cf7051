"""The life of one task, the same for sources, sinks and jobs: which state follows which, and which call belongs to each.

    created ──> starting ──> running <──> paused
                   │            │            │
                   └────────────┴────────────┴──> closing ──> stopped | failed

``start`` is repeated while it raises RetriableConnectError. ``stop`` of the task comes once, as the last call, whatever
happened before. All calls of the task come from the thread that calls ``run``; only ``cancel`` comes from another one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from connect.api import RetriableConnectError, Task
from connect.task.control import Stopped, TaskCancelled, TaskControl
from tidegate.kit.logs import get_logger

__all__ = ["TRANSITIONS", "Lifecycle", "Runner", "TaskState"]

logger = get_logger(__name__)

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0


class TaskState(enum.Enum):
    CREATED = "created"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    CLOSING = "closing"
    STOPPED = "stopped"
    FAILED = "failed"


TRANSITIONS: Final[Mapping[TaskState, frozenset[TaskState]]] = {
    TaskState.CREATED: frozenset({TaskState.STARTING, TaskState.CLOSING}),
    TaskState.STARTING: frozenset({TaskState.STARTING, TaskState.RUNNING, TaskState.PAUSED, TaskState.CLOSING}),
    TaskState.RUNNING: frozenset({TaskState.PAUSED, TaskState.CLOSING}),
    TaskState.PAUSED: frozenset({TaskState.RUNNING, TaskState.CLOSING}),
    TaskState.CLOSING: frozenset({TaskState.STOPPED, TaskState.FAILED}),
    TaskState.STOPPED: frozenset(),
    TaskState.FAILED: frozenset(),
}
"""Which states may follow each. A start that is repeated goes from starting to starting."""


class Runner(Protocol):
    """The work of a kind of task. Everything but ``statistics`` is called on the task's thread."""

    def begin(self) -> None:
        """The task has started and is not paused, or goes on after a pause."""
        ...

    def step(self) -> None:
        """One turn of its work. Raises what fails the task, and Stopped out of a wait when the task is to stop."""
        ...

    def pause(self) -> None:
        """Commit what there is: the task pauses, or has started in a pause."""
        ...

    def rest(self) -> None:
        """One turn of a pause; returns within a second."""
        ...

    def finish(self) -> None:
        """The last commit, in order. Raises as ``step``."""
        ...

    def abandon(self) -> None:
        """The task has failed, or was cancelled, and ``finish`` does not come: undo what is half done. Raises nothing."""
        ...

    def close(self) -> None:
        """Close clients and plugins."""
        ...

    def statistics(self) -> dict[str, Any]:
        """Counters by name, for metrics; from any thread."""
        ...


class Lifecycle:
    """One task from its start to its end. ``tell`` hears of each state, with the error where a start is to be repeated."""

    def __init__(
        self,
        task: Task[Any],
        runner: Runner,
        control: TaskControl,
        tell: Callable[[TaskState, BaseException | None], None],
        *,
        first_pause_s: float = _FIRST_PAUSE_S,
    ) -> None:
        self._task, self._runner, self._control, self._tell = task, runner, control, tell
        self._first_pause_s = first_pause_s
        self.state = TaskState.CREATED

    def run(self) -> None:
        """Returns when the task was told to stop; raises what failed it. It has been stopped either way."""
        try:
            self._live()
        except Stopped:
            self._abandon(None)
        except BaseException as error:
            self._abandon(error)
            self._end(error)
            self._enter(TaskState.FAILED)
            raise
        self._end(None)
        self._enter(TaskState.STOPPED)

    def cancel(self, timeout_s: float) -> None:
        """From another thread, when the task did not end in time: from here on nothing is committed, and the call that runs
        is to end. A commit that has begun is waited for so long."""
        self._control.gate.close(timeout_s)
        self._task.cancel()

    def end_call(self) -> None:
        """From another thread: the call that runs is to end, and the task goes on with what it does after an error."""
        self._task.cancel()

    def statistics(self) -> dict[str, Any]:
        return self._runner.statistics()

    def _enter(self, state: TaskState, error: BaseException | None = None) -> None:
        if state not in TRANSITIONS[self.state]:
            raise AssertionError(f"a task that is {self.state.value} cannot become {state.value}")
        self.state = state
        self._tell(state, error)

    def _live(self) -> None:
        if not self._start():
            return
        while not self._control.stopping.is_set():
            self._follow_pauses()
            if self.state is TaskState.PAUSED:
                self._runner.rest()
            else:
                self._runner.step()
        if self._control.cancelled:
            raise TaskCancelled("the task was cancelled")
        self._enter(TaskState.CLOSING)
        self._runner.finish()

    def _follow_pauses(self) -> None:
        state = TaskState.PAUSED if self._control.paused else TaskState.RUNNING
        if self.state is state:
            return
        if state is TaskState.PAUSED:
            self._runner.pause()
        else:
            self._runner.begin()
        self._enter(state)

    def _start(self) -> bool:
        """Whether the task has started; not where it was told to stop before it could."""
        pause_s, error = self._first_pause_s, None
        while not self._control.stopping.is_set():
            self._enter(TaskState.STARTING, error)
            try:
                with self._control.calling("start"):
                    self._task.start()
                return True
            except RetriableConnectError as raised:
                error = raised
                logger.warning("start will be repeated", error=str(raised), again_in_s=pause_s)
                self._task.resources.close()
            self._control.stopping.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        return False

    def _abandon(self, failure: BaseException | None) -> None:
        if self.state is not TaskState.CLOSING:
            self._enter(TaskState.CLOSING)
        try:
            self._runner.abandon()
        except BaseException as error:  # noqa: BLE001 - the task is stopped all the same
            self._tell_trouble("abandon", error, failure)

    def _end(self, failure: BaseException | None) -> None:
        """Stop the task and close its clients and plugins. An error here never hides the error that failed the task."""
        if self.state is not TaskState.CLOSING:
            self._enter(TaskState.CLOSING)
        ends = {"stop": self._task.stop, "release": self._task.resources.close, "close": self._runner.close}
        for call, end in ends.items():
            try:
                with self._control.ending(call):
                    end()
            except BaseException as error:  # noqa: BLE001 - plugins' own code: the task ends all the same
                self._tell_trouble(call, error, failure)

    @staticmethod
    def _tell_trouble(call: str, error: BaseException, failure: BaseException | None) -> None:
        logger.error(
            "a task did not end as it should", call=call, error=f"{type(error).__name__}: {error}", exc_info=error
        )
        if failure is not None:
            failure.add_note(f"After that {call} failed too: {type(error).__name__}: {error}")
