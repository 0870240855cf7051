"""The proofs: properties shown under kills, faults and random input, in a short and a long form.

A proof is a test marked ``proof`` anywhere under tests/; how much it does comes from ``effort(short, long)``.
"""

from __future__ import annotations

import os
import random
import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

__all__ = ["drawn_seed", "effort", "run_seeds", "seeds"]

_AT_ONCE: Final = 3
"""Most of a seed is waiting, for restarts and for groups to notice."""


def effort(short: int, long: int) -> int:
    """The number of seeds, rounds or seconds: the short form in CI, the long one under ``make proof``."""
    return long if _long() else short


def _long() -> bool:
    return os.environ.get("TIDEGATE_PROOF") == "long"


def drawn_seed() -> int:
    """The same seed with each short run, another one with each long run; printed, and shown with a failure. TIDEGATE_SEED gives one."""
    seed = int(os.environ.get("TIDEGATE_SEED") or (random.SystemRandom().randrange(10**6) if _long() else 1))
    print(f"seed {seed} (TIDEGATE_SEED={seed} runs it again)")
    return seed


def seeds(short: int, long: int) -> list[int]:
    """Which seeds a proof runs: 1 up to so many, or those of TIDEGATE_SEEDS, such as 3,7 or 1-20."""
    chosen = os.environ.get("TIDEGATE_SEEDS") or f"1-{effort(short, long)}"
    numbers: list[int] = []
    for part in chosen.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def run_seeds(
    run_seed: Callable[[int, Path], object], chosen: Sequence[int], folder: Path, record_property: Any
) -> None:
    """Run seeds beside each other (TIDEGATE_SEEDS_AT_ONCE says how many), each in a folder of its own, which stays where it fails.

    ``run_seed`` returns a description of its run. All seeds are run; raises AssertionError with the errors of those that failed.
    """

    def tried(seed: int) -> str | None:
        seed_folder, began = folder / str(seed), time.monotonic()
        try:
            done = run_seed(seed, seed_folder)
        except Exception:
            print(f"seed {seed} FAILED after {time.monotonic() - began:.0f} s", flush=True)
            return (
                f"seed {seed} (TIDEGATE_SEEDS={seed} runs it again; its logs: {seed_folder}):\n{traceback.format_exc()}"
            )
        print(f"seed {seed}: {time.monotonic() - began:.0f} s, {done}", flush=True)
        shutil.rmtree(seed_folder, ignore_errors=True)
        return None

    with ThreadPoolExecutor(int(os.environ.get("TIDEGATE_SEEDS_AT_ONCE") or _AT_ONCE)) as pool:
        wrong = [*filter(None, pool.map(tried, chosen))]
    record_property("seeds", len(chosen))
    assert not wrong, "\n".join(wrong)
