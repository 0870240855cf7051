"""Values of the internal topics: JSON without schemas, as written by Kafka Connect's JsonConverter."""

from __future__ import annotations

import json
from typing import Any

from tidegate.kit.logs import get_logger

__all__ = ["decoded", "encoded"]

logger = get_logger(__name__)


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decoded(data: bytes | None, topic: str, key: str) -> dict[str, Any] | None:
    """The object in a record's value; None for a tombstone, and for anything else, with a log message."""
    if data is None:
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        logger.warning("record of an internal topic left aside: its value is not a JSON object", topic=topic, key=key)
        return None
    return value
