"""The Streaming API of an org of recorded responses: channels over Bayeux with Salesforce's replay extension."""

from __future__ import annotations

import json
import re
import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import requests
import responses

from tests.support.bulk_org import ORG

__all__ = ["StreamingOrg"]

Answer = tuple[int, dict[str, str], str]


class StreamingOrg:
    """Keeps events by channel; a subscriber gets those after its replay id. One subscription a client."""

    def __init__(self, mock: responses.RequestsMock) -> None:
        self.kept: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.subscribed: list[tuple[str, int]] = []
        self.channels: set[str] = set()
        self._clients: dict[str, tuple[str, int]] = {}
        self._grown = threading.Condition()
        self._next = 100
        self.drop_sessions = 0
        """The number of connects that find their session expired."""
        mock.add_callback(responses.POST, re.compile(rf"{ORG}/cometd/.*"), self._answer)

    def publish(self, channel: str, data: Mapping[str, Any]) -> int:
        """Publish ``data`` without its replay id; returns that id."""
        with self._grown:
            self._next += 3
            event = {**data.get("event", {}), "replayId": self._next}
            self.kept[channel].append({**data, "event": event})
            self._grown.notify_all()
            return self._next

    def forget(self, channel: str) -> None:
        """The time of all events on the channel is over."""
        self.kept[channel].clear()

    def _answer(self, request: requests.PreparedRequest) -> Answer:
        (message,) = json.loads(request.body or "")
        channel = message["channel"].rpartition("/")[2]
        answers = getattr(self, f"_{channel}")(message)
        return 200, {}, json.dumps([{"id": message["id"], "channel": message["channel"], **each} for each in answers])

    def _handshake(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        client = f"c{len(self._clients)}"
        self._clients[client] = ("", 0)
        return [{"successful": True, "clientId": client}]

    def _subscribe(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        channel = message["subscription"]
        replay_id = message["ext"]["replay"][channel]
        self.subscribed.append((channel, replay_id))
        kept = [event["event"]["replayId"] for event in self.kept[channel]]
        if self.channels and channel not in self.channels:
            return [
                {
                    "successful": False,
                    "error": f"404::The channel you requested to subscribe to does not exist {{{channel}}}",
                }
            ]
        if replay_id > 0 and (not kept or replay_id < min(kept)):
            words = f"400::The replayId {{{replay_id}}} you provided was invalid.  Please provide a valid ID"
            return [{"successful": False, "error": words}]
        after = {-1: self._next, -2: 0}.get(replay_id, replay_id)
        self._clients[message["clientId"]] = (channel, after)
        return [{"successful": True}]

    def _connect(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self.drop_sessions:
            self.drop_sessions -= 1
            return [{"successful": False, "error": "403::Unknown client", "advice": {"reconnect": "handshake"}}]
        channel, after = self._clients[message["clientId"]]
        with self._grown:
            events = self._after(channel, after)
            if not events:
                self._grown.wait(0.1)
                events = self._after(channel, after)
        if events:
            self._clients[message["clientId"]] = (channel, events[-1]["event"]["replayId"])
        return [*({"channel": channel, "data": event} for event in events), {"successful": True}]

    def _after(self, channel: str, replay_id: int) -> list[dict[str, Any]]:
        return [event for event in self.kept[channel] if event["event"]["replayId"] > replay_id]
