"""A task in its host: put together from its configuration, run in a thread, its states told to the worker."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.api import JobTask, SourceTask
from connect.api.plugins import Plugin, PluginType
from connect.assembly import TaskParts, job_runner, sink_runner, source_runner
from connect.clients import patiently
from connect.connector_config import CommonConfig
from connect.control import Runner, Stopped, TaskControl
from connect.errors import RemoteError
from connect.hosts.memory import give_back
from connect.hosts.restarts import Restarts
from connect.plugins import PluginRegistry
from tidegate.kit.config import parse
from tidegate.kit.errors import RetriableError, TidegateError
from tidegate.kit.logs import about, logger

if TYPE_CHECKING:
    from connect.hosts.link import ThreadedLink

__all__ = ["HostedTask", "TaskSetup", "trace_of"]

log = logger(__name__)

_PATIENCE_S: Final = 1.0
"""How long a call of the task may go on after it was told to stop, before ``stop`` is called from another thread."""


@dataclass(frozen=True, slots=True)
class TaskSetup:
    """What the worker says of a task. ``attempt`` tells its starts apart, for states that arrive late."""

    connector: str
    task: int
    attempt: int
    plugin: Plugin
    config: Mapping[str, str]
    properties: Mapping[str, str]
    offsets: Sequence[Mapping[str, Any]]
    worker: Mapping[str, str]


def trace_of(error: BaseException) -> str:
    """What ``status`` shows of a failure: the messages from the error to its first cause."""
    lines: list[str] = []
    current: BaseException | None = error
    while current is not None and len(lines) < 10:
        text = f"{type(current).__name__}: {current}"
        if not lines or text not in lines[-1]:
            lines.append(text)
        current = current.__cause__
    return "\nCaused by: ".join(lines)


class Hang(NamedTuple):
    """A call that does not return, for how many seconds, and the stack of its thread."""

    call: str
    seconds: float
    where: str


class HostedTask:
    """Orders come from the worker's requests, each in a thread of its own; the task has one for itself."""

    def __init__(self, setup: TaskSetup, plugins: PluginRegistry, link: ThreadedLink, *, paused: bool) -> None:
        self._setup, self._plugins, self._link = setup, plugins, link
        self._control = TaskControl(paused=paused)
        common = parse(CommonConfig, setup.config)
        self._hang_s = common.task_hang_timeout_ms / 1000
        self._restarts_on_hang = common.task_hang_action == "restart"
        self._told_hang = False
        self._restarts = Restarts(common)
        self._runner: Runner | None = None
        self._about = {"connector": setup.connector, "task": setup.task}
        self._thread = threading.Thread(target=self._run_named, name=f"{setup.connector}-{setup.task}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def pause(self) -> None:
        self._control.set_paused(True)

    def resume(self) -> None:
        self._control.set_paused(False)

    def stop(self, timeout_s: float) -> bool:
        """Ask it to stop and wait; whether it has. A call that does not return gets ``stop`` from this thread."""
        self._control.stop()
        self._thread.join(min(_PATIENCE_S, timeout_s))
        if self._thread.is_alive() and self._runner is not None:
            with suppress(Exception), about(**self._about):
                self._runner.interrupt()
            self._thread.join(max(0.0, timeout_s - _PATIENCE_S))
        return not self._thread.is_alive()

    def statistics(self) -> dict[str, Any]:
        return self._runner.statistics() if self._runner is not None else {}

    def _run_named(self) -> None:
        with about(**self._about):
            self._run()
        give_back()

    def _run(self) -> None:
        """The task from its first start to its last stop: started again after failures as ``task.restart.*`` says."""
        setup, offsets = self._setup, self._setup.offsets
        restarts = self._restarts
        while True:
            try:
                self._runner = None
                self._runner = self._assembled(offsets)
                self._runner.run()
                self._tell("STOPPED")
                return
            except Stopped:
                self._tell("STOPPED")
                return
            except Exception as error:  # whatever the plugins raise: the task has failed and says why
                delay_s = restarts.after_failure()
                facts = {"connector": setup.connector, "task": setup.task, "again_in_s": delay_s}
                if isinstance(error, TidegateError):
                    log.error("task failed", **facts, error=str(error))  # noqa: TRY400
                else:
                    log.exception("task failed", **facts)
                self._tell("FAILED", trace_of(error))
            if delay_s is None or self._control.stopping.wait(delay_s):
                return
            try:
                offsets = self._ask("offsets") if setup.plugin.type is PluginType.SOURCE else []
            except (Stopped, TidegateError):
                return
            restarts.started()

    @property
    def hanging(self) -> Hang | None:
        """The call of the task that has been running for longer than ``task.hang.timeout.ms``."""
        call = self._control.running_call
        if call is None or not self._hang_s or call[1] < self._hang_s or self._thread.ident is None:
            return None
        frame = sys._current_frames().get(self._thread.ident)
        where = "".join(traceback.format_stack(frame)) if frame is not None else ""
        return Hang(call[0], call[1], where)

    def watch(self) -> None:
        """Tell the worker when the task begins to hang, and when that is over. Called from time to time by one thread."""
        hang = self.hanging
        if hang is not None and not self._told_hang:
            setup = self._setup
            log.warning("task hangs", connector=setup.connector, task=setup.task, call=hang.call, seconds=hang.seconds)
            text = f"{hang.call} has not returned for {hang.seconds:.0f} s; it is here:\n{hang.where}"
            if self._restarts_on_hang:
                self._event("task_hangs", attempt=setup.attempt, trace=text)
            else:
                self._tell("RUNNING", text)
        elif hang is None and self._told_hang and not self._restarts_on_hang and self._thread.is_alive():
            self._tell("RUNNING")
        self._told_hang = hang is not None

    def _assembled(self, offsets: Sequence[Mapping[str, Any]]) -> Runner:
        setup = self._setup
        cls = setup.plugin.load()
        parts = TaskParts(
            connector=setup.connector,
            task=setup.task,
            task_class=cls.task_class,
            task_config=parse(cls.task_config_class or cls.config_class, setup.properties),
            properties=setup.properties,
            config=setup.config,
            worker=setup.worker,
            plugins=self._plugins,
            control=self._control,
            offsets=offsets,
            on_paused=lambda paused: self._tell("PAUSED" if paused else "RUNNING"),
            on_topic=lambda topic: self._event("topic", topic=topic),
            on_progress=lambda progress: self._event("progress", progress=progress),
            ask_worker=self._ask,
            keep_offsets=self._keep_offsets,
        )
        if issubclass(cls.task_class, SourceTask):
            return source_runner(parts)
        return job_runner(parts) if issubclass(cls.task_class, JobTask) else sink_runner(parts)

    def _ask(self, question: str) -> Any:
        """Put a question about this task to the worker; asked again while the answer says that this can help."""
        setup = self._setup
        values: dict[str, Any] = {"connector": setup.connector}
        if question != "offsets":
            values |= {"task": setup.task, "attempt": setup.attempt}
        about = f"{question} for {setup.connector}-{setup.task}"

        def asked() -> Any:
            try:
                return self._link.call(question, **values)
            except RemoteError as error:
                if question == "fence" and error.http_status >= 500:  # the leader is away, or another one by now
                    raise RetriableError(str(error)) from error
                raise

        return patiently(asked, self._control.stopping, about)

    def _keep_offsets(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        self._link.call("keep_offsets", offsets=[(key.decode(), dict(offset)) for key, offset in offsets.items()])

    def _tell(self, state: str, trace: str | None = None) -> None:
        self._event("task_state", attempt=self._setup.attempt, state=state, trace=trace)

    def _event(self, name: str, **values: Any) -> None:
        self._link.event(name, connector=self._setup.connector, task=self._setup.task, **values)
