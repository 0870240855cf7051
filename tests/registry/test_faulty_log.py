"""A log that fails in any of its calls: acknowledged schemas stay, refused ones have no effect, and the registry
continues.

A second registry replays the log and must give the same responses as the one that wrote it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import StoreError, StoreTimeout
from registry.log.store import LogRecord
from tests.registry.conftest import MemoryLog, serving
from tests.support.faults import CallFaults

FAULTS: Final = {
    "append": ("refused", "reply lost", "late", "silent", "unforeseen"),
    "claim": ("refused", "silent", "unforeseen"),
    "end": ("refused", "silent"),
    "read": ("refused", "unforeseen", "dead"),
}
TIMEOUT_MS: Final = 30
CALLS: Final = st.dictionaries(
    st.sampled_from(sorted(FAULTS)).flatmap(
        lambda call: st.tuples(st.just(call), st.integers(0, 12), st.sampled_from(FAULTS[call]))
    ),
    st.just(None),
    max_size=8,
).map(list)


class FaultyLog(MemoryLog):
    """``faults`` says what becomes of each call; ``met`` those that came to pass."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = CallFaults()
        self._late: list[tuple[Sequence[tuple[bytes, bytes | None]], int]] = []
        self.met: list[str] = []

    async def _fault(self, call: str) -> str | None:
        fault = self.faults.next(call)
        if fault is not None:
            self.met.append(f"{call}: {fault}")
        if fault == "refused":
            raise StoreError("the log refuses it")
        if fault == "unforeseen":
            raise RuntimeError("nobody thought of this")
        if fault == "dead":
            raise asyncio.CancelledError
        if fault == "silent":
            await asyncio.Event().wait()
        return fault

    async def claim(self) -> None:
        await self._fault("claim")
        await self._arrive()  # what an earlier writer has under way comes before our claim, or not at all
        await super().claim()

    async def append(self, records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> int:
        fault = await self._fault("append")
        if fault == "late":
            self._late.append((records, timestamp_ms))
            raise StoreTimeout("no answer; it may appear later")
        offset = await super().append(records, timestamp_ms)
        if fault == "reply lost":
            raise StoreTimeout("no answer; it is there")
        return offset

    async def _arrive(self) -> None:
        late, self._late = self._late, []
        for records, timestamp_ms in late:
            await super().append(records, timestamp_ms)

    async def end(self) -> int:
        await self._fault("end")
        return await super().end()

    async def read(self) -> tuple[Sequence[LogRecord], int]:
        await self._fault("read")
        return await super().read()


class Clients:
    """The requests sent to a registry and its responses."""

    def __init__(self, app: Any) -> None:
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://registry")
        self.ids: dict[str, int] = {}
        """Acknowledged registrations, by subject."""
        self.deleted: dict[str, bool] = {}
        """Whether a subject's deletion was acknowledged."""
        self.levels: list[tuple[str, bool]] = []
        """Changes of the global level, in the order in which they were made, and whether they were acknowledged."""

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer, or None for an error of the log; there has to be an answer."""
        async with asyncio.timeout(20):
            answer = await self._http.request(method, path, json=body)
        if answer.status_code >= 500:
            assert answer.json()["error_code"] in (50001, 50002, 50003, 50004), answer.text
            return None
        assert answer.is_success, (method, path, answer.text)
        return answer.json()

    async def register(self, subject: str) -> None:
        said = await self.ask("POST", f"/subjects/{subject}/versions", {"schema": schema_of(subject)})
        if said is not None:
            self.ids[subject] = said["id"]

    async def register_and_delete(self, subject: str) -> None:
        await self.register(subject)
        if subject in self.ids:
            self.deleted[subject] = await self.ask("DELETE", f"/subjects/{subject}") is not None

    async def set_levels(self, *levels: str) -> None:
        for level in levels:
            said = await self.ask("PUT", "/config", {"compatibility": level})
            self.levels.append((level, said is not None))

    async def wave(self, number: int) -> None:
        """Many clients at once."""
        names = [f"kept-{number}-{n}" for n in range(4)] + [f"shared-{number}-{n}" for n in range(2)]
        await asyncio.gather(
            *map(self.register, names),
            *(self.register_and_delete(f"gone-{number}-{n}") for n in range(2)),
            self.set_levels("FULL", "NONE") if number % 2 else self.set_levels("BACKWARD"),
        )

    async def everything(self) -> Mapping[str, Any]:
        paths = ("/schemas?deleted=true", "/subjects", "/subjects?deleted=true", "/config")
        return {path: await self.ask("GET", path) for path in paths}


def schema_of(subject: str) -> str:
    """Subjects named ``shared-N-...`` with the same N have the same schema."""
    name = subject.rpartition("-")[0] if subject.startswith("shared") else subject
    return json.dumps({"type": "record", "name": name.replace("-", "_"), "fields": []})


async def _judged(clients: Clients, log: FaultyLog) -> None:
    said = await clients.everything()
    async with serving(log) as app:
        assert await Clients(app).everything() == said, "a registry that replays the log says something else"
    by_subject = {each["subject"]: each["id"] for each in said["/schemas?deleted=true"]}
    for subject, id_ in clients.ids.items():
        assert by_subject.get(subject) == id_, f"{subject} was acknowledged with id {id_}"
    schemas: dict[int, set[str]] = {}
    for each in said["/schemas?deleted=true"]:
        schemas.setdefault(each["id"], set()).add(each["schema"])
    assert all(len(texts) == 1 for texts in schemas.values()), f"one id, several schemas: {schemas}"
    assert len(schemas) == len({text for texts in schemas.values() for text in texts}), "one schema, several ids"
    for subject in clients.ids:
        if subject not in clients.deleted:
            assert subject in said["/subjects"]
        elif clients.deleted[subject]:
            assert subject not in said["/subjects"], f"the deletion of {subject} was acknowledged"
    acknowledged = [n for n, (_, done) in enumerate(clients.levels) if done]
    possible = {level for level, _ in clients.levels[acknowledged[-1] if acknowledged else 0 :]}
    assert said["/config"]["compatibilityLevel"] in possible | (set() if acknowledged else {"BACKWARD"})


async def run(faults: Sequence[tuple[str, int, str]]) -> list[str]:
    log = FaultyLog()
    async with serving(log, timeout_ms=TIMEOUT_MS) as app:
        clients = Clients(app)
        log.faults = CallFaults(faults)
        for number in range(3):
            await clients.wave(number)
        log.faults = CallFaults()
        for _ in range(100):
            await clients.register("after")
            if "after" in clients.ids:
                break
            await asyncio.sleep(0.02)
        assert "after" in clients.ids, "the registry does not recover"
        await _judged(clients, log)
    return log.met


@settings(max_examples=40, deadline=None)
@given(CALLS)
def test_no_acknowledged_schema_is_lost_whatever_fails(faults: Sequence[tuple[str, int, str]]) -> None:
    asyncio.run(run(faults))


@pytest.mark.parametrize("fault", FAULTS["append"])
@pytest.mark.parametrize("number", [1, 3])
def test_any_write_may_fail(number: int, fault: str) -> None:
    assert asyncio.run(run([("append", number, fault)])) == [f"append: {fault}"]


def test_several_lost_replies_in_a_row_are_survived() -> None:
    met = asyncio.run(run([("append", number, "reply lost") for number in range(2, 9)]))
    assert len(met) == 7
