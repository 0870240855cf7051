"""One connector under test in a real worker with a conductor; shared by both fault suites."""

from __future__ import annotations

import gc
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal

import pytest

from connect.api import Connector
from connect.bench import Bench
from connect.testing.conductor import Conductor, Hold
from connect.testing.forwarder import Forwarder
from connect.testing.interposed import LineCounter, files_of
from connect.testing.worker import TestWorker, eventually

__all__ = ["FaultSuite", "Trial"]

_MODULE: Final = """from {module} import {name}
from connect.testing.interposed import interposed
UnderTest = interposed({name}, {port})
"""
_MOST_LINES: Final = 40
"""How many lines of a long ``start`` are tried."""
_CYCLES: Final = 7


class Trial:
    """A connector's name, its worker, the conductor of its tasks and the forwarders to its servers."""

    def __init__(self, worker: TestWorker, cls: type[Connector[Any]], parties: Sequence[Forwarder]) -> None:
        self.worker, self.parties = worker, parties
        self.name = f"trial-{uuid.uuid4().hex[:8]}"
        self.conductor = Conductor()
        module = self.name.replace("-", "_")
        source = _MODULE.format(module=cls.__module__, name=cls.__name__, port=self.conductor.port)
        (worker.folder / f"{module}.py").write_text(source)
        self._class, self._began = f"{module}:UnderTest", False

    def create(self, properties: Mapping[str, str]) -> None:
        """Create the connector and wait until it runs."""
        self.begin(properties)
        self.running()

    def begin(self, properties: Mapping[str, str]) -> None:
        """Create the connector, which may fail soon."""
        self._began = True
        self.reconfigure(properties)

    def reconfigure(self, properties: Mapping[str, str]) -> None:
        config = {**properties, "name": self.name, "connector.class": self._class}
        self.worker.ask("PUT", f"/connectors/{self.name}/config", config)

    def order(self, what: Literal["stop", "pause", "resume"]) -> None:
        self.worker.ask("PUT", f"/connectors/{self.name}/{what}")

    def order_during(self, what: Literal["stop", "pause"], hold: Hold, seconds: float) -> None:
        """Give the order while a call waits; the call continues after ``seconds``."""
        eventually(hold.reached.is_set, bool, "a call that waits")
        timer = threading.Timer(seconds, hold.release)
        timer.start()
        self.order(what)
        timer.join()

    def restart(self) -> None:
        self.worker.ask("POST", f"/connectors/{self.name}/restart?includeTasks=true")

    def running(self) -> None:
        """Wait until it runs. Raises AssertionError with its trace if it has failed."""
        eventually(lambda: self.alive()[1], lambda tasks: bool(tasks) and set(tasks) == {"RUNNING"}, "tasks that run")

    def alive(self) -> tuple[str, list[str], str]:
        state, tasks, trace = self.worker.status(self.name)
        # A task whose host was killed is shown as failed until another host has it.
        assert "FAILED" not in [state, *tasks] or "was ended by SIGKILL" in trace, trace
        return state, tasks, trace

    def ended(self, state: Literal["STOPPED", "PAUSED"]) -> None:
        """Wait until it, or each of its tasks, is in the state."""

        def reached(status: tuple[str, list[str], str]) -> bool:
            return status[0] == state and set(status[1]) <= {state}

        eventually(lambda: self.worker.status(self.name), reached, state)

    def failed(self) -> str:
        """Wait until a task has failed. Returns its trace."""
        return eventually(lambda: self.worker.status(self.name), lambda status: "FAILED" in status[1], "a failure")[2]

    def hold(self, call: str, part: float = 0.5) -> Hold:
        """Make the next such call wait at a line."""
        hold = Hold()
        self.conductor.within(call, hold, part=part)
        return hold

    def kill_within(self, call: str, part: float) -> None:
        """Kill the task host during the next such call."""
        self.conductor.within(call, lambda: "kill", part=part)

    def cut(self) -> Literal["go"]:
        """Cut all connections to the connector's servers."""
        for party in self.parties:
            party.cut()
        return "go"

    def cut_next(self) -> Literal["go"]:
        """Cut one connection to each of them, a different one each time."""
        for party in self.parties:
            party.cut_next()
        return "go"

    def left_behind(self) -> tuple[int, int]:
        """Numbers of threads and open files, including sockets, of the task host."""
        import psutil

        pid = eventually(self.worker.task_host, bool, "a task host")
        assert pid is not None
        process = psutil.Process(pid)
        return process.num_threads(), process.num_fds()

    def close(self) -> None:
        """Delete the connector and release everything that waits."""
        self.conductor.forget()
        if self._began:
            self.worker.ask("DELETE", f"/connectors/{self.name}")
        self.conductor.close()


