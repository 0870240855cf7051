"""Batches in flight: whatever the network does, the log gets them in order and each once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.client.windows import MOST_IN_FLIGHT, Windows

P = "partition"


@dataclass
class Counting:
    """A producer's sequence numbers."""

    epoch: int = 0
    next: int = 0

    def identity(self) -> int:
        return self.epoch

    def give_back(self, partition: object, count: int) -> None:
        self.next -= count

    def replace(self) -> None:
        self.epoch, self.next = self.epoch + 1, 0


@dataclass
class Broker:
    """Checks sequence numbers as a broker does (ProducerStateManager): accepts them in order, and repeats of the last
    five batches.
    """

    refused: frozenset[int]
    log: list[int] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)
    remembered: dict[int, deque[int]] = field(default_factory=dict)

    def append(self, epoch: int, base: int, batch: int, count: int) -> str:
        if batch in self.refused:
            return "refused"
        if base in self.remembered.setdefault(epoch, deque(maxlen=MOST_IN_FLIGHT)):
            return "written"
        if epoch in self.last and base != self.last[epoch] + 1:
            return "out of order"
        self.last[epoch] = base + count - 1
        self.remembered[epoch].append(base)
        self.log.append(batch)
        return "written"


@dataclass
class Run:
    """A producer of one partition, its connection and its broker, a step at a time."""

    counts: list[int]
    broker: Broker
    limit: int
    together: frozenset[int]
    numbers: Counting = field(default_factory=Counting)
    given_up: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.windows: Windows[str, int] = Windows(self.limit, self.numbers)
        self.queue = deque(range(len(self.counts)))
        self.stamps: dict[int, tuple[int, int]] = {}
        self.wire: deque[int] = deque()
        self.answers: deque[tuple[int, str]] = deque()
        self.retries: list[int] = []
        self.done: deque[tuple[int, bool]] = deque()
        self.most_out = 0
        self.acknowledged: set[int] = set()

    def over(self) -> bool:
        return not (self.queue or self.wire or self.answers or self.retries or self.done)

    def send(self) -> bool:
        if not self.queue or not self.windows.admits(P, self.queue[0], pipelined=self.queue[0] in self.together):
            return False
        batch = self.queue.popleft()
        if self.windows.needs_numbers(P, batch):
            self.stamps[batch] = (self.numbers.epoch, self.numbers.next)
            self.numbers.next += self.counts[batch]
        self.windows.left(P, batch, self.counts[batch], pipelined=batch in self.together)
        self.wire.append(batch)
        self.most_out = max(self.most_out, len(self.wire) + len(self.answers))
        return True

    def serve(self) -> bool:
        if not self.wire:
            return False
        batch = self.wire.popleft()
        self.answers.append((batch, self.broker.append(*self.stamps[batch], batch, self.counts[batch])))
        return True

    def bounce(self) -> bool:
        """A broker that does not lead the partition, for the moment."""
        if not self.wire:
            return False
        self.answers.append((self.wire.popleft(), "not now"))
        return True

    def restart(self) -> bool:
        """The broker is killed and started: Apache Kafka remembers but the last batch of a producer then."""
        self.cut()
        for epoch, remembered in self.broker.remembered.items():
            self.broker.remembered[epoch] = deque(list(remembered)[-1:], maxlen=MOST_IN_FLIGHT)
        return True

    def cut(self) -> bool:
        """The connection is lost, with the answers that were on it."""
        lost = [*(batch for batch, _ in self.answers), *self.wire]
        self.answers.clear()
        self.wire.clear()
        for batch in lost:
            self.windows.failed(P, batch)
        self.retries += lost
        return bool(lost)

    def answer(self) -> bool:
        if not self.answers:
            return False
        batch, said = self.answers.popleft()
        if said == "out of order":
            assert self.windows.explains(P, batch), "our doing, whatever happened"
            self.windows.failed(P, batch, out_of_order=True)
            self.retries.append(batch)
            return True
        if said == "not now":
            self.windows.failed(P, batch)
            self.retries.append(batch)
            return True
        if said == "refused":
            self.windows.refused(P, batch)
        else:
            self.done.extend((before, True) for before in self.windows.proven(P, batch))
        self.done.append((batch, said == "written"))
        return True

    def settle(self) -> bool:
        if not self.done:
            return False
        batch, written = self.done.popleft()
        self.acknowledged.update({batch} if written else ())
        self._again(self.windows.ended(P, batch, written=written))
        return True

    def retry(self) -> bool:
        if not self.retries:
            return False
        self._again(self.windows.back(P, self.retries.pop(0)))
        return True

    def give_up(self) -> bool:
        """A batch that waits for its second try is too old: nobody knows whether it was written, so the identity is replaced."""
        if not self.queue or self.queue[0] not in self.stamps:
            return False
        batch = self.queue.popleft()
        self.given_up.add(batch)
        self.numbers.replace()
        self._again(self.windows.ended(P, batch, written=False))
        return True

    def _again(self, batches: list[int]) -> None:
        self.queue.extendleft(reversed(batches))


