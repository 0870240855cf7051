"""The worker: keeps task-host processes and has connectors and tasks run in them. Knows nothing of what should run."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final, Protocol

from connect.config.hosts import HostConfig
from connect.errors import Conflict, HostDied, NotFound, RemoteError
from connect.task.control import CANCEL_S
from connect.worker.owners import WORKER, HostSetup, Owners
from connect.worker.process import HostProcess
from tidegate.kit.config import parse
from tidegate.kit.logs import get_logger

__all__ = ["Startups", "TaskId", "Worker", "WorkerListener"]

logger = get_logger(__name__)

TaskId = tuple[str, int]
"""A connector's name and a task's number."""

_STOP_MARGIN_S: Final = CANCEL_S + 1.5
"""How much longer than its time to stop a task may take, being cancelled, before its host is given up."""
_WATCH_S: Final = 1.0
_ORDER_S: Final = 30.0
"""How long a host may take to accept what it only notes; a busy machine has hosts that start and import meanwhile."""
_IDLE_S: Final = 60.0
_QUESTION_S: Final = 60.0
"""How long a plugin's code may take to answer: a check, a list of keys."""
_PREVIEWS: Final = 2
"""How many previews run at once: each has a process of its own."""
_PREVIEW_S: Final = 75.0
"""A preview of Spark starts Spark; a request is answered after 90 s at most."""
_FIRST_ROWS_S: Final = 20.0


