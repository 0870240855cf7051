"""Dead letters: which connectors have some, why, one record in every form, and sending back, as it was or edited."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.rest import NotAllowed, NotThere
from tidegate.clients.worker import path_of
from tidegate.console.console import Console, Visit
from tidegate.console.hexdump import hexdump
from tidegate.console.listing import QUEUE
from tidegate.console.remedies import letter_remedy
from tidegate.dead_letters.causes import common_message, shape_of
from tidegate.dead_letters.letter_queue import POLLING, Letter, Queue
from tidegate.dead_letters.trying import try_letters
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.records.exact_json import json_text, parsed_json

if TYPE_CHECKING:
    from registry.client import RegistryClient
    from tidegate.dead_letters.replaying import Plan
    from tidegate.records.decoding import Decode

__all__ = ["routes"]

_MOST_READ: Final = 1000
"""The most letters that a page groups; those not sent back for longest come first."""
_EXAMPLES: Final = 5
_CONTEXT: Final = "errors.deadletterqueue.context.headers.enable"
_SHORT: Final = 160
_SHOWN: Final = 10
"""The most lines of each kind that a trial shows."""
_MOST_TEXT: Final = 200_000
"""A longer value is shown in part, and cannot be edited here."""


def routes(console: Console) -> list[Route]:
    page = _DeadLettersPage(console)
    return [
        console.route("/dead-letters", page.show_queues),
        console.route("/dead-letters/{name}", page.show_causes),
        console.route("/dead-letters/{name}/{partition:int}/{offset:int}", page.show_letter),
        console.route("/dead-letters/{name}/review", page.review, ["POST"]),
        console.route("/dead-letters/{name}/try", page.try_draft, ["POST"]),
        console.route("/dead-letters/{name}/send", page.send, ["POST"]),
    ]


@dataclass(frozen=True)
class _Draft:
    """A reviewed sending. ``lines`` are the edits, as ``dlq show --records`` prints them; None for all open letters."""

    name: str
    lines: str | None
    again: bool


@dataclass(frozen=True)
class _Cause:
    """Letters that failed in one way."""

    stage: str
    error: str
    message: str
    letters: tuple[Mapping[str, Any], ...]

    @property
    def examples(self) -> tuple[Mapping[str, Any], ...]:
        return self.letters[:_EXAMPLES]

    @property
    def is_of_source(self) -> bool:
        """Whether a source wrote the letters: about what it could not read, which came from no topic."""
        return self.stage == POLLING

    @property
    def has_origin(self) -> bool:
        """Whether a letter says which topic it goes back to."""
        return any("topic" in letter for letter in self.letters)

    @property
    def wheres(self) -> str:
        """For the form that sends them back: ``0:17 0:18``."""
        return " ".join(f"{letter['partition']}:{letter['offset']}" for letter in self.letters)

    @property
    def remedy(self) -> str:
        return letter_remedy(self.stage, self.message)


class _DeadLettersPage:
    def __init__(self, console: Console) -> None:
        self._console = console

    # What there is

    async def show_queues(self, visit: Visit) -> Response:
        listed = await visit.faces.connectors()
        queues = {name: entry.queue for name, entry in sorted(listed.items())}
        topics = sorted({topic for topic in queues.values() if topic})
        sizes = await self._sizes(visit, topics) if topics else {}
        rows = [(name, topic, sizes.get(topic)) for name, topic in queues.items() if topic]
        rows.sort(key=lambda row: (not row[2], row[0]))
        without = [name for name, entry in listed.items() if entry.type == "sink" and not entry.queue]
        return visit.page("dead_letters.html", rows=rows, without=len(without))

    async def _sizes(self, visit: Visit, topics: list[str]) -> dict[str, int]:
        from broker.client import Admin, TopicPartition

        async with Admin(visit.faces.kafka) as admin:
            there = set(await admin.list_topics(internal=True))
            described = await admin.describe_topics([topic for topic in topics if topic in there])
            partitions = [TopicPartition(name, p.partition) for name, d in described.items() for p in d.partitions]
            begins, ends = await asyncio.gather(admin.beginning_offsets(partitions), admin.end_offsets(partitions))
        made = dict.fromkeys(described, 0)
        for partition in partitions:
            made[partition.topic] += ends[partition] - begins[partition]
        return made

    async def show_causes(self, visit: Visit) -> Response:
        queue = await self._queue(visit)
        letters, has_more = await self._open_letters(queue)
        shown = await asyncio.to_thread(self._shown, visit, letters)
        return visit.page(
            "dead_letter_causes.html",
            name=queue.connector,
            segment=quote(queue.connector, safe=""),
            topic=queue.topic,
            causes=_causes(shown),
            count=len(shown),
            again=sum(1 for letter in letters if letter.is_again),
            has_more=has_more,
            context=_CONTEXT,
            short=_short,
        )

    async def _open_letters(self, queue: Queue) -> tuple[list[Letter], bool]:
        """The first letters that were not sent back, and whether there are more."""
        from broker.client import Admin

        letters: list[Letter] = []
        async with Admin(queue.config) as admin:
            if queue.topic not in await admin.list_topics(internal=True):
                return [], False  # the first letter creates it
            async with aclosing(queue.open_letters(admin)) as stream:
                async for letter in stream:
                    if len(letters) == _MOST_READ:
                        return letters, True
                    letters.append(letter)
        return letters, False

    async def show_letter(self, visit: Visit) -> Response:
        queue = await self._queue(visit)
        letter = await self._letter(queue, visit.parameters["partition"], visit.parameters["offset"])
        (shown,) = await asyncio.to_thread(self._shown, visit, [letter])
        value, key = json_text(shown["value"], constants=True), json_text(shown["key"], constants=True)
        return visit.page(
            "dead_letter.html",
            name=queue.connector,
            segment=quote(queue.connector, safe=""),
            topic=queue.topic,
            letter=shown,
            remedy=letter_remedy(shown.get("stage") or "", shown.get("message") or ""),
            key=key,
            value=value if len(value) <= _MOST_TEXT else None,
            forms=[_forms("Value", letter.record.value), _forms("Key", letter.record.key)],
            is_of_source=shown.get("stage") == POLLING,
            headers=[(name, (data or b"").decode(errors="replace")) for name, data in letter.record.headers],
        )

    async def _letter(self, queue: Queue, partition: int, offset: int) -> Letter:
        from broker.client import TopicPartition

        async with aclosing(queue.read({TopicPartition(queue.topic, partition): (offset, offset + 1)})) as letters:
            async for letter in letters:
                return letter
        raise HTTPException(404)

    def _shown(self, visit: Visit, letters: list[Letter]) -> list[dict[str, Any]]:
        decode, close = self._decoder(visit)
        try:
            return [letter.shown(decode) for letter in letters]
        finally:
            close()

    def _decoder(self, visit: Visit) -> tuple[Decode, Callable[[], None]]:
        from tidegate.records.decoding import decoder

        client = _registry(visit)
        return decoder(client), client.close

    # Sending back

    async def review(self, visit: Visit) -> Response:
        form, queue = await visit.form(), await self._queue(visit)
        lines = await self._lines(visit, queue, form)
        draft = _Draft(queue.connector, lines, again=form.get("again") == "yes")
        sent, skipped = await asyncio.to_thread(self._carry_out, visit, queue, draft, execute=False)
        return visit.page(
            "dead_letter_review.html",
            name=queue.connector,
            segment=quote(queue.connector, safe=""),
            topic=queue.topic,
            sent=sent,
            skipped=skipped,
            draft=self._console.drafts.put(visit.session.id, draft) if sent else "",
        )

    async def _lines(self, visit: Visit, queue: Queue, form: Mapping[str, str]) -> str | None:
        """The letters that the form names, with its edits; None for all."""
        if form.get("what") == "all":
            return None
        wheres = [tuple(map(int, where.split(":"))) for where in form.get("letters", "").split() if _is_where(where)]
        if not wheres or len(wheres) > _MOST_READ:
            raise UsageError("No letter is named")
        letters = [await self._letter(queue, *where) for where in wheres]
        shown = await asyncio.to_thread(self._shown, visit, letters)
        if "value" in form and len(shown) == 1:
            shown[0]["key"] = _parsed("key", form.get("key", "null"))
            shown[0]["value"] = _parsed("value", form["value"])
        return "\n".join(json_text(letter, constants=True) for letter in shown)

    async def try_draft(self, visit: Visit) -> Response:
        """Have the worker try the letters of a reviewed sending. The answer is a part of the page of the review."""
        form, queue = await visit.form(), await self._queue(visit)
        draft: _Draft = self._console.drafts.look(visit.session.id, form.get("draft", ""))
        _require_name(draft, queue)
        plan = await asyncio.to_thread(self._rehearsed, visit, queue, draft)
        try:
            trial = await visit.faces.connect.run(lambda rest: try_letters(rest, queue.connector, plan.first))
        except NotThere:
            message = "This worker can't try records: it is Kafka Connect's own."
            return visit.page("dead_letter_trial.html", message=message)
        except NotAllowed:
            raise
        except TidegateError as error:
            return visit.page("dead_letter_trial.html", message=str(error))
        return visit.page(
            "dead_letter_trial.html",
            message="",
            trial=trial,
            left=sum(plan.sent.values()) - trial.count,
            segment=quote(queue.connector, safe=""),
            remedy=letter_remedy,
            short=_short,
            shown=_SHOWN,
        )

    async def send(self, visit: Visit) -> Response:
        form, queue = await visit.form(), await self._queue(visit)
        draft: _Draft = self._console.drafts.take(visit.session.id, form.get("draft", ""))
        _require_name(draft, queue)
        sent, skipped = await asyncio.to_thread(self._carry_out, visit, queue, draft, execute=True)
        visit.audit("dead letters sent back", connector=queue.connector, sent=dict(sent))
        visit.faces.forget()
        return visit.page(
            "dead_letter_sent.html",
            name=queue.connector,
            segment=quote(queue.connector, safe=""),
            sent=sent,
            skipped=skipped,
        )

    def _carry_out(self, visit: Visit, queue: Queue, draft: _Draft, *, execute: bool) -> Any:
        """The numbers sent by topic, and the letters left out by reason. Runs in a thread."""
        plan = self._rehearsed(visit, queue, draft, execute=execute)
        return plan.sent, {why: letters for why, letters in plan.skipped.items() if "not in the edits" not in why}

    def _rehearsed(self, visit: Visit, queue: Queue, draft: _Draft, *, execute: bool = False) -> Plan:
        """The plan of a draft, carried out on demand. Runs in a thread."""
        from tidegate.dead_letters.replaying import Edits, Plan

        with closing(_registry(visit)) as client:
            file: TextIO | None = None if draft.lines is None else io.StringIO(draft.lines)
            plan = Plan(
                queue, None if file is None else Edits(file, client), None, again=draft.again, skip_others=False
            )
            plan.rehearse(None)
            if execute:
                plan.execute(None)
        return plan

    async def _queue(self, visit: Visit) -> Queue:
        name = visit.parameters["name"]
        config = await visit.faces.connect.call("GET", path_of(name, "/config"))
        topic = str(config.get(QUEUE) or "")
        if not topic:
            raise UsageError(f"Connector {name} has no dead letter queue: {QUEUE} names it")
        return Queue(visit.faces.kafka, name, topic)


def _require_name(draft: _Draft, queue: Queue) -> None:
    if draft.name != queue.connector:
        raise UsageError("This sending is of another connector")


class _NoRegistry:
    """In place of a registry's client where none is configured: what names a schema is shown as bytes."""

    def any_schema(self, schema_id: int, subject: str | None = None) -> Any:
        raise TidegateError(f"the console knows no schema registry, so schema {schema_id} is unknown")

    schema = any_schema

    def close(self) -> None:
        pass


