"""The leader's part of a round: computes each member's assignment from the members' states, in their protocol's format."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from connect.group.eager import assign_round_robin
from connect.group.incremental import IncrementalAssignor
from connect.group.protocol import (
    CONFIG_MISMATCH,
    Assignment,
    Item,
    MalformedWorkerMessage,
    Protocol,
    WorkerState,
    decode_state,
    encode_assignment,
)
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from connect.stores import ConfigStore

__all__ = ["LeaderAssignments"]

logger = get_logger(__name__)


class LeaderAssignments:
    """Remembers the last assignments. ``catch_up`` reads the config topic to its end, for a limited time."""

    def __init__(self, configs: ConfigStore, max_delay_ms: int, catch_up: Callable[[], Awaitable[None]]) -> None:
        self._configs, self._catch_up = configs, catch_up
        self._assignor = IncrementalAssignor(max_delay_ms)
        self._assigned_this_round = False
        self._homes: dict[str, frozenset[Item]] = {}
        """Each worker's last assignment, by address, including absent workers: it is restored when they return."""
        self._urls: dict[Item, str] = {}

    def completed(self, generation_id: int, *, leads: bool) -> None:
        """The group has reached a new generation. If this worker leads it, the last assignment is in effect."""
        if self._assigned_this_round and leads:
            self._assignor.completed(generation_id)
        self._assigned_this_round = False

    def url_of(self, item: Item) -> str | None:
        """The address of the worker that runs an item, by the last assignment."""
        return self._urls.get(item)

    @property
    def has_new_work(self) -> bool:
        """Whether there is work that did not exist at the last round."""
        return any(Item(*item) not in self._urls for item in self._configs.items())

    async def assign(
        self, protocol: str, leader_id: str, members: Mapping[str, bytes], *, last_generation: int | None
    ) -> dict[str, bytes]:
        spoken = Protocol(protocol)
        states = {member: _state_of(member, data) for member, data in members.items()}
        newest = max(state.offset for state in states.values())
        if self._configs.position < newest:
            await self._catch_up()
        made = Assignment(leader_id, states[leader_id].url, newest)
        if self._configs.position < newest:
            logger.warning("cannot assign: this worker leads and has not read the config topic as far as another one")
            failed = dataclasses.replace(made, error=CONFIG_MISMATCH)
            return {member: encode_assignment(failed, spoken) for member in states}
        made = dataclasses.replace(made, offset=self._configs.position)
        if spoken.cooperative:
            shares = self._assign_incrementally(made, states, last_generation)
        else:
            shares = self._assign_eagerly(made, states)
        return {member: encode_assignment(assignment, spoken) for member, assignment in shares.items()}

    def _desired_items(self) -> list[Item]:
        return [Item(*item) for item in self._configs.items()]

    def _assign_eagerly(self, made: Assignment, states: Mapping[str, WorkerState]) -> dict[str, Assignment]:
        shares = assign_round_robin(self._desired_items(), states)
        self._remember(states, shares)
        return {member: dataclasses.replace(made, items=items) for member, items in shares.items()}

    def _assign_incrementally(
        self, made: Assignment, states: Mapping[str, WorkerState], last_generation: int | None
    ) -> dict[str, Assignment]:
        running = {m: state.assignment.items if state.assignment else frozenset() for m, state in states.items()}
        returned = {
            member: self._homes.get(state.url, frozenset())
            for member, state in states.items()
            if not running[member] and state.url
        }
        shares = self._assignor.assign(self._desired_items(), running, last_generation, returned=returned)
        self._assigned_this_round = True
        self._remember(states, {m: running[m] - shares.revoked[m] | shares.assigned[m] for m in states})
        return {
            member: dataclasses.replace(
                made, items=shares.assigned[member], revoked=shares.revoked[member], delay_ms=shares.delay_ms
            )
            for member in states
        }

    def _remember(self, states: Mapping[str, WorkerState], shares: Mapping[str, frozenset[Item]]) -> None:
        self._homes |= {state.url: shares[member] for member, state in states.items()}
        self._urls = {item: state.url for member, state in states.items() for item in shares[member]}


def _state_of(member: str, data: bytes) -> WorkerState:
    try:
        return decode_state(data)
    except MalformedWorkerMessage as error:
        logger.warning("a member of the group cannot be understood", member=member, error=str(error))
        return WorkerState("", -1)
