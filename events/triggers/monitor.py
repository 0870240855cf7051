"""Monitoring and control of triggers in the events service: EventBusSubscriber's rows, and commands."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

from broker.client import Admin, ClientConfig, TopicPartition
from broker.client.errors import UnknownTopicOrPartition
from events.access import long_id
from events.errors import BadRequest, NotThere
from events.triggers.states import Command, Status, SubscriptionState, TriggerStates

__all__ = ["GroupPositions", "Monitor", "Positions", "UnknownTrigger"]

_TYPES: Final = {"trigger": "ApexTrigger", "flow": "Flow"}
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class UnknownTrigger(NotThere):
    """No process has run a trigger of this name on this log."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no trigger {name[:100]!r}")


class Positions(Protocol):
    """Positions of groups and ends of topics."""

    async def of(self, state: SubscriptionState) -> tuple[int | None, int | None]:
        """The position of a subscription (offset of the next event) and the end of its topic; None if unknown."""
        ...


class GroupPositions:
    """Positions from a cluster, connected on first use."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._admin: Admin | None = None
        self._turn = asyncio.Lock()

    async def of(self, state: SubscriptionState) -> tuple[int | None, int | None]:
        async with self._turn:
            if self._admin is None:
                admin = Admin(self._config)
                await admin.start()
                self._admin = admin
        partition = TopicPartition(state.event, 0)
        position = (await self._admin.group_offsets(state.group)).get(partition)
        try:
            end = (await self._admin.end_offsets([partition], committed=True))[partition]
        except UnknownTopicOrPartition:
            return position, None
        return position, end

    async def stop(self) -> None:
        if self._admin is not None:
            await self._admin.stop()


class Monitor:
    """Lists subscriptions and changes their states."""

    def __init__(self, states: TriggerStates, positions: Positions) -> None:
        self._states, self._positions = states, positions

    async def subscribers(self) -> list[dict[str, Any]]:
        """Rows with the fields of Salesforce's EventBusSubscriber, followed by ours (waiting, changedMs)."""
        return [await self._row(state) for _, state in sorted((await self._states.states()).items())]

    async def problems(self) -> dict[str, str]:
        """Files whose triggers do not run, and why."""
        return await self._states.problems()

    async def _row(self, state: SubscriptionState) -> dict[str, Any]:
        position, end = await self._positions.of(state)
        return {
            "Id": _id(state.name),
            "ExternalId": _id(state.trigger),
            "Name": state.name,
            "Topic": state.event,
            "Type": _TYPES.get(state.kind, state.kind),
            "Status": state.status,
            "Position": -1 if position is None else position - 1,
            "Tip": -1 if end is None else end - 1,
            "Retries": state.retries,
            "LastError": state.last_error or None,
            "IsPartitioned": state.parts > 1,
            "PartitionKey": state.partition_key or None,
            "waiting": 0 if position is None or end is None else max(0, end - position),
            "changedMs": state.changed_ms,
        }

    async def command(self, trigger: str, change: Mapping[str, Any]) -> None:
        """Resume or suspend a trigger with all its partitions. Raises UnknownTrigger, BadRequest."""
        status, replay = change.get("status"), change.get("replay", "processed")
        if status not in (Status.RUNNING, Status.SUSPENDED):
            raise BadRequest(f"status is {str(status)[:50]!r}; Running and Suspended can be asked for")
        if replay not in ("processed", "latest"):
            raise BadRequest(f"replay is {str(replay)[:50]!r}; processed and latest are possible")
        await self._known(trigger)
        await self._states.put_command(trigger, Command(str(status), str(replay)))

    async def forget(self, trigger: str) -> None:
        """Remove the states of a trigger that no longer exists. A running one writes its own again."""
        for state in await self._known(trigger):
            await self._states.forget_state(state.name)

    async def _known(self, trigger: str) -> list[SubscriptionState]:
        states = [state for state in (await self._states.states()).values() if state.trigger == trigger]
        if not states:
            raise UnknownTrigger(trigger)
        return states


def _id(name: str) -> str:
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
    digits = ""
    for _ in range(12):
        number, digit = divmod(number, 62)
        digits += _BASE62[digit]
    return long_id("01q" + digits)
