"""The herder: decides what runs. Users' wishes go into the config topic; what is read there is made true, by connector.

For each connector one reconciliation runs at a time: it compares what the stores say should be with what the worker runs
and takes the steps between the two. It is woken by records of the config topic, by news from task hosts and by restarts;
a step that fails leaves a FAILED status, and the next wake tries again only what has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from connect.api import ConnectError, Plugin, PluginType
from connect.errors import HostDied
from connect.plugins import CONNECTORS, PluginRegistry
from connect.stores import ConfigStore, OffsetStore, State, Status, StatusStore, TargetState
from connect.stores.configs import StoredConnector
from connect.worker import TaskId, Worker
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import logger

__all__ = ["Herder"]

log = logger(__name__)

_FIRST_RETRY_S: Final = 0.2
_LONGEST_RETRY_S: Final = 60.0
_LAST_WORDS_S: Final = 5.0


@dataclass(slots=True)
class _Running:
    """What the worker was told about one connector."""

    config: dict[str, str] | None = None
    """The configuration that its connector runs with, or failed to start with; None when it does not run."""
    version: str | None = None
    planned: bool = False
    plan_due: bool = False
    target: TargetState = TargetState.STARTED
    tasks: dict[int, tuple[dict[str, str], dict[str, str]]] = field(default_factory=dict)
    """By number: the connector's configuration and the task's own, as they were started."""
    deaths: int = 0


class Herder:
    """Makes the config store's contents true on one worker. ``owns`` says which connectors this worker runs: all of
    them while it is alone; a group's assignment otherwise."""

    def __init__(
        self,
        worker: Worker,
        plugins: PluginRegistry,
        *,
        worker_id: str,
        owns: Callable[[str], bool] = lambda _: True,
        topic_tracking: bool = True,
    ) -> None:
        self._worker, self._plugins, self.worker_id, self._owns = worker, plugins, worker_id, owns
        self._topic_tracking = topic_tracking
        self.configs: ConfigStore
        self.offsets: OffsetStore
        self.statuses: StatusStore
        self._running: dict[str, _Running] = {}
        self._dirty: set[str] = set()
        self._reconciling: dict[str, asyncio.Task[None]] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._started = self._stopping = False

    def start(self, configs: ConfigStore, offsets: OffsetStore, statuses: StatusStore) -> None:
        """Begin with everything that the stores, which have been read, say should run."""
        self.configs, self.offsets, self.statuses = configs, offsets, statuses
        self._worker.listener = self
        self._started = True
        for name in {*configs.connectors, *statuses.connectors, *statuses.tasks}:
            self.wake(name)

    async def stop(self) -> None:
        """Stop everything that runs; what should run stays in the stores."""
        self._stopping = True
        for task in list(self._reconciling.values()):
            task.cancel()
        await asyncio.gather(*self._reconciling.values(), return_exceptions=True)
        await self._worker.stop()
        if self._started:
            try:
                async with asyncio.timeout(_LAST_WORDS_S):
                    await self._tell_unassigned()
                    await asyncio.gather(*self._writes, return_exceptions=True)
            except (TimeoutError, TidegateError) as error:
                log.warning("the log did not take the last statuses", error=str(error))

    async def _tell_unassigned(self) -> None:
        gone = Status(State.UNASSIGNED, self.worker_id)
        for name, running in self._running.items():
            if running.config is not None:
                await self.statuses.put_connector(name, gone)
            for number in running.tasks:
                await self.statuses.put_task(name, number, gone)

    def wake(self, name: str) -> None:
        """Compare and correct a connector, soon."""
        if not self._started or self._stopping:
            return
        self._dirty.add(name)
        if name not in self._reconciling:
            self._reconciling[name] = asyncio.create_task(self._reconcile_while_dirty(name), name=f"herd {name}")

    async def settle(self, name: str) -> None:
        """Wait until a connector is as it should be, or has failed to be."""
        while name in self._reconciling:
            await asyncio.wait({self._reconciling[name]})

    async def _reconcile_while_dirty(self, name: str) -> None:
        try:
            while name in self._dirty:
                self._dirty.discard(name)
                try:
                    await self._reconcile(name)
                except TidegateError as error:
                    log.error("connector not as it should be; trying again", connector=name, error=str(error))  # noqa: TRY400
                    await asyncio.sleep(_FIRST_RETRY_S)
                    self._dirty.add(name)
        finally:
            del self._reconciling[name]

    async def _reconcile(self, name: str) -> None:
        stored = self.configs.connectors.get(name)
        running = self._running.setdefault(name, _Running())
        if stored is None or not self._owns(name):
            await self._remove(name, running, forget=stored is None)
        elif stored.target is TargetState.STOPPED:
            await self._make_stopped(name, stored, running)
        else:
            await self._make_running(name, stored, running)

    async def _remove(self, name: str, running: _Running, *, forget: bool) -> None:
        await self._stop_tasks(name, list(running.tasks), running)
        await self._stop_connector(name, running)
        if forget:
            for number in list(self.statuses.tasks.get(name, {})):
                await self.statuses.put_task(name, number, None)
            if name in self.statuses.connectors:
                await self.statuses.put_connector(name, None)
            await self.statuses.forget_topics(name)
        self._running.pop(name, None)

    async def _make_stopped(self, name: str, stored: StoredConnector, running: _Running) -> None:
        await self._stop_tasks(name, list(running.tasks), running)
        await self._stop_connector(name, running)
        if stored.tasks:
            await self.configs.put_tasks(name, [])
        for number in list(self.statuses.tasks.get(name, {})):
            await self.statuses.put_task(name, number, None)
        await self._put_connector(name, Status(State.STOPPED, self.worker_id, version=running.version))

    async def _make_running(self, name: str, stored: StoredConnector, running: _Running) -> None:
        if running.config != stored.config:
            await self._start_connector(name, stored, running)
        elif running.target is not stored.target and running.config is not None:
            running.target = stored.target
            status = self.statuses.connectors.get(name)
            if status is None or status.state is not State.FAILED:
                await self._put_connector(name, self._status(stored, running.version))
            for number in running.tasks:
                await self._worker.set_paused((name, number), stored.target is TargetState.PAUSED)
        if (running.plan_due or not running.planned) and stored.target is TargetState.STARTED:
            await self._plan(name, stored, running)
        await self._match_tasks(name, stored, running)

    def _status(self, stored: StoredConnector, version: str | None) -> Status:
        state = State.PAUSED if stored.target is TargetState.PAUSED else State.RUNNING
        return Status(state, self.worker_id, version=version)

    async def _start_connector(self, name: str, stored: StoredConnector, running: _Running) -> None:
        await self._stop_connector(name, running)
        running.config, running.target = dict(stored.config), stored.target
        running.planned = False
        try:
            started = await self._worker.start_connector(name, stored.config)
        except HostDied:
            running.config = None
            self._later(name, running)
            raise
        except TidegateError as error:
            running.planned, running.plan_due = True, False
            await self._failed(name, running, error)
            return
        running.version = started["version"]
        await self._put_connector(name, self._status(stored, running.version))

    async def _plan(self, name: str, stored: StoredConnector, running: _Running) -> None:
        running.planned, running.plan_due = True, False
        try:
            plugin = self._plugins.find(stored.config.get("connector.class", ""), *CONNECTORS)
            planned = [_task_config(task, stored, plugin) for task in await self._worker.plan(name)]
        except TidegateError as error:
            await self._failed(name, running, error)
            return
        if planned != stored.tasks:
            await self.configs.put_tasks(name, planned)

    async def _failed(self, name: str, running: _Running, error: TidegateError) -> None:
        log.error("connector failed", connector=name, error=str(error))
        await self._put_connector(name, Status(State.FAILED, self.worker_id, trace=str(error), version=running.version))

    async def _match_tasks(self, name: str, stored: StoredConnector, running: _Running) -> None:
        """Run the tasks that were committed, each with its configuration, and no others."""
        wanted = dict(enumerate(stored.tasks or []))
        outdated = [n for n, started in running.tasks.items() if started != (stored.config, wanted.get(n))]
        await self._stop_tasks(name, outdated, running)
        for number in [number for number in self.statuses.tasks.get(name, {}) if number not in wanted]:
            await self.statuses.put_task(name, number, None)
        missing = [number for number in wanted if number not in running.tasks]
        if not missing:
            return
        offsets: list[dict[str, Any]] = []
        if self._type_of(stored.config) == PluginType.SOURCE.value:
            offsets = await self.offsets_of(name)
        for number in missing:
            await self._start_task((name, number), stored, running, wanted[number], offsets)

    async def _start_task(
        self,
        task: TaskId,
        stored: StoredConnector,
        running: _Running,
        properties: dict[str, str],
        offsets: Sequence[Mapping[str, Any]],
    ) -> None:
        running.tasks[task[1]] = (dict(stored.config), properties)
        paused = stored.target is TargetState.PAUSED
        try:
            await self._worker.start_task(
                task, config=stored.config, properties=properties, paused=paused, offsets=offsets
            )
        except HostDied:
            running.tasks.pop(task[1], None)
            self._later(task[0], running)
        except TidegateError as error:
            failed = Status(State.FAILED, self.worker_id, trace=str(error), version=running.version)
            await self.statuses.put_task(*task, failed)

    async def _stop_tasks(self, name: str, numbers: Sequence[int], running: _Running) -> None:
        await asyncio.gather(*(self._worker.stop_task((name, number)) for number in numbers))
        for number in numbers:
            running.tasks.pop(number, None)

    async def _stop_connector(self, name: str, running: _Running) -> None:
        running.config = None
        try:
            await self._worker.stop_connector(name)
        except (TidegateError, TimeoutError) as error:
            log.warning("connector did not stop as it should", connector=name, error=str(error))

    async def _put_connector(self, name: str, status: Status) -> None:
        if self.statuses.connectors.get(name) != status:
            await self.statuses.put_connector(name, status)

    def _type_of(self, config: Mapping[str, str]) -> str:
        plugin = self._plugins.find(config.get("connector.class", ""), PluginType.SOURCE, PluginType.SINK)
        return plugin.type.value if plugin is not None else "unknown"

    async def restart_connector(self, name: str) -> None:
        """Stop and start a connector, its tasks left alone."""
        running = self._running.setdefault(name, _Running())
        await self.settle(name)
        await self._stop_connector(name, running)
        self.wake(name)

    async def restart_task(self, name: str, number: int) -> None:
        running = self._running.setdefault(name, _Running())
        await self.settle(name)
        await self._stop_tasks(name, [number], running)
        self.wake(name)

    def on_task_state(self, task: TaskId, state: str, trace: str | None) -> None:
        if state == "STOPPED":
            return
        running = self._running.get(task[0])
        version = running.version if running else None
        if running is not None and state == "RUNNING":
            running.deaths = 0
        self._write(self.statuses.put_task(*task, Status(State(state), self.worker_id, trace=trace, version=version)))

    def on_topic(self, task: TaskId, topic: str) -> None:
        if self._topic_tracking and topic not in self.statuses.topics.get(task[0], ()):
            self._write(self.statuses.put_topic(*task, topic))

    def on_reconfigure(self, connector: str) -> None:
        if connector in self._running:
            self._running[connector].plan_due = True
            self.wake(connector)

    def on_host_death(self, connectors: Sequence[str], tasks: Sequence[TaskId], reason: str) -> None:
        """Say so in the statuses, then start again what was lost; a host that keeps dying is waited for longer and longer."""
        for name, number in tasks:
            running = self._running.setdefault(name, _Running())
            running.tasks.pop(number, None)
            failed = Status(State.FAILED, self.worker_id, trace=reason, version=running.version)
            self._write(self.statuses.put_task(name, number, failed))
        for name in connectors:
            self._running.setdefault(name, _Running()).config = None
        for name in {*connectors, *(name for name, _ in tasks)}:
            self._later(name, self._running[name])

    def _later(self, name: str, running: _Running) -> None:
        running.deaths += 1
        delay_s = min(_FIRST_RETRY_S * 2 ** (running.deaths - 1), _LONGEST_RETRY_S)
        asyncio.get_running_loop().call_later(delay_s, self.wake, name)

    async def offsets_of(self, connector: str) -> list[dict[str, Any]]:
        found = await self.offsets.read(connector)
        return [{"partition": one.partition, "offset": one.offset, "key": one.key} for one in found]

    async def fence(self, connector: str) -> None:
        """Alone, this worker has stopped or killed all earlier tasks before it starts new ones."""

    async def confirm(self, task: TaskId) -> None:
        """Raises ConnectError where the connector's tasks have been planned anew since this one was started."""
        running = self._running.get(task[0])
        stored = self.configs.connectors.get(task[0])
        wanted = dict(enumerate(stored.tasks or [])) if stored is not None else {}
        if stored is None or running is None or running.tasks.get(task[1]) != (stored.config, wanted.get(task[1])):
            raise ConnectError(
                f"Cannot start source task {task[0]}-{task[1]} with exactly-once support as the connector has already "
                "generated a new set of task configs"
            )

    def _write(self, work: Coroutine[Any, Any, None]) -> None:
        """A status that need not be waited for; those of one task stay in order, since each is sent at once."""
        task = asyncio.create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writes.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a status could not be written", error=str(error))


def _task_config(planned: Mapping[str, str], stored: StoredConnector, plugin: Plugin | None) -> dict[str, str]:
    """A task's properties as they are stored, with what Kafka Connect keeps there: a sink's topics and the task's class.

    Its class is named as the original's connectors name theirs, for the day when Kafka Connect takes the topics over.
    """
    kept: dict[str, str] = {name: stored.config[name] for name in ("topics", "topics.regex") if name in stored.config}
    name = plugin.name if plugin is not None else stored.config.get("connector.class", "")
    return {**kept, "task.class": name.removesuffix("Connector") + "Task", **planned}