class FaultSuite:
    """Shared by the suites of sinks and sources. Needs a Kafka and a working connector; see ``connect.testing``."""

    connector_class: ClassVar[type[Connector[Any]]]
    memory_bound_bytes: ClassVar[int] = 1_000_000_000
    """The memory limit of the task host."""

    @pytest.fixture(scope="class")
    @classmethod
    def bootstrap_servers(cls) -> str:
        """The Kafka to run on; its scope may be larger than a test's."""
        raise NotImplementedError

    @pytest.fixture
    def properties(self) -> Mapping[str, str]:
        """The connector's own keys, for a fresh target or source."""
        raise NotImplementedError

    @pytest.fixture
    def parties(self) -> Sequence[Forwarder]:
        """Forwarders through which ``properties`` makes the connector reach its servers; they are cut."""
        return []

    @pytest.fixture(scope="class")
    @classmethod
    def worker(cls, bootstrap_servers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestWorker]:
        worker = TestWorker(tmp_path_factory.mktemp("faults") / "worker", bootstrap_servers)
        yield worker
        worker.close()

    @pytest.fixture
    def trial(self, worker: TestWorker, parties: Sequence[Forwarder]) -> Iterator[Trial]:
        import psutil

        before = worker.temporary_files()
        trial = Trial(worker, self.connector_class, parties)
        try:
            yield trial
            pid = worker.task_host()
            taken = psutil.Process(pid).memory_info().rss if pid is not None else 0
        finally:
            trial.close()
        assert taken < self.memory_bound_bytes, f"the task host takes {taken:,} bytes"
        complaints = trial.conductor.complaints()
        assert not complaints, complaints
        eventually(lambda: worker.temporary_files() - before, lambda left: not left, "no temporary files left", 10)

    def run_config(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The configuration for the worker: the connector's own keys and the runtime's."""
        raise NotImplementedError

    def test_a_start_that_fails_at_any_line_is_stopped_and_leaves_nothing(self, properties: Mapping[str, str]) -> None:
        """Raise an error before each line of the connector's code that ``start`` executes, one after another."""
        bench = Bench(self.connector_class, self.run_config(properties))
        planned = bench.plan()[0]
        files = files_of(self.connector_class)
        counter = LineCounter(files, lambda: None, None)
        for _ in range(2):
            counter.lines = 0
            with bench.created(planned) as created, counter.counting():
                created.task.start()
        lines = range(1, counter.lines + 1, max(1, counter.lines // _MOST_LINES))
        before, tries = _open_things(), len(lines)
        with warnings.catch_warnings():
            # Between two lines an object may have no owner yet; it goes with its last reference.
            warnings.simplefilter("ignore", ResourceWarning)
            for line in lines:
                with bench.created(planned) as created:
                    try:
                        with LineCounter(files, _refuse, line).counting():
                            created.task.start()
                    except Exception as error:  # noqa: BLE001 - a connector may raise it as an error of its own
                        assert _was_refused(error), f"line {line} of start failed, and what came was {error!r}"
            del created
            gc.collect()
        eventually(
            lambda: {name: count - before[name] for name, count in _open_things().items()},
            lambda now: max(now.values()) <= tries // 4 + 2,
            f"threads and files as before {tries} starts",
            10,
        )

    def cycles_leave_nothing(self, trial: Trial) -> None:
        """Stop and resume several times; count what remains."""
        seen = []
        for _ in range(_CYCLES):
            trial.order("stop")
            trial.ended("STOPPED")
            seen.append(trial.left_behind())
            trial.order("resume")
            trial.running()
        # The first cycle may load permanent things. Of the others the minimum counts, because something may be about to
        # go.
        half = _CYCLES // 2
        for before, after in zip(zip(*seen[1 : 1 + half], strict=True), zip(*seen[-half:], strict=True), strict=True):
            grown = min(after) - min(before)
            assert grown < half, f"threads and files of the task host after each stop: {seen}"


class _Refused(RuntimeError):
    """The error raised by a line of ``start``."""


def _refuse() -> None:
    raise _Refused("this line fails")


def _was_refused(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, _Refused):
        error = error.__cause__ or error.__context__
    return error is not None


def _open_things() -> dict[str, int]:
    import psutil

    return {"threads": threading.active_count(), "files": psutil.Process().num_fds()}
