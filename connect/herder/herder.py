"""The herder: decides what runs. Users' wishes go into the config topic; what is read there is made true by the reconciler.

It is where all news meets: records of the config topic, the group's rounds, states that task hosts tell, and requests of
users that are more than a record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from connect.errors import Conflict, Forbidden
from connect.group.group import Alone, Group
from connect.group.protocol import CONNECTOR, Item
from connect.herder.reconciler import Reconciler, Running
from connect.plugins.registry import PluginRegistry
from connect.stores import ConfigStore, OffsetStore, RestartRequest, State, Status, StatusStore, TargetState
from connect.stores.offsets import parsed_key
from connect.worker.worker import TaskId, Worker
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["Herder"]

logger = get_logger(__name__)

_LAST_WORDS_S: Final = 5.0
_START_S: Final = 10.0
"""How long a request to restart a connector waits for it."""


class Herder:
    """Makes the config store's contents true on one worker, as far as the ``group`` says that they are its part."""

    def __init__(
        self,
        worker: Worker,
        plugins: PluginRegistry,
        *,
        worker_id: str,
        topic_tracking: bool = True,
        exactly_once: bool = False,
    ) -> None:
        self._worker, self._plugins, self.worker_id = worker, plugins, worker_id
        self._topic_tracking, self._exactly_once = topic_tracking, exactly_once
        self.group: Group = Alone()
        self.configs: ConfigStore
        self.offsets: OffsetStore
        self.statuses: StatusStore
        self.on_led: Callable[[], Awaitable[None]] | None = None
        """Called in each generation that this worker leads, before it takes up its share."""
        self.fencing: Callable[[str], Awaitable[None]] | None = None
        """Locks out the producers of a connector's tasks from before; the leader's, see ``fence``."""
        self.set_logger_level: Callable[[str, str], None] | None = None
        """Carries out a logger level that was set for all workers: namespace and level."""
        self._reconciler: Reconciler | None = None
        self._restarts: dict[str, RestartRequest] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # -- Life ----------------------------------------------------------------------------------------------------

    def start(self, group: Group) -> None:
        """Begin with everything that the stores, which have been read, say should run here."""
        self.group = group
        configs, offsets, statuses = self.configs, self.offsets, self.statuses
        self._reconciler = Reconciler(
            self._worker,
            self._plugins,
            group,
            (configs, offsets, statuses),
            worker_id=lambda: self.worker_id,
            fenced=self._exactly_once,
        )
        self._worker.listener = self
        if group.is_leader:
            self.take_up({*configs.connectors, *statuses.connectors, *statuses.tasks})

    async def stop(self) -> None:
        """Stop everything that runs; what should run stays in the stores."""
        for task in self._tasks:
            task.cancel()
        if self._reconciler is not None:
            await self._reconciler.stop()
        await self._worker.stop()
        if self._reconciler is not None:
            try:
                async with asyncio.timeout(_LAST_WORDS_S):
                    await self._reconciler.tell_unassigned()
                    await self._reconciler.written()
            except (TimeoutError, TidegateError) as error:
                logger.warning("the log did not take the last statuses", error=str(error))

    def _wake(self, name: str) -> None:
        if self._reconciler is not None:
            self._reconciler.wake(name)

    def _running(self, name: str) -> Running:
        assert self._reconciler is not None
        return self._reconciler.running.setdefault(name, Running())

    async def wait_until_reconciled(self, name: str) -> None:
        """Wait until a connector is as it should be here, or has failed to be."""
        if self._reconciler is not None:
            await self._reconciler.wait_until_reconciled(name)

    # -- What the group says (membership.Work) -------------------------------------------------------------------

    async def wait_until_started(self, name: str) -> str | None:
        """Wait a while until a connector has started here, or has failed to; why it failed."""
        if self._reconciler is None:
            return None
        await self._reconciler.wait_until_started(name, _START_S)
        running = self._reconciler.running.get(name)
        return running.trace if running is not None and running.failed else None

    async def release(self, items: frozenset[Item]) -> None:
        """Stop these, which are not this worker's any more."""
        names = {item.connector for item in items}
        self.take_up(names)
        for name in names:
            await self.wait_until_reconciled(name)
        if self._reconciler is not None:
            await self._reconciler.written()

    def take_up(self, names: Iterable[str]) -> None:
        for name in names:
            self._wake(name)

    async def lead(self) -> None:
        """Tidy up after what went while nobody led."""
        if self.on_led is not None:
            await self.on_led()
        known = {*self.statuses.connectors, *self.statuses.tasks, *self.statuses.topics, *self.statuses.flows}
        gone = known - self.configs.connectors.keys()
        stale = {name for name in self.statuses.tasks if self._has_stale_tasks(name)}
        self.take_up(gone | stale)

    def expects_tasks(self) -> bool:
        return any(self._is_planning(name) for name in self.configs.connectors)

    def _is_planning(self, name: str) -> bool:
        """Whether a connector that was given to a worker is about to have tasks: it has none yet, and has not failed."""
        stored, status = self.configs.connectors[name], self.statuses.connectors.get(name)
        if stored.tasks is not None or stored.target is not TargetState.STARTED or not self._known(name):
            return False
        return status is None or status.state is not State.FAILED

    def _has_stale_tasks(self, name: str) -> bool:
        stored = self.configs.connectors.get(name)
        count = len(stored.tasks or ()) if stored is not None else 0
        return any(number >= count for number in self.statuses.tasks.get(name, ()))

    # -- What the topics say -------------------------------------------------------------------------------------

    def on_connector(self, name: str) -> None:
        if self._reconciler is None:
            return
        self._wake(name)
        stored = self.configs.connectors.get(name)
        if stored is None or stored.committed_at > self.group.position or not self._known(name):
            self.group.work_changed()

    def _known(self, name: str) -> bool:
        """Whether some worker has been given the connector."""
        return self.configs.connectors[name].created_at <= self.group.position

    def on_restart(self, request: RestartRequest) -> None:
        waiting = self._restarts.get(request.connector)
        if waiting is None:
            self._restarts[request.connector] = request
            self._start(self._carry_out_restart(request.connector))
        elif request.impact > waiting.impact:
            self._restarts[request.connector] = request

    def on_logger_level(self, namespace: str, level: str) -> None:
        if self.set_logger_level is not None:
            self.set_logger_level(namespace, level)

    def on_status(self, name: str, task: int | None) -> None:
        """The leader forgets what a worker says of something that is gone: it had not heard of that yet."""
        if self._reconciler is None:
            return
        stored = self.configs.connectors.get(name)
        said = self.statuses.connectors.get(name) if task is None else self.statuses.tasks.get(name, {}).get(task)
        if said is not None and said.state is State.UNASSIGNED and said.worker_id != self.worker_id:
            self.group.expect_round()  # another worker gives something up: most likely it is about to leave
        if not self.group.is_leader:
            return
        if said is not None and (stored is None or (task is not None and task >= len(stored.tasks or ()))):
            self._wake(name)

    # -- What users ask ------------------------------------------------------------------------------------------

    async def require_leader(self) -> None:
        """Returns where this worker leads its group; raises Elsewhere or Conflict otherwise."""
        await self.group.require_leader()

    async def restart_connector(self, name: str) -> None:
        """Stop and start a connector, its tasks left alone. Raises Elsewhere where another worker runs it."""
        await self.group.require_owner(Item(name, CONNECTOR))
        await self._stop_parts(name, connector=True, tasks=())

    async def restart_task(self, name: str, number: int) -> None:
        """Stop and start a task. Raises Elsewhere where another worker runs it."""
        await self.group.require_owner(Item(name, number))
        await self._stop_parts(name, connector=False, tasks=[number])

    async def run_job(self, name: str, number: int) -> bool:
        """Have a job's task run before its time; False if it is no job. Raises Elsewhere where another worker runs it."""
        await self.group.require_owner(Item(name, number))
        return await self._worker.run_job((name, number))

    async def cancel_job(self, name: str, number: int) -> bool:
        """Have the run of a job's task end; False if none is under way. Raises Elsewhere where another worker runs the task."""
        await self.group.require_owner(Item(name, number))
        return await self._worker.cancel_job((name, number))

    async def _stop_parts(
        self, name: str, *, connector: bool, tasks: Sequence[int], tell: Status | None = None
    ) -> None:
        """Stop these, so that they are started again; ``tell`` is their status meanwhile."""
        assert self._reconciler is not None
        reconciler = self._reconciler

        async def stop(running: Running) -> None:
            if connector:
                await reconciler.stop_connector(name, running)
            await reconciler.stop_tasks(name, tasks, running)
            if tell is not None:
                told = [self.statuses.put_task(name, number, tell) for number in tasks]
                told += [self.statuses.put_connector(name, tell)] if connector else []
                await asyncio.gather(*told)

        await reconciler.carry_out(name, stop)

    async def reload(self, concerns: Callable[[Mapping[str, str]], bool]) -> list[str]:
        """Start the connectors whose configuration this ``concerns``, and their tasks, again in new processes; their names."""
        assert self._reconciler is not None
        await self._worker.retire_hosts()
        names = [name for name in self._reconciler.running if self._concerned(name, concerns)]
        for name in names:
            running = self._running(name)
            tell = self._reconciler.status(State.RESTARTING, running.version)
            is_mine = self.group.has(Item(name, CONNECTOR))
            await self._stop_parts(name, connector=is_mine, tasks=list(running.tasks), tell=tell)
        return names

    def _concerned(self, name: str, concerns: Callable[[Mapping[str, str]], bool]) -> bool:
        stored = self.configs.connectors.get(name)
        return stored is not None and stored.target is not TargetState.STOPPED and concerns(stored.config)

    async def _carry_out_restart(self, name: str) -> None:
        """This worker's part of a restart with its tasks, which all workers read of in the config topic."""
        assert self._reconciler is not None
        request = self._restarts.pop(name)
        status = self.statuses.connectors.get(name)
        if status is None:
            return
        version = status.version
        restarting = self._reconciler.status(State.RESTARTING, version)
        connector = (not request.only_failed or status.state is State.FAILED) and self.group.has(Item(name, CONNECTOR))
        states = self.statuses.tasks.get(name, {}) if request.include_tasks else {}
        tasks = [
            number
            for number, said in states.items()
            if (not request.only_failed or said.state is State.FAILED) and self.group.has(Item(name, number))
        ]
        await self._stop_parts(name, connector=connector, tasks=tasks, tell=restarting)

    async def fence(self, connector: str) -> None:
        """Lock out the producers of a source's tasks from before its newest commit; returns when none can write any more."""
        if not self.group.is_leader:
            await self.group.fence(connector)
        elif self.fencing is not None:
            await self.fencing(connector)

    async def confirm(self, task: TaskId) -> None:
        """Whether a task may still go on with what it was started with, now that its producer has locked out others.

        Raises Conflict where newer tasks were committed meanwhile, or where it is not this worker's any more.
        """
        await self.configs.refresh()
        name, number = task
        stored, started = self.configs.connectors.get(name), self._running(name).tasks.get(number)
        if stored is None or started is None or stored.generation != started.generation:
            raise Conflict(
                f"Cannot start source task {name}-{number} with exactly-once support as the connector has already generated a "
                "new set of task configs"
            )
        if not self.group.has(Item(name, number)):
            raise Conflict(f"Cannot start source task {name}-{number} as it has already been revoked from this worker")

    # -- What task hosts tell ------------------------------------------------------------------------------------

    def on_task_state(self, task: TaskId, state: str, trace: str | None) -> None:
        if state == "STOPPED" or self._reconciler is None:
            return
        name, number = task
        running = self._reconciler.running.get(name)
        version = running.version if running else None
        if running is not None and state == "RUNNING":
            running.deaths = 0
        self._say(name, number, self._reconciler.status(State(state), version, trace=trace))

    def _say(self, name: str, number: int, status: Status) -> None:
        stored = self.configs.connectors.get(name)
        if self._reconciler is not None and stored is not None and number < len(stored.tasks or ()):
            self._reconciler.write(self.statuses.put_task(name, number, status))

    def on_topic(self, task: TaskId, topic: str) -> None:
        used = self.statuses.topics.get(task[0], ())
        if self._topic_tracking and self._reconciler is not None and topic not in used:
            self._reconciler.write(self.statuses.put_topic(*task, topic))

    def on_flow(self, task: TaskId, flow: Mapping[str, Any]) -> None:
        if self._topic_tracking and self._reconciler is not None and not self.statuses.has_flow(task[0], flow):
            self._reconciler.write(self.statuses.put_flow(task[0], flow))

    def on_reconfigure(self, connector: str) -> None:
        def note(running: Running) -> None:
            running.plan_due = True

        if self._reconciler is not None:
            self._reconciler.heard(connector, note)

    def on_connector_started(self, connector: str, kind: str, version: str) -> None:
        def note(running: Running) -> None:
            running.started, running.failed, running.trace, running.version = True, False, None, version

        stored = self.configs.connectors.get(connector)
        if self._reconciler is not None and stored is not None:
            self._plugins.learn(stored.config.get("connector.class", ""), kind, version)
            self._reconciler.heard(connector, note)

    def on_planned(self, connector: str, tasks: Sequence[Mapping[str, str]]) -> None:
        def note(running: Running) -> None:
            running.plan, running.failed, running.trace = [dict(task) for task in tasks], False, None

        if self._reconciler is not None:
            self._reconciler.heard(connector, note)

    def on_connector_trouble(self, connector: str, trace: str | None, *, failed: bool) -> None:
        def note(running: Running) -> None:
            running.trace, running.failed = trace, failed

        if self._reconciler is not None:
            self._reconciler.heard(connector, note)

    @property
    def troubles(self) -> dict[str, str]:
        """The first line of each error that keeps a connector from starting or from being planned here."""
        running = self._reconciler.running if self._reconciler is not None else {}
        return {
            name: status.trace.splitlines()[0] for name, status in running.items() if status.trace and not status.failed
        }

    def on_host_death(self, connectors: Sequence[str], tasks: Sequence[TaskId], reason: str) -> None:
        """Say so in the statuses, then start again what was lost; a host that keeps dying is waited for longer and longer."""
        assert self._reconciler is not None
        for name, number in tasks:
            running = self._running(name)
            running.tasks.pop(number, None)
            self._say(name, number, self._reconciler.status(State.FAILED, running.version, trace=reason))
        for name in connectors:
            self._running(name).config = None
        for name in {*connectors, *(name for name, _ in tasks)}:
            self._reconciler.later(name)

    async def offsets_of(self, connector: str) -> list[dict[str, Any]]:
        """The committed positions of a source, for a connector that asks."""
        assert self._reconciler is not None
        return await self._reconciler.offsets_of(connector)

    async def keep_offsets(self, connector: str, offsets: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Commit positions that a task has come to, by their keys. Raises Forbidden for those of another connector."""
        keys = [parsed_key(key) for key, _ in offsets]
        if not all(key is not None and key[0] == connector for key in keys):
            raise Forbidden(f"a task of {connector} may write positions of {connector} only")
        await self.offsets.put_all([(key.encode(), offset) for key, offset in offsets])

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
