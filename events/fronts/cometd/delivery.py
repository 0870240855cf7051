"""The events for CometD clients. The JSON of each event is made once, however many clients get it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from prometheus_client import Counter

from events.bus.bus import Event, Subscription
from events.errors import BadEvent, InvalidReplayId, NotThere
from events.fronts.cometd.client import CometdClient
from events.limits.allowance import Allowance
from events.limits.errors import DeliveryLimitExceeded
from events.metrics import EventMetrics
from events.model.changes.schemas import ChangeEventSchema
from events.model.payloads import EventSchema
from events.store.catalog import Catalog
from tidegate.kit.http import json_bytes
from tidegate.kit.logs import get_logger

__all__ = ["Deliveries", "Need"]

logger = get_logger(__name__)

MAX_DELIVERED: Final = 200
"""The most events in one answer, over all channels."""
MAX_SHOWN: Final = 1000
"""The most encoded events kept for other clients."""


Need = Callable[[], Awaitable[None]]
"""A coroutine to wait for; raises BusUnavailable."""
_Place = tuple[str, str, int, str]
"""Channel, topic identity, replay id and uuid of an event, because a recreated topic reuses replay ids."""


class Deliveries:
    """Takes events from clients' subscriptions and encodes them as messages."""

    def __init__(
        self,
        catalog: Catalog,
        metrics: EventMetrics,
        allowance: Allowance,
        forget: Callable[[CometdClient, str], None],
    ) -> None:
        """``forget`` ends a client's session with advice on what to do next."""
        self._catalog, self._metrics, self._allowance, self._forget = catalog, metrics, allowance, forget
        self._shown: dict[_Place, bytes] = {}
        self._counters: dict[str, Counter] = {}

    def take(self, client: CometdClient) -> tuple[list[bytes], Need | None]:
        """The next events of all subscriptions. If there are none, also what to wait for until there may be some.

        Raises DeliveryLimitExceeded if there are events but none may be delivered.
        """
        messages: list[bytes] = []
        for channel, subscription in tuple(client.subscriptions.items()):
            if not subscription.available:
                continue
            left = self._allowance.left
            if not left and not messages:
                raise DeliveryLimitExceeded
            try:
                taken = subscription.take_now(min(MAX_DELIVERED - len(messages), left))
            except InvalidReplayId:
                # it will handshake and subscribe again, and then learn whether its replay id is valid
                self._forget(client, "handshake")
                break
            if taken is None:
                need: Need | None = subscription.read_ahead
            else:
                need = self._show_all(channel, subscription, taken, messages)
            if need is not None:
                return messages, None if messages else need
        return messages, None

    def _show_all(
        self, channel: str, subscription: Subscription, taken: list[Event], messages: list[bytes]
    ) -> Need | None:
        """Add the messages of events. Those from the first unknown schema on have to be taken again."""
        need: Need | None = None
        before = len(messages)
        for event in taken:
            key = (channel, subscription.identity, event.replay_id, event.uuid)
            shown = self._shown.get(key)
            if shown is None:
                schema = self._catalog.known_schema(event.schema_id)
                if schema is None:
                    subscription.rewind(event.replay_id)
                    need = partial(self._learn, key, subscription.topic, event)
                    break
                shown = self._show(channel, subscription.topic, event, schema)
                self._keep(key, shown)
            if shown:
                messages.append(shown)
        self._allowance.add(len(messages) - before)
        self._count(subscription.topic, len(messages) - before)
        return need

    def _count(self, topic: str, number: int) -> None:
        counter = self._counters.get(topic)
        if counter is None:
            counter = self._counters[topic] = self._metrics.delivered.labels(topic, "cometd")
        counter.inc(number)

    async def _learn(self, key: _Place, topic: str, event: Event) -> None:
        try:
            await self._catalog.any_schema(event.schema_id)
        except (NotThere, BadEvent) as error:
            self._cannot_show(topic, event, error)
            self._keep(key, b"")

    def _keep(self, key: _Place, shown: bytes) -> None:
        if len(self._shown) >= MAX_SHOWN:
            self._shown.clear()
        self._shown[key] = shown

    def _show(self, channel: str, topic: str, event: Event, schema: EventSchema | ChangeEventSchema) -> bytes:
        """The message of an event; empty, with a log message, if it can't be represented as JSON."""
        try:
            payload = schema.to_json(event.payload, timestamp_ms=event.timestamp_ms)
        except BadEvent as error:
            self._cannot_show(topic, event, error)
            return b""
        position: dict[str, Any] = {"replayId": event.replay_id}
        if isinstance(schema, EventSchema):
            position |= {"EventUuid": event.uuid, "EventApiName": schema.definition.name}
        data = {"schema": str(event.schema_id), "payload": payload, "event": position}
        return json_bytes({"channel": channel, "data": data})

    def _cannot_show(self, topic: str, event: Event, error: Exception) -> None:
        self._metrics.skipped.labels(topic).inc()
        logger.warning("an event cannot be shown as JSON", topic=topic, offset=event.replay_id, error=str(error))
