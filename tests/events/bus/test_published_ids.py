from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from events.access import User
from events.bus.bus import EventBus, Outgoing
from events.bus.outcomes import Published, Refused
from events.bus.published_ids import KEPT_MS, PublishedIds
from events.bus.publishing import AvroEvent, JsonEvent, Publisher
from events.errors import BusUnavailable, IdempotencyKeyReused
from events.limits.errors import PublishLimitExceeded
from events.limits.limits import Limits
from events.metrics import EventMetrics
from events.model.definitions import to_avro_text
from events.model.payloads import EventSchema
from events.store.catalog import Catalog
from events.store.log import LogBounds
from tests.support.events import ORDER_SHIPPED, MemoryLog, MemorySchemas, events_config
from tidegate.kit.errors import TidegateError

pytestmark = pytest.mark.anyio
TOPIC = ORDER_SHIPPED.name
BODY = {"Order_Number__c": "1"}
USER = User("publisher@tidegate.local", None, create=("*",))


class Service:
    """A publisher over a log in memory that can be started again."""

    def __init__(self, data: Path) -> None:
        self.data, self.now = data, 1_800_000_000_000
        self.log, self.schemas = MemoryLog(), MemorySchemas()
        self.log.topics[TOPIC] = []
        self.schemas.register(ORDER_SHIPPED.subject, to_avro_text(ORDER_SHIPPED))
        self.ids: PublishedIds | None = None
        self.limits = Limits(events_config(data), lambda: self.now)
        self.start()

    def start(self) -> None:
        if self.ids is not None:
            self.ids.close()
        self.ids = PublishedIds(self.data / "ids.sqlite", self.log, lambda: self.now)
        self.bus = EventBus(self.log, clock_ms=lambda: self.now)
        self.catalog = Catalog(self.schemas, self.log)
        self.wait(30)

    def wait(self, timeout_s: float) -> None:
        """Acknowledge or refuse events within this time from now on."""
        assert self.ids is not None
        self.publisher = Publisher(
            self.catalog, self.bus, EventMetrics(), lambda: self.now, self.ids, self.limits, timeout_s=timeout_s
        )

    async def publish(self, *ids: str) -> list[object]:
        schema = EventSchema(1, to_avro_text(ORDER_SHIPPED))
        payload = schema.encode_json(BODY, created_ms=self.now, created_by="005")
        return list(await self.publisher.publish_avro(TOPIC, [AvroEvent(id_, "1", payload) for id_ in ids], user=USER))

    async def publish_or_refuse(self, *ids: str) -> list[object]:
        try:
            return await self.publish(*ids)
        except BusUnavailable as error:
            return [error]

    @property
    def stored(self) -> list[str]:
        return [record.key.decode() for record in self.log.topics[TOPIC] if record is not None and record.key]


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


async def test_an_id_that_comes_again_is_stored_once_and_answered_the_same(service: Service) -> None:
    first = await service.publish("a", "b", "a")
    assert first == [Published("a", 0), Published("b", 1), Published("a", 0)]
    assert await service.publish("b", "c") == [Published("b", 1), Published("c", 2)]
    assert len({await_.uuid for await_ in await service.publish("", "") if isinstance(await_, Published)}) == 2
    assert service.stored[:3] == ["a", "b", "c"]
    assert len(service.stored) == 5


async def test_concurrent_requests_store_an_id_once(service: Service) -> None:
    answers = await asyncio.gather(*(service.publish("x", f"own-{number}") for number in range(20)))
    assert {answer[0] for answer in answers} == {Published("x", 0)}
    assert sorted(service.stored) == sorted(["x", *(f"own-{number}" for number in range(20))])


@pytest.mark.parametrize("lost", ["nothing", "the last writes", "the file", "its content"])
async def test_an_id_is_stored_once_across_a_restart(service: Service, lost: str) -> None:
    await service.publish("a", "b")
    if lost == "the last writes":  # killed between the log's acknowledgement and ours
        await service.bus.publish(TOPIC, [Outgoing("c", 1, b"x")])
    else:
        await service.publish("c")
    service.now += KEPT_MS - 1000
    if lost in ("the file", "its content"):
        assert service.ids is not None
        service.ids.close()
        for path in service.data.iterdir():
            path.unlink() if lost == "the file" else path.write_bytes(b"no database" * 1000)
        service.ids = None
    service.start()
    assert await service.publish("c", "a") == [Published("c", 2), Published("a", 0)]


