"""The life of a task: the order of its calls, whatever a plugin does in them, and what a cancelled task can commit."""

from __future__ import annotations

import threading

import pytest

from connect.api import ConnectError, RetriableConnectError, Task
from connect.task.control import CommitGate, Stopped, TaskCancelled, TaskControl
from connect.task.lifecycle import TRANSITIONS, Lifecycle, TaskState
from tests.servers.process import wait_until

S = TaskState


class Noting(Task):
    """Records its calls; ``do`` adds behaviour to a call."""

    def __init__(self, **do):
        super().__init__(None, None)
        self.do, self.calls, self.threads = do, [], set()

    def noted(self, call):
        self.calls.append(call)
        self.threads.add(threading.get_ident())
        return self.do.get(call, lambda: None)()

    def start(self):
        self.resources.callback(self.calls.append, "released")
        self.noted("start")

    def stop(self):
        self.noted("stop")

    def cancel(self):
        self.calls.append("cancel")


class Work:
    """A runner that notes its calls with the task's, and stops the task after some steps."""

    def __init__(self, task, control, steps=2, **do):
        self.task, self.control, self.steps, self.do = task, control, steps, do

    def __getattr__(self, name):
        def call():
            self.task.calls.append(name)
            result = self.do.get(name, lambda: None)()
            if name == "step":
                self.steps -= 1
                if self.steps <= 0:
                    self.control.stop()
            return result

        return call


def lived(task, *, paused=False, steps=2, **do):
    """The task after its life, the states it went through, and what failed it."""
    control = TaskControl(paused=paused)
    states = []
    life = Lifecycle(
        task, Work(task, control, steps, **do), control, lambda state, error: states.append(state), first_pause_s=0.001
    )
    failure = None
    try:
        life.run()
    except BaseException as error:
        failure = error
    return states, failure


def raising(error, times=10**9):
    left = [times]

    def act():
        if left[0]:
            left[0] -= 1
            raise error

    return act


def test_a_task_that_is_told_to_stop_ends_in_order():
    task = Noting()
    states, failure = lived(task)
    assert failure is None
    assert states == [S.STARTING, S.RUNNING, S.CLOSING, S.STOPPED]
    assert task.calls == ["start", "begin", "step", "step", "finish", "stop", "released", "close"]
    assert task.threads == {threading.get_ident()}


def test_every_state_but_the_last_ones_leads_somewhere_and_nothing_leads_back_from_closing():
    assert set(TRANSITIONS) == set(TaskState)
    assert [state for state in TaskState if not TRANSITIONS[state]] == [S.STOPPED, S.FAILED]
    assert TRANSITIONS[S.CLOSING] == {S.STOPPED, S.FAILED}


def test_a_start_that_may_succeed_later_is_repeated_and_what_it_opened_is_released_before():
    task = Noting(start=raising(RetriableConnectError("away"), 2))
    states, failure = lived(task)
    assert failure is None
    assert states[:4] == [S.STARTING, S.STARTING, S.STARTING, S.RUNNING]
    assert task.calls[:6] == ["start", "released", "start", "released", "start", "begin"]
    assert task.calls.count("stop") == 1


def test_a_start_is_repeated_only_until_the_task_is_to_stop():
    task, control = Noting(start=raising(RetriableConnectError("away"))), TaskControl()
    life = Lifecycle(task, Work(task, control), control, lambda state, error: None, first_pause_s=0.001)
    thread = threading.Thread(target=life.run)
    thread.start()
    wait_until(lambda: task.calls.count("start") > 3, "the start repeated")
    control.stop()
    thread.join(60)
    assert life.state is S.STOPPED
    assert task.calls[-2:] == ["stop", "close"] and task.calls.count("stop") == 1 and "begin" not in task.calls


