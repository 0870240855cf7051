"""Salesforce-style ids: 15 case-sensitive letters and digits, or 18 case-insensitive ones."""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = ["long_id", "user_id"]

_SUFFIX: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"


def long_id(short: str) -> str:
    """The 18-character form of a 15-character id: three more letters encode which of its letters are capitals."""
    if len(short) == 18:
        return short
    groups = (short[:5], short[5:10], short[10:15])
    return short + "".join(_SUFFIX[sum(1 << i for i, c in enumerate(group) if "A" <= c <= "Z")] for group in groups)


def user_id(name: str) -> str:
    """The id of the user with this name. It is derived from the name, so that it is the same on every server."""
    number = int.from_bytes(hashlib.sha256(name.lower().encode(errors="replace")).digest()[:5])
    return long_id(f"005TG{number % 10**10:010d}")
