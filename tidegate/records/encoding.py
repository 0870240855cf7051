"""Values as ``tidegate.records.decoding`` shows them, as bytes."""

from __future__ import annotations

from typing import Any

from tidegate.records.decoding import raw_bytes
from tidegate.records.exact_json import json_text

__all__ = ["json_bytes", "text_bytes"]


def json_bytes(value: Any, text: str | None = None) -> bytes:
    """JSON, or the bytes of a value that was shown as base64. ``text`` is the JSON as it was read, if it is known.

    Raises ValueError for what is no JSON, such as NaN.
    """
    data = raw_bytes(value)
    return (json_text(value) if text is None else text).encode() if data is None else data


def text_bytes(value: Any, text: str | None = None) -> bytes:
    """A string without quotes, anything else as ``json_bytes``."""
    return value.encode() if isinstance(value, str) else json_bytes(value, text)
