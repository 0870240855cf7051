"""What stays on this machine between Sparks."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """``$TIDEGATE_CACHE``, else the user's cache folder."""
    folder = os.environ.get("TIDEGATE_CACHE")
    return Path(folder) if folder else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate"
