"""A task in its host: put together from its configuration, run in a thread, its states told to the worker."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.api.plugins import Plugin, PluginType
from connect.config.cloud_keys import with_cloud_keys
from connect.config.connector import CommonConfig
from connect.errors import RemoteError
from connect.plugins.config_providers import resolved as with_placeholders_replaced
from connect.plugins.registry import PluginRegistry
from connect.task.assembly import assembled
from connect.task.clients import ClientLoop, patiently
from connect.task.control import CANCEL_S, Stopped, TaskControl
from connect.task.lifecycle import Lifecycle, TaskState
from connect.task.parts import TaskParts
from connect.worker.host.memory import give_back
from connect.worker.host.restarts import Restarts, was_fenced
from connect.worker.link import ANSWER_S
from tidegate.kit.config import parse
from tidegate.kit.errors import RetriableError, TidegateError
from tidegate.kit.logs import about, get_logger
from tidegate.kit.scrubbing import Secrets, knowing, noted_config, scrubbed

if TYPE_CHECKING:
    from connect.worker.link import ThreadedLink

__all__ = ["HostedTask", "TaskSetup", "trace_of"]

logger = get_logger(__name__)

_CANCEL_EVERY_S: Final = 0.5
_ASKED_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class TaskSetup:
    """The worker's order to start a task: the connector's configuration and the task's own, placeholders not yet replaced.
    ``attempt`` tells its starts apart, for states that arrive late."""

    connector: str
    task: int
    attempt: int
    config: Mapping[str, str]
    properties: Mapping[str, str]
    offsets: Sequence[Mapping[str, Any]]
    worker: Mapping[str, str]


class _Resolved(NamedTuple):
    """The setup as resolved on the task's own thread: to load a plugin or to read a secret runs foreign code."""

    plugin: Plugin
    config: Mapping[str, str]
    properties: Mapping[str, str]
    common: CommonConfig