async def test_damage_that_is_met_while_running_is_mended_from_the_log(service: Service) -> None:
    ids = [f"{number:04d}-{'x' * 60}" for number in range(2000)]
    await service.publish(*ids)
    assert service.ids is not None
    service.ids.close()
    file = service.data / "ids.sqlite"
    content = file.read_bytes()
    file.write_bytes(content[: 3 * 4096] + b"\xff" * (len(content) - 3 * 4096))  # its head is whole: it can be opened
    service.ids = None
    service.start()
    assert await service.publish(ids[7], "new", ids[1999]) == [
        Published(ids[7], 7),
        Published("new", 2000),
        Published(ids[1999], 1999),
    ]
    assert await service.publish(ids[8]) == [Published(ids[8], 8)]


async def test_an_id_is_forgotten_after_a_day(service: Service) -> None:
    await service.publish("a")
    service.now += KEPT_MS + 1
    assert await service.publish("a") == [Published("a", 1)]


async def test_an_id_that_is_used_again_after_a_day_is_stored_once_more_and_only_once(service: Service) -> None:
    await service.publish("a")
    service.now += KEPT_MS + 1
    for _ in range(2):
        assert await service.publish("a") == [Published("a", 1)]
        service.now += 1000
    service.now += KEPT_MS
    assert await service.publish("a") == [Published("a", 2)]


