"""A registry that is not the writer, over an in-memory log; the test plays the writer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest
from starlette.types import Scope

from registry.domain.registry import Registry
from registry.formats.compatibility import Level
from registry.log.cluster.election import Outcome
from registry.log.cluster.forwarding import Answer, NotAnswered, NotSent
from registry.log.cluster.identity import Identity
from registry.log.cluster.replica import Replica
from registry.log.store import Store
from registry.metrics import RegistryMetrics
from registry.model.records import KeyType, RecordKey, encode_key, encode_value
from registry.server.app import application
from tests.registry.conftest import MemoryLog

ME, OTHER, THIRD = Identity("me", 1), Identity("other", 1), Identity("third", 1)
SCHEMA = {"schema": '"int"'}


class Office:
    """The outcome of an election as a test decides it."""

    def __init__(self) -> None:
        self.outcome = Outcome()
        self.outcome.me = ME
        self.confirmed = True

    @property
    def term(self) -> int:
        return self.outcome.term

    @property
    def certain(self) -> bool:
        return self.outcome.is_me

    def require(self) -> None:
        self.outcome.require()

    async def confirm(self) -> bool:
        return self.confirmed


class Peers:
    """The other registries: ``answer`` is what they do when they are asked."""

    def __init__(self, log: MemoryLog) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.log = log
        self.answer: Callable[[str], Answer] = self.registers

    async def ask(self, url: str, scope: Scope, body: bytes, timeout_s: float) -> Answer:
        self.asked.append((url, scope["method"] + " " + scope["path"], body))
        await asyncio.sleep(0)
        return self.answer(url)

    def registers(self, _: str) -> Answer:
        """Write version 1 of subject s with id 7, as the one that writes would."""
        value = {"subject": "s", "version": 1, "id": 7, "schemaType": "AVRO", "schema": '"int"', "deleted": False}
        self.log.records.append((encode_key(RecordKey(KeyType.SCHEMA, "s", 1)), encode_value(value)))
        assert self.log._grown is not None
        self.log._grown.set()
        return Answer(200, [(b"content-type", b"application/json")], b'{"id":7}')


class World:
    def __init__(self) -> None:
        self.log, self.office = MemoryLog(), Office()
        self.peers = Peers(self.log)


def run(test: Callable[[World, httpx.AsyncClient], Coroutine[Any, Any, None]], timeout_ms: int = 2000) -> None:
    async def main() -> None:
        world, metrics = World(), RegistryMetrics()
        store = Store(world.log, metrics, timeout_ms=timeout_ms, office=world.office)
        await store.start()
        app = application(
            Registry(store, metrics, default_level=Level.BACKWARD),
            metrics,
            cluster_id="c",
            group_id="g",
            middleware=[
                lambda inner: Replica(inner, world.office.outcome, store, world.peers, timeout_ms=timeout_ms)  # type: ignore[arg-type]
            ],
        )
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://me:1") as client:
            await test(world, client)
        await store.stop()

    asyncio.run(main())


def test_a_write_goes_to_the_one_that_writes_and_is_found_here_afterwards() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        world.office.outcome.set(OTHER)
        assert (await client.post("/subjects/s/versions", json=SCHEMA)).json() == {"id": 7}
        assert world.peers.asked == [("http://other:1", "POST /subjects/s/versions", json.dumps(SCHEMA, separators=(",", ":")).encode())]  # fmt: skip
        assert (await client.get("/schemas/ids/7")).json()["schema"] == '"int"'
        known = await client.post("/subjects/s/versions", json=SCHEMA)
        assert known.json()["id"] == 7
        assert len(world.peers.asked) == 1, "what is known is answered here"

    run(test)


def test_a_thing_not_found_is_looked_for_in_what_was_written_meanwhile() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        world.office.outcome.set(OTHER)
        world.peers.registers("")  # the reader has had no chance to see it
        assert (await client.get("/schemas/ids/7")).status_code == 200
        assert (await client.get("/schemas/ids/8")).json()["error_code"] == 40403

    run(test)


def test_a_replica_that_cannot_catch_up_reports_it() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        world.office.outcome.set(OTHER)
        world.log.deaf = True
        answer = await client.get("/schemas/ids/7")
        assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
        assert "offset 0" in answer.json()["message"]

    run(test, timeout_ms=50)


def test_a_request_that_was_passed_on_once_is_not_passed_on_again() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        world.office.outcome.set(OTHER)
        answer = await client.post("/subjects/s/versions", json=SCHEMA, headers={"X-Forward": "true"})
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50004)
        assert world.peers.asked == []

    run(test)


def test_a_write_waits_for_an_election() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        writing = asyncio.create_task(client.post("/subjects/s/versions", json=SCHEMA))
        await asyncio.sleep(0.01)
        world.office.outcome.set(OTHER)
        assert (await writing).json() == {"id": 7}

    run(test)


def test_a_write_waits_until_this_registry_is_elected_itself() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        writing = asyncio.create_task(client.post("/subjects/s/versions", json=SCHEMA))
        await asyncio.sleep(0.01)
        world.office.outcome.set(ME)
        assert (await writing).json()["id"] == 1
        assert world.log.claims == 1
        assert world.log.records[0] == (encode_key(RecordKey(KeyType.NOOP)), None)

    run(test)


def test_no_writer_is_50004_and_no_answer_50003() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        answer = await client.post("/subjects/s/versions", json=SCHEMA)
        assert (answer.status_code, answer.json()) == (500, {"error_code": 50004, "message": "Leader not known."})

        def gone(url: str) -> Answer:
            raise NotSent(f"{url}: connection refused")

        world.office.outcome.set(OTHER)
        world.peers.answer = gone
        answer = await client.post("/subjects/s/versions", json=SCHEMA)
        assert (answer.status_code, answer.json()["error_code"]) == (500, 50003)
        assert "other" in answer.json()["message"]

    run(test, timeout_ms=150)


def test_a_write_is_answered_in_time_whatever_it_waits_for() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        async def refused(path: str) -> str:
            answer = await client.post(path, json=SCHEMA)
            assert answer.status_code == 500 and answer.json()["error_code"] in (50001, 50002)
            return str(answer.json()["message"])

        world.office.outcome.set(ME)
        assert (await client.post("/subjects/s/versions", json=SCHEMA)).json()["id"] == 1
        world.log.silent = True
        # The first waits for the log, those behind it for it and then for the log.
        waiting = [asyncio.create_task(refused(f"/subjects/s{n}/versions")) for n in range(1, 4)]
        await asyncio.sleep(0.2)
        waiting += [asyncio.create_task(refused(f"/subjects/s{n}/versions")) for n in range(4, 6)]
        assert any("No answer within 500 ms" in message for message in await asyncio.gather(*waiting))
        world.log.silent = False
        assert (await client.post("/subjects/s1/versions", json=SCHEMA)).json()["id"] == 1

        def failed(_: str) -> Answer:
            return Answer(500, [], b'{"error_code":50002,"message":"no"}')

        world.office.outcome.set(OTHER)
        world.peers.answer, before = failed, world.log.ends
        assert await refused("/subjects/t/versions") == "no"
        assert world.log.ends == before, "after an error there is nothing to read"

    run(test, timeout_ms=500)


def test_another_is_asked_when_the_one_that_wrote_went_away() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        def gone(url: str) -> Answer:
            if url == OTHER.url:
                world.office.outcome.set(THIRD)
                raise NotAnswered("cut off")
            return world.peers.registers(url)

        world.office.outcome.set(OTHER)
        world.peers.answer = gone
        assert (await client.post("/subjects/s/versions", json=SCHEMA)).json() == {"id": 7}
        assert [url for url, *_ in world.peers.asked] == [OTHER.url, THIRD.url]

    run(test)


def test_a_deletion_that_may_have_been_done_is_not_repeated() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        def cut(_: str) -> Answer:
            raise NotAnswered("cut off")

        world.office.outcome.set(OTHER)
        world.peers.registers("")
        world.peers.answer = cut
        answer = await client.delete("/subjects/s")
        assert answer.json()["error_code"] == 50003
        assert len(world.peers.asked) == 1

    run(test)


def test_an_unconfirmed_leader_writes_nothing() -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        world.office.confirmed = False
        world.office.outcome.set(ME)
        answer = await client.post("/subjects/s/versions", json=SCHEMA)
        assert answer.json()["error_code"] == 50004
        assert world.log.records == []

    run(test, timeout_ms=150)


@pytest.mark.parametrize("path", ["/subjects", "/config", "/schemas/types", "/metrics"])
def test_questions_are_answered_here(path: str) -> None:
    async def test(world: World, client: httpx.AsyncClient) -> None:
        world.office.outcome.set(OTHER)
        assert (await client.get(path)).status_code == 200
        assert world.peers.asked == []

    run(test)
