"""Makes true what the stores say, connector by connector: for each, one reconciliation runs at a time.

It compares what should run here with what the worker runs and takes the steps between the two. A step that fails leaves a
FAILED status, and the next wake tries again only what has changed.

No step waits for a connector's own code, which may not return: that a connector has started, and what it plans, is heard
later and wakes it again. So a reconciliation ends soon, whatever a plugin does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from connect.api import Plugin, PluginType
from connect.errors import HostDied
from connect.group.group import Group
from connect.group.protocol import CONNECTOR, Item
from connect.plugins.registry import CONNECTORS, PluginRegistry
from connect.stores import ConfigStore, OffsetStore, State, Status, StatusStore, TargetState
from connect.stores.configs import StoredConnector
from connect.worker.worker import TaskId, Worker
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["Reconciler", "StartedTask"]

logger = get_logger(__name__)

_FIRST_RETRY_S: Final = 0.2
_LONGEST_RETRY_S: Final = 60.0


class StartedTask(NamedTuple):
    """The configurations that a task was started with (its connector's and its own), its connector's owner, and the number of the commit."""

    config: dict[str, str]
    properties: dict[str, str]
    owner: str
    generation: int


@dataclass(slots=True)
class Running:
    """The orders that the worker has for one connector."""

    config: dict[str, str] | None = None
    """The configuration that its connector runs with, or failed to start with; None when it does not run."""
    owner: str = ""
    """For whom it runs."""
    version: str | None = None
    started: bool = False
    """Whether its connector has started; while it has neither started nor ``failed``, it is on its way."""
    failed: bool = False
    trace: str | None = None
    """Why it failed, or what keeps it from starting or from being planned."""
    plan_due: bool = False
    plan: list[dict[str, str]] | None = None
    """Its plan, until it is committed."""
    committing: asyncio.Task[None] | None = None
    target: TargetState = TargetState.STARTED
    paused: bool = False
    """The last order to its tasks."""
    tasks: dict[int, StartedTask] = field(default_factory=dict)
    deaths: int = 0
    failures: int = 0


Order = Callable[[Running], Awaitable[None]]


class Reconciler:
    """``worker_id`` is asked each time, since a worker knows its port late; ``fenced`` says that exactly-once sources are
    on: all tasks of one commit are then fenced together, and so are restarted together."""

    def __init__(
        self,
        worker: Worker,
        plugins: PluginRegistry,
        group: Group,
        stores: tuple[ConfigStore, OffsetStore, StatusStore],
        *,
        worker_id: Callable[[], str],
        fenced: bool = False,
    ) -> None:
        self._worker, self._plugins, self._group = worker, plugins, group
        self._configs, self._offsets, self._statuses = stores
        self._worker_id, self._fenced = worker_id, fenced
        self.running: dict[str, Running] = {}
        self._dirty: set[str] = set()
        self._orders: dict[str, list[tuple[Order, asyncio.Future[None]]]] = {}
        self._reconciling: dict[str, asyncio.Task[None]] = {}
        self._writes: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._changed = asyncio.Event()

    # -- Waking --------------------------------------------------------------------------------------------------

    def wake(self, name: str) -> None:
        """Compare and correct a connector, soon."""
        if self._stopping:
            return
        self._dirty.add(name)
        if name not in self._reconciling:
            self._reconciling[name] = asyncio.create_task(self._reconcile_while_dirty(name), name=f"herd {name}")

    async def carry_out(self, name: str, order: Order) -> None:
        """Do something to what runs of a connector while nothing else does, and compare and correct it after that.

        Returns when ``order`` has; raises what it raises.
        """
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._orders.setdefault(name, []).append((order, done))
        self.wake(name)
        if self._stopping:
            done.cancel()
        await done

    async def wait_until_reconciled(self, name: str) -> None:
        """Wait until a connector is as it should be, or has failed. The tasks that it starts may take longer."""
        while name in self._reconciling:
            await asyncio.wait({self._reconciling[name]})

    async def wait_until_started(self, name: str, timeout_s: float) -> None:
        """Wait until a connector that runs here has started or failed, for so long at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.wait_until_reconciled(name)
                while (running := self.running.get(name)) is not None and running.config is not None:
                    if running.started or running.failed:
                        await self.wait_until_reconciled(name)
                        return
                    self._changed.clear()
                    await self._changed.wait()

    def heard(self, name: str, change: Callable[[Running], None]) -> None:
        """Take note of what a task host says of a connector, and act on it."""
        running = self.running.get(name)
        if running is not None and running.config is not None:
            change(running)
            self.wake(name)
            self._changed.set()

    async def stop(self) -> None:
        """Reconcile nothing more; what runs goes on."""
        self._stopping = True
        committing = [running.committing for running in self.running.values() if running.committing is not None]
        under_way = [*self._reconciling.values(), *committing]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    def later(self, name: str) -> None:
        """Wake it again, after a pause that grows with each death of the process that it ran in."""
        running = self.running.setdefault(name, Running())
        running.deaths += 1
        asyncio.get_running_loop().call_later(_pause_s(running.deaths), self.wake, name)

    async def _reconcile_while_dirty(self, name: str) -> None:
        try:
            while name in self._dirty:
                self._dirty.discard(name)
                running = self.running.setdefault(name, Running())
                for order, done in self._orders.pop(name, ()):
                    await _carried_out(order(running), done)
                try:
                    await self._reconcile(name, running)
                    running.failures = 0
                except TidegateError as error:
                    running.failures += 1
                    logger.error("connector not as it should be; trying again", connector=name, error=str(error))
                    await asyncio.sleep(_pause_s(running.failures))
                    self._dirty.add(name)
        finally:
            del self._reconciling[name]

    # -- Comparing -----------------------------------------------------------------------------------------------

    async def _reconcile(self, name: str, running: Running) -> None:
        stored = self._configs.connectors.get(name)
        if stored is None:
            await self.stop_tasks(name, list(running.tasks), running)
            await self.stop_connector(name, running)
            self.running.pop(name, None)
        else:
            await self._match_connector(name, stored, running)
            await self._match_tasks(name, stored, running)
        if self._group.is_leader:
            await self._tidy(name, stored)

    async def _tidy(self, name: str, stored: StoredConnector | None) -> None:
        """The leader's part: forget the states of what is gone, and take the tasks of a stopped connector away."""
        if stored is not None and stored.target is TargetState.STOPPED and stored.tasks:
            await self._configs.put_tasks(name, [])
        count = len(stored.tasks or ()) if stored is not None else 0
        gone = [number for number in self._statuses.tasks.get(name, {}) if number >= count]
        forget = stored is None and name in self._statuses.connectors
        if gone or forget:
            await self._statuses.forget(name, gone, connector=forget)
        if stored is None:
            await self._statuses.forget_topics(name)

    def _version(self, stored: StoredConnector) -> str | None:
        """The version that the connector's plugin declares, known before it first runs."""
        plugin = self._plugins.find(stored.config.get("connector.class", ""), *CONNECTORS)
        return plugin.version if plugin is not None else None

    async def _match_connector(self, name: str, stored: StoredConnector, running: Running) -> None:
        mine = self._group.has(Item(name, CONNECTOR))
        if not mine or stored.target is TargetState.STOPPED:
            ran = running.config is not None
            await self.stop_connector(name, running)
            if mine:
                await self._put_connector(name, self.status(State.STOPPED, running.version or self._version(stored)))
            elif ran:
                await self._statuses.put_connector(name, self.status(State.UNASSIGNED, running.version), safe=True)
            return
        if running.config != stored.config or running.owner != stored.owner:
            await self._start_connector(name, stored, running)
        elif running.target is not stored.target:
            running.target = stored.target
            # Changes made while it was paused are planned now.
            running.plan_due = running.plan_due or stored.target is TargetState.STARTED
        if running.started and running.plan_due and stored.target is TargetState.STARTED:
            running.plan_due = False
            try:
                await self._worker.plan(name)
            except HostDied:  # which is told of
                running.plan_due = True
        if running.started or running.trace is not None:
            await self._put_connector(name, self._status_of(stored, running))
        if running.plan is not None and running.committing is None and stored.target is TargetState.STARTED:
            commit = self._commit_plan(name, stored, running, running.plan)
            running.plan = None
            running.committing = asyncio.create_task(commit, name=f"commit tasks of {name}")

    async def _start_connector(self, name: str, stored: StoredConnector, running: Running) -> None:
        await self.stop_connector(name, running)
        running.config, running.owner, running.target = dict(stored.config), stored.owner, stored.target
        running.started = running.failed = False
        running.trace = running.plan = None
        running.plan_due = True
        try:
            await self._worker.start_connector(name, stored.config, owner=stored.owner)
        except HostDied:
            running.config = None
            self.later(name)
            raise
        except TidegateError as error:
            running.failed, running.trace = True, str(error)

    async def _commit_plan(
        self, name: str, stored: StoredConnector, running: Running, plan: list[dict[str, str]]
    ) -> None:
        """Apart from the reconciliation: a follower has to wait for the leader, and in a rebalance there is none."""
        plugin = self._plugins.find(stored.config.get("connector.class", ""), *CONNECTORS)
        planned = [_task_config(task, stored, plugin) for task in plan]
        try:
            if planned != stored.tasks or (stored.applied, stored.applied_owner) != (stored.config, stored.owner):
                if self._group.is_leader:
                    await self._configs.put_tasks(name, planned)
                else:
                    await self._group.submit_tasks(name, planned)
            running.failures = 0
        except TidegateError as error:
            running.failures += 1
            logger.warning("tasks cannot be committed now; trying again", connector=name, error=str(error))
            running.plan_due = True
            await asyncio.sleep(_pause_s(running.failures))
        finally:
            if running.committing is asyncio.current_task():  # it may have been given up in favour of another
                running.committing = None
            if running.plan is not None or running.plan_due:
                self.wake(name)

    async def _match_tasks(self, name: str, stored: StoredConnector, running: Running) -> None:
        """Run those of the committed tasks that are this worker's, each with its configuration, and no others."""
        expected: dict[int, StartedTask] = {}
        if stored.target is not TargetState.STOPPED and stored.applied is not None:
            expected = {
                n: StartedTask(stored.applied, task_config, stored.applied_owner, stored.generation)
                for n, task_config in enumerate(stored.tasks or [])
            }
        mine = {number for number in expected if self._group.has(Item(name, number))}
        outdated = [n for n, was in running.tasks.items() if n not in mine or not self._same(was, expected[n])]
        await self.stop_tasks(name, outdated, running)
        given_up = [number for number in outdated if number in expected and number not in mine]
        await asyncio.gather(
            *(
                self._statuses.put_task(name, n, self.status(State.UNASSIGNED, running.version), safe=True)
                for n in given_up
            )
        )
        await self._pause_as(name, stored, running)
        missing = sorted(mine - running.tasks.keys())
        if not missing or stored.committed_at > self._group.position:
            return
        offsets: list[dict[str, Any]] = []
        # A class that only its task host knows may be a source. Exactly-once tasks ask for their positions themselves, once
        # they have ended what their forerunners left open: to read them here would wait until that expires.
        if not self._fenced and self._type_of(stored.config) != PluginType.SINK.value:
            offsets = await self.offsets_of(name)
        for number in missing:
            await self._start_task((name, number), stored, running, expected[number], offsets)

    def _same(self, was: StartedTask, expected: StartedTask) -> bool:
        return was == expected if self._fenced else was[:3] == expected[:3]

    async def _pause_as(self, name: str, stored: StoredConnector, running: Running) -> None:
        paused = stored.target is TargetState.PAUSED
        if paused is not running.paused:
            running.paused = paused
            await asyncio.gather(*(self._worker.set_paused((name, number), paused) for number in running.tasks))

    async def _start_task(
        self,
        task: TaskId,
        stored: StoredConnector,
        running: Running,
        start: StartedTask,
        offsets: Sequence[Mapping[str, Any]],
    ) -> None:
        running.tasks[task[1]] = start
        paused = stored.target is TargetState.PAUSED
        try:
            await self._worker.start_task(
                task,
                config=start.config,
                properties=start.properties,
                owner=start.owner,
                paused=paused,
                offsets=offsets,
            )
        except HostDied:
            running.tasks.pop(task[1], None)
            self.later(task[0])
        except TidegateError as error:
            await self._statuses.put_task(*task, self.status(State.FAILED, running.version, trace=str(error)))

    # -- Steps ---------------------------------------------------------------------------------------------------

    async def stop_tasks(self, name: str, numbers: Sequence[int], running: Running) -> None:
        await asyncio.gather(*(self._worker.stop_task((name, number)) for number in numbers))
        for number in numbers:
            running.tasks.pop(number, None)

    async def stop_connector(self, name: str, running: Running) -> None:
        if running.config is None:
            return
        running.config = None
        running.started = running.failed = False
        running.trace = running.plan = None
        if running.committing is not None:
            running.committing.cancel()
            running.committing = None
        try:
            await self._worker.stop_connector(name)
        except TidegateError as error:
            logger.warning("connector did not stop as it should", connector=name, error=str(error))

    async def offsets_of(self, connector: str) -> list[dict[str, Any]]:
        offsets = await self._offsets.read(connector)
        return [{"partition": offset.partition, "offset": offset.offset, "key": offset.key} for offset in offsets]

    # -- Statuses ------------------------------------------------------------------------------------------------

    def status(self, state: State, version: str | None = None, *, trace: str | None = None) -> Status:
        """A status as this worker says it, in this generation of its group."""
        return Status(state, self._worker_id(), self._group.generation, trace, version)

    def _status_of(self, stored: StoredConnector, running: Running) -> Status:
        if running.failed:
            state = State.FAILED
        elif not running.started:
            state = State.RESTARTING
        else:
            state = State.PAUSED if stored.target is TargetState.PAUSED else State.RUNNING
        return self.status(state, running.version, trace=running.trace)

    async def _put_connector(self, name: str, status: Status) -> None:
        if self._statuses.connectors.get(name) != status:
            await self._statuses.put_connector(name, status)

    def write(self, work: Coroutine[Any, Any, None]) -> None:
        """A status that need not be waited for; those of one task stay in order, since each is sent at once."""
        task = asyncio.create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._writes.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a status could not be written", error=str(error))

    async def written(self) -> None:
        """Wait for the statuses under way."""
        await asyncio.gather(*self._writes, return_exceptions=True)

    async def tell_unassigned(self) -> None:
        """The last words about everything that this worker ran."""
        work: list[Coroutine[Any, Any, None]] = []
        for name, running in self.running.items():
            gone = self.status(State.UNASSIGNED, running.version)
            if running.config is not None:
                work.append(self._statuses.put_connector(name, gone, safe=True))
            work += [self._statuses.put_task(name, number, gone, safe=True) for number in running.tasks]
        await asyncio.gather(*work)

    def _type_of(self, config: Mapping[str, str]) -> str:
        plugin = self._plugins.find(config.get("connector.class", ""), PluginType.SOURCE, PluginType.SINK)
        return plugin.type.value if plugin is not None else "unknown"


async def _carried_out(work: Awaitable[None], done: asyncio.Future[None]) -> None:
    try:
        await work
    except asyncio.CancelledError:
        done.cancel()
        raise
    except Exception as error:  # noqa: BLE001 - it is raised where the order was given
        if not done.done():
            done.set_exception(error)
    else:
        if not done.done():
            done.set_result(None)


def _pause_s(times: int) -> float:
    return float(min(_FIRST_RETRY_S * 2 ** (times - 1), _LONGEST_RETRY_S))


def _task_config(planned: Mapping[str, str], stored: StoredConnector, plugin: Plugin | None) -> dict[str, str]:
    """A task's properties as they are stored, with what Kafka Connect keeps there: a sink's topics and the task's class.

    Its class is named as the original's connectors name theirs, for the day when Kafka Connect takes the topics over.
    """
    kept: dict[str, str] = {name: stored.config[name] for name in ("topics", "topics.regex") if name in stored.config}
    name = plugin.name if plugin is not None else stored.config.get("connector.class", "")
    return {**kept, "task.class": name.removesuffix("Connector") + "Task", **planned}
