"""Incremental assignment compared with Kafka Connect's own rounds (see RecordRounds.java), and its invariants."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connect.group.eager import assign_round_robin
from connect.group.incremental import IncrementalAssignor
from connect.group.protocol import CONNECTOR, Item
from tests.connect.distributed.recorded import items_of, recorded

ROUNDS = [line for line in recorded() if line["kind"] == "round"]


@pytest.mark.parametrize("group", [list(rounds) for _, rounds in groupby(ROUNDS, lambda line: line["group"])])
def test_each_round_assigns_as_kafka_connect_does(group):
    now_ms = 0
    assignor = IncrementalAssignor(group[0]["maxDelay"], lambda: now_ms)
    for number, line in enumerate(group):
        now_ms = line["now"]
        running = {member: items_of(items) for member, items in line["running"].items()}
        shares = assignor.assign(items_of(line["configured"]), running, line["last"])
        assert shares.assigned == {m: items_of(items) for m, items in line["assigned"].items()}, number
        assert shares.revoked == {m: items_of(items) for m, items in line["revoked"].items()}, number
        assert shares.delay_ms == line["delay"], number
        if line["taken"]:
            assignor.completed(line["generation"])


class Group:
    """Workers that follow their assignments."""

    def __init__(self, delay_ms=300_000):
        self.now_ms = 1.0
        self.assignor = IncrementalAssignor(delay_ms, lambda: self.now_ms)
        self.running: dict[str, frozenset[Item]] = {}
        self.generation = 0
        self.delay_ms = 0

    def round(self, requested, returned=None):
        shares = self.assignor.assign(requested, self.running, self.generation, returned=returned or {})
        self.generation += 1
        self.assignor.completed(self.generation)
        self.delay_ms = shares.delay_ms
        for member in self.running:
            self.running[member] = (self.running[member] | shares.assigned[member]) - shares.revoked[member]
        return any(shares.revoked.values())

    def settle(self, requested):
        """Rounds as the group would have them, the clock turned on where it waits; returns how many it took."""
        for rounds in range(1, 12):
            revoked = self.round(requested)
            if not revoked and not self.delay_ms:
                return rounds
            self.now_ms += self.delay_ms
        raise AssertionError("the group does not settle")


def work(*counts):
    return {Item(f"c{n}", number) for n, count in enumerate(counts) for number in range(CONNECTOR, count)}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 4), max_size=5).map(lambda counts: work(*counts)),
            st.sets(st.sampled_from("abcd"), min_size=1),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([0, 300_000]),
)
def test_a_group_settles_with_everything_once_and_evenly(steps, delay_ms):
    group = Group(delay_ms)
    for requested, members in steps:
        group.running = {member: group.running.get(member, frozenset()) for member in sorted(members)}
        group.settle(requested)
        running = [item for items in group.running.values() for item in items]
        assert sorted(running) == sorted(requested)
        group.settle(requested)  # a round without news may still even out what came back
        for kind in (True, False):
            sizes = [sum(item.is_task is kind for item in items) for items in group.running.values()]
            assert max(sizes) - min(sizes) <= 1


def test_work_of_a_lost_worker_waits_for_it_and_no_other_work_moves():
    group, requested = Group(), work(3, 3)
    group.running = {"a": frozenset(), "b": frozenset()}
    group.settle(requested)
    before = dict(group.running)
    lost = group.running.pop("b")
    assert not group.round(requested) and group.delay_ms == 300_000
    assert group.running["a"] == before["a"]
    group.running["b2"] = frozenset()
    group.round(requested, returned={"b2": lost})
    assert group.running == {"a": before["a"], "b2": lost} and group.delay_ms == 0


def test_work_of_a_lost_worker_is_reassigned_after_the_delay():
    group, requested = Group(), work(2)
    group.running = {"a": frozenset(), "b": frozenset()}
    group.settle(requested)
    del group.running["b"]
    assert not group.round(requested) and group.delay_ms == 300_000
    group.now_ms += 300_000
    group.round(requested)
    assert group.running["a"] == requested


def test_the_eager_round_deals_connectors_first():
    shares = assign_round_robin(work(1, 1), ["b", "a"])
    assert shares["a"] == {Item("c0", CONNECTOR), Item("c0", 0)} and shares["b"] == {
        Item("c1", CONNECTOR),
        Item("c1", 0),
    }
