"""The position of a member's value in a JSON text, which Salesforce's JSON reader reports for an invalid value."""

from __future__ import annotations

import json
import re
from typing import Final

__all__ = ["offset_of"]

_BLANK: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


def offset_of(text: str, member: str) -> tuple[int, int] | None:
    """Line and column, from 1, of a member of the outermost object. The name is case-insensitive.

    For a duplicate name the last one counts, as in parsing. None if the text is not such an object.
    """
    offset = None
    try:
        at = _skip(text, 0)
        while text[at] in "{,":
            name, at = _DECODER.raw_decode(text, _skip(text, at + 1))
            begin = _skip(text, _skip(text, at) + 1)
            _, at = _DECODER.raw_decode(text, begin)
            if str(name).lower() == member.lower():
                offset = begin
            at = _skip(text, at)
    except (ValueError, IndexError, RecursionError):
        return None
    if offset is None:
        return None
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()
