"""Jobs of the Bulk API 2.0: stored in files, processed one by one, resumed after a restart.

Each row is published with an id derived from its job and row number, and the job's position is written before each
block of rows. So a resumed job continues there and publishes nothing twice. Ids are known for a day; for a block that
was begun earlier the log itself is read.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
import os
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, Final

from events.access import Permission, User, long_id
from events.bus.outcomes import Outcome, Published, Refused, event_uuid, record_error, record_id
from events.bus.published_ids import KEPT_MS as KEPT_IDS_MS
from events.bus.publishing import JsonEvent, Publisher
from events.errors import BadRequest, BusUnavailable, NotThere, UnknownEvent
from events.model.payloads import instant_text
from events.store.catalog import Catalog
from tidegate.kit.errors import TidegateError
from tidegate.kit.files import write_whole
from tidegate.kit.logs import get_logger

__all__ = ["DELIMITERS", "BulkJob", "BulkJobs", "InvalidJob", "State"]

logger = get_logger(__name__)

DELIMITERS: Final = {"COMMA": ",", "BACKQUOTE": "`", "CARET": "^", "PIPE": "|", "SEMICOLON": ";", "TAB": "\t"}
KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""A job and its results are deleted after a week, as in Salesforce."""
_ROWS: Final = 200
_RETRY_S: Final = 1.0
_CLOCKS_MS: Final = 120_000
"""The largest difference between the clocks of the log's writers."""
_IDS_KNOWN_MS: Final = KEPT_IDS_MS - _CLOCKS_MS
"""How long the publisher knows the ids of a block after it was begun."""
_RESULTS: Final = {"successfulresults": "successful.csv", "failedresults": "failed.csv"}
_NULL: Final = "#N/A"


class State(Enum):
    """Salesforce's states of an ingest job."""

    OPEN = "Open"
    UPLOADED = "UploadComplete"
    WORKING = "InProgress"
    DONE = "JobComplete"
    FAILED = "Failed"
    ABORTED = "Aborted"


class InvalidJob(BadRequest):
    code = "INVALIDJOB"


class InvalidJobState(BadRequest):
    code = "INVALIDJOBSTATE"


class InvalidEntity(BadRequest):
    code = "INVALIDENTITY"


class UnknownJob(NotThere):
    def __init__(self, job_id: str) -> None:
        super().__init__(f"The requested resource does not exist: there is no job {job_id[:50]!r}")


class _BadFile(Exception):
    """The file as a whole is unreadable; the text is the job's error message."""


@dataclass(slots=True)
class BulkJob:
    """A job. Times are ISO 8601 text; ``processed`` counts rows, ``failed`` those that were refused."""

    id: str
    event: str
    delimiter: str
    ending: str
    user_id: str
    created_ms: int
    created: str
    changed: str
    state: State = State.OPEN
    processed: int = 0
    failed: int = 0
    processing_ms: int = 0
    error: str = ""
    block_ms: int = 0
    """When the block after ``processed`` was begun; 0 before the first."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Sizes of the result files up to ``processed``, in bytes."""


