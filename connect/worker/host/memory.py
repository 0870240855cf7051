"""The memory of a task host, and how it returns memory that its tasks no longer need."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Final

__all__ = ["give_back", "resident_bytes"]

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def give_back() -> None:
    """Return to the system what the allocators keep for later: after a task has ended, later may be never.

    Threads that read and convert leave much behind: measured with a sink's, a seventh of the process.
    """
    gc.collect()
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's; other systems have none and need none
    if trim is not None:
        trim(0)


def resident_bytes() -> int:
    """The memory of this process that is in use; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as pages:  # noqa: PTH123 - once a second, in every host
            return int(pages.read().split()[1]) * _PAGE_BYTES
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: the most it ever was, in bytes