@pytest.mark.parametrize(
    "error", [ConnectError("no"), ValueError("no"), SystemExit(3), KeyboardInterrupt(), GeneratorExit()]
)
@pytest.mark.parametrize("where", ["start", "begin", "step", "finish"])
def test_any_exception_fails_the_task_which_is_stopped_once(error, where):
    task = Noting(start=raising(error) if where == "start" else lambda: None)
    states, failure = lived(task, **({} if where == "start" else {where: raising(error)}))
    assert failure is error
    assert states[-2:] == [S.CLOSING, S.FAILED]
    assert task.calls.count("stop") == 1
    assert task.calls[-4:] == ["abandon", "stop", "released", "close"]


@pytest.mark.parametrize("where", ["stop", "close", "abandon"])
def test_an_error_at_the_end_does_not_replace_the_first_one(where):
    do = {} if where == "stop" else {where: raising(AttributeError("_writer"))}
    task = Noting(start=raising(ConnectError("no such database")))
    task.do |= {"stop": raising(AttributeError("_writer"))} if where == "stop" else {}
    _, failure = lived(task, **do)
    assert isinstance(failure, ConnectError) and str(failure) == "no such database"
    assert failure.__notes__ == [f"After that {where} failed too: AttributeError: _writer"]
    assert task.calls[-1] == "close"


def test_a_stop_that_raises_leaves_a_task_stopped_that_has_committed():
    states, failure = lived(Noting(stop=raising(ValueError("late"))))
    assert failure is None and states[-1] is S.STOPPED


def test_a_task_pauses_with_a_commit_and_goes_on():
    task, control, states = Noting(), TaskControl(paused=True), []
    life = Lifecycle(
        task, Work(task, control, rest=lambda: control.set_paused(False)), control, lambda s, _: states.append(s)
    )
    life.run()
    assert states == [S.STARTING, S.PAUSED, S.RUNNING, S.CLOSING, S.STOPPED]
    assert task.calls[:4] == ["start", "pause", "rest", "begin"]


def test_a_task_that_is_stopped_before_its_start_is_not_started():
    task, control = Noting(), TaskControl()
    control.stop()
    life = Lifecycle(task, Work(task, control), control, lambda state, error: None)
    life.run()
    assert life.state is S.STOPPED and task.calls == ["stop", "close"]


def test_a_wait_that_is_given_up_ends_the_task_without_a_last_commit():
    task = Noting()
    states, failure = lived(task, step=raising(Stopped()))
    assert failure is None and states[-1] is S.STOPPED
    assert "finish" not in task.calls and task.calls[-4:] == ["abandon", "stop", "released", "close"]


def test_a_cancelled_task_does_not_finish_although_its_call_returned_well():
    task, control = Noting(), TaskControl()
    begun, go_on = threading.Event(), threading.Event()

    def slow():
        begun.set()
        assert go_on.wait(60)

    life = Lifecycle(task, Work(task, control, step=slow), control, lambda state, error: None)
    thread = threading.Thread(target=life.run)
    thread.start()
    assert begun.wait(60)
    control.stop()
    life.cancel(0)
    go_on.set()
    thread.join(60)
    assert life.state is S.STOPPED
    assert task.calls.count("cancel") == 1 and "finish" not in task.calls and task.calls.count("stop") == 1


# The gate


def test_no_commit_begins_once_the_gate_is_closed():
    gate = CommitGate()
    with gate.passing():
        pass
    assert gate.close(0)
    with pytest.raises(TaskCancelled), gate.passing():
        raise AssertionError("a commit began")


def test_a_commit_that_has_begun_is_wholly_before_the_cancellation():
    gate, inside, leave, done = CommitGate(), threading.Event(), threading.Event(), []

    def commit():
        with gate.passing():
            inside.set()
            assert leave.wait(60)
            done.append("committed")

    committer = threading.Thread(target=commit)
    committer.start()
    assert inside.wait(60)
    assert not gate.close(0), "the commit has not ended"
    canceller = threading.Thread(target=lambda: done.append(gate.close(60)))
    canceller.start()
    leave.set()
    canceller.join(60)
    committer.join(60)
    assert done == ["committed", True]
