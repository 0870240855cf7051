"""The sticky assignor of streams groups: tasks stay with their state as far as the load stays even.

Active tasks go first to the member that had them, then to one that had a copy of their state, then to the least loaded.
Standby tasks likewise, but only to a client that does not have the task yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from broker.groups.streams.heap import Heap
from broker.groups.streams.tasks import Tasks, TasksByRole

__all__ = ["StreamsMemberSpec", "StreamsSpec", "SubtopologySpec", "assign_tasks"]


class SubtopologySpec(NamedTuple):
    """A subtopology has one task per partition. It is stateful if it has changelogs."""

    tasks: int
    is_stateful: bool


@dataclass(frozen=True, slots=True)
class StreamsMemberSpec:
    process_id: str
    assigned: TasksByRole
    """Its target assignment so far."""


@dataclass(frozen=True, slots=True)
class StreamsSpec:
    members: Mapping[str, StreamsMemberSpec]
    subtopologies: Mapping[str, SubtopologySpec]
    standby_replicas: int = 0


class _Task(NamedTuple):
    subtopology: str
    partition: int


class _Member(NamedTuple):
    process: _Process
    member_id: str

    @property
    def load(self) -> int:
        return self.process.counts[self.member_id]


class _Entry:
    """A member in its process's queue, with the load at which it was queued."""

    __slots__ = ("count", "member_id")

    def __init__(self, member_id: str, count: int) -> None:
        self.member_id = member_id
        self.count = count


class _Process:
    """A client: its threads are members."""

    __slots__ = ("active", "counts", "queue", "standby", "tasks")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.tasks: set[_Task] = set()
        self.active: dict[str, set[_Task]] = {}
        self.standby: dict[str, set[_Task]] = {}
        self.queue: Heap[_Entry] | None = None

    @property
    def load(self) -> float:
        return sum(self.counts.values()) / len(self.counts)

    def add(self, member_id: str, task: _Task, *, active: bool) -> int:
        """Give a member a task. Returns how many it has then."""
        self.queue = None
        return self._add(member_id, task, active=active)

    def _add(self, member_id: str, task: _Task, *, active: bool) -> int:
        self.tasks.add(task)
        (self.active if active else self.standby).setdefault(member_id, set()).add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]

    def add_to_least(self, task: _Task, *, active: bool) -> int:
        """Give a task to the member with the fewest."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, active=active)
        if self.queue is None:
            self.queue = Heap(lambda entry: entry.count, (_Entry(*item) for item in self.counts.items()))
        entry = self.queue.pop()
        entry.count = self._add(entry.member_id, task, active=active)
        self.queue.push(entry)
        return entry.count


class _Quota:
    """The maximum number of tasks per member, given the remaining tasks and members."""

    __slots__ = ("_members", "_tasks", "each")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.each = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def count_member(self, count: int) -> None:
        """A member has ``count`` tasks now. If that is its share, the other members divide the rest."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self.each = self._share()


def assign_tasks(spec: StreamsSpec) -> dict[str, TasksByRole]:
    """Assigns tasks to every member. Pure; members are processed in the spec's order."""
    return _Assignment(spec).build() if spec.members else {}


