"""The members of a large JSON object one by one, so that it is never in memory as a whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["members"]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


def members(text: str, within: str | None = None, at: int = 0) -> Iterator[tuple[str, Any]]:
    """Name and value of each member of the object that begins at a position of a text, or of its member ``within``.

    Raises ValueError for a text that is no JSON object.
    """
    at = _after(text, at, "{")
    while not text.startswith("}", at):
        name, at = _DECODER.raw_decode(text, at)
        at = _after(text, at, ":")
        if name == within and text.startswith("{", at):
            yield from members(text, at=at)
            return
        value, at = _DECODER.raw_decode(text, at)
        if within is None:
            yield name, value
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if text.startswith(",", at):
            at = _SPACE.match(text, at + 1).end()  # type: ignore[union-attr]


def _after(text: str, at: int, mark: str) -> int:
    """The position of what follows a character."""
    at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
    if not text.startswith(mark, at):
        raise ValueError(f"{mark} expected at character {at}")
    return _SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
