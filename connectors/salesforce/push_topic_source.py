"""The PushTopic source: an object's changes, as notified by a push topic of the org."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from connect.api import ConnectError, Dataset, Problem, Record, Schema, SchemaType, SourceConnector, get_logger
from connectors.salesforce.channel_task import ChannelTask
from connectors.salesforce.checking import problems_of
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.following import OFFSET, Placed
from connectors.salesforce.schemas import EVENT_TYPE, OBJECT_TYPE, object_schema, python_value
from connectors.salesforce.streaming_config import PushTopicSourceConfig

__all__ = ["PushTopicSource", "PushTopicSourceTask", "query_of"]

logger = get_logger(__name__)

_KEY: Final = Schema(SchemaType.STRING)
_NOT_IN_QUERY: Final = frozenset({"address", "location", "base64", "complexvalue", "encryptedstring", "textarea"})
"""Types that a push topic's query may not include."""
_LONGEST: Final = 1300
"""The most characters in a push topic's query. Source: Streaming API Developer Guide, "PushTopic Queries"."""


def query_of(config: PushTopicSourceConfig, description: Mapping[str, Any]) -> str:
    """A query for all fields that a push topic supports; raises ConnectError where it is too long."""
    fields = [field["name"] for field in description["fields"] if field["type"] not in _NOT_IN_QUERY]
    soql = f"SELECT {', '.join(fields)} FROM {config.object_name}"
    if len(soql) > _LONGEST:
        raise ConnectError(
            f"a push topic with all fields of {config.object_name} needs a query of {len(soql)} characters, and Salesforce "
            f"allows {_LONGEST}: create the push topic {config.push_topic} in Salesforce with the fields that you need"
        )
    return soql


def find(config: PushTopicSourceConfig, client: SalesforceClient) -> bool:
    """Whether the push topic exists; raises ConnectError where it belongs to another object, or is missing and may not
    be created.
    """
    name = config.push_topic.replace("\\", "\\\\").replace("'", "\\'")
    rows = client.query(f"SELECT Id, Query FROM PushTopic WHERE Name = '{name}'")
    if not rows and not config.create:
        raise ConnectError(f"there is no push topic {config.push_topic}, and salesforce.push.topic.create is false")
    if not rows:
        return False
    words = str(rows[0].get("Query", "")).split()
    of = next((after for word, after in pairwise(words) if word.upper() == "FROM"), "")
    if of.lower() != config.object_name.lower():
        raise ConnectError(f"the push topic {config.push_topic} is of {of}, not of {config.object_name}")
    return True


def create(config: PushTopicSourceConfig, client: SalesforceClient, description: Mapping[str, Any]) -> None:
    """Create the push topic; raises ConnectError with Salesforce's message."""
    logger.info("creating a push topic", name=config.push_topic, object=config.object_name)
    client.call_json(
        "POST",
        "sobjects/PushTopic",
        {
            "Name": config.push_topic,
            "Query": query_of(config, description),
            "ApiVersion": float(config.api_version),
            "NotifyForFields": "All",
            "NotifyForOperationCreate": config.notify_create,
            "NotifyForOperationUpdate": config.notify_update,
            "NotifyForOperationDelete": config.notify_delete,
            "NotifyForOperationUndelete": config.notify_undelete,
        },
    )


class PushTopicSourceTask(ChannelTask[PushTopicSourceConfig]):
    """Follows one push topic through the Streaming API."""

    def dataset(self, topic: str) -> Dataset | None:
        del topic
        return self.config.dataset(self.config.object_name)

    def start(self) -> None:
        client = SalesforceClient(self.config)
        self.resources.callback(client.close)
        description = client.describe(self.config.object_name)
        if not find(self.config, client):
            create(self.config, client, description)
        self._schema = object_schema(self.config.object_name, description["fields"])
        self.follow(client, f"/topic/{self.config.push_topic}", {"pushTopic": self.config.push_topic})

    def read(self, event: Mapping[str, Any], before: int) -> Iterable[Placed]:
        about, fields = event["event"], event["sobject"]
        value = {field.name: python_value(fields.get(field.name), field.schema) for field in self._schema.fields}
        value |= {OBJECT_TYPE: self.config.object_name, EVENT_TYPE: about["type"]}
        at = datetime.fromisoformat(about["createdDate"]) if about.get("createdDate") else None
        record = Record(
            self.config.topic_of(value),
            value,
            self._schema,
            key=fields["Id"],
            key_schema=_KEY,
            timestamp_ms=None if at is None else int(at.timestamp() * 1000),
        )
        yield Placed(record, {OFFSET: int(about["replayId"])})


class PushTopicSource(SourceConnector[PushTopicSourceConfig]):
    """Writes a push topic's notifications to topics; one task, at least once."""

    config_class = PushTopicSourceConfig
    task_class = PushTopicSourceTask

    @classmethod
    def check(cls, config: PushTopicSourceConfig) -> Iterable[Problem]:
        """Log in, and check the object and the push topic, which is only created at the start."""

        def look(client: SalesforceClient) -> None:
            description = client.describe(config.object_name)
            if not find(config, client):
                query_of(config, description)

        return problems_of(config, "salesforce.object", look)