class BulkJobs:
    """All jobs of a service, each in a folder. ``start`` resumes unfinished jobs. Use it on one event loop."""

    def __init__(
        self,
        folder: Path,
        catalog: Catalog,
        publisher: Publisher,
        users: Callable[[str], User | None],
        clock_ms: Callable[[], int],
    ) -> None:
        """``users`` finds a user by id: a job publishes with the current rights of its user."""
        self._users = users
        self._folder, self._catalog, self._publisher, self._clock_ms = folder, catalog, publisher, clock_ms
        self._jobs: dict[str, BulkJob] = {}
        self._queue: asyncio.Queue[BulkJob] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        for path in sorted(self._folder.glob("*/job.json")):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                said = json.loads(path.read_text())
                job = BulkJob(**said | {"state": State(said["state"])})
                self._jobs[job.id] = job
                if job.state in (State.UPLOADED, State.WORKING):
                    self._queue.put_nowait(job)
        self._task = asyncio.create_task(self._run(), name="bulk jobs")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def create(self, *, event: str, operation: str, delimiter: str, ending: str, user: User) -> BulkJob:
        """Create a job that waits for its file.

        Raises InvalidEntity if it is not an event or the operation is not insert, InvalidJob if the user may not
        publish it.
        """
        try:
            name = (await self._catalog.find(event)).definition.name
            if not user.may_see(name):
                raise UnknownEvent(name)
        except UnknownEvent as error:
            raise InvalidEntity(f"InvalidEntity : Entity '{event[:100]}' is not supported by the Bulk API.") from error
        if not user.may_create(name):
            raise InvalidJob(f"InvalidJob : No create/update access for object:{name}")
        if operation != "insert":
            raise InvalidEntity(f"InvalidEntity : {name} takes the operation insert, not {operation[:50]!r}.")
        self._sweep()
        now = self._clock_ms()
        id_ = long_id("750" + secrets.token_hex(6))
        job = BulkJob(id_, name, delimiter, ending, user.id, now, instant_text(now), instant_text(now))
        (self._folder / id_).mkdir(parents=True)
        self._jobs[id_] = job
        self._save(job)
        return job

    def of(self, user: User) -> list[BulkJob]:
        """The jobs that a user may see: the user's own, or all with CustomizeApplication."""
        return sorted((job for job in self._jobs.values() if _is_open(job, user)), key=lambda job: job.created_ms)

    def find(self, id_: str, user: User) -> BulkJob:
        """A job that the user may see. Raises UnknownJob."""
        job = self._jobs.get(long_id(id_) if len(id_) == 15 and id_.isascii() else id_)
        if job is None or not _is_open(job, user):
            raise UnknownJob(id_)
        return job

    def upload(self, job: BulkJob, data: bytes) -> None:
        """Store the job's only file."""
        if job.state is not State.OPEN:
            raise InvalidJobState(f"InvalidJobState : the job is {job.state.value}; it must be Open")
        path = self._folder / job.id / "data.csv"
        if path.exists():
            raise InvalidJobState("InvalidJobState : the job has its file already; make another job for more")
        write_whole(path, data)

    def change(self, job: BulkJob, state: State) -> None:
        """Start processing the uploaded file, or abort the job. Setting the current state again changes nothing."""
        if job.state is state:
            return
        allowed = (State.OPEN,) if state is State.UPLOADED else (State.OPEN, State.UPLOADED, State.WORKING)
        if job.state not in allowed:
            raise InvalidJobState(f"InvalidJobState : the job is {job.state.value} and cannot become {state.value}")
        self._become(job, state)
        if state is State.UPLOADED:
            self._queue.put_nowait(job)

    def delete(self, job: BulkJob) -> None:
        if job.state in (State.OPEN, State.WORKING):
            raise InvalidJobState(f"InvalidJobState : the job is {job.state.value}; abort it before it is deleted")
        self._jobs.pop(job.id, None)
        job.state = State.ABORTED  # it may still be in the queue
        shutil.rmtree(self._folder / job.id, ignore_errors=True)

    def results(self, job: BulkJob, name: str) -> bytes:
        """Rows that were published, refused, or not processed, as CSV."""
        folder = self._folder / job.id
        if name.lower() == "unprocessedrecords":
            return self._unprocessed(job)
        file = _RESULTS.get(name.lower())
        if file is None:
            raise UnknownJob(f"{job.id}/{name}")
        ended = job.state in (State.DONE, State.FAILED, State.ABORTED)
        return (folder / file).read_bytes() if ended and (folder / file).exists() else b""

    def _unprocessed(self, job: BulkJob) -> bytes:
        if job.state not in (State.FAILED, State.ABORTED):
            return b""
        try:
            rows = _rows(self._folder / job.id / "data.csv", job)
            header = next(rows)
            left = [row for index, row in enumerate(rows) if index >= job.processed]
        except (_BadFile, StopIteration):
            return b""
        return _lines(job, [header, *left]).encode()

    def _become(self, job: BulkJob, state: State) -> None:
        job.state, job.changed = state, instant_text(self._clock_ms())
        self._save(job)

    def _save(self, job: BulkJob) -> None:
        write_whole(self._folder / job.id / "job.json", json.dumps(asdict(job) | {"state": job.state.value}))

    def _sweep(self) -> None:
        old = self._clock_ms() - KEPT_MS
        for job in [job for job in self._jobs.values() if job.created_ms < old and job.state is not State.WORKING]:
            self._jobs.pop(job.id)
            shutil.rmtree(self._folder / job.id, ignore_errors=True)

    async def _run(self) -> None:
        while True:
            job = await self._queue.get()
            if job.state not in (State.UPLOADED, State.WORKING):
                continue
            try:
                await self._work(job)
            except _BadFile as error:
                job.error = str(error)
                self._become(job, State.FAILED)
            except NotThere as error:
                job.error = f"InvalidBatch : {job.event} is not defined any more: {error}"
                self._become(job, State.FAILED)
            except BusUnavailable:
                await asyncio.sleep(_RETRY_S)
                self._queue.put_nowait(job)
            except Exception as error:
                logger.exception("a bulk job broke off", job=job.id)
                job.error = f"InternalError : {type(error).__name__}; the log has the details"
                with contextlib.suppress(OSError):
                    self._become(job, State.FAILED)

    async def _work(self, job: BulkJob) -> None:
        began = self._clock_ms() - job.processing_ms
        if job.state is not State.WORKING:
            self._become(job, State.WORKING)
        folder = self._folder / job.id
        rows = _rows(folder / "data.csv", job)
        header = next(rows, None)
        if header is None:
            raise _BadFile("InvalidBatch : the file has no line with the names of fields")
        known = {field.name.lower() for field in (await self._catalog.find(job.event)).definition.fields}
        unknown = [name for name in header if name.lower() not in known]
        if unknown:
            raise _BadFile(f"InvalidBatch : Field name not found : {unknown[0][:100]}")
        if len({name.lower() for name in header}) < len(header):
            raise _BadFile("InvalidBatch : a field is named twice in the first line")
        if not job.sizes:
            (folder / "successful.csv").write_text(_lines(job, [["sf__Id", "sf__Created", *header]]), newline="")
            (folder / "failed.csv").write_text(_lines(job, [["sf__Id", "sf__Error", *header]]), newline="")
            self._note_sizes(job)
        for name, size in job.sizes.items():
            if not (folder / name).exists() or (folder / name).stat().st_size < size:
                raise _BadFile(
                    f"InvalidBatch : the machine crashed, and of the results of the first {job.processed} rows a part is lost"
                )
            os.truncate(folder / name, size)
        deque(islice(rows, job.processed), maxlen=0)
        ended = False
        while not ended and job.state is State.WORKING:
            some = list(islice(rows, _ROWS))
            ended = len(some) < _ROWS
            job.block_ms = job.block_ms or self._clock_ms()
            self._save(job)
            await self._publish(job, header, some)
            job.block_ms = 0
            job.processing_ms = self._clock_ms() - began
        if job.state is State.WORKING:
            self._become(job, State.DONE)

    async def _publish(self, job: BulkJob, header: list[str], rows: list[list[str]]) -> None:
        events = [
            JsonEvent(job.event, _body(header, row), event_uuid(job.id, job.processed + index))
            for index, row in enumerate(rows)
        ]
        outcomes = await self._outcomes(job, events)
        good, bad = [], []
        for row, outcome in zip(rows, outcomes, strict=True):
            if isinstance(outcome, Published):
                good.append([record_id(outcome.replay_id), "true", *row])
            else:
                code, message, fields = record_error(job.event, outcome, from_json=False)
                bad.append(["", f"{code}:{message}:{','.join(fields)} --".replace(": --", ":--"), *row])
        for name, made in (("successful.csv", good), ("failed.csv", bad)):
            with (self._folder / job.id / name).open("a", newline="", encoding="utf-8", errors="replace") as file:
                file.write(_lines(job, made))
        job.processed += len(rows)
        job.failed += len(bad)
        self._note_sizes(job)

    def _note_sizes(self, job: BulkJob) -> None:
        job.sizes = {name: (self._folder / job.id / name).stat().st_size for name in _RESULTS.values()}

    async def _outcomes(self, job: BulkJob, events: list[JsonEvent]) -> list[Outcome]:
        """The outcomes, with retries until the log answers: a job outlasts an unavailable log."""
        while True:
            user = self._users(job.user_id)
            if user is None or not user.active:
                raise _BadFile(f"InvalidJob : there is no active user {job.user_id}")
            try:
                known = await self._published_long_ago(job, events)
                fresh = [event for event in events if event.id not in known]
                fresh_outcomes = iter(await self._publisher.publish_json(fresh, user=user, face="bulk"))
            except TidegateError as error:
                if not error.retriable:
                    raise
            else:
                outcomes = [known[event.id] if event.id in known else next(fresh_outcomes) for event in events]
                if not any(isinstance(outcome, Refused) and outcome.error.retriable for outcome in outcomes):
                    return outcomes
            await asyncio.sleep(_RETRY_S)

    async def _published_long_ago(self, job: BulkJob, events: list[JsonEvent]) -> dict[str, Published]:
        """The published rows of a block that is so old that its ids are no longer known."""
        if self._clock_ms() - job.block_ms < _IDS_KNOWN_MS:
            return {}
        ids = [event.id for event in events]
        replay_ids = await self._publisher.published_since(job.event, ids, job.block_ms - _CLOCKS_MS)
        if replay_ids is None:
            rows = f"rows {job.processed + 1} to {job.processed + len(events)}"
            raise _BadFile(
                f"InvalidBatch : {rows} were begun at {instant_text(job.block_ms)}, and the log of {job.event} does not reach back "
                "to then: whether they were published cannot be known"
            )
        return replay_ids