class WorkerListener(Protocol):
    """Hears what happens in the task hosts; called on the event loop."""

    def on_task_state(self, task: TaskId, state: str, trace: str | None) -> None: ...
    def on_topic(self, task: TaskId, topic: str) -> None: ...
    def on_flow(self, task: TaskId, flow: Mapping[str, Any]) -> None: ...
    def on_reconfigure(self, connector: str) -> None: ...

    def on_connector_started(self, connector: str, kind: str, version: str) -> None:
        """Its ``start`` has returned; it is a plugin of this type and version."""
        ...

    def on_planned(self, connector: str, tasks: Sequence[Mapping[str, str]]) -> None:
        """The plan that was asked for: the properties of each task."""
        ...

    def on_connector_trouble(self, connector: str, trace: str | None, *, failed: bool) -> None:
        """Why it has not started or planned yet, None once that is over; ``failed``: it will not without being told to."""
        ...

    def on_host_death(self, connectors: Sequence[str], tasks: Sequence[TaskId], reason: str) -> None:
        """These were running in a process that is gone."""
        ...

    async def offsets_of(self, connector: str) -> list[dict[str, Any]]:
        """The committed positions of a source, for a connector or task that asks."""
        ...

    async def keep_offsets(self, connector: str, offsets: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Commit positions of a source, by their keys, where its tasks cannot."""
        ...

    async def fence(self, connector: str) -> None:
        """End what producers of earlier tasks of an exactly-once source can write, if they may still be about."""
        ...

    async def confirm(self, task: TaskId) -> None:
        """Returns if a task is still to run here as it was started, by the newest configuration; raises ConnectError where not."""
        ...


@dataclass(slots=True)
class Startups:
    """How many starts there were, and what came of those that ended."""

    attempts: int = 0
    succeeded: int = 0
    failed: int = 0
    _beginning: dict[Any, int] = field(default_factory=dict)
    """Attempts that have not said yet how they went, by what they start."""

    def begin(self, started: Any, attempt: int) -> None:
        self.attempts += 1
        self._beginning[started] = attempt

    def end(self, started: Any, attempt: int, *, well: bool) -> None:
        """Count how a start went, once."""
        if self._beginning.get(started) != attempt:
            return
        del self._beginning[started]
        if well:
            self.succeeded += 1
        else:
            self.failed += 1


@dataclass(slots=True, eq=False)
class _Host:
    """A process and what runs in it."""

    process: HostProcess
    owner: str
    """With whose rights it runs (``connect.worker.owners``)."""
    setup: HostSetup
    own: bool
    """Whether it is for one task alone (``task.isolation=process``)."""
    retired: bool = False
    """Whether nothing is to be started in it any more, since its code is old; it ends with what runs in it."""
    connectors: set[str] = field(default_factory=set)
    tasks: set[TaskId] = field(default_factory=set)
    asked: int = 0
    """Questions that it has not answered yet, its setup among them."""
    ready: bool = False
    """Whether it has its setup."""
    idle_rounds: int = 0
    """For how many looks of the watch nothing has run in it."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the process has ended."""

    @property
    def is_empty(self) -> bool:
        return not self.tasks and not self.connectors

    @property
    def load(self) -> tuple[int, int]:
        """By which hosts are compared: a connector without its tasks does little."""
        return len(self.tasks), len(self.connectors)


class Worker:
    """Used from one event loop; calls about the same connector or task must not overlap."""

    def __init__(
        self, properties: Mapping[str, str], plugin_modules: Sequence[str], *, processes: int, stop_timeout_ms: int
    ) -> None:
        self._levels: dict[str, str] = {}
        self.bootstrap_servers = properties.get("bootstrap.servers", "")
        self._plugin_modules = list(plugin_modules)
        self.owners = Owners(properties)
        self._limit = processes or os.cpu_count() or 1
        self._stop_timeout_s = stop_timeout_ms / 1000
        self._hosts_config = parse(HostConfig, properties)
        self._hosts: list[_Host] = []
        self._leaving: set[_Host] = set()
        """Hosts that are drained; what is in them may still run."""
        self._under_way: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._previews = asyncio.Semaphore(_PREVIEWS)
        self._numbers, self._attempts = count(1), count(1)
        self._current: dict[TaskId, int] = {}
        self._current_connectors: dict[str, int] = {}
        """Attempts by which tasks and connectors were started last."""
        self.connector_startups, self.task_startups = Startups(), Startups()
        self.statistics: dict[TaskId, dict[str, Any]] = {}
        self.progress: dict[TaskId, dict[str, Any]] = {}
        self.listener: WorkerListener | None = None

    async def stop(self) -> None:
        """Stop everything: tasks first, which commit what they have, then their hosts."""
        if self._watching is not None:
            self._watching.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        await asyncio.gather(*(self.stop_task(task) for host in self._hosts for task in list(host.tasks)))
        names = [name for host in self._hosts for name in list(host.connectors)]
        await asyncio.gather(*(self.stop_connector(name) for name in names), return_exceptions=True)
        hosts, self._hosts = self._hosts, []
        await asyncio.gather(*(host.process.stop(self._stop_timeout_s) for host in hosts))

    async def validate(self, properties: Mapping[str, Any], *, owner: str) -> dict[str, Any]:
        """See ``TaskHost.validate``; with the rights of whoever asks."""
        judged: dict[str, Any] = await self._asked("validate", owner, properties=dict(properties))
        return judged

    async def preview(
        self, properties: Mapping[str, str], rows: int, records: list[dict[str, Any]] | None = None, *, owner: str
    ) -> dict[str, Any]:
        """The answer of ``TaskHost.preview``, from a process of its own that ends with it. Raises Conflict while others are under
        way, and RemoteError where it takes too long."""
        self.owners.require(owner)
        if self._previews.locked():
            raise Conflict(f"{_PREVIEWS} previews are under way on this worker: try again in a moment")
        async with self._previews:
            host = await self._own_host(owner)
            host.asked += 1
            try:
                told: dict[str, Any] = await host.process.call(
                    "preview",
                    within_s=_PREVIEW_S,
                    properties=dict(properties),
                    rows=rows,
                    timeout_s=_FIRST_ROWS_S,
                    records=records,
                )
            except TimeoutError:
                raise RemoteError(f"the preview was not ready within {_PREVIEW_S:g} s and was ended") from None
            finally:
                host.asked -= 1
                host.retired = True
                await self._end_retired()
        return told

    async def alter_offsets(
        self,
        properties: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]],
        *,
        owner: str,
    ) -> bool:
        """See ``TaskHost.alter_offsets``."""
        told = [[dict(partition), None if offset is None else dict(offset)] for partition, offset in offsets]
        taken: bool = await self._asked("alter_offsets", owner, properties=dict(properties), offsets=told)
        return taken

    def set_logger_level(self, namespace: str, level: str) -> None:
        """Have all task hosts, those to come too, set a level (``connect.worker.loggers``)."""
        self._levels.pop(namespace, None)
        self._levels[namespace] = level
        for host in self._hosts:
            task = asyncio.create_task(self._tell_level(host, namespace, level))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    @staticmethod
    async def _tell_level(host: _Host, namespace: str, level: str) -> None:
        with contextlib.suppress(HostDied, TimeoutError):
            await host.process.call("set_level", within_s=_ORDER_S, namespace=namespace, level=level)

    async def plugin_keys(self, name: str) -> list[dict[str, Any]]:
        keys: list[dict[str, Any]] = await self._asked("plugin_keys", WORKER, name=name)
        return keys

    async def _asked(self, call: str, owner: str, /, **values: Any) -> Any:
        """A question to any host of an owner; asked again once where the host died over it, which may have been another's fault."""
        try:
            return await self._answered(call, owner, values)
        except HostDied:
            return await self._answered(call, owner, values)

    async def _answered(self, call: str, owner: str, values: Mapping[str, Any]) -> Any:
        """Raises RemoteError where a plugin's code does not return in time. Its thread stays behind, so the process ends with
        what runs in it."""
        host = await self._shared_host(owner)
        host.asked += 1
        try:
            return await host.process.call(call, within_s=_QUESTION_S, **values)
        except TimeoutError:
            host.retired = True
            await self._end_retired()
            raise RemoteError(
                f"{call} was not answered within {_QUESTION_S:g} s: a plugin's code does not return"
            ) from None
        finally:
            host.asked -= 1

    async def _order(self, host: _Host, call: str, **values: Any) -> Any:
        """The answer to an order that runs no plugin's code, so that a host which does not take it is given up. Raises HostDied."""
        try:
            return await host.process.call(call, within_s=_ORDER_S, **values)
        except TimeoutError:
            said = f"task host {host.process.number} did not take {call} within {_ORDER_S:g} s"
            self._replace_soon(host, said)
            raise HostDied(said) from None

    async def start_connector(self, name: str, properties: Mapping[str, str], *, owner: str) -> None:
        """Start a connector; the listener hears the outcome. Raises Forbidden if its owner may not log in any more."""
        self._current_connectors[name] = attempt = next(self._attempts)
        self.connector_startups.begin(name, attempt)
        try:
            host = await self._shared_host(owner)
            host.connectors.add(name)
            try:
                await self._order(host, "start_connector", name=name, attempt=attempt, properties=dict(properties))
            except BaseException:
                host.connectors.discard(name)
                raise
        except BaseException:
            self.connector_startups.end(name, attempt, well=False)
            raise

    async def plan(self, name: str) -> None:
        """Have a connector planned; the listener hears the plan. Raises HostDied where it does not run."""
        await self._order(self._host_of_connector(name), "plan", name=name)

    async def stop_connector(self, name: str) -> None:
        """Stop a connector. Where it does not stop in time, its host is replaced."""
        self._current_connectors.pop(name, None)
        host = next((host for host in self._hosts if name in host.connectors), None)
        if host is None:
            return
        host.connectors.discard(name)
        within_s = self._stop_timeout_s + _STOP_MARGIN_S
        try:
            stopped = await host.process.call(
                "stop_connector", within_s=within_s, name=name, timeout_s=self._stop_timeout_s
            )
        except TimeoutError:
            stopped = False
        except HostDied:
            return
        if not stopped:
            logger.warning("connector did not stop in time; its host is replaced", connector=name)
            self._replace_soon(host, f"moved: connector {name} did not stop and took its host along")
        await self._end_retired()

    async def start_task(
        self,
        task: TaskId,
        *,
        config: Mapping[str, str],
        properties: Mapping[str, str],
        owner: str,
        paused: bool,
        offsets: Sequence[Mapping[str, Any]],
    ) -> None:
        """Start a task. Its states are heard by the listener, also that it cannot be started. Raises Forbidden likewise."""
        host = await (self._own_host(owner) if config.get("task.isolation") == "process" else self._shared_host(owner))
        self._current[task] = attempt = next(self._attempts)
        self.task_startups.begin(task, attempt)
        host.tasks.add(task)
        try:
            await self._order(
                host,
                "start_task",
                connector=task[0],
                task=task[1],
                attempt=attempt,
                config=dict(config),
                properties=dict(properties),
                paused=paused,
                offsets=[dict(offset) for offset in offsets],
            )
        except BaseException:
            host.tasks.discard(task)
            self.task_startups.end(task, attempt, well=False)
            raise

    async def set_paused(self, task: TaskId, paused: bool) -> None:
        for host in list(self._hosts):
            if task in host.tasks:
                call = "pause_task" if paused else "resume_task"
                with contextlib.suppress(HostDied):  # it is told of, and what it ran is started as it should be now
                    await self._order(host, call, connector=task[0], task=task[1])

    async def run_job(self, task: TaskId) -> bool:
        """Have a job run before its time; False for a task that is no job, or does not run."""
        return await self._order_job("run_job", task)

    async def cancel_job(self, task: TaskId) -> bool:
        """Have the run of a job end that is under way; False where there is none."""
        return await self._order_job("cancel_job", task)

    async def _order_job(self, order: str, task: TaskId) -> bool:
        for host in list(self._hosts):
            if task in host.tasks:
                with contextlib.suppress(HostDied):
                    return bool(await self._order(host, order, connector=task[0], task=task[1]))
        return False

    async def stop_task(self, task: TaskId) -> None:
        """Stop a task. Where it does not stop in time, its host is drained and killed; the listener hears of the others."""
        self._current.pop(task, None)
        self.statistics.pop(task, None)
        self.progress.pop(task, None)
        for leaving in [host for host in self._leaving if task in host.tasks]:
            await leaving.gone.wait()
        host = next((host for host in self._hosts if task in host.tasks), None)
        if host is None:
            return
        stopped = await self._stopped_in(host, task)
        host.tasks.discard(task)
        if not stopped:
            logger.warning("task did not stop in time; its host is replaced", connector=task[0], task=task[1])
            await self._replace(host, f"moved: task {task[1]} of {task[0]} did not stop and took its host along")
        elif host.own and not host.tasks:
            self._hosts.remove(host)
            await host.process.stop(self._stop_timeout_s)
        await self._end_retired()

    async def retire_hosts(self) -> None:
        """Start everything in new processes from now on, because there is new code. Running tasks continue until they are stopped."""
        for host in self._hosts:
            host.retired = True
        await self._end_retired()

    async def _end_retired(self) -> None:
        # Each is taken out before the next wait: others call this meanwhile.
        while (host := next((host for host in self._hosts if host.retired and host.is_empty), None)) is not None:
            self._hosts.remove(host)
            await host.process.stop(self._stop_timeout_s)

    async def _stopped_in(self, host: _Host, task: TaskId) -> bool:
        within_s = self._stop_timeout_s + _STOP_MARGIN_S
        try:
            values = {"connector": task[0], "task": task[1], "timeout_s": self._stop_timeout_s}
            return bool(await host.process.call("stop_task", within_s=within_s, **values))
        except TimeoutError:
            return False
        except HostDied:
            return True

    async def _replace(self, host: _Host, reason: str) -> None:
        """Stop what runs in a host, as far as it can be stopped, end it, and say what has to be started elsewhere."""
        if host not in self._hosts:
            return
        self._hosts.remove(host)
        self._leaving.add(host)
        tasks, connectors = list(host.tasks), list(host.connectors)
        try:
            await asyncio.gather(*(self._stopped_in(host, task) for task in tasks))
        finally:
            await host.process.kill()
            self._leaving.discard(host)
            host.gone.set()
        if self.listener is not None and (tasks or connectors):
            self.listener.on_host_death(connectors, tasks, reason)

    def _replace_soon(self, host: _Host, reason: str) -> None:
        task = asyncio.create_task(self._replace(host, reason), name=f"replace task host {host.process.number}")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _watch(self) -> None:
        """Replace hosts that say nothing any more, and those that take more memory than they may."""
        silence_s, most_bytes = self._hosts_config.silence_timeout_ms / 1000, self._hosts_config.memory_max_bytes
        while True:
            before = time.monotonic()
            await asyncio.sleep(_WATCH_S)
            if time.monotonic() - before > 2 * _WATCH_S:
                continue  # this process had no time itself, and has read nothing meanwhile
            for host in list(self._hosts):
                process = host.process
                self._tell_file_rights(host)
                self._end_idle(host)
                if silence_s and process.silent_s > silence_s:
                    stacks = await process.stacks()
                    logger.error("a task host does not answer and is replaced", host=process.number, stacks=stacks)
                    said = f"task host {process.number} did not answer for {process.silent_s:.0f} s"
                    await process.kill()
                    self._replace_soon(host, f"{said}; its threads were here:\n{stacks}")
                elif most_bytes and process.memory_bytes > most_bytes:
                    said = f"task host {process.number} takes {process.memory_bytes} bytes of memory"
                    logger.error("a task host takes too much memory and is replaced", host=process.number, reason=said)
                    self._replace_soon(host, f"{said}, more than task.host.memory.max.bytes={most_bytes}")

    def _end_idle(self, host: _Host) -> None:
        """An owner's host ends when nothing has run in it for a while: there may be many owners."""
        host.idle_rounds = host.idle_rounds + 1 if host.owner != WORKER and host.is_empty and not host.asked else 0
        if host.idle_rounds * _WATCH_S >= _IDLE_S:
            host.retired = True
            task = asyncio.create_task(self._end_retired(), name=f"end task host {host.process.number}")
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    def _tell_file_rights(self, host: _Host) -> None:
        """Have a host that is limited to the files of its owner hear of rights that have changed."""
        files = host.setup.files
        if files is None or not host.ready or files["rights"] == (rights := self.owners.file_rights(host.owner)):
            return
        host.setup = replace(host.setup, files={**files, "rights": rights})
        if set(files["rights"]) - set(rights):
            # Otherwise open files would stay open.
            self._replace_soon(host, f"moved: rights of {host.owner} to files were taken away")
            return
        task = asyncio.create_task(self._order_file_rights(host, rights))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _order_file_rights(self, host: _Host, rights: Sequence[str]) -> None:
        with contextlib.suppress(HostDied):
            await self._order(host, "set_file_rights", rights=list(rights))

    @property
    def host_memory(self) -> dict[int, int]:
        """Bytes of memory that each task host takes, by its number."""
        return {host.process.number: host.process.memory_bytes for host in self._hosts}

    @property
    def hosts(self) -> dict[TaskId, int]:
        """The number of the task host in which each task runs."""
        return {task: host.process.number for host in self._hosts for task in host.tasks}

    @property
    def clients(self) -> list[list[Any]]:
        """The metrics of the Kafka clients of all task hosts (``connect.metrics.clients``)."""
        return [client for host in self._hosts for client in host.process.clients]

    @property
    def connector_count(self) -> int:
        return sum(len(host.connectors) for host in self._hosts)

    def running(self) -> Iterable[TaskId]:
        return [task for host in self._hosts for task in host.tasks]

    def _host_of_connector(self, name: str) -> _Host:
        for host in self._hosts:
            if name in host.connectors:
                return host
        raise HostDied(f"connector {name} does not run")

    async def _shared_host(self, owner: str) -> _Host:
        """The least loaded shared host of an owner; a new one while there are fewer than processors and each has tasks. One that has only
        connectors takes a task too: each process has 150 MB or so.
        """
        self.owners.require(owner)
        owner = self.owners.of(owner)
        async with self._starting:
            shared = [host for host in self._hosts if not host.own and not host.retired and host.process.alive]
            serving = [host for host in shared if host.owner == owner]
            if any(not host.tasks for host in serving) or (serving and len(shared) >= self._limit):
                return min(serving, key=lambda host: host.load)
            return await self._new_host(owner, exclusive=False)

    def expect(self, tasks: int) -> None:
        """Start processes for so many tasks that are about to come, side by side; nothing where there are processes."""
        if not self._hosts and tasks > 0:
            work = asyncio.create_task(self._start_hosts(min(tasks, self._limit)), name="start task hosts")
            self._under_way.add(work)
            work.add_done_callback(self._under_way.discard)

    async def _start_hosts(self, count: int) -> None:
        async with self._starting:
            starts = (self._new_host(WORKER, exclusive=False) for _ in range(count - len(self._hosts)))
            for error in await asyncio.gather(*starts, return_exceptions=True):
                if error is not None and not isinstance(error, _Host):
                    logger.warning("a task host could not be started ahead of its tasks", error=str(error))

    async def _own_host(self, owner: str) -> _Host:
        async with self._starting:
            return await self._new_host(self.owners.of(owner), exclusive=True)

    async def _new_host(self, owner: str, *, exclusive: bool) -> _Host:
        setup = self.owners.host_setup(owner)
        process = HostProcess(
            next(self._numbers), on_event=self._hear, on_call=self._answer, on_death=self._notice_death
        )
        host = _Host(process, owner, setup, exclusive, asked=1)
        self._hosts.append(host)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="watch task hosts")
        try:
            await process.start(
                {
                    "plugin_modules": self._plugin_modules,
                    "worker": dict(setup.worker),
                    "levels": self._levels,
                    "files": setup.files,
                },
                setup.environment,
            )
        except BaseException:
            if host in self._hosts:
                self._hosts.remove(host)
            raise
        host.asked -= 1
        host.ready = True
        facts = {"owner": owner} if owner != WORKER else {}
        logger.info("task host started", host=process.number, pid=process.pid, **facts)
        return host

    async def _answer(self, name: str, values: dict[str, Any]) -> Any:
        answers: dict[str, Callable[..., Awaitable[Any]]] = {}
        if self.listener is not None:
            answers["offsets"] = self.listener.offsets_of
            answers["keep_offsets"] = self.listener.keep_offsets
        if name in ("fence", "confirm"):
            return await self._preflight(name, (values["connector"], values["task"]), values["attempt"])
        return await answers[name](**values)

    async def _preflight(self, step: str, task: TaskId, attempt: int) -> None:
        """Answer the questions of an exactly-once source before it writes. Raises NotFound if it is not to run any more."""
        if self.listener is None or self._current.get(task) != attempt:
            raise NotFound(f"task {task[1]} of {task[0]} is not to run any more")
        await (self.listener.fence(task[0]) if step == "fence" else self.listener.confirm(task))

    def _hear(self, name: str, values: dict[str, Any]) -> None:
        if self.listener is None:
            return
        if "task" not in values:
            self._hear_of_connector(name, **values)
            return
        task: TaskId = (values["connector"], values["task"])
        if name == "statistics" and task in self._current:
            self.statistics[task] = values["values"]
        elif name == "progress" and task in self._current:
            self.progress[task] = values["progress"]
        elif name == "topic":
            self.listener.on_topic(task, values["topic"])
        elif name == "flow":
            self.listener.on_flow(task, values["flow"])
        elif name == "task_hangs" and self._current.get(task) == values["attempt"]:
            for host in [host for host in self._hosts if task in host.tasks]:
                self._replace_soon(host, f"moved: task {task[1]} of {task[0]} hangs; {values['trace']}")
        elif name == "task_state" and self._current.get(task) == values["attempt"]:
            if values["state"] != "RESTARTING":
                self.task_startups.end(task, values["attempt"], well=values["state"] != "FAILED")
            self.listener.on_task_state(task, values["state"], values["trace"])

    def _hear_of_connector(self, name: str, *, connector: str, attempt: int, **values: Any) -> None:
        if self.listener is None or self._current_connectors.get(connector) != attempt:
            return
        if name == "reconfigure":
            self.listener.on_reconfigure(connector)
        elif name == "connector_started":
            self.connector_startups.end(connector, attempt, well=True)
            self.listener.on_connector_started(connector, values["type"], values["version"])
        elif name == "connector_planned":
            self.listener.on_planned(connector, values["tasks"])
        elif name == "connector_trouble":
            if values["failed"]:
                self.connector_startups.end(connector, attempt, well=False)
            self.listener.on_connector_trouble(connector, values["trace"], failed=values["failed"])
        elif name == "connector_fine":
            self.listener.on_connector_trouble(connector, None, failed=False)

    def _notice_death(self, process: HostProcess, reason: str) -> None:
        logger.error("a task host died", reason=reason)
        for host in [host for host in self._hosts if host.process is process]:
            self._hosts.remove(host)
            if self.listener is not None:
                self.listener.on_host_death(list(host.connectors), list(host.tasks), reason)
