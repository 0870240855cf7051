"""Concurrent registrations share writes, with the same results as if they had come one after the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import httpx
import pytest

from registry.domain.registry import Registry
from registry.errors import SchemaTooLarge, StoreError
from registry.formats.compatibility import Level
from registry.log.store import Store
from registry.metrics import RegistryMetrics
from registry.server.app import application
from tests.registry.conftest import MemoryLog


class Gated(MemoryLog):
    """A log whose appends wait until the test lets them through; ``appended`` has what came together."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.appended: list[int] = []
        self.largest: int | None = None
        self.writes_before_failure: int | None = None

    async def append(self, records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> int:
        if self.claims and self.records:
            await self.gate.wait()
        if self.largest is not None and sum(len(value or b"") for _, value in records) > self.largest:
            raise SchemaTooLarge("too large for this log")
        if self.writes_before_failure is not None:
            self.writes_before_failure -= 1
            if self.writes_before_failure < 0:
                raise StoreError("the disk is full")
        self.appended.append(len(records))
        return await super().append(records, timestamp_ms)


Register = Callable[[str, str], Coroutine[Any, Any, Any]]


def run(
    test: Callable[[Gated, httpx.AsyncClient, Register], Coroutine[Any, Any, None]], timeout_ms: int = 5000
) -> None:
    async def main() -> None:
        log, metrics = Gated(), RegistryMetrics()
        store = Store(log, metrics, timeout_ms=timeout_ms)
        await store.start()
        registry = Registry(store, metrics, default_level=Level.NONE)
        app = application(registry, metrics, cluster_id="c", group_id="g")
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r") as client:

            async def register(subject: str, schema: str) -> Any:
                return (await client.post(f"/subjects/{subject}/versions", json={"schema": json.dumps(schema)})).json()

            await store.take_office()
            await test(log, client, register)
        await store.stop()

    asyncio.run(main())


async def arrived(log: Gated, tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Let all that can happen before the log answers happen."""
    for _ in range(50):
        await asyncio.sleep(0)


KINDS = ("int", "long", "float", "double", "bytes", "string", "boolean", "null")


def test_those_that_come_together_share_a_write() -> None:
    async def test(log: Gated, client: httpx.AsyncClient, register: Register) -> None:
        tasks = [asyncio.create_task(register(f"s-{kind}", kind)) for kind in KINDS]
        await arrived(log, tasks)
        assert (await client.get("/subjects")).json() == [], "nothing is shown before the log has it"
        log.gate.set()
        assert sorted(answer["id"] for answer in await asyncio.gather(*tasks)) == list(range(1, 9))
        assert len(log.appended) <= 3
        assert sum(log.appended) == 1 + len(KINDS)

    run(test)


def test_the_same_schema_gets_one_id_and_one_subject_its_versions_in_order() -> None:
    async def test(log: Gated, client: httpx.AsyncClient, register: Register) -> None:
        same = [asyncio.create_task(register(f"a-{n}", "int")) for n in range(4)]
        grows = [asyncio.create_task(register("b", kind)) for kind in KINDS]
        again = [asyncio.create_task(register("b", kind)) for kind in KINDS]
        await arrived(log, same)
        log.gate.set()
        ids = {answer["id"] for answer in await asyncio.gather(*same)}
        assert len(ids) == 1
        first, second = await asyncio.gather(*grows), await asyncio.gather(*again)
        assert [answer["id"] for answer in first] == [answer["id"] for answer in second]
        assert len({answer["id"] for answer in first} | ids) == len(KINDS)
        assert (await client.get("/subjects/b/versions")).json() == list(range(1, 9))

    run(test)


def test_a_deletion_waits_for_registrations_and_they_for_it() -> None:
    async def test(log: Gated, client: httpx.AsyncClient, register: Register) -> None:
        before = [asyncio.create_task(register("s", "int"))]
        await arrived(log, before)
        deleting = asyncio.create_task(client.delete("/subjects/s"))
        await arrived(log, before)
        after = asyncio.create_task(register("s", "int"))
        await arrived(log, before)
        log.gate.set()
        assert (await before[0])["id"] == 1
        assert (await deleting).json() == [1]
        assert (await after)["version"] == 2

    run(test)


def test_a_failed_write_fails_all_that_shared_it_and_no_id_of_theirs_is_lost_or_given_twice() -> None:
    async def test(log: Gated, client: httpx.AsyncClient, register: Register) -> None:
        tasks = [asyncio.create_task(register(f"s-{kind}", kind)) for kind in KINDS]
        await arrived(log, tasks)
        log.failure = StoreError("the disk is full")
        log.gate.set()
        assert {answer["error_code"] for answer in await asyncio.gather(*tasks)} == {50001}
        log.failure = None
        assert (await register("t", "int"))["id"] == 1
        assert log.claims == 2, "who failed takes the log over anew"
        assert (await client.get("/subjects")).json() == ["t"]

    run(test)


def test_a_schema_that_is_too_large_fails_alone() -> None:
    async def test(log: Gated, client: httpx.AsyncClient, register: Register) -> None:
        log.largest = 2000
        small = [asyncio.create_task(register(f"s-{kind}", kind)) for kind in KINDS]
        large = asyncio.create_task(
            client.post("/subjects/l/versions", json={"schema": json.dumps({"type": "int", "note": "x" * 3000})})
        )
        await arrived(log, small)
        log.gate.set()
        assert len({answer["id"] for answer in await asyncio.gather(*small)}) == len(KINDS)
        assert (await large).json()["error_code"] == 42209
        assert log.claims == 1

    run(test)


@pytest.mark.parametrize("written", range(len(KINDS)))
def test_writes_that_are_repeated_one_by_one_are_all_answered_when_one_fails(written: int) -> None:
    async def test(log: Gated, client: httpx.AsyncClient, register: Register) -> None:
        log.largest = 200  # each of them fits, together they do not
        log.gate.set()
        await register("first", "int")
        log.gate.clear()
        tasks = [asyncio.create_task(register(f"s-{kind}", kind)) for kind in KINDS]
        await arrived(log, tasks)
        log.writes_before_failure = written
        log.gate.set()
        answers = await asyncio.wait_for(asyncio.gather(*tasks), 30)
        failed = [answer for answer in answers if "error_code" in answer]
        assert len(failed) == len(KINDS) - written
        assert {answer["error_code"] for answer in failed} == {50001}
        log.writes_before_failure = None
        for kind in KINDS:
            assert "id" in await asyncio.wait_for(register(f"s-{kind}", kind), 30)
        assert len((await client.get("/subjects")).json()) == 1 + len(KINDS)

    run(test)


def test_a_registry_without_news_in_time_reports_it_and_continues_afterwards() -> None:
    async def test(log: Gated, client: httpx.AsyncClient, register: Register) -> None:
        tasks = [asyncio.create_task(register(f"s-{kind}", kind)) for kind in KINDS]
        assert {answer["error_code"] for answer in await asyncio.gather(*tasks)} <= {50001, 50002}
        log.gate.set()
        while "id" not in await register("t", "int"):
            await asyncio.sleep(0.01)

    run(test, timeout_ms=100)
