"""Moves a member of a streams group from its current tasks to its target.

As with consumer groups (``broker.groups.consumer.reconciliation``) it releases tasks first. A task may be active on one
client at a time, and a client may have it in one role only, across all its threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from broker.errors import FencedMemberEpoch
from broker.groups.modern.member import MemberState
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.tasks import NOTHING, Assigned, TaskEpochs, Tasks, TasksByRole

__all__ = ["owns_any", "reconcile"]


def reconcile(
    group: StreamsGroup, member: StreamsMember, target_epoch: int, target: TasksByRole, owned: TasksByRole | None
) -> StreamsMember:
    """The member after this step; the same object if nothing changes. ``owned`` is what it reported to have, if
    anything.

    Raises FencedMemberEpoch for a member in a state of a later Kafka version, unless it has no tasks.
    """
    step = _Step(group, member, target_epoch, target, owned)
    match member.state:
        case MemberState.STABLE:
            return step.compute(member.epoch) if member.epoch != target_epoch else member
        case MemberState.UNREVOKED:
            return member if owns_any(owned, member.revoking.roles) else step.compute(member.epoch + 1)
        case MemberState.UNRELEASED:
            return step.compute(member.epoch)
        case MemberState.UNKNOWN:
            if owned is None or owned.active or owned.standby or owned.warmup:
                raise FencedMemberEpoch(
                    f"Member {member.member_id} is in an unknown state. It must abandon all its tasks and rejoin."
                )
            return step.compute(target_epoch)


def owns_any(owned: TasksByRole | None, tasks: TasksByRole) -> bool:
    """Whether the member may have any of these. If it reports nothing, it may have all."""
    if owned is None:
        return True
    pairs = ((owned.active, tasks.active), (owned.standby, tasks.standby), (owned.warmup, tasks.warmup))
    return any(
        not has.get(name, frozenset()).isdisjoint(numbers) for has, some in pairs for name, numbers in some.items()
    )


@dataclass(frozen=True, slots=True)
class _Difference:
    """The changes of one role: tasks that stay, tasks to revoke, tasks to assign now."""

    kept: dict[str, dict[int, int]]
    revoking: dict[str, dict[int, int]]
    assigning: dict[str, dict[int, int]]


@dataclass(slots=True)
class _Step:
    group: StreamsGroup
    member: StreamsMember
    target_epoch: int
    target: TasksByRole
    owned: TasksByRole | None
    unreleased: bool = False

    def compute(self, epoch: int) -> StreamsMember:
        has = self.member.assigned
        active = self._difference(has.active, self.target.active, self._is_active_anywhere)
        standby = self._difference(_unknown_epochs(has.standby), self.target.standby, self._is_here)
        warmup = self._difference(_unknown_epochs(has.warmup), self.target.warmup, self._is_here)
        revoking = Assigned(active.revoking, _tasks(standby.revoking), _tasks(warmup.revoking))
        if revoking and owns_any(self.owned, revoking.roles):
            kept = Assigned(active.kept, _tasks(standby.kept), _tasks(warmup.kept))
            return self._moved(MemberState.UNREVOKED, epoch, kept, revoking)
        assigned = Assigned(_merged(active), _tasks(_merged(standby)), _tasks(_merged(warmup)))
        state = MemberState.UNRELEASED if self.unreleased else MemberState.STABLE
        return self._moved(state, self.target_epoch, assigned, NOTHING)

    def _moved(self, state: MemberState, epoch: int, assigned: Assigned, revoking: Assigned) -> StreamsMember:
        return replace(
            self.member,
            state=state,
            epoch=epoch,
            previous_epoch=self.member.epoch,
            assigned=assigned,
            revoking=revoking,
        )

    def _difference(self, has: TaskEpochs, target: Tasks, is_taken: Callable[[tuple[str, int]], bool]) -> _Difference:
        made = _Difference({}, {}, {})
        for name in has.keys() | target.keys():
            current, numbers = has.get(name, {}), target.get(name, frozenset())
            for partition, epoch in current.items():
                (made.kept if partition in numbers else made.revoking).setdefault(name, {})[partition] = epoch
            for partition in sorted(numbers - current.keys()):
                if is_taken((name, partition)):
                    self.unreleased = True
                else:
                    made.assigning.setdefault(name, {})[partition] = self.target_epoch
        return made

    def _is_active_anywhere(self, task: tuple[str, int]) -> bool:
        return self.group.active_at(task) is not None or self.group.has_copy(task, self.member.process_id)

    def _is_here(self, task: tuple[str, int]) -> bool:
        process_id = self.member.process_id
        return self.group.active_at(task) == process_id or self.group.has_copy(task, process_id)


def _unknown_epochs(tasks: Tasks) -> TaskEpochs:
    return {name: dict.fromkeys(numbers, 0) for name, numbers in tasks.items()}


def _merged(difference: _Difference) -> dict[str, dict[int, int]]:
    merged = {name: dict(epochs) for name, epochs in difference.kept.items()}
    for name, epochs in difference.assigning.items():
        merged.setdefault(name, {}).update(epochs)
    return merged


def _tasks(epochs: TaskEpochs) -> Tasks:
    return {name: frozenset(partitions) for name, partitions in epochs.items()}