def _is_open(job: BulkJob, user: User) -> bool:
    return job.user_id == user.id or user.may(Permission.CUSTOMIZE)


def _body(header: list[str], row: list[str]) -> dict[str, Any]:
    """Empty cells are left out; ``#N/A`` is null.

    A row whose length differs from the header's fails on an impossible name.
    """
    if len(row) != len(header):
        return {f"(the row has {len(row)} cells where {len(header)} belong)": ""}
    return {name: None if cell == _NULL else cell for name, cell in zip(header, row, strict=True) if cell}


def _rows(path: Path, job: BulkJob) -> Iterator[list[str]]:
    """The lines of the file, including the header. Raises _BadFile at the first line that is not CSV."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise _BadFile("InvalidBatch : the job has no file") from error
    except UnicodeDecodeError as error:
        raise _BadFile(f"InvalidBatch : the file is not UTF-8 text at byte {error.start}") from error
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=DELIMITERS[job.delimiter], strict=True)
    try:
        for row in reader:
            if row:
                yield row
    except csv.Error as error:
        raise _BadFile(f"InvalidBatch : line {reader.line_num} is not CSV: {error}") from error


def _lines(job: BulkJob, rows: list[list[str]]) -> str:
    out = io.StringIO()
    ending = "\r\n" if job.ending == "CRLF" else "\n"
    csv.writer(out, delimiter=DELIMITERS[job.delimiter], lineterminator=ending, quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue()
