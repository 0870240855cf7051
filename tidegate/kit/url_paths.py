"""Inserts values into the path of a URL so that they can't lead elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

__all__ = ["LeadsElsewhere", "with_values"]

_MARK: Final = "\ue000"
"""Precedes each value; percent-encoding never produces it."""


class LeadsElsewhere(ValueError):
    """A value would make a path segment that is empty or refers to another one (RFC 3986, 5.2.4)."""


def with_values(pieces: Iterable[tuple[str, bool]]) -> str:
    """A URL from its pieces: literal text, and values (True), which are percent-encoded.

    Raises LeadsElsewhere if a value would make an empty path segment, ``.`` or ``..``, which clients and servers
    remove: ``/customers/..`` is ``/``, and ``DELETE /customers/`` may delete all of them. The same applies to values
    that are not text.
    """
    try:
        marked = "".join(
            _MARK + quote(text, safe="") if is_value else text.replace(_MARK, "") for text, is_value in pieces
        )
    except UnicodeEncodeError as error:
        raise LeadsElsewhere(f"half a surrogate pair cannot be in an address: {error}") from error
    path = re.split(r"[?#]", marked, maxsplit=1)[0]
    behind_scheme = path.partition("://")[2] or path
    for segment in behind_scheme.split("/")[1:]:
        came_to = segment.replace(_MARK, "")
        if segment != came_to and came_to in ("", ".", ".."):
            raise LeadsElsewhere(f"{came_to!r} would be a segment of the path of {marked.replace(_MARK, '')}")
    return marked.replace(_MARK, "")
