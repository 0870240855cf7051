from __future__ import annotations

import asyncio
import dataclasses
import threading

import pytest

from events.errors import BusUnavailable, TopicUnfit, UnknownEvent, UnknownSchema
from events.model.definition_errors import DuplicateEvent
from events.store.catalog import Catalog
from tests.support.events import ORDER_SHIPPED, MemoryLog, MemorySchemas

pytestmark = pytest.mark.anyio


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Flaky(MemorySchemas):
    away = False

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.hanging = threading.Event()
        self.hanging.set()

    def latest(self, subject: str) -> tuple[int, str] | None:
        self.asked += 1
        self.hanging.wait(60)
        if self.away:
            raise BusUnavailable("The registry is away")
        return super().latest(subject)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def schemas() -> Flaky:
    return Flaky()


@pytest.fixture
async def catalog(schemas: Flaky, clock: Clock) -> Catalog:
    return Catalog(schemas, MemoryLog(), refresh_ms=2000, clock=clock)


async def test_an_event_is_found_without_regard_to_case(catalog: Catalog) -> None:
    await catalog.define(ORDER_SHIPPED, retention_ms=-1)
    assert (await catalog.find("order_shipped__E")).definition == ORDER_SHIPPED
    assert await catalog.names() == ("Order_Shipped__e",)


async def test_names_of_events_differ_by_more_than_case(catalog: Catalog) -> None:
    await catalog.define(ORDER_SHIPPED, retention_ms=-1)
    other = dataclasses.replace(ORDER_SHIPPED, name="Order_SHIPPED__e")
    with pytest.raises(DuplicateEvent, match="There is an event Order_Shipped__e already"):
        await catalog.define(other, retention_ms=-1)


@pytest.mark.parametrize("name", ["", "Missing__e", "Order_Shipped", "x" * 1000 + "__e", "../x__e"])
async def test_an_event_that_is_not_defined_is_unknown(catalog: Catalog, name: str) -> None:
    with pytest.raises(UnknownEvent):
        await catalog.find(name)


async def test_a_definition_made_elsewhere_is_seen_after_a_moment(
    catalog: Catalog, schemas: Flaky, clock: Clock
) -> None:
    first = await catalog.define(ORDER_SHIPPED, retention_ms=-1)
    assert await catalog.find("Order_Shipped__e") is first
    schemas.register("Order_Shipped__e-value", first.text.replace('"label":"Order Shipped"', '"label":"Sent"'))
    assert (await catalog.find("Order_Shipped__e")).id == first.id
    clock.now += 2
    assert (await catalog.find("Order_Shipped__e")).definition.label == "Sent"
    assert (await catalog.schema(first.id)).definition.label == "Order Shipped"


async def test_a_known_definition_outlives_an_absence_of_the_registry(
    catalog: Catalog, schemas: Flaky, clock: Clock
) -> None:
    await catalog.define(ORDER_SHIPPED, retention_ms=-1)
    await catalog.find("Order_Shipped__e")
    schemas.away = True
    clock.now += 10
    assert (await catalog.find("Order_Shipped__e")).definition == ORDER_SHIPPED
    with pytest.raises(BusUnavailable):
        await catalog.find("Other__e")


async def test_many_who_want_a_definition_ask_the_registry_once(schemas: Flaky, clock: Clock, catalog: Catalog) -> None:
    await catalog.define(ORDER_SHIPPED, retention_ms=-1)
    await catalog.find(ORDER_SHIPPED.name)
    for _ in range(2):
        schemas.asked = 0
        clock.now += 10
        await asyncio.gather(*(catalog.find(ORDER_SHIPPED.name) for _ in range(50)))
        assert schemas.asked == 1


async def test_a_registry_that_hangs_keeps_nobody_from_what_is_known(
    schemas: Flaky, clock: Clock, catalog: Catalog
) -> None:
    await catalog.define(ORDER_SHIPPED, retention_ms=-1)
    await catalog.find(ORDER_SHIPPED.name)
    clock.now += 10
    schemas.hanging.clear()
    try:
        for _ in range(3):
            async with asyncio.timeout(30):
                assert (await catalog.find(ORDER_SHIPPED.name)).definition == ORDER_SHIPPED
    finally:
        schemas.hanging.set()


async def test_a_schema_that_is_no_events_is_unknown(catalog: Catalog, schemas: Flaky) -> None:
    number = schemas.register("orders-value", '{"type":"record","name":"Order","fields":[]}')
    for schema_id in (number, 99, 0, -1, 1 << 40):
        with pytest.raises(UnknownSchema):
            await catalog.schema(schema_id)


async def test_a_topic_with_several_partitions_is_unfit(schemas: Flaky) -> None:
    log = MemoryLog()
    catalog = Catalog(schemas, log)
    await log.create("Order_Shipped__e", -1)
    log.counts["Order_Shipped__e"] = 3
    with pytest.raises(TopicUnfit, match="has 3 partitions"):
        await catalog.define(ORDER_SHIPPED, retention_ms=-1)
    assert schemas.versions == {}


async def test_an_invalid_definition_does_not_hide_the_others(schemas: Flaky) -> None:
    log = MemoryLog()
    catalog = Catalog(schemas, log)
    await catalog.define(ORDER_SHIPPED, retention_ms=-1)
    schemas.register("Plain__e-value", '{"type":"record","name":"Plain","fields":[{"name":"a","type":"bytes"}]}')
    schemas.register("Topicless__e-value", '{"type":"record","name":"Topicless__e","fields":[]}')
    schemas.register("Wide__e-value", '{"type":"record","name":"Wide__e","fields":[]}')
    await log.create("Wide__e", -1)
    log.counts["Wide__e"] = 2
    assert [schema.definition.name for schema in await catalog.all()] == ["Order_Shipped__e"]
