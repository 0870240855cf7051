"""The actions of a flow: publish an event, send to a topic, call a URL, create a record in an org."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import requests

from events.flows.org import Org, OrgLogin
from events.flows.templates import FlowFailed, filled, filled_address
from events.triggers.api import TriggerContext, TriggerEvent

__all__ = ["Action", "Call", "Create", "Publish", "Send"]


class Action(Protocol):
    """Run once for each event that passes the flow's filter, in the order of the file."""

    def do(self, event: TriggerEvent, context: TriggerContext, key: str) -> None:
        """``key`` is always the same for the same action and event. Raises FlowFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Publish:
    event: str
    fields: Mapping[str, Any]

    def do(self, event: TriggerEvent, context: TriggerContext, key: str) -> None:
        context.publish(self.event, filled(self.fields, event))


@dataclass(frozen=True, slots=True)
class Send:
    """A record with a JSON value: ``value`` with fields filled in, or all of the event's fields."""

    topic: str
    key: Any = None
    value: Any = None

    def do(self, event: TriggerEvent, context: TriggerContext, key: str) -> None:
        record_key = None if self.key is None else str(filled(self.key, event)).encode()
        value = dict(event.fields) if self.value is None else filled(self.value, event)
        data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        context.send(self.topic, record_key, data.encode())


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP request. Any status but 2xx is a failure. Redirects are not followed."""

    url: str
    method: str = "POST"
    headers: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    timeout_s: float = 30

    def do(self, event: TriggerEvent, context: TriggerContext, key: str) -> None:
        url = filled_address(self.url, event)
        headers = {"Idempotency-Key": key, **{name: str(filled(text, event)) for name, text in self.headers.items()}}
        body = self.body
        if body is None and self.method not in ("GET", "DELETE"):
            sent: Any = {"event": event.name, "replayId": event.replay_id, "uuid": event.uuid, "fields": event.fields}
        else:
            sent = filled(body, event)
        content: dict[str, Any] = {"data": sent.encode()} if isinstance(sent, str) else {"json": sent}
        try:
            answer = requests.request(
                self.method, url, headers=headers, timeout=self.timeout_s, allow_redirects=False, **content
            )
        except requests.RequestException as error:
            raise FlowFailed(f"{self.method} {url}: no answer ({type(error).__name__})") from error
        if not 200 <= answer.status_code < 300:
            raise FlowFailed(f"{self.method} {url}: {answer.status_code} {answer.text[:300]}")


class Create:
    """A record in an org. There is one login per flow and partition."""

    def __init__(self, kind: str, fields: Mapping[str, Any], org: Mapping[str, Any]) -> None:
        self._kind, self._fields, self._settings = kind, fields, org
        self._org: Org | None = None

    def do(self, event: TriggerEvent, context: TriggerContext, key: str) -> None:
        if self._org is None:
            self._org = Org(OrgLogin(**filled(self._settings, event)))
        self._org.create(self._kind, filled(self._fields, event), key=key)
