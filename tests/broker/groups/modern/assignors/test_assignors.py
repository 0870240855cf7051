"""The assignors give the same results as Apache Kafka's, which were recorded for random groups (see
RecordAssignments.java).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.groups.modern.assignors import CONSUMER_ASSIGNORS
from broker.groups.modern.assignors.spec import GroupSpec, MemberSpec
from broker.groups.modern.member import Partitions

RECORDED = [json.loads(line) for line in Path(__file__).with_name("assignments.jsonl").read_text().splitlines()]


def spec_of(case: dict[str, Any]) -> tuple[GroupSpec, dict[str, Partitions]]:
    ids = [UUID(hex=topic) for topic, _ in case["topics"]]

    def partitions(listed: list[tuple[int, list[int]]]) -> Partitions:
        return {ids[index]: frozenset(numbers) for index, numbers in listed}

    members = {
        member_id: MemberSpec(frozenset(ids[index] for index in topics), partitions(assigned), instance)
        for member_id, instance, topics, assigned, _ in case["members"]
    }
    spec = GroupSpec(
        members,
        case["homogeneous"],
        {ids[index]: count for index, (_, count) in enumerate(case["topics"])},
        owners_of(members),
    )
    return spec, {member_id: partitions(result) for member_id, _, _, _, result in case["members"]}


def owners_of(members: dict[str, MemberSpec]) -> dict[UUID, dict[int, str]]:
    owners: dict[UUID, dict[int, str]] = {}
    for member_id, member in members.items():
        for topic_id, numbers in member.assigned.items():
            owners.setdefault(topic_id, {}).update(dict.fromkeys(numbers, member_id))
    return owners


def without_empty(assigned: dict[str, Partitions]) -> dict[str, Partitions]:
    return {member_id: dict(topics) for member_id, topics in assigned.items() if topics}


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_the_assignment_is_kafkas(assignor: str) -> None:
    cases = [case for case in RECORDED if case["assignor"] == assignor]
    assert len(cases) >= 80
    for case in cases:
        spec, expected = spec_of(case)
        assert without_empty(CONSUMER_ASSIGNORS[assignor](spec)) == without_empty(expected), case


@st.composite
def groups(draw: st.DrawFn) -> tuple[str, GroupSpec]:
    counts = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    topics = {UUID(int=number + 1): count for number, count in enumerate(counts)}
    homogeneous = draw(st.booleans())
    everything = frozenset(topics)
    some = st.just(everything) if homogeneous else st.frozensets(st.sampled_from(sorted(topics)))
    free = [(topic_id, number) for topic_id, count in topics.items() for number in range(count)]
    members: dict[str, MemberSpec] = {}
    for index in range(draw(st.integers(1, 6))):
        kept = draw(st.lists(st.sampled_from(free), unique=True, max_size=6)) if free else []
        free = [task for task in free if task not in kept]
        assigned = {t: frozenset(n for other, n in kept if other == t) for t, _ in kept}
        members[f"m{index}"] = MemberSpec(draw(some), assigned)
    spec = GroupSpec(members, homogeneous, topics, owners_of(members))
    return draw(st.sampled_from(sorted(CONSUMER_ASSIGNORS))), spec


@settings(max_examples=100, deadline=None)
@given(groups())
def test_every_partition_goes_to_one_subscriber(group: tuple[str, GroupSpec]) -> None:
    name, spec = group
    assigned = CONSUMER_ASSIGNORS[name](spec)
    given_out = [
        (topic_id, number) for topics in assigned.values() for topic_id, numbers in topics.items() for number in numbers
    ]
    topic_ids = frozenset().union(*(member.topics for member in spec.members.values()))
    assert sorted(given_out) == sorted(
        (t, n) for t, count in spec.partitions.items() if t in topic_ids for n in range(count)
    )
    for member_id, topics in assigned.items():
        assert topics.keys() <= spec.members[member_id].topics
    if name == "uniform" and spec.homogeneous and topic_ids:
        sizes = [sum(map(len, assigned[member_id].values())) for member_id in spec.members]
        assert max(sizes) - min(sizes) <= 1
