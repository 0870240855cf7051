"""What CometD clients are shown of events; the JSON of each is made once, however many it is for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from events.bus import Event, Subscription
from events.catalog import Catalog
from events.errors import BadEvent, BusUnavailable, InvalidReplayId, NotThere
from events.fronts.cometd_client import CometdClient
from events.limits.allowance import Allowance
from events.limits.errors import DeliveryLimitExceeded
from events.metrics import EventMetrics
from events.payloads import EventSchema
from tidegate.kit.http import json_bytes
from tidegate.kit.logs import logger

__all__ = ["Deliveries"]

log = logger(__name__)

MAX_DELIVERED: Final = 200
"""Events in one answer, over all channels."""
MAX_SHOWN: Final = 1000
"""Events kept as they are shown, for the next client that is shown them."""


class Deliveries:
    """Takes events from clients' subscriptions, as the messages that clients are sent."""

    def __init__(
        self,
        catalog: Catalog,
        metrics: EventMetrics,
        allowance: Allowance,
        forget: Callable[[CometdClient, str], None],
    ) -> None:
        """``forget`` ends a client's session with the advice what to do next."""
        self._catalog, self._metrics, self._allowance, self._forget = catalog, metrics, allowance, forget
        self._shown: dict[tuple[str, int, str], bytes] = {}

    async def take(self, client: CometdClient) -> list[bytes]:
        """The next events of all subscriptions. Raises DeliveryLimitExceeded where there are some and none may be delivered."""
        found: list[bytes] = []
        for channel, subscription in list(client.subscriptions.items()):
            if not subscription.available:
                continue
            left = self._allowance.left
            if not left and not found:
                raise DeliveryLimitExceeded
            before = len(found)
            try:
                taken = await subscription.take(min(MAX_DELIVERED - before, left))
                self._allowance.add(len(taken))
                for event in taken:
                    shown = self._shown.get((channel, event.replay_id, event.uuid))
                    if shown is None:
                        shown = await self._show_or_rewind(channel, subscription, event)
                    if shown:
                        found.append(shown)
            except BusUnavailable as error:
                log.warning("cannot read events for a subscriber", channel=channel, error=str(error))
                asyncio.get_running_loop().call_later(1, client.wake.now)
            except InvalidReplayId:
                # it will shake hands and subscribe again, and hear then whether its replay id holds
                self._forget(client, "handshake")
                break
            finally:
                self._metrics.delivered.labels(subscription.topic, "cometd").inc(len(found) - before)
        return found

    async def _show_or_rewind(self, channel: str, subscription: Subscription, event: Event) -> bytes:
        """The message of an event; when it cannot be shown yet, the event and those after it are taken again next time."""
        try:
            shown = await self._show(channel, subscription.topic, event)
        except BusUnavailable:
            subscription.rewind(event.replay_id)
            raise
        if shown:
            if len(self._shown) >= MAX_SHOWN:
                self._shown.clear()
            self._shown[channel, event.replay_id, event.uuid] = shown
        return shown

    async def _show(self, channel: str, topic: str, event: Event) -> bytes:
        """The message of an event; empty, said aloud, for one that cannot be shown as JSON."""
        try:
            schema = await self._catalog.any_schema(event.schema_id)
            payload = schema.to_json(event.payload, timestamp_ms=event.timestamp_ms)
        except (NotThere, BadEvent) as error:
            self._metrics.skipped.labels(topic).inc()
            log.warning("an event cannot be shown as JSON", topic=topic, offset=event.replay_id, error=str(error))
            return b""
        position: dict[str, Any] = {"replayId": event.replay_id}
        if isinstance(schema, EventSchema):
            position |= {"EventUuid": event.uuid, "EventApiName": schema.definition.name}
        data = {"schema": str(event.schema_id), "payload": payload, "event": position}
        return json_bytes({"channel": channel, "data": data})
