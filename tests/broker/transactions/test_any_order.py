"""Producers begin, write, end, are replaced and arrive late in any order, on a disk that stalls, across restarts.

Each transaction has one outcome in all its partitions, which is the one reported to its producer; no record of a
replaced producer is ever committed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.errors import BrokerError, Fenced, Refused, Retry
from broker.transactions import Producer, TransactionState
from tests.support.transactions import Coordinator

PARTITIONS = [("t", 0), ("t", 1), ("u", 0)]
NAMES = ["a", "b"]
numbers = st.integers(0, 5)


class Instance:
    """A producer as its client knows it; ``records`` are those of the present transaction that were acknowledged."""

    def __init__(self, name: str, version: int) -> None:
        self.name = name
        self.version = version
        self.producer: Producer | None = None
        self.initialising: asyncio.Future[Producer] | None = None
        self.adding: list[tuple[asyncio.Future[None], tuple[str, int], str]] = []
        self.ending: asyncio.Future[Producer] | None = None
        self.wants: bool | None = None
        """Whether it has asked to commit or to abort: it sends no other request until the response comes."""
        self.records: list[tuple[tuple[str, int], str]] = []
        self.broken = False
        """Something failed in the transaction: it can only be aborted."""
        self.dead = False


class Producers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rig = Coordinator(transaction_max_timeout_ms="900000")
        self.instances: list[Instance] = []
        self.written = 0
        self.committed: set[str] = set()
        """Records whose transaction was acknowledged as committed."""
        self.never: set[str] = set()
        """Records whose transaction was acknowledged as aborted."""

    def teardown(self) -> None:
        self.rig.clock.close()

    def pick(self, number: int) -> Instance | None:
        alive = [each for each in self.instances if not each.dead]
        return alive[number % len(alive)] if alive else None

    # Actions of clients

    @rule(name=st.sampled_from(NAMES), version=st.sampled_from([0, 2]))
    def start(self, name: str, version: int) -> None:
        instance = Instance(name, version)
        self.instances.append(instance)
        instance.initialising = self.rig.init(name)
        self.settle()

    @rule(number=numbers)
    def start_again(self, number: int) -> None:
        instance = self.pick(number)
        if instance is not None and instance.producer is None and instance.initialising is None:
            instance.initialising = self.rig.init(instance.name)
            self.settle()

    @rule(number=numbers, where=st.sampled_from(PARTITIONS))
    def write(self, number: int, where: tuple[str, int]) -> None:
        instance = self.pick(number)
        if instance is None or instance.producer is None or instance.wants is not None or instance.broken:
            return
        self.written += 1
        record = f"{instance.name}{self.written}"
        if self.rig.markers.partition(where).in_transaction(instance.producer):
            self.append(instance, where, record)
            return
        future = self.rig.add(instance.producer, where, name=instance.name, version=instance.version)
        instance.adding.append((future, where, record))
        self.settle()

    @rule(number=numbers, commit=st.booleans())
    def end(self, number: int, commit: bool) -> None:
        instance = self.pick(number)
        if instance is None or instance.producer is None or instance.ending is not None or instance.adding:
            return
        if not instance.records and instance.version < 2:
            return  # its client knows that there is nothing to end
        if instance.wants is None:
            instance.wants = commit and not instance.broken and bool(instance.records)
        instance.ending = self.rig.end(
            instance.producer, commit=instance.wants, name=instance.name, version=instance.version
        )
        self.settle()

    # Events in the broker

    @rule(stalled=st.booleans())
    def stall_the_log(self, stalled: bool) -> None:
        self.rig.log.held = stalled
        if not stalled:
            self.rig.log.release()
        self.settle()

    @rule(stalled=st.booleans())
    def stall_the_markers(self, stalled: bool) -> None:
        self.rig.markers.held = stalled
        if not stalled:
            self.rig.markers.release()
        self.settle()

    @rule(where=st.sampled_from([None, *PARTITIONS]))
    def break_a_partition(self, where: tuple[str, int] | None) -> None:
        self.rig.markers.broken = set() if where is None else {where}

    @rule(by_ms=st.sampled_from([500, 2_000, 70_000]))
    def wait(self, by_ms: int) -> None:
        self.rig.clock.advance(by_ms)
        self.settle()

    @rule()
    def restart(self) -> None:
        self.rig.log.held = self.rig.markers.held = False
        self.rig.coordinator.stop()
        self.rig.log.release()
        self.rig.markers.release()
        self.settle()
        self.rig.coordinator = self.rig.reload()
        self.settle()

    # Responses to clients

    def settle(self) -> None:
        self.rig.clock.settle()
        for instance in self.instances:
            self.hear(instance)

    def hear(self, instance: Instance) -> None:
        if instance.initialising is not None and instance.initialising.done():
            outcome = answer(instance.initialising)
            instance.initialising = None
            if isinstance(outcome, Producer):
                instance.producer = outcome
            else:
                assert isinstance(outcome, Retry), outcome
        while instance.adding and instance.adding[0][0].done():
            future, where, record = instance.adding.pop(0)
            error = future.exception()
            if error is None:
                self.append(instance, where, record)
            else:
                instance.broken = True
                instance.dead = isinstance(error, Fenced)
        if instance.ending is not None and instance.ending.done():
            self.hear_end(instance, answer(instance.ending))

    def hear_end(self, instance: Instance, outcome: Any) -> None:
        instance.ending = None
        if not isinstance(outcome, Producer):
            assert isinstance(outcome, Fenced | Refused | Retry), outcome
            instance.dead = not isinstance(outcome, Retry)
            return
        (self.committed if instance.wants else self.never).update(record for _, record in instance.records)
        instance.records.clear()
        instance.broken, instance.wants = False, None
        if instance.version >= 2:
            instance.producer = outcome

    def append(self, instance: Instance, where: tuple[str, int], record: str) -> None:
        assert instance.producer is not None
        if self.rig.markers.partition(where).append(instance.producer, record):
            instance.records.append((where, record))
        else:
            instance.broken = True

    # Invariants

    @invariant()
    def outcomes_are_those_told(self) -> None:
        seen = {record for partition in self.rig.markers.partitions.values() for record in partition.committed()}
        assert self.committed <= seen
        assert not self.never & seen

    @invariant()
    def who_is_open_is_known(self) -> None:
        """If a producer has a transaction open in a partition, the coordinator knows about it: no transaction hangs."""
        for where, partition in self.rig.markers.partitions.items():
            for producer_id in partition.open:
                holders = [
                    open_transaction
                    for each in self.rig.coordinator.list_transactions()
                    if (
                        open_transaction := self.rig.coordinator.describe(each.transactional_id).transaction
                    ).producer_id
                    == producer_id
                ]
                assert holders
                assert where in holders[0].partitions or holders[0].state is not TransactionState.ONGOING


def answer(future: asyncio.Future[Any]) -> Any:
    error = future.exception()
    assert error is None or isinstance(error, BrokerError)
    return error or future.result()


TestAnyOrder = Producers.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
