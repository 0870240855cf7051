"""Memory of a process that copies many records: buffers of megabytes that are freed and needed again at once."""

from __future__ import annotations

import ctypes
from typing import Final

__all__ = ["keep_buffers"]

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_BYTES: Final = 64 * 1024 * 1024


def keep_buffers() -> None:
    """Have glibc keep freed buffers of up to 32 MiB for the next one, 64 MiB in all, rather than return each to the system.

    Returning and getting them anew was a fifth of a backup's processor time (both thresholds set by environment). Other systems than glibc's stay as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _BYTES // 2)  # the most that it takes
        mallopt(_TRIM_THRESHOLD, _BYTES)
