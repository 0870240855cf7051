"""The source for whole objects: a snapshot by queries, then changes as events or by further queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from threading import Event
from typing import Any, Final

from connect.api import (
    ConnectError,
    DataError,
    Dataset,
    Problem,
    RecordBatch,
    RetriableConnectError,
    SourceConnector,
    SourceTask,
    get_logger,
)
from connectors.salesforce.bulk import BulkClient
from connectors.salesforce.bulk_config import ObjectSourceConfig
from connectors.salesforce.bulk_query import ObjectReader, instant, time_text
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.errors import ReplayIdGone
from connectors.salesforce.feeding import Feeder
from connectors.salesforce.following import OFFSET, START, Follower, Placed, batches_of
from connectors.salesforce.object_events import ObjectEvents

__all__ = ["ObjectSource", "ObjectSourceTask"]

logger = get_logger(__name__)

_SNAPSHOT: Final = "Historical Snapshot"
_STREAMING: Final = "Event-Driven Sync"
_HEADER: Final = "ChangeEventHeader"


def change_channel(name: str) -> str:
    """``/data/LeadChangeEvent`` for Lead, ``/data/Order__ChangeEvent`` for Order__c."""
    return f"/data/{name.removesuffix('c') if name.endswith('__c') else name}ChangeEvent"


class _Object:
    """Reads one object of a task: the snapshot, then the changes, all in one thread.

    An offset has the members of an ``ObjectReader``'s. Once changes are followed as events, ``mode`` says so,
    ``replayId`` is the last event's, and ``time`` is the time up to which changes are known.
    """

    def __init__(
        self,
        config: ObjectSourceConfig,
        name: str,
        position: Mapping[str, Any] | None,
        stopping: Event,
        client: SalesforceClient,
    ) -> None:
        """Raises ConnectError where the object cannot be read as configured."""
        self._config, self._name = config, name
        self.partition = {"object": name}
        self._client = client
        self._position = dict(position or {})
        settings = {
            key: value for key, value in self._position.items() if key in ("time", "until", "jobId", "locator", "rows")
        }
        description = self._client.describe(name)
        self._reader = ObjectReader(
            BulkClient(self._client),
            config.query(name),
            description,
            partition=self.partition,
            position=settings,
            stopping=stopping,
        )
        topic = config.topic_of(name)
        self._events = ObjectEvents(name, topic, self._reader.schema, description["fields"], config.tombstones)
        if not config.snapshot and not settings and not config.streams:
            self._reader.position["time"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}Z"
        self._last = int(self._position.get(OFFSET, START["all" if config.snapshot else config.start]))
        self._follower = Follower(
            self._client,
            config.api_version,
            change_channel(name),
            self._read,
            position={OFFSET: self._last},
            start=config.start,
            when_gone=None,
        )

    def check(self) -> None:
        """Raises ConnectError where the query or the change channel is not possible."""
        self._reader.soql()
        if self._config.streams:
            self._client.event_schema_of(change_channel(self._name).removeprefix("/data/"))

    def abort(self) -> None:
        """May be called from any thread: makes a waiting call end with an error."""
        self._follower.abort()

    def feed(self) -> Iterator[Sequence[RecordBatch]]:
        if not self._config.streams:
            yield from self._reader.polling(self._config.poll_interval_ms)
            return
        if self._config.snapshot and self._position.get("mode") != _STREAMING:
            if not self._is_snapshot_done():
                yield from self._reader.window(lambda position: {"mode": _SNAPSHOT, **position})
            if not self._is_snapshot_done():
                return
            self._position = {"mode": _STREAMING, "time": self._reader.position["time"]}
        try:
            yield from self._follower.feed()
        except ReplayIdGone as error:
            yield from self._after_loss(error)
            yield from self._follower.feed()

    def _is_snapshot_done(self) -> bool:
        return "time" in self._reader.position and "jobId" not in self._reader.position

    def _read(self, events: Sequence[Mapping[str, Any]], _: int) -> Iterator[Sequence[RecordBatch]]:
        last, position = self._last, dict(self._position)
        try:
            yield from self._batches(events)
        except BaseException:  # these events are read again, so the offset must be before them
            self._last, self._position = last, position
            raise

    def _batches(self, events: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[RecordBatch]]:
        rows: list[Placed] = []
        for event in events:
            try:
                kind = str(event["payload"][_HEADER].get("changeType", ""))
                if not kind.startswith("GAP_"):
                    rows += self._placed(event)
                    continue
            except (KeyError, TypeError, AttributeError) as error:
                raise DataError(f"an event of {self._name} has no form that is known: {error!r}") from error
            yield list(batches_of(self.partition, rows))
            rows = []
            yield from self._after_gap(event, kind)
        yield list(batches_of(self.partition, rows))

    def _placed(self, event: Mapping[str, Any]) -> Iterator[Placed]:
        """Records for an event; none where the snapshot contains the change."""
        committed = event["payload"][_HEADER].get("commitTimestamp")
        replay_id = int(event["event"]["replayId"])
        if self._is_in_snapshot(committed):
            return
        before, self._last = self._offset(self._last), replay_id
        if committed is not None:
            self._position["time"] = time_text(datetime.fromtimestamp(committed / 1000, UTC))
        self._position[OFFSET] = replay_id
        records = list(self._events.records(event))
        # only the last record of an event carries the offset after it; with an earlier one, the whole event is read
        # again
        for record in records[:-1]:
            yield Placed(record, before)
        yield Placed(records[-1], self._offset(replay_id))

    def _is_in_snapshot(self, committed: int | None) -> bool:
        """Events are left out until one is newer than the snapshot."""
        if OFFSET in self._position or committed is None or "time" not in self._position:
            return False
        newest_ms = instant(self._position["time"]).timestamp() * 1000 - self._config.overlap_ms
        return committed < newest_ms

    def _offset(self, replay_id: int) -> dict[str, Any]:
        offset: dict[str, Any] = {"mode": _STREAMING}
        if "time" in self._position:
            offset["time"] = self._position["time"]
        if replay_id >= 0 or "time" not in self._position:
            offset[OFFSET] = replay_id if replay_id >= 0 else START["all"]
        return offset

    def _after_gap(self, event: Mapping[str, Any], kind: str) -> Iterator[Sequence[RecordBatch]]:
        """Salesforce reports that it could not send some changes: changes since the last event are read with a query."""
        recovery, replay_id = self._config.when_gap.lower(), int(event["event"]["replayId"])
        if self._is_in_snapshot(event["payload"][_HEADER].get("commitTimestamp")):
            return
        if recovery == "fail":
            raise ConnectError(
                f"{self._name} has an event {kind} at replay id {replay_id}, and gap.event.recovery is fail"
            )
        logger.warning("changes are missing from the channel", object=self._name, kind=kind, recovery=recovery)
        before = self._last
        if recovery == "resync":
            yield from self._resync(before)
        self._last = replay_id
        self._position[OFFSET] = replay_id

    def _after_loss(self, error: ReplayIdGone) -> Iterator[Sequence[RecordBatch]]:
        """The org no longer keeps the offset's event: continue as after a gap, followed by all events that it still
        keeps.
        """
        recovery = self._config.when_gap.lower()
        if recovery == "fail":
            raise error
        logger.warning("the position is not kept any more", object=self._name, recovery=recovery, error=str(error))
        if recovery == "latest":
            self._follower.go_to("latest")
            return
        yield from self._resync(self._last)
        self._position.pop(OFFSET, None)
        self._last = START["all"]
        self._follower.go_to("all")

    def _resync(self, before: int) -> Iterator[Sequence[RecordBatch]]:
        """Until it is complete, the offset stays before the gap, which is then handled again after an interruption."""
        if "jobId" not in self._reader.position:
            self._reader.position = {"time": self._position["time"]} if "time" in self._position else {}
        at = self._offset(before)
        yield from self._reader.window(lambda _: at)
        if "time" in self._reader.position:
            self._position["time"] = self._reader.position["time"]


class ObjectSourceTask(SourceTask[ObjectSourceConfig]):
    """Reads several objects, each in its own thread, so that none waits for another."""

    def dataset(self, topic: str) -> Dataset | None:
        names = {self.config.topic_of(name): name for name in self.config.names}
        return self.config.dataset(names[topic]) if topic in names else None

    def start(self) -> None:
        objects: list[_Object] = []
        for name in self.config.names:
            client = SalesforceClient(self.config)
            self.resources.callback(client.close)
            position = self.context.offset({"object": name})
            objects.append(_Object(self.config, name, position, self.context.stopping, client))
        feeder = self._feeder = Feeder(self.context)
        self.resources.callback(feeder.end, *(made.abort for made in objects))
        for name, made in zip(self.config.names, objects, strict=True):
            feeder.start(name, made.feed)

    def poll(self) -> Sequence[RecordBatch]:
        return self._feeder.next_batches()


class ObjectSource(SourceConnector[ObjectSourceConfig]):
    """Reads objects into one topic each; at least once. Objects are distributed over tasks."""

    config_class = ObjectSourceConfig
    task_class = ObjectSourceTask

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        names = list(dict.fromkeys(self.config.names))
        count = min(max_tasks, len(names))
        return [{**self.properties, "sobject.names": ",".join(names[n::count])} for n in range(count)]

    @classmethod
    def check(cls, config: ObjectSourceConfig) -> Iterable[Problem]:
        """Log in, and check that each object and its channel exist."""
        for name in config.names:
            with closing(SalesforceClient(config)) as client:
                try:
                    made = _Object(config, name, None, Event(), client)
                except ConnectError as error:
                    login = "logging in" in error.message
                    yield Problem("salesforce.instance" if login else "sobject.names", error.message)
                    if login:
                        return
                    continue
                except RetriableConnectError as error:
                    yield Problem("salesforce.instance", error.message)
                    return
                try:
                    made.check()
                except (ConnectError, RetriableConnectError) as error:
                    yield Problem("sobject.names", error.message)
