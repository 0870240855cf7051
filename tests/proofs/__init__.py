"""The proofs: properties shown under kills, faults and random input, in a short and a long form.

A proof is a test marked ``proof`` anywhere under tests/; how much it does comes from ``effort(short, long)``.
"""

from __future__ import annotations

import os
import random

__all__ = ["drawn_seed", "effort", "seeds"]


def effort(short: int, long: int) -> int:
    """How many seeds, rounds or seconds: the short form in CI, the long one under ``make proof``."""
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
    given = os.environ.get("TIDEGATE_SEEDS") or f"1-{effort(short, long)}"
    found: list[int] = []
    for part in given.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found
