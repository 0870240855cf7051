"""Groups that change their protocol while they have members: from classic to consumer groups and back (KIP-848).

A classic group with members becomes a consumer group when a member of the consumer protocol joins it; the others keep
the classic protocol. When the last member of the consumer protocol leaves, it becomes a classic group again.
``group.consumer.migration.policy`` says which of the two is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from broker.errors import GroupIdNotFound, InconsistentGroupProtocol, RebalanceInProgress
from broker.groups.classic.generation import generation_entry
from broker.groups.classic.group import Group, Member
from broker.groups.classic.subscription import CONSUMER
from broker.groups.classic.values import GroupState
from broker.groups.consumer import changes
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ClassicMember, ConsumerMember, with_epoch
from broker.groups.consumer.protocol import decode_assignment, decode_subscription, encode_assignment
from broker.groups.modern.group import NO_PARTITIONS, metadata_hash
from broker.groups.modern.member import Partitions
from broker.groups.modern.records import Record, encode_entry
from broker.groups.modern.service import Change, Surroundings
from tidegate.kit.logs import get_logger

__all__ = ["Migration", "Successor"]

logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Successor:
    """A member of the classic protocol that replaces the last member of the consumer protocol."""

    member: ConsumerMember
    replaces: str


class Sessions(Protocol):
    """Detects silent members of consumer groups."""

    def restart_session(self, group_id: str, member: ConsumerMember) -> None: ...

    def cancel_timers(self, group_id: str, member_id: str) -> None: ...


class Migration:
    """The rules for changing protocols."""

    def __init__(self, surroundings: Surroundings, sessions: Sessions) -> None:
        self._around = surroundings
        self._sessions = sessions

    @property
    def _policy(self) -> str:
        return self._around.config.consumer_migration_policy.lower()

    # -- classic to consumer ---------------------------------------------------------------------------------------

    def upgraded(self, group: Group) -> tuple[ConsumerGroup, list[Record]]:
        """The consumer group that a classic group would become, and the records that create it.

        Raises GroupIdNotFound.
        """
        if group.state is GroupState.EMPTY:
            return ConsumerGroup(group.group_id), []
        self._check_upgrade(group)
        made = ConsumerGroup(group.group_id)
        made.epoch = made.assignment_epoch = group.generation
        try:
            for member in group.members.values():
                self._carry_over(made, group, member)
        except InconsistentGroupProtocol as error:
            raise GroupIdNotFound(
                f"Group {group.group_id} cannot be upgraded, its consumer protocol is malformed: {error.message}"
            ) from error
        made.metadata_hash = metadata_hash(made.subscribed_topics, self._around.topics)
        return made, _creation(made)

    def _check_upgrade(self, group: Group) -> None:
        most = self._around.config.consumer_max_size
        if self._policy not in ("bidirectional", "upgrade"):
            raise GroupIdNotFound(
                f"Cannot upgrade classic group {group.group_id} to consumer group because online upgrade is disabled."
            )
        if group.protocol_type != CONSUMER:
            raise GroupIdNotFound(f"Group {group.group_id} is one of {group.protocol_type!r}, not of consumers.")
        if len(group.members) > most:
            raise GroupIdNotFound(
                f"Classic group {group.group_id} has {len(group.members)} members; group.consumer.max.size is {most}."
            )

    def _carry_over(self, made: ConsumerGroup, group: Group, member: Member) -> None:
        """Every member keeps the assignment of its leader and is stable.

        Members parked in a join or sync are told to join again.
        """
        assigned: Partitions = NO_PARTITIONS
        if member.assignment:
            assignment = decode_assignment(member.assignment)
            if assignment.user_data:
                raise GroupIdNotFound(
                    f"Group {group.group_id} cannot be upgraded: its assignor keeps data of its own, which would be lost."
                )
            assigned = assignment.assigned(self._around.topics)
        metadata = member.protocols.get(group.protocol_name or "") or next(iter(member.protocols.values()))
        subscription = decode_subscription(metadata)
        made.put_target(member.member_id, assigned)
        made.put_member(
            ConsumerMember(
                member_id=member.member_id,
                epoch=group.generation,
                previous_epoch=group.generation,
                instance_id=member.instance_id,
                rack_id=subscription.rack_id or None,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                topics=frozenset(subscription.topics),
                assigned=with_epoch(assigned, group.generation),
                classic=ClassicMember(member.session_timeout_ms, tuple(member.protocols.items())),
            )
        )

    def upgrade(self, group: Group, change: Change) -> Change:
        """``change`` preceded by the end of the classic group."""

        def follow() -> None:
            self._around.groups.remove(group.group_id)
            self._around.classic.rebalance.stop(
                group, RebalanceInProgress(f"Group {group.group_id} is a consumer group from now on: join again.")
            )
            change.follow()
            made = self._around.groups.get(group.group_id)
            if isinstance(made, ConsumerGroup):
                for member in made.members.values():
                    if member.classic is not None:
                        self._sessions.restart_session(made.group_id, member)
            logger.info("classic group became a consumer group", group=group.group_id, members=len(group.members))

        return Change([*group.tombstones(), *change.entries], follow)

    # -- consumer to classic ---------------------------------------------------------------------------------------

    def may_downgrade(self, group: ConsumerGroup, left: Mapping[str, ConsumerMember]) -> bool:
        """Whether the group becomes a classic one with these members."""
        if not left or any(member.classic is None for member in left.values()):
            return False
        return self._policy in ("bidirectional", "downgrade") and len(left) <= self._around.config.max_size

    def check_classic_join(self, group: ConsumerGroup) -> None:
        if self._policy == "disabled":
            raise InconsistentGroupProtocol(
                f"Group {group.group_id} cannot be joined by the classic protocol: group migration is disabled."
            )

    def downgrade(
        self,
        group: ConsumerGroup,
        left: Mapping[str, ConsumerMember],
        reason: str,
        *,
        successor: Successor | None = None,
        rebalance: bool = True,
        before: Collection[Record] = (),
    ) -> Change:
        """End a consumer group and create the classic one with ``left`` as its members."""
        now_ms = self._around.clock.now_ms()
        classic = Group(group.group_id, now_ms, state=GroupState.STABLE, generation=group.epoch, protocol_type=CONSUMER)
        for member in left.values():
            assert member.classic is not None
            classic.add(
                Member(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.classic.session_timeout_ms,
                    dict(member.classic.protocols),
                ),
                CONSUMER,
            )
        classic.protocol_name = classic.select_protocol()
        classic.topics = classic.subscriptions()
        for group_member in classic.members.values():
            heir = successor is not None and successor.member.member_id == group_member.member_id
            target = group.target.get(
                successor.replaces if heir and successor else group_member.member_id, NO_PARTITIONS
            )
            like = group_member.protocols[classic.protocol_name]
            group_member.assignment = encode_assignment(target, self._around.topics, like)
        gone = [successor.member.member_id if successor and m == successor.replaces else m for m in group.members]
        ending = changes.group_tombstones(group.group_id, gone, group.regexes)

        def follow() -> None:
            for member_id in group.members:
                self._sessions.cancel_timers(group.group_id, member_id)
            self._around.groups.put(classic)
            for member in classic.members.values():
                self._around.classic.rebalance.restart_session(classic, member)
            logger.info("consumer group became a classic group", group=group.group_id, reason=reason)
            if rebalance:
                self._around.classic.rebalance.prepare(classic, reason)

        return Change([*map(encode_entry, before), *map(encode_entry, ending), generation_entry(classic)], follow)


def _creation(group: ConsumerGroup) -> list[Record]:
    members = group.members.values()
    return [
        *(changes.subscription(group.group_id, member) for member in members),
        changes.group_epoch(group.group_id, group.epoch, group.metadata_hash),
        *(changes.target(group.group_id, m.member_id, group.target.get(m.member_id, NO_PARTITIONS)) for m in members),
        changes.assignment_epoch(group.group_id, group.assignment_epoch, group.assigned_at_ms),
        *(changes.current_assignment(group.group_id, member) for member in members),
    ]