def _registry(visit: Visit) -> RegistryClient:
    try:
        return visit.faces.registry_client()
    except UsageError:
        return _NoRegistry()  # type: ignore[return-value]


def _causes(letters: list[dict[str, Any]]) -> list[_Cause]:
    """The most frequent first."""
    by_cause: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for letter in letters:
        key = letter.get("stage") or "", letter.get("error") or "", shape_of(letter.get("message") or "")
        by_cause.setdefault(key, []).append(letter)
    return [
        _Cause(stage, error, common_message([letter.get("message") or "" for letter in alike]), tuple(alike))
        for (stage, error, _), alike in sorted(by_cause.items(), key=lambda item: -len(item[1]))
    ]


def _forms(title: str, data: bytes | None) -> dict[str, Any]:
    return {
        "title": title,
        "size": None if data is None else len(data),
        "text": None if data is None else data[:_MOST_TEXT].decode(errors="replace"),
        "hex": None if data is None else hexdump(data),
    }


def _parsed(what: str, text: str) -> Any:
    try:
        return parsed_json(text, constants=True)
    except ValueError as error:
        raise UsageError(f"The {what} is not JSON: {error}. A text stands in double quotes") from error


def _is_where(text: str) -> bool:
    partition, colon, offset = text.partition(":")
    return bool(colon) and all(part.isascii() and part.isdigit() and len(part) < 19 for part in (partition, offset))


def _short(value: Any) -> str:
    text = json_text(value, constants=True)
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
