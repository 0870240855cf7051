"""A client of the Streaming API: Bayeux over long polling with Salesforce's replay extension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import requests

from connect.api import ConnectError, RetriableConnectError
from connectors.salesforce.client import SalesforceClient
from connectors.salesforce.errors import ReplayIdGone, translating
from tidegate.kit.requests_abort import abort

__all__ = ["StreamingClient"]

_GRACE_S: Final = 30
"""How much longer than the server's own timeout a connect may take before the connection counts as broken."""


class StreamingClient:
    """One subscription to one channel. For use from one thread, except ``abort``."""

    def __init__(self, client: SalesforceClient, version: str, channel: str) -> None:
        self._client, self._channel = client, channel
        self._path = f"/cometd/{version}"
        self._http = client.new_session()
        self._client_id = ""
        self._count = 0
        self._timeout_s = 110.0

    def subscribe(self, replay_id: int) -> None:
        """Handshake and subscribe: to events after ``replay_id``, or -1 for new ones, -2 for all that are kept.

        Raises ConnectError with the server's message when it refuses (an unknown channel); its subclass ReplayIdGone
        for a replay id that is no longer kept; RetriableConnectError when there is no response.
        """
        self._http.cookies.clear()
        hello = {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": ["long-polling"]}
        answer = self._one({**hello, "ext": {"replay": True}})
        self._client_id = str(answer["clientId"])
        message = {
            "channel": "/meta/subscribe",
            "subscription": self._channel,
            "ext": {"replay": {self._channel: replay_id}},
        }
        self._one(message)

    def events(self) -> list[Mapping[str, Any]]:
        """Wait for events and return their ``data``; an empty list when the server's timeout ended without events."""
        messages = self._send({"channel": "/meta/connect", "connectionType": "long-polling"})
        events = [message["data"] for message in messages if message.get("channel") == self._channel]
        for message in messages:
            if message.get("channel") == "/meta/connect":
                self._note_advice(message)
        return events

    def abort(self) -> None:
        """May be called from any thread: makes a waiting call end with an error."""
        abort(self._http)

    def close(self) -> None:
        self._http.close()

    def _note_advice(self, message: Mapping[str, Any]) -> None:
        advice = message.get("advice") or {}
        if "timeout" in advice:
            self._timeout_s = max(1.0, advice["timeout"] / 1000)
        if not message.get("successful", True):
            words = f"{self._channel}: the streaming session ended: {message.get('error')}"
            if str(message.get("error", "")).startswith("401"):
                self._client.forget_session()
            raise RetriableConnectError(words)  # subscribing again from the last replay id loses nothing

    def _one(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        for answer in self._send(message):
            if answer.get("channel") != message["channel"]:
                continue
            if answer.get("successful"):
                return answer
            self._refuse(message, answer)
        raise RetriableConnectError(f"no answer to {message['channel']} for {self._channel}")

    def _refuse(self, message: Mapping[str, Any], answer: Mapping[str, Any]) -> NoReturn:
        reason = (answer.get("ext") or {}).get("sfdc", {}).get("failureReason") or ""
        words = f"{message['channel']} for {self._channel} was refused: {answer.get('error')} {reason}".strip()
        if str(answer.get("error")).startswith("401") or reason.startswith("401"):
            self._client.forget_session()
            raise RetriableConnectError(words)
        if "replayId" in words and "invalid" in words:
            raise ReplayIdGone(words)
        raise ConnectError(words)

    def _send(self, message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        self._count += 1
        full = {**message, "id": str(self._count)} | ({"clientId": self._client_id} if self._client_id else {})
        if message["channel"] == "/meta/handshake":
            full.pop("clientId", None)
        with translating(f"streaming {self._channel}"):
            answer = self._http.post(
                self._client.instance_url + self._path,
                json=[full],
                headers={"Authorization": f"Bearer {self._client.session_id}"},
                timeout=self._timeout_s + _GRACE_S,
            )
        if answer.status_code == 401:
            self._client.forget_session()
            raise RetriableConnectError(f"streaming {self._channel}: the session has expired")
        if not answer.ok:
            raise RetriableConnectError(f"streaming {self._channel}: {answer.status_code} {answer.text[:200]}")
        try:
            messages: Sequence[Mapping[str, Any]] = answer.json()
        except requests.JSONDecodeError as error:
            raise RetriableConnectError(
                f"streaming {self._channel}: the answer is not JSON: {answer.text[:100]}"
            ) from error
        return messages
