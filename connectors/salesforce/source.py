"""The platform event source: events of one kind onto a topic, from the replay id after the last one written."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Final

from connect.api import (
    DataError,
    Field,
    Problem,
    Record,
    RecordBatch,
    RetriableConnectError,
    Schema,
    SchemaType,
    SourceConnector,
    SourceTask,
)
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.config import EventSourceConfig
from connectors.salesforce.sink import check_login
from connectors.salesforce.streaming import StreamingClient

__all__ = ["EventSource", "EventSourceTask", "event_schema"]

_SIMPLE: Final = {
    "boolean": SchemaType.BOOLEAN,
    "int": SchemaType.INT32,
    "double": SchemaType.FLOAT64,
    "percent": SchemaType.FLOAT64,
}
_OFFSET: Final = "replayId"


def event_schema(description: Mapping[str, Any]) -> Schema:
    """The value schema of an event from its describe call: its fields, then what the source adds."""
    fields = [Field(given["name"], _field_schema(given["type"])) for given in description["fields"]]
    added = {
        "ReplayId": Schema(SchemaType.STRING),
        "EventUuid": Schema(SchemaType.STRING, optional=True),
        "_ObjectType": Schema(SchemaType.STRING),
        "_EventType": Schema(SchemaType.STRING),
    }
    members = [f for f in fields if f.name not in added]
    members += [Field(name, schema) for name, schema in added.items()]
    return Schema.struct(members, name=f"com.salesforce.{description['name']}")


def _field_schema(kind: str) -> Schema:
    if kind == "date":
        return Schema.date(optional=True)
    if kind == "datetime":
        return Schema.timestamp(optional=True)
    if kind == "time":
        return Schema.time(optional=True)
    return Schema(_SIMPLE.get(kind, SchemaType.STRING), optional=True)


class EventSourceTask(SourceTask[EventSourceConfig]):
    """Follows one event through the Streaming API.

    A thread waits for events, since a connect holds for as long as the server likes; ``poll`` hands out what came.
    """

    def start(self) -> None:
        self._client = SalesforceClient(self.config)
        self._schema = event_schema(self._client.describe(self.config.event))
        self._partition = {"event": self.config.event}
        position = self.context.offset(self._partition)
        start = -2 if self.config.initial_start == "all" else -1
        self._replay_id = int(position[_OFFSET]) if position else start
        self._arrived: queue.Queue[list[Mapping[str, Any]] | Exception] = queue.Queue(maxsize=64)
        self._stream: StreamingClient | None = None
        self._follower = threading.Thread(target=self._follow, name=f"follow {self.config.event}", daemon=True)
        self._follower.start()

    def poll(self) -> Sequence[RecordBatch]:
        try:
            arrived = self._arrived.get(timeout=0.5)
        except queue.Empty:
            return []
        if isinstance(arrived, Exception):
            raise arrived
        return [self._batch(arrived)]

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._client.close()

    def _follow(self) -> None:
        """Subscribe, hand over what comes, subscribe anew from the last event after every break."""
        wait_s = 0.5
        last = self._replay_id
        while not self.context.stopping.is_set():
            self._stream = StreamingClient(self._client, self.config.api_version, f"/event/{self.config.event}")
            try:
                self._stream.subscribe(last)
                while not self.context.stopping.is_set():
                    events = self._stream.events()
                    wait_s = 0.5
                    if events:
                        self._hand_over(events)
                        last = int(events[-1]["event"]["replayId"])
            except RetriableConnectError:
                self.context.stopping.wait(wait_s)
                wait_s = min(wait_s * 2, 30.0)
            except Exception as error:  # noqa: BLE001 - the task's thread raises it
                self._hand_over(error)
                return

    def _hand_over(self, what: list[Mapping[str, Any]] | Exception) -> None:
        while not self.context.stopping.is_set():
            try:
                self._arrived.put(what, timeout=0.5)
            except queue.Full:
                continue
            return

    def _batch(self, events: Sequence[Mapping[str, Any]]) -> RecordBatch:
        records = [self._record(event) for event in events]
        offsets = [{_OFFSET: int(event["event"]["replayId"])} for event in events]
        return RecordBatch.from_records(
            records, source_partition=self._partition, source_offset=offsets[-1], source_offsets=offsets
        )

    def _record(self, event: Mapping[str, Any]) -> Record:
        payload, about = event.get("payload", {}), event["event"]
        value = {field.name: _python(payload.get(field.name), field.schema) for field in self._schema.fields}
        value |= {
            "ReplayId": str(about["replayId"]),
            "EventUuid": about.get("EventUuid"),
            "_ObjectType": self.config.event,
            "_EventType": "created",
        }
        created = value.get("CreatedDate")
        timestamp = int(created.timestamp() * 1000) if isinstance(created, datetime) else None
        return Record(self.config.topic, value, self._schema, timestamp_ms=timestamp)


class EventSource(SourceConnector[EventSourceConfig]):
    """Platform events onto a topic; one task, at least once."""

    config_class = EventSourceConfig
    task_class = EventSourceTask

    @classmethod
    def check(cls, config: EventSourceConfig) -> Iterable[Problem]:
        return check_login(config, config.event, "salesforce.platform.event.name")


def _python(value: Any, schema: Schema) -> Any:
    """A JSON value of the Streaming API in the Python form of its field's schema."""
    if value is None:
        return None
    wanted = schema.arrow_type
    try:
        if schema.name is None:
            return float(value) if schema.type is SchemaType.FLOAT64 else value
        if str(wanted).startswith("timestamp"):
            return (
                datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value / 1000, UTC)
            )
        if str(wanted).startswith("date"):
            return (
                date.fromisoformat(value)
                if isinstance(value, str)
                else datetime.fromtimestamp(value / 1000, UTC).date()
            )
        return time.fromisoformat(value.rstrip("Z"))
    except (ValueError, TypeError) as error:
        raise DataError(f"{value!r} is not a value of {schema.name or schema.type.value}: {error}") from error
