"""Keys of the sources that follow a Streaming API channel, under the names of Confluent's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from connect.api import Problem, config, key, non_empty, one_of
from connectors.salesforce.config import SalesforceConfig

__all__ = ["ChangeSourceConfig", "EventSourceConfig", "PushTopicSourceConfig", "StreamingConfig"]

_FIELD: Final = re.compile(r"\$\{(\w+)\}")
_STANDARD: Final = "ChangeEvents"


@config
class StreamingConfig(SalesforceConfig):
    """Where events are written, and where reading begins."""

    topic: str = key(
        "kafka.topic",
        doc="The topic to write to; ${_ObjectType}, ${_EventType} and other fields of the record may stand in it.",
        importance="high",
        check=non_empty,
        group="Event",
    )
    topic_lowercase: bool = key(
        "kafka.topic.lowercase", default=True, doc="Write the topic's name in lower case.", group="Event"
    )
    initial_start: str = key(
        "salesforce.initial.start",
        default="latest",
        check=one_of("latest", "all"),
        doc="Where to begin without an offset: with new events, or with all that are kept.",
        importance="high",
        group="Event",
    )
    invalid_replay_id: str = key(
        "invalid.replay.id.behaviour",
        default="all",
        check=one_of("all", "latest"),
        doc="Where to go on when the org no longer keeps the event of the offset: all that is kept, or new events.",
        group="Event",
    )
    max_message_size: int | None = key(
        "connection.max.message.size",
        default=None,
        doc="Accepted, not used: an answer may be as large as Salesforce makes it.",
        importance="low",
        group="Event",
    )
    curl_logging: bool = key(
        "curl.logging",
        default=False,
        doc="Accepted, not used: nothing that holds an access token is logged.",
        importance="low",
        group="Event",
    )

    def topic_of(self, value: Mapping[str, Any]) -> str:
        """The topic of one record."""
        topic = self.topic
        if "${" in topic:
            topic = _FIELD.sub(lambda match: str(value.get(match[1])), topic)
        return topic.lower() if self.topic_lowercase else topic


@config
class EventSourceConfig(StreamingConfig):
    """Platform event source."""

    event: str = key(
        "salesforce.platform.event.name",
        doc="The platform event to subscribe to, such as Order_Shipped__e.",
        importance="high",
        check=lambda name: None if name.endswith("__e") else "must be the name of a platform event, which ends in __e",
        group="Event",
    )


def _is_change_channel(name: str) -> str | None:
    bare = name.removeprefix("/data/")
    if bare.endswith(("ChangeEvent", "__chn")) or bare == _STANDARD:
        return None
    return "must be the name of a change event (AccountChangeEvent, Order__ChangeEvent), of a channel (…__chn) or ChangeEvents"


@config
class ChangeSourceConfig(StreamingConfig):
    """Change data capture source."""

    channel: str = key(
        "salesforce.cdc.channel",
        aliases=("salesforce.cdc.name",),
        doc="The channel to subscribe to: AccountChangeEvent, ChangeEvents for all entities, or a channel of your own, York__chn.",
        importance="high",
        check=_is_change_channel,
        group="Event",
    )
    entities: list[str] = key(
        "salesforce.channel.entities",
        default=[],
        doc="Entities of a channel of several whose changes are written, such as Account or AccountChangeEvent; all when empty.",
        group="Event",
    )

    @property
    def path(self) -> str:
        return f"/data/{self.channel.removeprefix('/data/')}"

    @property
    def event(self) -> str | None:
        """The only change event of the channel; None for a channel with several."""
        return self.path.removeprefix("/data/") if self.path.endswith("ChangeEvent") else None


@config
class PushTopicSourceConfig(StreamingConfig):
    """PushTopic source."""

    object_name: str = key(
        "salesforce.object",
        doc="The object whose changes the push topic tells, such as Lead.",
        importance="high",
        check=non_empty,
        group="Event",
    )
    push_topic: str = key(
        "salesforce.push.topic.name",
        doc="The push topic to subscribe to.",
        importance="high",
        check=lambda name: None if 0 < len(name) <= 25 else "must have 1 to 25 characters, as Salesforce allows",
        group="Event",
    )
    create: bool = key(
        "salesforce.push.topic.create", default=True, doc="Create the push topic where there is none.", group="Event"
    )
    notify_create: bool = key(
        "salesforce.push.topic.notify.create", default=True, doc="Tell of created records.", group="Event"
    )
    notify_update: bool = key(
        "salesforce.push.topic.notify.update", default=True, doc="Tell of updated records.", group="Event"
    )
    notify_delete: bool = key(
        "salesforce.push.topic.notify.delete", default=True, doc="Tell of deleted records.", group="Event"
    )
    notify_undelete: bool = key(
        "salesforce.push.topic.notify.undelete", default=True, doc="Tell of undeleted records.", group="Event"
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if not (self.notify_create or self.notify_update or self.notify_delete or self.notify_undelete):
            yield Problem(
                "salesforce.push.topic.notify.create", "a push topic has to tell of something: set one to true"
            )