def trace_of(error: BaseException) -> str:
    """The text of a failure in ``status``: the messages from the error to its first cause, without secrets known here."""
    lines: list[str] = []
    current: BaseException | None = error
    while current is not None and len(lines) < 10:
        text = "\n".join([f"{type(current).__name__}: {current}", *getattr(current, "__notes__", ())])
        if not lines or text not in lines[-1]:
            lines.append(text)
        current = current.__cause__
    return scrubbed("\nCaused by: ".join(lines))


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
        self._hang_s, self._restarts_on_hang = 0.0, False
        self._told_hang = False
        self._lifecycle: Lifecycle | None = None
        self._secrets = Secrets()
        self._name = f"{setup.connector}-{setup.task}"
        self._about = {"connector": setup.connector, "task": setup.task}
        self._thread = threading.Thread(target=self._run_named, name=self._name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def pause(self) -> None:
        self._control.set_paused(True)

    def resume(self) -> None:
        self._control.set_paused(False)

    def run_job(self) -> bool:
        """Have a job run before its time; False for a task that is no job, or does not run."""
        if not self._thread.is_alive() or "job" not in self.statistics():
            return False
        self._control.job_ordered.set()
        return True

    def cancel_job(self) -> bool:
        """Have the run of a job that is under way end; False where there is none."""
        lifecycle, job = self._lifecycle, self.statistics().get("job", {})
        if (
            not self._thread.is_alive()
            or lifecycle is None
            or not any(run["state"] == "running" for run in job.get("runs", ()))
        ):
            return False
        self._control.job_cancelled.set()
        # A plugin's own code, which may itself not return.
        threading.Thread(
            target=self._cancel_job, args=(lifecycle,), name=f"cancel the job of {self._name}", daemon=True
        ).start()
        return True

    def _cancel_job(self, lifecycle: Lifecycle) -> None:
        """Repeated until the run has ended: an engine that is still starting has nothing yet that could be ended."""
        with about(**self._about), knowing(self._secrets):
            while self._control.job_cancelled.is_set() and self._thread.is_alive():
                try:
                    lifecycle.end_call()
                except BaseException as error:
                    logger.exception("a job could not be cancelled", error=str(error))
                self._control.stopping.wait(_CANCEL_EVERY_S)

    def stop(self, timeout_s: float) -> bool:
        """Have it end in order within the time, and cancel it where it does not; whether it has ended."""
        self._control.stop(timeout_s)
        self._thread.join(timeout_s)
        if self._thread.is_alive() and (lifecycle := self._lifecycle) is not None:
            # A plugin's own code, which may itself not return.
            threading.Thread(target=self._cancel, args=(lifecycle,), name=f"cancel {self._name}", daemon=True).start()
            self._thread.join(CANCEL_S)
        return not self._thread.is_alive()

    def _cancel(self, lifecycle: Lifecycle) -> None:
        with about(**self._about), knowing(self._secrets):
            logger.warning("task did not stop in time and is cancelled", call=self._control.running_call)
            try:
                lifecycle.cancel(CANCEL_S)
            except BaseException as error:
                logger.exception("a task could not be cancelled", error=str(error))

    def statistics(self) -> dict[str, Any]:
        return self._lifecycle.statistics() if self._lifecycle is not None else {}

    def _run_named(self) -> None:
        with about(**self._about), knowing(self._secrets):
            self._run()
        give_back()

    def _run(self) -> None:
        """The task from its first start to its last stop: started again after it was fenced, and after failures as
        ``task.restart.*`` says.
        """
        try:
            resolved = self._resolved()
        except BaseException as error:  # noqa: BLE001 - a plugin's own code, which may even raise SystemExit
            self._fail(error, None)
            return
        restarts, fenced = Restarts(resolved.common), False
        offsets: Sequence[Mapping[str, Any]] | None = self._setup.offsets
        delay_s: float | None
        while True:
            try:
                self._lifecycle = None
                if offsets is None:
                    offsets = self._ask("offsets") if resolved.plugin.type is PluginType.SOURCE else []
                self._lifecycle = self._assembled(resolved, offsets)
                self._lifecycle.run()
                self._tell("STOPPED")
                return
            except Stopped:
                self._tell("STOPPED")
                return
            except BaseException as error:  # noqa: BLE001 - whatever plugins raise, the task has failed and says why
                refusal = error.http_status if isinstance(error, RemoteError) else None
                if refusal == HTTPStatus.NOT_FOUND:
                    logger.info("the task was told to stop while it started", error=str(error))
                    self._tell("STOPPED")
                    return
                if fenced and refusal == HTTPStatus.CONFLICT:  # it has moved; if it stays, it is this worker's again
                    logger.info(
                        "a fenced task may not go on now; asking again", again_in_s=_ASKED_AGAIN_S, error=str(error)
                    )
                    delay_s = _ASKED_AGAIN_S
                else:
                    fenced = was_fenced(error)
                    delay_s = restarts.after_fencing() if fenced else restarts.after_failure()
                    self._fail(error, delay_s, fenced=fenced)
            if delay_s is None or self._control.stopping.wait(delay_s):
                return
            offsets = None
            restarts.started()

    def _resolved(self) -> _Resolved:
        setup = self._setup
        config = with_placeholders_replaced(setup.worker, setup.config)
        plugin = self._plugins.connector(config.get("connector.class", ""))
        config = with_cloud_keys(config, plugin.type)
        properties = with_placeholders_replaced(setup.worker, setup.properties)
        for source_properties in (setup.worker, config, properties):
            noted_config(source_properties)
        common = parse(CommonConfig, config)
        self._hang_s = common.task_hang_timeout_ms / 1000
        self._restarts_on_hang = common.task_hang_action == "restart"
        return _Resolved(plugin, config, properties, common)

    def _fail(self, error: BaseException, again_in_s: float | None, *, fenced: bool = False) -> None:
        facts = {"connector": self._setup.connector, "task": self._setup.task, "again_in_s": again_in_s}
        if fenced and again_in_s is not None:
            logger.warning("task was fenced and starts again", **facts, error=str(error))
            self._tell("RESTARTING", trace_of(error))
            return
        if isinstance(error, TidegateError):
            logger.error("task failed", **facts, error=str(error))
        else:
            logger.error("task failed", **facts, exc_info=error)
        self._tell("FAILED", trace_of(error))

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
            logger.warning(
                "task hangs", connector=setup.connector, task=setup.task, call=hang.call, seconds=hang.seconds
            )
            text = f"{hang.call} has not returned for {hang.seconds:.0f} s; it is here:\n{hang.where}"
            if self._restarts_on_hang:
                self._event("task_hangs", attempt=setup.attempt, trace=text)
            else:
                self._tell("RUNNING", text)
        elif hang is None and self._told_hang and not self._restarts_on_hang and self._thread.is_alive():
            self._tell("RUNNING")
        self._told_hang = hang is not None

    def _assembled(self, resolved: _Resolved, offsets: Sequence[Mapping[str, Any]]) -> Lifecycle:
        setup = self._setup
        cls = resolved.plugin.load()
        parts = TaskParts(
            connector=setup.connector,
            task=setup.task,
            task_class=cls.task_class,
            task_config=parse(cls.task_config_class or cls.config_class, resolved.properties),
            properties=resolved.properties,
            config=resolved.config,
            worker=setup.worker,
            plugins=self._plugins,
            control=self._control,
            offsets=offsets if resolved.plugin.type is PluginType.SOURCE else [],
            on_state=self._tell_state,
            on_topic=lambda topic: self._event("topic", topic=topic),
            on_flow=lambda flow: self._event("flow", flow=flow.to_json()),
            on_progress=lambda progress: self._event("progress", progress=progress),
            ask_worker=self._ask,
            keep_offsets=self._keep_offsets,
        )
        return assembled(parts)

    def _tell_state(self, state: TaskState, error: BaseException | None) -> None:
        """``_run`` reports the end of a task, once the task has closed everything."""
        if state in (TaskState.RUNNING, TaskState.PAUSED):
            self._tell(state.name)
        elif error is not None:
            self._tell("RESTARTING", f"start will be repeated; {trace_of(error)}")

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
        entries = [(key.decode(), dict(offset)) for key, offset in offsets.items()]
        asked = self._link.submit("keep_offsets", connector=self._setup.connector, offsets=entries)
        # A task that is to stop does not wait for a log that is away: its process would be replaced, with the other tasks in it.
        ClientLoop(self._control).wait(asked, ANSWER_S)

    def _tell(self, state: str, trace: str | None = None) -> None:
        self._event("task_state", attempt=self._setup.attempt, state=state, trace=trace)

    def _event(self, name: str, **values: Any) -> None:
        self._link.event(name, connector=self._setup.connector, task=self._setup.task, **values)
