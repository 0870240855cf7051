"""How a process runs a service."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

_SERVICE: Final = """
import gc
from tidegate.kit.service import run

class Large:
    async def start(self):
        self.entries = [[] for _ in range(100_000)]
        return {}

    async def stop(self):
        print(gc.get_freeze_count() > 100_000, flush=True)

run(Large(), stop_with_stdin=True)
"""


def test_the_garbage_collector_does_not_look_at_what_a_service_started_with() -> None:
    """A full collection of an idle broker took 50 ms, in which nobody was answered."""
    done = subprocess.run([sys.executable, "-c", _SERVICE], stdin=subprocess.PIPE, capture_output=True, timeout=60)
    assert done.stdout.strip().endswith(b"True"), done