STEPS = ("send", "serve", "cut", "answer", "settle", "retry", "give_up", "bounce", "restart")
CALM = ("settle", "answer", "serve", "retry", "send")


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=12),
    st.frozensets(st.integers(0, 11), max_size=3),
    st.integers(1, MOST_IN_FLIGHT),
    st.frozensets(st.integers(0, 11), max_size=2),
    st.lists(st.sampled_from(STEPS), max_size=120),
)
@settings(max_examples=300, deadline=None)
def test_the_log_has_all_in_order_and_each_once(
    counts: list[int], refused: frozenset[int], limit: int, alone: frozenset[int], steps: list[str]
) -> None:
    run = Run(counts, Broker(refused), limit, frozenset(range(12)) - alone)
    for step in steps:
        getattr(run, step)()
    for _ in range(2000):
        if run.over():
            break
        assert any(getattr(run, step)() for step in CALM), "nothing can go on"
    assert run.over()
    written = run.broker.log
    assert written == sorted(set(written))
    assert run.acknowledged <= set(written)
    assert run.acknowledged == set(range(len(counts))) - refused - run.given_up


def test_five_are_on_their_way_at_once() -> None:
    run = Run([1] * 12, Broker(frozenset()), 5, frozenset(range(12)))
    assert run.send()
    assert not run.send(), "the broker does not know the producer yet"
    assert run.serve() and run.answer() and run.settle()
    while run.send():
        pass
    assert run.most_out == 5


def test_without_numbers_there_is_one() -> None:
    windows: Windows[str, int] = Windows(5, None)
    windows.left(P, 0, 1, pipelined=True)
    assert not windows.admits(P, 1, pipelined=True)
    assert windows.ended(P, 0, written=True) == []
    assert windows.admits(P, 1, pipelined=True)


def drained(run: Run) -> None:
    """From here on there are no more failures."""
    while not run.over():
        assert any(getattr(run, step)() for step in CALM), "nothing can go on"


@given(st.integers(2, 5), st.integers(0, 5), st.lists(st.integers(1, 3), min_size=8, max_size=8))
@settings(deadline=None)
def test_a_killed_broker_remembers_one_batch_of_several(out: int, served: int, counts: list[int]) -> None:
    """The first was acknowledged; of those after it some are written when the broker is killed with its answers."""
    run = Run(counts, Broker(frozenset()), 5, frozenset(range(8)))
    assert run.send() and run.serve() and run.answer() and run.settle()
    for _ in range(out):
        assert run.send()
    for _ in range(min(served, out)):
        assert run.serve()
    run.restart()
    drained(run)
    assert run.broker.log == list(range(8))
    assert run.acknowledged == set(range(8))


@given(
    st.integers(1, 5), st.frozensets(st.integers(1, 7), max_size=3), st.lists(st.integers(1, 3), min_size=8, max_size=8)
)
@settings(deadline=None)
def test_those_after_a_refused_one_are_written(out: int, refused: frozenset[int], counts: list[int]) -> None:
    run = Run(counts, Broker(refused), 5, frozenset(range(8)))
    assert run.send() and run.serve() and run.answer() and run.settle()
    for _ in range(out):
        assert run.send()
    while run.serve():
        pass
    drained(run)
    assert run.broker.log == sorted(set(range(8)) - refused)
    assert run.acknowledged == set(range(8)) - refused
    assert run.numbers.epoch == 0
