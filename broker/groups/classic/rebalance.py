"""The phases of a rebalance and the timers that end them.

    Empty, Stable, CompletingRebalance
        │  prepare: a member came, went, or changed what it offers
    PreparingRebalance ── nobody is left ──> Empty
        │  complete_join: all members have joined, or the rebalance timeout is over
    CompletingRebalance
        │  assign: the leader's assignments are written
    Stable

Four timers: a member's session; a pending member's (its new id has not been used yet); the end of joining; the end of
syncing. Each fires as a separate call, never during another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.coordinator.clock import Clock
from broker.coordinator.futures import fail, succeed, when_done
from broker.coordinator.journal import GroupJournal
from broker.errors import BrokerError, RebalanceInProgress, UnknownMemberId
from broker.groups.classic.generation import write_generation
from broker.groups.classic.group import Group, Member
from broker.groups.classic.values import GroupState
from broker.groups.config.group_config import GroupConfig
from tidegate.kit.logs import get_logger

__all__ = ["Rebalance"]

logger = get_logger(__name__)

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long a new member that can't send heartbeats yet may wait in a join.

Without a limit, retries of clients that are gone would leave more and more dead members; a live client joins again.
"""


class Rebalance:
    """Moves groups through their phases."""

    def __init__(self, config: GroupConfig, clock: Clock, journal: GroupJournal) -> None:
        self._config = config
        self._clock = clock
        self._journal = journal

    def prepare_or_complete(self, group: Group, reason: str) -> None:
        """After a change of the members: begin a rebalance, or check whether the current one can continue."""
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.try_complete_join(group)

    def prepare(self, group: Group, reason: str) -> None:
        if group.state is GroupState.COMPLETING_REBALANCE:
            for member in group.members.values():
                member.assignment = b""
            error = RebalanceInProgress(f"Group {group.group_id} has to rebalance again: {reason}.")
            self._end_syncs(group, error)
        self._stop_waiting_for_syncs(group)
        initial = group.state is GroupState.EMPTY
        group.enter(GroupState.PREPARING_REBALANCE, self._clock.now_ms())
        logger.info("group rebalances", group=group.group_id, generation=group.generation, reason=reason)
        if initial:
            delay_ms = self._config.initial_rebalance_delay_ms
            self._extend_initial(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.all_joined:
            self.complete_join(group)
        else:
            self._complete_join_later(group)

    def try_complete_join(self, group: Group) -> None:
        """End the join phase if all members have joined. A first rebalance always waits its delay for more members."""
        waits_for_others = group.previous_state is GroupState.EMPTY
        if group.state is GroupState.PREPARING_REBALANCE and not waits_for_others and group.all_joined:
            self.complete_join(group)

    def complete_join(self, group: Group) -> None:
        """Drop members that have not joined (except static ones), and send the new generation to the others."""
        if group.join_timer is not None:
            group.join_timer.cancel()
            group.join_timer = None
        if group.state is not GroupState.PREPARING_REBALANCE:
            return
        for member in [m for m in group.members.values() if m.joining is None and m.instance_id is None]:
            logger.info("member did not rejoin in time", group=group.group_id, member=member.member_id)
            group.remove(member.member_id)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none has joined: wait until one does or all their sessions expire.
            self._complete_join_later(group)
            return
        group.begin_generation(self._clock.now_ms())
        if group.members:
            self._answer_joins(group)
            return
        logger.info("group is empty", group=group.group_id, generation=group.generation)
        group.written = write_generation(self._journal, group)
        when_done(group.written, lambda error: self._warn(group, error))

    def _answer_joins(self, group: Group) -> None:
        for member in group.members.values():
            joining, member.joining = member.joining, None
            member.is_new = False
            group.pending_syncs.add(member.member_id)
            self.restart_session(group, member)
            if joining is not None:
                succeed(joining, group.generation_of(member))
        generation = group.generation
        group.sync_timer = self._clock.call_later(
            group.rebalance_timeout_ms, lambda: self._expire_syncs(group, generation)
        )

    def sync_received(self, group: Group, member: Member) -> None:
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            self._stop_waiting_for_syncs(group)

    def assign(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """Write the leader's assignments and send each member its own. The group is stable once they are durable."""
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.members}
        generation = group.generation

        def written(error: BrokerError | None) -> None:
            # If a member joined or left during the write, this generation is over.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
                return
            if error is not None:
                self._warn(group, error)
                self._end_syncs(group, error)
                self.prepare(group, "the assignments could not be written")
                return
            for member in group.members.values():
                member.assignment = complete.get(member.member_id, b"")
            group.enter(GroupState.STABLE, self._clock.now_ms())
            self._end_syncs(group, None)

        when_done(write_generation(self._journal, group, complete), written)

    def _end_syncs(self, group: Group, error: BrokerError | None) -> None:
        """Answer every parked SyncGroup. Sessions restart, because they do not run while a member is parked."""
        for member in group.members.values():
            syncing, member.syncing = member.syncing, None
            if syncing is None:
                continue
            self.restart_session(group, member)
            if error is None:
                succeed(syncing, group.synced(member))
            else:
                fail(syncing, error)

    def restart_session(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        member.stop_session()
        member.session = self._clock.call_later(
            member.session_timeout_ms if timeout_ms is None else timeout_ms, lambda: self._expire_member(group, member)
        )

    def wait_for_pending(self, group: Group, member_id: str, timeout_ms: int) -> None:
        """Remember the id of a new member for the length of its session."""
        group.pending_members[member_id] = self._clock.call_later(
            timeout_ms, lambda: self._expire_pending(group, member_id)
        )

    def remove_member(self, group: Group, member: Member) -> None:
        """Remove a member and answer its parked requests with UnknownMemberId, on which a live client joins anew."""
        group.remove(member.member_id)
        error = UnknownMemberId(f"Member {member.member_id} was removed from group {group.group_id}.")
        for parked in (member.joining, member.syncing):
            if parked is not None:
                fail(parked, error)
        member.joining = member.syncing = None

    def stop(self, group: Group, error: BrokerError) -> None:
        """Abandon the group here: stop all timers and answer parked requests with ``error``."""
        group.enter(GroupState.DEAD, self._clock.now_ms())
        self._stop_waiting_for_syncs(group)
        if group.join_timer is not None:
            group.join_timer.cancel()
        for timer in group.pending_members.values():
            timer.cancel()
        for member in group.members.values():
            member.stop_session()
            for parked in (member.joining, member.syncing):
                if parked is not None:
                    fail(parked, error)

    def _complete_join_later(self, group: Group) -> None:
        group.join_timer = self._clock.call_later(group.rebalance_timeout_ms, lambda: self.complete_join(group))

    def _extend_initial(self, group: Group, delay_ms: int, remaining_ms: int) -> None:
        group.newcomers = False
        group.join_timer = self._clock.call_later(delay_ms, lambda: self._end_initial(group, delay_ms, remaining_ms))

    def _end_initial(self, group: Group, delay_ms: int, remaining_ms: int) -> None:
        if group.newcomers and remaining_ms > 0:
            next_ms = min(self._config.initial_rebalance_delay_ms, remaining_ms)
            self._extend_initial(group, next_ms, max(remaining_ms - delay_ms, 0))
        else:
            self.complete_join(group)

    def _stop_waiting_for_syncs(self, group: Group) -> None:
        group.pending_syncs.clear()
        if group.sync_timer is not None:
            group.sync_timer.cancel()
            group.sync_timer = None

    def _expire_syncs(self, group: Group, generation: int) -> None:
        if group.generation != generation or not group.pending_syncs:
            return
        missing = sorted(group.pending_syncs)
        for member_id in missing:
            group.remove(member_id)
        self.prepare(group, f"no SyncGroup came from {', '.join(missing)}")

    def _expire_pending(self, group: Group, member_id: str) -> None:
        group.remove(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
            self.complete_join(group)

    def _expire_member(self, group: Group, member: Member) -> None:
        if group.members.get(member.member_id) is not member:
            return
        if not member.is_new and (member.joining is not None or member.syncing is not None):
            return  # parked here, so it is alive; its session restarts when it is answered
        logger.info("member's session timed out", group=group.group_id, member=member.member_id)
        self.remove_member(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            if group.all_joined:
                self.complete_join(group)
        else:
            self.prepare_or_complete(group, f"the session of {member.member_id} timed out")

    def _warn(self, group: Group, error: BrokerError | None) -> None:
        if error is not None:
            logger.warning("group could not be written", group=group.group_id, error=str(error))
