"""Groups messages of errors that differ only in numbers: positions, offsets, ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

__all__ = ["common_message", "shape_of"]

_VARYING: Final = re.compile(
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"  # UUIDs
    r"|\b0x[0-9a-fA-F]+\b|(?<![\w.])-?\d+(?:\.\d+)*(?![\w.]*\w)"
)
"""The parts that differ between messages of one cause. Digits within a name (``col1``) do not."""


def shape_of(message: str) -> str:
    """The common part of messages of one cause."""
    return _VARYING.sub("\0", message)


def common_message(messages: Iterable[str]) -> str:
    """The message of one cause, with … for what differs."""
    split: list[Sequence[str]] = [_VARYING.split(message) for message in messages]
    varying = [_VARYING.findall(message) for message in messages]
    first = split[0]
    values = [{found[index] for found in varying} for index in range(len(first) - 1)]
    shown = [next(iter(value)) if len(value) == 1 else "…" for value in values]
    return first[0] + "".join(value + text for value, text in zip(shown, first[1:], strict=True))
