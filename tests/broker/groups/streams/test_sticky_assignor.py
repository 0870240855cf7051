"""The sticky assignor of streams groups gives the same results as Apache Kafka's, which were recorded (see
RecordTasks.java).
"""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.groups.streams.heap import Heap
from broker.groups.streams.sticky_assignor import StreamsMemberSpec, StreamsSpec, SubtopologySpec, assign_tasks
from broker.groups.streams.tasks import Tasks, TasksByRole

RECORDED = [json.loads(line) for line in Path(__file__).with_name("tasks.jsonl").read_text().splitlines()]


def tasks(tasks_of: dict[str, list[int]]) -> Tasks:
    return {name: frozenset(numbers) for name, numbers in tasks_of.items()}


def test_the_assignment_is_kafkas() -> None:
    assert len(RECORDED) == 200
    for case in RECORDED:
        spec = StreamsSpec(
            {
                member_id: StreamsMemberSpec(process, TasksByRole(tasks(active), tasks(standby)))
                for member_id, process, active, standby, _, _ in case["members"]
            },
            {name: SubtopologySpec(count, stateful) for name, count, stateful in case["subtopologies"]},
            case["standbys"],
        )
        expected = {
            member_id: TasksByRole(tasks(active), tasks(standby))
            for member_id, _, _, _, active, standby in case["members"]
        }
        assert assign_tasks(spec) == expected, case


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.text("abcdef", min_size=1, max_size=2), st.sampled_from("pqr"), min_size=1, max_size=6),
    st.dictionaries(st.sampled_from("012"), st.tuples(st.integers(1, 6), st.booleans()), min_size=1),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_every_task_is_active_once_and_a_process_has_it_in_one_role(
    members: dict[str, str], subtopologies: dict[str, tuple[int, bool]], standbys: int, random: object
) -> None:
    described = {name: SubtopologySpec(*subtopology) for name, subtopology in subtopologies.items()}
    first = assign_tasks(StreamsSpec({m: StreamsMemberSpec(p, TasksByRole()) for m, p in members.items()}, described))
    spec = StreamsSpec({m: StreamsMemberSpec(p, first[m]) for m, p in members.items()}, described, standbys)
    assigned = assign_tasks(spec)
    active = [
        (name, n) for subtopology in assigned.values() for name, numbers in subtopology.active.items() for n in numbers
    ]
    assert sorted(active) == sorted((name, n) for name, (count, _) in subtopologies.items() for n in range(count))
    for process in set(members.values()):
        task_ids = [assigned[m] for m, p in members.items() if p == process]
        has = [
            (n, i)
            for subtopology in task_ids
            for role in (subtopology.active, subtopology.standby)
            for n, numbers in role.items()
            for i in numbers
        ]
        assert len(has) == len(set(has))
    copies = [
        (name, n) for subtopology in assigned.values() for name, numbers in subtopology.standby.items() for n in numbers
    ]
    expected = min(standbys, len(set(members.values())) - 1)
    for name, (count, stateful) in subtopologies.items():
        assert all(copies.count((name, n)) == (expected if stateful else 0) for n in range(count))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_a_heap_gives_the_smallest_first(items: list[tuple[int, int]]) -> None:
    heap = Heap[tuple[int, int]](lambda item: item[0], items)
    assert [heap.pop()[0] for _ in items] == sorted(item[0] for item in items)
