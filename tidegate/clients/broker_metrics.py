"""Counts from the broker's metrics."""

from __future__ import annotations

from typing import Final

import requests

from tidegate.clients.credentials import Credentials

__all__ = ["records_in"]

_MESSAGES_IN: Final = "kafka_server_brokertopicmetrics_messagesinpersec "
_TIMEOUT_S: Final = 5.0


def records_in(url: str, credentials: Credentials) -> float | None:
    """How many records the broker has appended since it started; None if it does not answer."""
    with requests.Session() as session:
        credentials.enter(session)
        try:
            text = session.get(url, timeout=_TIMEOUT_S).text
        except requests.RequestException:
            return None
    line = next((line for line in text.splitlines() if line.startswith(_MESSAGES_IN)), None)
    return None if line is None else float(line.removeprefix(_MESSAGES_IN))
