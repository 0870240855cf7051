"""The platform event source: writes events of one type to a topic, from the replay id after the last one written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from connect.api import Dataset, Problem, Record, SourceConnector
from connectors.salesforce.channel_task import ChannelTask
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.following import OFFSET, Placed
from connectors.salesforce.schemas import EVENT_TYPE, OBJECT_TYPE, event_schema, python_value
from connectors.salesforce.sink import check_login
from connectors.salesforce.streaming_config import EventSourceConfig

__all__ = ["EventSource", "EventSourceTask"]


class EventSourceTask(ChannelTask[EventSourceConfig]):
    """Follows one platform event through the Streaming API."""

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        return self.config.dataset(self.config.event)

    def start(self) -> None:
        client = SalesforceClient(self.config)
        self.resources.callback(client.close)
        self._schema = event_schema(client.describe(self.config.event))
        self.follow(client, f"/event/{self.config.event}", {"event": self.config.event})

    def read(self, event: Mapping[str, Any], before: int) -> Iterable[Placed]:
        yield Placed(self._record(event), {OFFSET: int(event["event"]["replayId"])})

    def _record(self, event: Mapping[str, Any]) -> Record:
        payload, about = event.get("payload", {}), event["event"]
        value = {field.name: python_value(payload.get(field.name), field.schema) for field in self._schema.fields}
        value |= {
            "ReplayId": str(about["replayId"]),
            "EventUuid": about.get("EventUuid"),
            OBJECT_TYPE: self.config.event,
            EVENT_TYPE: "created",
        }
        created = value.get("CreatedDate")
        timestamp = int(created.timestamp() * 1000) if isinstance(created, datetime) else None
        return Record(self.config.topic_of(value), value, self._schema, timestamp_ms=timestamp)


class EventSource(SourceConnector[EventSourceConfig]):
    """Writes platform events to a topic; one task, at least once."""

    config_class = EventSourceConfig
    task_class = EventSourceTask

    @classmethod
    def check(cls, config: EventSourceConfig) -> Iterable[Problem]:
        return check_login(config, config.event, "salesforce.platform.event.name")