async def test_a_doubt_that_is_raised_while_another_is_cleared_is_cleared_too(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.publish("a")
    assert service.ids is not None
    service.ids.doubt(TOPIC)
    settled = service.log.bounds

    async def bounds(topic: str) -> LogBounds:
        events = await settled(topic)
        if len(service.stored) == 1:  # what is read of the log ends before this event
            await service.bus.publish(TOPIC, [Outgoing("late", 1, b"x")])
            service.ids.doubt(TOPIC)
        return events

    monkeypatch.setattr(service.log, "bounds", bounds)
    await service.publish("b")
    assert await service.publish("late") == [Published("late", 1)]
    assert service.stored == ["a", "late", "b"]


async def test_doubts_without_end_are_told(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await service.publish("a")
    assert service.ids is not None
    service.ids.doubt(TOPIC)
    monkeypatch.setattr(service.log, "settled", AsyncMock(side_effect=service.ids.doubt))
    with pytest.raises(BusUnavailable, match="not known yet"):
        await service.publish("b")


async def test_an_id_published_without_an_answer_is_found_when_it_is_repeated(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.publish("a")
    append = service.log.append

    async def unanswered(topic: str, records: object, *, timeout_s: float) -> list[BusUnavailable]:
        await append(topic, records, timeout_s=timeout_s)  # type: ignore[arg-type]
        return [BusUnavailable("not acknowledged")]

    monkeypatch.setattr(service.log, "append", unanswered)
    (refused,) = await service.publish("late")
    assert isinstance(refused, Refused) and isinstance(refused.error, BusUnavailable)
    monkeypatch.undo()
    assert await service.publish("late") == [Published("late", 1)]
    assert service.stored == ["a", "late"]


async def test_a_topic_that_was_made_anew_knows_no_ids(service: Service) -> None:
    await service.publish("a", "b")
    service.log.topics[TOPIC] = []
    service.log.identities[TOPIC] = "another"
    service.now += 10_000
    assert await service.publish("b") == [Published("b", 0)]


async def test_an_id_that_another_server_published_is_found(service: Service, tmp_path: Path) -> None:
    other = Service(tmp_path / "other")
    other.log = service.log
    other.start()
    for first, second in ((service, other), (other, service)):
        begun = len(service.stored)
        assert await first.publish(f"{begun}-a") == [Published(f"{begun}-a", begun)]
        assert await second.publish(f"{begun}-b", f"{begun}-a") == [
            Published(f"{begun}-b", begun + 1),
            Published(f"{begun}-a", begun),
        ]
    reads = service.log.reads
    for number in range(20):
        await other.publish(f"only-{number}", "")
    assert service.log.reads <= reads + 1, "what a server appended itself is not read again"
    assert await service.publish("only-7") == [Published("only-7", len(service.stored) - 26)]


async def test_an_index_that_is_made_anew_during_a_look_is_not_taken_for_whole(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.publish("a", "b")
    service.now += 10_000  # so that the next look asks whether the topic is the same
    assert service.ids is not None
    readable, ids = service.log.readable, service.ids

    async def damaged_meanwhile(topic: str) -> int:
        monkeypatch.undo()
        ids._make_anew(sqlite3.DatabaseError("damaged"))
        return await readable(topic)

    monkeypatch.setattr(service.log, "readable", damaged_meanwhile)
    (answer,) = await service.publish_or_refuse("a")
    assert answer == Published("a", 0) or isinstance(answer, BusUnavailable)
    assert await service.publish("a") == [Published("a", 0)]
    assert service.stored == ["a", "b"]


async def test_a_publisher_that_leaves_takes_nothing_from_those_who_wait_with_it(service: Service) -> None:
    await service.publish("a")
    leaving, staying = (asyncio.create_task(service.publish(id_, "a")) for id_ in ("b", "c"))
    for _ in range(2):
        await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying)[1] == Published("a", 0)
    assert await service.publish("c") == [(await staying)[0]]


@pytest.mark.parametrize("asked", ["bounds", "readable"])
async def test_a_log_that_is_silent_is_waited_for_as_long_as_an_answer_may_take(
    service: Service, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await service.publish("a") == [Published("a", 0)]
    service.now += 60_000 if asked == "bounds" else 0  # then the topic is checked, which asks for more
    answers = asyncio.Event()
    ask = getattr(service.log, asked)

    async def silent(topic: str) -> object:
        await answers.wait()
        return await ask(topic)

    monkeypatch.setattr(service.log, asked, silent)
    service.wait(0.01)
    with pytest.raises(BusUnavailable, match=rf"earlier events of {TOPIC} .* within 0\.01 s; send the event again"):
        await service.publish("a", "b")
    answers.set()
    service.wait(30)
    assert await service.publish("a", "b") == [Published("a", 0), Published("b", 1)]


@pytest.mark.parametrize("fault", ["silent", "away"])
async def test_nothing_is_written_before_it_is_known_whether_a_key_came_with_another_body(
    service: Service, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise an event without an id beside it would be stored, answered with an error, and sent and stored again."""
    await service.publisher.publish_json([JsonEvent(TOPIC, BODY, "t", is_keyed=True)], user=USER)
    other = Service(tmp_path / "other")
    other.log = service.log
    other.start()
    await other.publish("u")  # it knows from here on what is in the log

    async def read(*_: object) -> object:
        if fault == "away":
            raise BusUnavailable("The log is away")
        return await asyncio.Event().wait()

    monkeypatch.setattr(service.log, "read", read)
    other.wait(0.05)
    events = [JsonEvent(TOPIC, BODY), JsonEvent(TOPIC, BODY, "t", is_keyed=True)]
    with pytest.raises(BusUnavailable):
        await other.publisher.publish_json(events, user=USER)
    assert service.stored == ["t", "u"]


async def test_what_a_look_at_the_log_took_is_not_waited_for_again(service: Service) -> None:
    given: list[float | None] = []
    append = service.log.append

    async def note(topic: str, records: Sequence[Any], *, timeout_s: float | None = None) -> list[int | TidegateError]:
        given.append(timeout_s)
        return await append(topic, records)

    async def slow(topic: str) -> int:
        await asyncio.sleep(0.05)
        return await readable(topic)

    await service.publish("a")
    readable = service.log.readable
    service.log.append, service.log.readable = note, slow  # type: ignore[method-assign]
    await service.publish("b")
    await service.publish("")
    (looked, other) = given
    assert looked is not None
    assert other is not None
    assert looked <= 30 - 0.05 < other


async def test_all_or_none_stores_an_id_once_too(service: Service) -> None:
    event = JsonEvent(TOPIC, BODY, "t")
    for _ in range(2):
        answers = await service.publisher.publish_json([event, event], user=USER, all_or_none=True)
        assert answers == [Published("t", 0)] * 2
    assert await service.publish("t") == [Published("t", 0)]
    with pytest.raises(RuntimeError):
        async with service.publisher.all_or_none(user=USER) as block:
            await block.publish(JsonEvent(TOPIC, BODY, "undone"))
            raise RuntimeError
    (answer,) = await service.publish("undone")
    assert answer.replay_id > 1, "an offset of what was undone is not given out again"


async def test_one_id_in_two_events_of_a_block_has_two_replay_ids(service: Service) -> None:
    other = dataclasses.replace(ORDER_SHIPPED, name="Order_Packed__e")
    service.schemas.register(other.subject, to_avro_text(other))
    service.log.topics[other.name] = [None] * 5
    events = [JsonEvent(name, BODY, "t") for name in (TOPIC, other.name, TOPIC, other.name)]
    answers = await service.publisher.publish_json(events, user=USER, all_or_none=True)
    assert answers == [Published("t", 0), Published("t", 5), Published("t", 0), Published("t", 5)]


async def test_an_event_of_a_block_that_the_limit_refuses_is_refused_again(service: Service) -> None:
    service.limits = Limits(events_config(service.data, **{"events.limit.published.hourly": 1}), lambda: service.now)
    service.start()
    async with service.publisher.all_or_none(user=USER) as block:
        await block.publish(JsonEvent(TOPIC, BODY, "first"))
        for _ in range(2):
            with pytest.raises(PublishLimitExceeded):
                await block.publish(JsonEvent(TOPIC, BODY, "second"))
    assert service.stored == ["first"]


@pytest.mark.parametrize("all_or_none", [False, True])
async def test_a_key_with_another_body_is_refused(service: Service, all_or_none: bool) -> None:
    def event(**fields: object) -> JsonEvent:
        return JsonEvent(TOPIC, {**BODY, **fields}, "t", is_keyed=True)

    async def publish(*events: JsonEvent) -> list[object]:
        try:
            return list(await service.publisher.publish_json(events, user=USER, all_or_none=all_or_none))
        except IdempotencyKeyReused as error:
            return [Refused(error)]

    assert await publish(event(Note__c="x", Amount__c=1)) == [Published("t", 0)]
    assert await publish(event(Amount__c=1, Note__c="x")) == [Published("t", 0)]
    (refused,) = await publish(event(Note__c="y", Amount__c=1))
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, IdempotencyKeyReused)
    at_once = await asyncio.gather(
        *(publish(JsonEvent(TOPIC, BODY | {"Note__c": n}, "u", is_keyed=True)) for n in "xy")
    )
    assert [type(answer) for (answer,) in at_once].count(Published) <= 1
    assert service.stored.count("u") == 1


@pytest.mark.parametrize("all_or_none", [False, True])
async def test_a_key_with_another_body_is_refused_where_only_the_log_has_the_first(
    service: Service, all_or_none: bool, tmp_path: Path
) -> None:
    def event(**fields: object) -> JsonEvent:
        return JsonEvent(TOPIC, {**BODY, **fields}, "t", is_keyed=True)

    async def publish(at: Service, sent: JsonEvent) -> object:
        try:
            (answer,) = await at.publisher.publish_json([sent], user=USER, all_or_none=all_or_none)
        except IdempotencyKeyReused as error:
            return Refused(error)
        return answer

    other = Service(tmp_path / "other")
    other.log = service.log
    other.start()
    assert await publish(service, event(Note__c="x", Amount__c=1)) == Published("t", 0)
    other.now = service.now + 5000  # the event is made with another time there
    assert await publish(other, event(Amount__c="1.0", note__c="x")) == Published("t", 0)
    for another in (event(Note__c="y", Amount__c=1), event(Amount__c=1), event(Note__c="x", Amount__c=1, Nothing__c=1)):
        refused = await publish(other, another)
        assert isinstance(refused, Refused)
    assert service.stored == ["t"]


async def test_an_event_without_an_id_gets_a_random_uuid(service: Service) -> None:
    await service.publish(*[""] * 50)
    made = [uuid.UUID(text) for text in service.stored]
    assert len(set(made)) == 50
    assert {(each.version, each.variant) for each in made} == {(4, uuid.RFC_4122)}
    assert [str(each) for each in made] == service.stored
