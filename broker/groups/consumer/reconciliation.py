"""Moves a member from its current assignment to its target: it releases partitions first, then gets those that others
have released.

STABLE ── there is a newer target ──> compute
UNREVOKED ── it owns none of the partitions it had to release ──> compute
UNRELEASED ──> compute, at every heartbeat
compute: UNREVOKED (the old epoch) while it has to release something; else the new epoch, UNRELEASED while others still
have partitions of its target, and STABLE when it has all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from broker.errors import FencedMemberEpoch
from broker.groups.consumer.member import NOTHING, ConsumerMember, Epochs
from broker.groups.modern.member import MemberState, Partitions

__all__ = ["Reconciliation", "reconcile"]


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The input for reconciling a member.

    ``subscribed`` are the ids of the topics it subscribes to; ``owner_epoch`` returns the epoch of the member that has
    a partition, -1 if it is free; ``owned`` is what the member reported to have, None if it reported nothing.
    """

    target_epoch: int
    target: Partitions
    subscribed: frozenset[UUID]
    subscription_changed: bool
    owner_epoch: Callable[[UUID, int], int]
    owned: Partitions | None


def reconcile(member: ConsumerMember, way: Reconciliation) -> ConsumerMember:
    """The member after this step; the same object if nothing changes.

    Raises FencedMemberEpoch for a member in a state of a later Kafka version, unless it has no partitions.
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch != way.target_epoch:
                return _compute(member, member.epoch, way)
            return _unsubscribe(member, way) if way.subscription_changed else member
        case MemberState.UNREVOKED:
            if not _owns(way.owned, member.revoking):
                return _compute(member, member.epoch, way)
            return _unsubscribe(member, way) if way.subscription_changed else member
        case MemberState.UNRELEASED:
            return _compute(member, member.epoch, way)
        case MemberState.UNKNOWN:
            if way.owned is None or any(way.owned.values()):
                raise FencedMemberEpoch(
                    f"Member {member.member_id} is in an unknown state. It must abandon all its partitions and rejoin."
                )
            return _compute(member, way.target_epoch, way)


def _owns(owned: Partitions | None, epochs: Epochs) -> bool:
    """Whether the member may have any of these. If it reports nothing, it may have all."""
    if owned is None:
        return True
    return any(not owned.get(topic_id, frozenset()).isdisjoint(partitions) for topic_id, partitions in epochs.items())


def _unsubscribe(member: ConsumerMember, way: Reconciliation) -> ConsumerMember:
    """Make the member release topics it no longer subscribes to, in its epoch; the next target comes later."""
    gone = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id not in way.subscribed}
    if not gone:
        return member
    kept = {topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id in way.subscribed}
    revoking = {
        topic_id: {**member.revoking.get(topic_id, {}), **gone.get(topic_id, {})}
        for topic_id in member.revoking.keys() | gone.keys()
    }
    if _owns(way.owned, revoking):
        return _moved(member, MemberState.UNREVOKED, member.epoch, kept, revoking)
    return replace(member, previous_epoch=member.epoch, assigned=kept)


def _compute(member: ConsumerMember, epoch: int, way: Reconciliation) -> ConsumerMember:
    kept: dict[UUID, dict[int, int]] = {}
    revoking: dict[UUID, dict[int, int]] = {}
    newly_assigned: dict[UUID, list[int]] = {}
    unreleased = False
    for topic_id in way.target.keys() | member.assigned.keys():
        target = way.target.get(topic_id, frozenset()) if topic_id in way.subscribed else frozenset()
        current = member.assigned.get(topic_id, {})
        for partition, assigned_in in current.items():
            (kept if partition in target else revoking).setdefault(topic_id, {})[partition] = assigned_in
        for partition in sorted(target - current.keys()):
            # Partitions it has not released yet are still its own: no other member can have them.
            if way.owner_epoch(topic_id, partition) == -1 or partition in member.revoking.get(topic_id, {}):
                newly_assigned.setdefault(topic_id, []).append(partition)
            else:
                unreleased = True
    if revoking and _owns(way.owned, revoking):
        return _moved(member, MemberState.UNREVOKED, epoch, kept, revoking)
    for topic_id, partitions in newly_assigned.items():
        kept.setdefault(topic_id, {}).update(dict.fromkeys(partitions, way.target_epoch))
    state = MemberState.UNRELEASED if unreleased else MemberState.STABLE
    return _moved(member, state, way.target_epoch, kept, NOTHING)


def _moved(
    member: ConsumerMember, state: MemberState, epoch: int, assigned: Epochs, revoking: Epochs
) -> ConsumerMember:
    return replace(member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, revoking=revoking)
