"""The process for the triggers of a project folder: a kit ``Service``, separate from the events service, so that users'
code can't harm that.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from broker.client import Admin, ClientConfig, TopicPartition
from broker.client.errors import UnknownMemberId, UnknownTopicOrPartition
from events.config import REGISTRY_PATIENCE
from events.flows.files import read_flow
from events.model.filters import Filter
from events.store.catalog import Catalog
from events.store.kafka import KafkaLog
from events.store.registration import RegistrySchemas
from events.store.state import EventState
from events.triggers.api import EVENT_UUID, Trigger
from events.triggers.config import TriggersConfig
from events.triggers.filtering import filterable
from events.triggers.project import Project, fingerprint, load
from events.triggers.states import Status, SubscriptionState, TriggerStates
from events.triggers.subscription import Subscription
from registry.client import RegistryClient
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["TriggersServer", "read_project"]

logger = get_logger(__name__)

_RETRY_S: Final = 1.0


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000


def read_project(folder: Path) -> Project:
    """The triggers and flows of a folder, and the problems of its files."""
    return load(folder, read_flow)


class TriggersServer:
    """Loads the project, runs a subscription per trigger and partition, and restarts when a file changes.

    A restart is a new interpreter in the same process (``execv``): nothing of the old code remains, and the supervisor
    notices nothing.
    """

    def __init__(self, config: TriggersConfig) -> None:
        self._config = config
        self._folder = Path(config.folder)
        self._client = ClientConfig(config.bootstrap_servers, {"client.id": "tidegate-triggers", **config.kafka})
        self._registry = RegistryClient.from_properties(
            {**REGISTRY_PATIENCE, **config.registry, "schema.registry.url": config.registry_url}
        )
        self._log = KafkaLog(self._client)
        self._catalog = Catalog(RegistrySchemas(self._registry), self._log)
        self._admin = Admin(self._client)
        self._state = EventState(self._log, _clock_ms)
        self._states = TriggerStates(self._state)
        self._tasks: list[asyncio.Task[None]] = []
        self._subscriptions: list[Subscription] = []
        self._reload = False

    async def start(self) -> Mapping[str, str]:
        """Load the project. Connecting continues in the background, because the log may start later."""
        self._seen = fingerprint(self._folder)
        project = read_project(self._folder)
        for name, problem in project.problems.items():
            logger.error("the triggers of a file do not run", file=name, problem=problem)
        self._tasks.append(asyncio.create_task(self._run(project), name="triggers"))
        if self._config.reload_ms:
            self._tasks.append(asyncio.create_task(self._watch(), name="triggers reload"))
        return {}

    async def stop(self) -> None:
        """Let running calls finish within ``triggers.stop.timeout.ms``. Positions stay at the last finished ones."""
        until = asyncio.get_running_loop().time() + self._config.stop_timeout_ms / 1000
        for subscription in self._subscriptions:
            subscription.stopping = True
        calls = [subscription.ended.wait() for subscription in self._subscriptions]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await asyncio.gather(*calls)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._state.stop()
        await self._disconnect()
        self._registry.close()
        if self._reload:
            sys.stdout.flush()
            sys.stderr.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - our own command again

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._config.reload_ms / 1000)
            if fingerprint(self._folder) != self._seen:
                logger.info("the project has changed; loading it anew", folder=str(self._folder))
                self._reload = True
                os.kill(os.getpid(), signal.SIGTERM)
                return

    async def _run(self, project: Project) -> None:
        await self._connect()
        await self._tell_problems(project)
        async with asyncio.TaskGroup() as group:
            for trigger in project.triggers.values():
                group.create_task(self._keep(trigger), name=f"trigger {trigger.name}")

    async def _connect(self) -> None:
        said = False
        while True:
            try:
                await self._log.start()
                await self._admin.start()
                break
            except TidegateError as error:
                if not said:
                    logger.warning("the log cannot be reached yet; trying on", reason=str(error))
                    said = True
                await self._disconnect()
                await asyncio.sleep(_RETRY_S)
        self._state.start()

    async def _disconnect(self) -> None:
        for part in (self._admin, self._log):
            with contextlib.suppress(TidegateError):
                await part.stop()

    async def _tell_problems(self, project: Project) -> None:
        while True:
            try:
                known = await self._states.problems()
                for name in {*known, *project.problems}:
                    if known.get(name) != project.problems.get(name):
                        await self._states.put_problem(name, project.problems.get(name))
                return
            except TidegateError as error:
                logger.warning("the state of the triggers cannot be read yet; trying on", reason=str(error))
                await asyncio.sleep(_RETRY_S)

    async def _keep(self, trigger: Trigger) -> None:
        """Determine where a trigger's subscriptions begin, then run them."""
        said = ""
        while True:
            try:
                settled = await self._states_with_positions(trigger)
                break
            except Exception as error:  # noqa: BLE001 - one trigger's trouble is not the others'
                if str(error) != said:
                    said = str(error)
                    with contextlib.suppress(TidegateError):
                        await self._states.put_problem(trigger.name, said)
                    logger.warning("a trigger cannot begin yet; trying on", trigger=trigger.name, reason=said)
                await asyncio.sleep(_RETRY_S)
        with contextlib.suppress(TidegateError):
            if trigger.name in await self._states.problems():
                await self._states.put_problem(trigger.name, None)
        instance = _instance(Path(self._config.data_dir))
        made = [
            Subscription(
                trigger,
                state,
                config=self._config,
                client=self._client,
                catalog=self._catalog,
                states=self._states,
                instance=instance,
            )
            for state in settled
        ]
        self._subscriptions += made
        await asyncio.gather(*(subscription.run() for subscription in made))

    async def _states_with_positions(self, trigger: Trigger) -> Sequence[SubscriptionState]:
        """Every subscription's state, whose group has a position.

        New subscriptions begin where the trigger begins. If a trigger's partitions have changed, they begin at the
        position of the slowest old one, so that nothing is lost and some events may be repeated.
        """
        if trigger.filter and (comparable := await filterable(self._catalog, trigger.event)) is not None:
            Filter(trigger.filter, comparable)
        layout = self._layout(trigger)
        states = await self._states.states()
        known = {s.group: s for s in states.values() if s.trigger == trigger.name}
        former = [s for s in known.values() if s.group not in {w.group for w in layout} and s.event == trigger.event]
        partition, admin = TopicPartition(trigger.event, 0), self._admin
        lacking = [w for w in layout if partition not in await admin.group_offsets(w.group)]
        if lacking:
            stood = [(await admin.group_offsets(s.group)).get(partition) for s in former]
            begin = min((at for at in stood if at is not None), default=None)
            if begin is None:
                begin = await self._first_position(trigger)
            for state in lacking:
                with contextlib.suppress(UnknownMemberId):  # another process has created it and runs it
                    await admin.alter_group_offsets(state.group, {partition: begin})
        command = await self._states.command(trigger.name)
        obeyed = command.id if command is not None and command.status == Status.RUNNING else ""
        settled = [
            replace(state, status=k.status, retries=k.retries, last_error=k.last_error, obeyed=k.obeyed)
            if (k := known.get(state.group)) is not None and k.event == state.event
            else replace(state, obeyed=obeyed)
            for state in layout
        ]
        for state in settled:
            if states.get(state.name) != state:
                await self._states.put_state(state)
        for state in former:
            if state.name not in {s.name for s in settled}:
                await self._states.forget_state(state.name)
            with contextlib.suppress(TidegateError):
                await admin.delete_groups([state.group], missing_ok=True)
        return settled

    def _layout(self, trigger: Trigger) -> list[SubscriptionState]:
        group = f"{self._config.group_prefix}{trigger.name}"
        state = SubscriptionState(trigger.name, trigger.event, trigger.kind, group)
        if trigger.partitions == 1:
            return [state]
        key = trigger.partition_key or EVENT_UUID
        return [
            replace(
                state,
                group=f"{group}-{part}-of-{trigger.partitions}-by-{key}",
                part=part,
                parts=trigger.partitions,
                partition_key=key,
            )
            for part in range(trigger.partitions)
        ]

    async def _first_position(self, trigger: Trigger) -> int:
        try:
            bounds = await self._log.bounds(trigger.event)
        except UnknownTopicOrPartition as error:
            raise TidegateError(f"event {trigger.event} of trigger {trigger.name} is not defined") from error
        return bounds.start if trigger.replay == "earliest" else bounds.readable


def _instance(folder: Path) -> str:
    """The id of this process in the groups, stable across restarts: created once and stored in the data folder."""
    path = folder / "instance"
    try:
        return path.read_text()
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
    made = uuid.uuid4().hex
    path.write_text(made)
    return made
