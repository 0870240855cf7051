"""A share-partition under any order of events, across restarts, on a log that stalls and fails: no record is acquired
twice at the same time, and none is lost.
"""

from __future__ import annotations

import asyncio
import contextlib

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.errors import BrokerError, KafkaStorageError
from broker.share_delivery.values import Acquired, BatchSpan, ShareSettings
from tests.support.share import KEY, ShareBench

LOCK_MS = 1000
TOGETHER_MS = 10
"""Locks that end within so short a time are released together."""
LIMIT = 4
MEMBERS = st.sampled_from("abc")


class SharePartitionMachine(RuleBasedStateMachine):
    """``held`` has who holds each offset and until when; ``done``, offsets that were said to be done with."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = ShareBench(
            ShareSettings(LIMIT, 12, LOCK_MS, auto_offset_reset="earliest"), snapshot_update_records_per_snapshot="3"
        )
        self.held: dict[int, tuple[str, int]] = {}
        self.counts: dict[int, int] = {}
        self.done: set[int] = set()
        self.asked: list[tuple[asyncio.Future[None], str, range, tuple[int, ...]]] = []
        self.unsure: set[int] = set()
        """Offsets whose acknowledgement was in the log when its durability failed: after a restart it may hold."""
        self.start = 0
        self.aborted: list[BatchSpan] = []
        self.at_limit: set[int] = set()
        self.compacted: set[int] = set()

    def teardown(self) -> None:
        with contextlib.closing(self.bench):
            self.drain()

    def drain(self) -> None:
        bench = self.bench
        bench.log.refusal = None
        bench.log.release()
        bench.log.held = False
        bench.clock.advance(LOCK_MS + 1)
        self.settle_asked()
        bench.append(1)  # The start moves with what is acknowledged.
        for _ in range(200):
            if not self.fetched("z") and bench.share.next_fetch_offset() >= bench.end:
                break
            for offset, (member, _) in sorted(self.held.items()):
                if member == "z":
                    assert bench.acknowledge("z", offset, offset).exception() is None
                    self.done.add(offset)
            self.held.clear()
        missing = set(range(bench.log_start, bench.end)) - self.done - self.compacted
        missing -= self.at_limit | self.unsure
        missing -= {offset for offset in missing if self.is_aborted(offset)}
        assert not missing, f"never delivered again: {sorted(missing)}"
        assert bench.share.start_offset == bench.share.end_offset == bench.end

    # Steps

    @initialize(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3))
    def begin(self, sizes: list[int]) -> None:
        self.bench.append(*sizes)

    @rule(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3), aborted=st.booleans())
    def append(self, sizes: list[int], aborted: bool) -> None:
        self.bench.append(*sizes)
        if aborted:
            self.aborted.append(self.bench.batches[-1])

    @rule(
        member=MEMBERS,
        most=st.integers(1, 10),
        batch_size=st.integers(1, 5),
        exactly=st.booleans(),
        read=st.integers(1, 4),
    )
    def fetch(self, member: str, most: int, batch_size: int, exactly: bool, read: int) -> None:
        acquired = self.fetched(member, most, batch_size=batch_size, exactly=exactly, read=read)
        if exactly:
            assert sum(acquired_batch.size for acquired_batch in acquired) <= most

    def fetched(
        self, member: str, most: int = 500, *, batch_size: int = 500, exactly: bool = False, read: int = 100
    ) -> list[Acquired]:
        """Aborted batches among the batches read are not acquired."""
        bench = self.bench
        acquired = bench.fetch(member, most, batch_size=batch_size, exactly=exactly, read=read, aborted=self.aborted)
        self.took(acquired, member)
        return acquired

    @rule(member=MEMBERS, most=st.integers(1, 10))
    def fetch_some(self, member: str, most: int) -> None:
        self.fetched(member, most)

    @rule(by_ms=st.integers(1, LOCK_MS * 3 // 2), member=MEMBERS)
    def wait_and_fetch(self, by_ms: int, member: str) -> None:
        self.wait(by_ms)
        self.fetched(member)

    def took(self, acquired: list[Acquired], member: str) -> None:
        now = self.bench.clock.now_ms()
        for acquired_batch in acquired:
            for offset in range(acquired_batch.first, acquired_batch.last + 1):
                assert offset < self.bench.end
                assert offset in self.compacted or not self.is_aborted(offset), f"{offset} was aborted"
                assert offset not in self.done, f"{offset} is done and came again"
                assert self.held.get(offset, ("", 0))[1] <= now + TOGETHER_MS, (
                    f"{offset} is in the hands of {self.held[offset]}"
                )
                assert acquired_batch.deliveries <= LIMIT
                if offset in self.counts and self.counts[offset] > 0:
                    assert acquired_batch.deliveries == self.counts[offset] + 1
                self.counts[offset] = acquired_batch.deliveries
                if acquired_batch.deliveries == LIMIT:
                    self.at_limit.add(offset)
                self.held[offset] = (member, now + LOCK_MS)

    def is_aborted(self, offset: int) -> bool:
        return any(span.first <= offset <= span.last for span in self.aborted)

    @rule(member=MEMBERS, data=st.data())
    def acknowledge(self, member: str, data: st.DataObject) -> None:
        mine = sorted(offset for offset, (holder, _) in self.held.items() if holder == member)
        if not mine:
            return
        first = data.draw(st.sampled_from(mine))
        last = first
        while last + 1 in mine and data.draw(st.booleans()):
            last += 1
        offsets = range(first, last + 1)
        one_each = data.draw(st.booleans())
        types = tuple(data.draw(st.integers(0, 4)) for _ in (offsets if one_each else range(1)))
        future = self.bench.acknowledge(member, first, last, *types)
        self.ask(future, member, offsets, types)

    def ask(self, future: asyncio.Future[None], member: str, offsets: range, types: tuple[int, ...]) -> None:
        """More time is given at once, all else when it is written down."""
        if not future.done() or future.exception() is None:
            for offset, kind in self.kinds(offsets, types):
                if kind == 4 and self.held.get(offset, ("", 0))[0] == member:
                    self.held[offset] = (member, self.bench.clock.now_ms() + LOCK_MS)
        self.asked.append((future, member, offsets, types))
        self.settle_asked()

    @staticmethod
    def kinds(offsets: range, types: tuple[int, ...]) -> list[tuple[int, int]]:
        return list(zip(offsets, types if len(types) > 1 else types * len(offsets), strict=True))

    @rule(member=MEMBERS, first=st.integers(0, 40), size=st.integers(1, 5), kind=st.integers(0, 5))
    def acknowledge_anything(self, member: str, first: int, size: int, kind: int) -> None:
        offsets = range(first, first + size)
        now = self.bench.clock.now_ms()
        foreign = [o for o in offsets if self.held.get(o, ("", 0))[0] != member or self.held[o][1] <= now]
        future = self.bench.acknowledge(member, first, first + size - 1, kind)
        if any(o >= self.bench.share.start_offset for o in foreign) or kind > 4:
            if offsets[-1] >= self.bench.share.start_offset:
                assert future.done()
        self.ask(future, member, offsets, (kind,))

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        """Acknowledgements in progress are completed."""
        asked = {
            offset for _, _, offsets, types in self.asked for offset, kind in self.kinds(offsets, types) if kind != 4
        }
        mine = [offset for offset, (holder, _) in self.held.items() if holder == member and offset not in asked]
        future = self.bench.release(member)
        for offset in mine:
            self.asked.append((future, member, range(offset, offset + 1), (2,)))
        self.settle_asked()

    @rule(by_ms=st.integers(1, LOCK_MS * 3 // 2))
    def wait(self, by_ms: int) -> None:
        self.bench.clock.advance(by_ms)
        self.settle_asked()

    @rule(fault=st.sampled_from(("stall", "refuse", "go on", "go on", "fail")))
    def fault(self, fault: str) -> None:
        log = self.bench.log
        if fault == "stall":
            log.held = True
        elif fault == "refuse":
            log.refusal = KafkaStorageError("no")
        else:
            self.go_on(fault == "fail")

    def go_on(self, fails: bool) -> None:
        log = self.bench.log
        log.held, log.refusal = False, None
        if fails:
            for future, _, offsets, _ in self.asked:
                if not future.done():
                    self.unsure |= set(offsets)
        log.release(KafkaStorageError("the disk is full") if fails else None)
        self.settle_asked()

    @rule()
    def tidy_up(self) -> None:
        self.bench.coordinator.prune()

    @rule(by=st.integers(1, 6))
    def truncate(self, by: int) -> None:
        bench = self.bench
        bench.log_start = min(bench.log_start + by, bench.end)
        bench.batches = [batch for batch in bench.batches if batch.last >= bench.log_start]

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        """A batch goes; the log's last stays."""
        if len(self.bench.batches) > 1:
            gone = data.draw(st.sampled_from(self.bench.batches[:-1]))
            self.bench.compact(gone.first)
            self.compacted |= set(range(gone.first, gone.last + 1))

    @rule()
    def restart(self) -> None:
        """Whatever was not durable may still be in the log; locks are gone, and deliveries since the last write forgotten."""
        for future, _, offsets, _ in self.asked:
            if not future.done():
                self.unsure |= set(offsets)
        self.asked.clear()
        self.held.clear()
        self.counts.clear()
        self.bench.log.held = False
        self.bench.log.refusal = None
        # That aborted records are done with, or that the log's start moved, is not written down: fetches find it again.
        self.start = min(self.start, max(self.bench.coordinator.summary(KEY).start_offset, 0))
        self.bench.restart()

    # Invariants

    def settle_asked(self) -> None:
        self.bench.clock.settle()
        for asked in [request for request in self.asked if request[0].done()]:
            self.asked.remove(asked)
            future, member, offsets, types = asked
            if isinstance(future.exception(), BrokerError):
                continue
            for offset, kind in self.kinds(offsets, types):
                if kind == 4 or self.held.get(offset, ("", 0))[0] != member:
                    continue
                del self.held[offset]
                if kind != 2:
                    self.done.add(offset)

    @invariant()
    def start_never_goes_back(self) -> None:
        assert self.bench.share.start_offset >= self.start
        self.start = self.bench.share.start_offset

    @invariant()
    def batches_do_not_overlap_and_are_in_the_window(self) -> None:
        share, expected = self.bench.share, -1
        if len(share.in_flight):
            assert share.in_flight[0].last >= share.start_offset
        for batch in share.in_flight:
            assert batch.first > expected
            expected = batch.last
            parts = list(batch.runs())
            assert [parts[0][0], *(last + 1 for _, last, _ in parts)] == [
                *(first for first, _, _ in parts),
                batch.last + 1,
            ]
        assert share.end_offset == (expected if len(share.in_flight) else share.start_offset)

    @invariant()
    def done_records_are_counted(self) -> None:
        share = self.bench.share
        counted = sum(
            share.in_window(first, last)
            for batch in share.in_flight
            for first, last, delivery in batch.runs()
            if delivery.state.is_final
        )
        assert counted == share.complete


TestAnyOrder = SharePartitionMachine.TestCase
TestAnyOrder.settings = hypothesis_settings(max_examples=150, stateful_step_count=50, deadline=None, derandomize=True)
