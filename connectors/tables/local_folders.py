"""Whether tables can be made in a folder of this machine, before the first one is."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["folder_problem"]


def folder_problem(location: str) -> str | None:
    """Why this user can't make a folder at a path or ``file:`` URL; None if nothing prevents it, or if it is elsewhere.

    Makes nothing: it looks at the nearest folder above that exists.
    """
    parts = urlsplit(location)
    if not location or parts.scheme not in ("", "file"):
        return None
    path = Path(unquote(parts.path))
    above = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    if not above.is_dir():
        return f"{path} can't be a folder: {above} is a file"
    if not os.access(above, os.W_OK | os.X_OK):
        return f"{path} can't be written to: the user {os.getuid()} of this process may not write to {above}"
    return None