class _Assignment:
    def __init__(self, spec: StreamsSpec) -> None:
        self._spec = spec
        self._processes: dict[str, _Process] = {}
        self._had: dict[_Task, _Member] = {}
        self._had_copy: dict[_Task, list[_Member]] = {}
        for member_id, member in spec.members.items():
            process = self._processes.setdefault(member.process_id, _Process())
            process.counts[member_id] = 0
            self._note(_Member(process, member_id), member.assigned)
        active = sum(subtopology.tasks for subtopology in spec.subtopologies.values())
        copies = (
            sum(subtopology.tasks for subtopology in spec.subtopologies.values() if subtopology.is_stateful)
            * spec.standby_replicas
        )
        self._active_quota = _Quota(active, len(spec.members))
        self._quota = _Quota(active + copies, len(spec.members))

    def _note(self, member: _Member, before: TasksByRole) -> None:
        for subtopology, partitions in before.active.items():
            for partition in partitions:
                self._had[_Task(subtopology, partition)] = member
        for subtopology, partitions in before.standby.items():
            for partition in partitions:
                self._had_copy.setdefault(_Task(subtopology, partition), []).append(member)

    def build(self) -> dict[str, TasksByRole]:
        self._assign_active(self._tasks(stateful_only=False))
        if self._spec.standby_replicas > 0:
            self._assign_standby(self._tasks(stateful_only=True))
        made = {}
        for member_id, member in self._spec.members.items():
            process = self._processes[member.process_id]
            made[member_id] = TasksByRole(
                _grouped(process.active.get(member_id, set())), _grouped(process.standby.get(member_id, set()))
            )
        return made

    def _tasks(self, *, stateful_only: bool) -> list[_Task]:
        return [
            _Task(name, partition)
            for name, subtopology in self._spec.subtopologies.items()
            if subtopology.is_stateful or not stateful_only
            for partition in range(subtopology.tasks)
        ]

    def _assign_active(self, tasks: list[_Task]) -> None:
        by_partition = sorted(tasks, key=lambda task: (task.partition, task.subtopology))
        rest = [task for task in by_partition if not self._give_back(self._had.get(task), task)]
        rest = [task for task in rest if not self._give_back(self._least_loaded(self._had_copy.get(task)), task)]
        queue = Heap(lambda process: process.load, self._processes.values())
        for task in sorted(rest):
            process = queue.pop()
            self._count(process.add_to_least(task, active=True), active=True)
            queue.push(process)

    def _give_back(self, member: _Member | None, task: _Task) -> bool:
        if member is None or member.load >= self._active_quota.each:
            return False
        self._count(member.process.add(member.member_id, task, active=True), active=True)
        return True

    def _count(self, count: int, *, active: bool) -> None:
        if active:
            self._active_quota.count_member(count)
        self._quota.count_member(count)

    def _least_loaded(self, members: list[_Member] | None, task: _Task | None = None) -> _Member | None:
        """The least loaded of the members that had a copy and whose client does not have the task yet."""
        if not members:
            return None
        first = chosen = members[0]
        process_load, load = first.process.load, first.load
        for member in members[1:]:
            free = task is None or task not in member.process.tasks
            if member.process.load < process_load and free and member.load < load:
                process_load, load, chosen = member.process.load, member.load, member
        return chosen if task is None or task not in first.process.tasks else None

    def _assign_standby(self, tasks: list[_Task]) -> None:
        open_copies: list[tuple[_Task, int]] = []
        for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology), reverse=True):
            for done in range(self._spec.standby_replicas):
                if not self._keep_copy(task):
                    open_copies.append((task, self._spec.standby_replicas - done))
                    break
        queue = Heap(lambda process: process.load, self._processes.values())
        for task, copies in sorted(open_copies, reverse=True):
            for _ in range(copies):
                if not self._give_copy(queue, task):
                    break  # too few clients

    def _keep_copy(self, task: _Task) -> bool:
        """Keep the copy on the member where the task was active, whose state is newest; otherwise on one that had a
        copy.
        """
        had = self._had.get(task)
        if had is None or task in had.process.tasks or had.load >= self._quota.each:
            had = self._least_loaded(self._had_copy.get(task), task)
        if had is None or had.load >= self._quota.each:
            return False
        self._count(had.process.add(had.member_id, task, active=False), active=False)
        return True

    def _give_copy(self, queue: Heap[_Process], task: _Task) -> bool:
        """Give a copy to the least loaded client that does not have the task.

        Skipped clients return to the queue in their order.
        """
        passed = []
        result = False
        while len(queue):
            process = queue.pop()
            passed.append(process)
            if task not in process.tasks:
                self._count(process.add_to_least(task, active=False), active=False)
                result = True
                break
        for process in reversed(passed):
            queue.push(process)
        return result


def _grouped(tasks: set[_Task]) -> Tasks:
    grouped: dict[str, set[int]] = {}
    for task in sorted(tasks):
        grouped.setdefault(task.subtopology, set()).add(task.partition)
    return {subtopology: frozenset(partitions) for subtopology, partitions in grouped.items()}
