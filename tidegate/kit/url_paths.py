"""Values put into the path of an address, without leading elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

__all__ = ["LeadsElsewhere", "with_values"]

_MARK: Final = "\ue000"
"""Before each value; percent-encoding leaves none of them."""


class LeadsElsewhere(ValueError):
    """A value makes a segment of the path that is empty, or one that means another one (RFC 3986, 5.2.4)."""


def with_values(pieces: Iterable[tuple[str, bool]]) -> str:
    """An address from its pieces: literal text, and values (True), which are percent-encoded.

    Raises LeadsElsewhere where a value comes to an empty segment of the path, to ``.`` or to ``..``, which clients and servers
    take away: ``/customers/..`` is ``/``, and ``DELETE /customers/`` may be all of them. Likewise for what is no text.
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
