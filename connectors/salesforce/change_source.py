"""The change data capture source: writes a channel's change events to topics, in the form of Confluent's connector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from connect.api import (
    ConnectError,
    Dataset,
    Problem,
    Record,
    Schema,
    SchemaType,
    SourceConnector,
)
from connectors.salesforce.channel_task import ChannelTask
from connectors.salesforce.checking import problems_of
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.following import OFFSET, Placed, replay_id_of
from connectors.salesforce.schemas import EVENT_TYPE, EVENT_TYPES, OBJECT_TYPE, change_schema, python_value
from connectors.salesforce.streaming_config import ChangeSourceConfig

__all__ = ["ChangeSource", "ChangeSourceTask", "Changes"]

_HEADER: Final = "ChangeEventHeader"
_KEY: Final = Schema(SchemaType.STRING)


class Changes:
    """Converts change events to records, one per record id, using the schema that each event names."""

    def __init__(self, client: SalesforceClient) -> None:
        self._client = client
        self._schemas: dict[str, tuple[str, Schema]] = {}

    def records(self, event: Mapping[str, Any], topic_of: Callable[[Mapping[str, Any]], str]) -> Iterator[Record]:
        payload = event["payload"]
        header = payload[_HEADER]
        name, schema = self._schema(str(event["schema"]))
        value = {field.name: python_value(payload.get(field.name), field.schema) for field in schema.fields}
        kind = str(header.get("changeType", ""))
        value |= {
            "ReplayId": str(event["event"]["replayId"]),
            OBJECT_TYPE: name,
            EVENT_TYPE: EVENT_TYPES.get(kind, kind.lower()),
        }
        for id_ in header.get("recordIds") or [""]:
            yield Record(
                topic_of(value),
                value | {"Id": id_},
                schema,
                key=id_,
                key_schema=_KEY,
                timestamp_ms=header.get("commitTimestamp"),
            )

    def _schema(self, schema_id: str) -> tuple[str, Schema]:
        """The name and the value schema for an event's schema id."""
        if schema_id not in self._schemas:
            avro = self._client.event_schema(schema_id)
            try:
                self._schemas[schema_id] = avro["name"], change_schema(avro)
            except (KeyError, TypeError, AttributeError) as error:
                raise ConnectError(f"schema {schema_id} is not that of a change event: {error!r}") from error
        return self._schemas[schema_id]


class ChangeSourceTask(ChannelTask[ChangeSourceConfig]):
    """Follows one channel through the Streaming API."""

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        return self.config.dataset(self.config.path)

    def start(self) -> None:
        client = SalesforceClient(self.config)
        self.resources.callback(client.close)
        self._changes = Changes(client)
        self._entities = {_entity(name) for name in self.config.entities}
        self.follow(client, self.config.path, {"channel": self.config.path})

    def read(self, event: Mapping[str, Any], before: int) -> Iterator[Placed]:
        if self._entities and _entity(event["payload"][_HEADER]["entityName"]) not in self._entities:
            return
        records = list(self._changes.records(event, self.config.topic_of))
        # only the last record of an event carries the offset after it; with an earlier one, the whole event is read
        # again
        for record in records[:-1]:
            yield Placed(record, {OFFSET: before})
        yield Placed(records[-1], {OFFSET: replay_id_of(event)})


class ChangeSource(SourceConnector[ChangeSourceConfig]):
    """Writes change events to topics; one task, at least once."""

    config_class = ChangeSourceConfig
    task_class = ChangeSourceTask

    @classmethod
    def check(cls, config: ChangeSourceConfig) -> Iterable[Problem]:
        """Log in, and check that the event of a single-entity channel exists: other channels can only be checked by
        subscribing.
        """
        event = config.event
        if event is None:
            return problems_of(config, "salesforce.cdc.channel", SalesforceClient.log_in)
        return problems_of(config, "salesforce.cdc.channel", lambda client: client.event_schema_of(event))


def _entity(name: str) -> str:
    """``account`` for Account and AccountChangeEvent, ``order__c`` for Order__c and Order__ChangeEvent."""
    lower = name.lower()
    return (
        f"{lower.removesuffix('changeevent')}c"
        if lower.endswith("__changeevent")
        else lower.removesuffix("changeevent")
    )
