"""A log that fails in any of its calls: an event with an id is stored once however often it is sent, and a block of
events completely or not at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from events.access import User
from events.bus.bus import EventBus
from events.bus.outcomes import Published, Refused
from events.bus.published_ids import PublishedIds
from events.bus.publishing import JsonEvent, Publisher
from events.errors import BusUnavailable
from events.limits.limits import Limits
from events.metrics import EventMetrics
from events.model.definitions import to_avro_text
from events.store.catalog import Catalog
from events.store.log import LogBounds, LogSlice
from tests.support.events import ORDER_SHIPPED, MemoryLog, MemorySchemas, events_config
from tests.support.events import USER as USER_NAME
from tests.support.faults import CallFaults
from tidegate.kit.errors import TidegateError

TOPIC: Final = ORDER_SHIPPED.name
USER = User(USER_NAME, None, create=("*",))
FAULTS: Final = {
    "append": ("refused", "reply lost", "late", "half"),
    "commit": ("refused", "reply lost"),
    "bounds": ("refused",),
    "read": ("refused",),
    "offset_at": ("refused",),
    "settled": ("refused",),
}
CALLS: Final = st.sets(
    st.sampled_from(sorted(FAULTS)).flatmap(
        lambda call: st.tuples(st.just(call), st.integers(0, 8), st.sampled_from(FAULTS[call]))
    ),
    max_size=8,
)
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.integers(0, 9), min_size=1, max_size=5)),
        st.tuples(st.just("at once"), st.lists(st.integers(0, 9), min_size=1, max_size=5)),
        st.tuples(st.just("together"), st.lists(st.integers(10, 14), min_size=1, max_size=4, unique=True)),
        st.tuples(st.just("restart"), st.just([])),
    ),
    min_size=2,
    max_size=10,
)
AWAY: Final = "The log is away"


class FaultyLog(MemoryLog):
    """``faults`` says what becomes of the n-th call of a name."""

    def __init__(self, faults: Sequence[tuple[str, int, str]]) -> None:
        super().__init__()
        self.faults = CallFaults(faults)
        self._late: list[tuple[str, Sequence[tuple[bytes, bytes | None, int]]]] = []

    def _fault(self, call: str) -> str | None:
        fault = self.faults.next(call)
        if fault == "refused":
            raise BusUnavailable(AWAY)
        return fault

    async def append(
        self, topic: str, records: Sequence[tuple[bytes, bytes | None, int]], *, timeout_s: float | None = None
    ) -> list[int | TidegateError]:
        try:
            fault = self._fault("append")
        except BusUnavailable as error:
            return [error] * len(records)
        await self.arrive()  # a topic's appends arrive in their order
        if fault == "late":
            self._late.append((topic, records))
            return [BusUnavailable(AWAY)] * len(records)
        answers = await super().append(topic, records[: len(records) // 2] if fault == "half" else records)
        if fault == "reply lost":
            return [BusUnavailable(AWAY)] * len(records)
        return [*answers, *[BusUnavailable(AWAY)] * (len(records) - len(answers))]

    async def settled(self, topic: str) -> None:
        self._fault("settled")
        await self.arrive()

    async def arrive(self) -> None:
        late, self._late = self._late, []
        for name, records in late:
            await super().append(name, records)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        lost = False
        async with super().transaction() as opened:
            yield opened
            lost = self._fault("commit") == "reply lost"
        if lost:
            raise BusUnavailable(AWAY)

    async def bounds(self, topic: str) -> LogBounds:
        self._fault("bounds")
        return await super().bounds(topic)

    async def readable(self, topic: str) -> int:
        self._fault("readable")
        return await super().readable(topic)

    async def read(self, topic: str, offset: int, max_bytes: int) -> LogSlice:
        self._fault("read")
        return await super().read(topic, offset, max_bytes)

    async def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        self._fault("offset_at")
        return await super().offset_at(topic, timestamp_ms)


class Trial:
    """A publisher over such a log, what was sent and what was answered."""

    def __init__(self, folder: Path, faults: Sequence[tuple[str, int, str]]) -> None:
        self.folder, self.log, self.schemas = folder, FaultyLog(faults), MemorySchemas()
        self.log.topics[TOPIC] = [None]
        self.schemas.register(ORDER_SHIPPED.subject, to_avro_text(ORDER_SHIPPED))
        self.acknowledged: dict[str, int] = {}
        self.sent: set[str] = set()
        self.blocks: list[tuple[list[str], bool]] = []
        self.ids: PublishedIds | None = None
        self.now = 1_800_000_000_000
        self.restart()

    def restart(self) -> None:
        """Only what is in the log and in the index is known afterwards; what a process has under way is settled, or not sent."""
        if self.ids is not None:
            self.ids.close()
        self.ids = PublishedIds(self.folder / "ids.sqlite", self.log, lambda: self.now)
        bus = EventBus(self.log, clock_ms=lambda: self.now)
        limits = Limits(events_config(self.folder), lambda: self.now)
        catalog = Catalog(self.schemas, self.log)
        self.publisher = Publisher(catalog, bus, EventMetrics(), lambda: self.now, self.ids, limits)

    async def publish(self, *ids: str) -> None:
        self.sent |= set(ids)
        events = [JsonEvent(TOPIC, {"Order_Number__c": id_}, id_) for id_ in ids]
        async with asyncio.timeout(20):
            try:
                answers = await self.publisher.publish_json(events, user=USER)
            except BusUnavailable:
                return
        for id_, answer in zip(ids, answers, strict=True):
            if isinstance(answer, Published):
                assert self.acknowledged.setdefault(id_, answer.replay_id) == answer.replay_id, f"two answers for {id_}"
            else:
                assert isinstance(answer, Refused) and isinstance(answer.error, BusUnavailable), answer

    async def together(self, ids: Sequence[str]) -> None:
        """Publish a separate block, whose events are not sent again."""
        told = [f"{id_}-{uuid.uuid4().hex[:8]}" for id_ in ids]
        events = [JsonEvent(TOPIC, {"Order_Number__c": id_}, id_) for id_ in told]
        try:
            answers = await self.publisher.publish_json(events, user=USER, all_or_none=True)
        except BusUnavailable:
            self.blocks.append((told, False))
            return
        assert all(isinstance(answer, Published) for answer in answers), answers
        self.blocks.append((told, True))

    async def take(self, step: tuple[str, Sequence[int]]) -> None:
        kind, numbers = step
        ids = [f"id-{number}" for number in numbers]
        if kind == "publish":
            await self.publish(*ids)
        elif kind == "at once":
            await asyncio.gather(*map(self.publish, ids))
        elif kind == "together":
            await self.together(ids)
        else:
            await self.log.arrive()  # what a dead process has sent is there by the time that the next one asks
            self.now += 130_000
            self.restart()

    async def judge(self) -> None:
        self.log.faults = CallFaults()
        for _ in range(10):
            await self.publish(*sorted(self.sent))
            if self.sent <= self.acknowledged.keys():
                break
        assert self.sent <= self.acknowledged.keys(), "the service does not recover"
        stored = {record.offset: (record.key or b"").decode() for record in self.log.records(TOPIC)}
        twice = [id_ for id_, count in Counter(stored.values()).items() if count > 1]
        assert not twice, f"stored more than once: {twice}"
        for id_, replay_id in self.acknowledged.items():
            assert stored.get(replay_id) == id_, f"{id_} was acknowledged with replay id {replay_id}"
        for ids, acknowledged in self.blocks:
            there = sum(id_ in stored.values() for id_ in ids)
            assert there == len(ids) or (there == 0 and not acknowledged), f"{there} of a block of {len(ids)}"


async def run(folder: Path, faults: Sequence[tuple[str, int, str]], steps: Sequence[tuple[str, Sequence[int]]]) -> None:
    trial = Trial(folder, faults)
    for step in steps:
        await trial.take(step)
    await trial.judge()


@settings(max_examples=80, deadline=None)
@given(CALLS, STEPS)
def test_an_event_is_stored_once_whatever_fails(
    tmp_path_factory: Any, faults: set[tuple[str, int, str]], steps: Sequence[tuple[str, Sequence[int]]]
) -> None:
    asyncio.run(run(tmp_path_factory.mktemp("ids"), sorted(faults), steps))
