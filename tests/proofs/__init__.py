"""The proofs: properties shown under kills, faults and random input, in a short and a long form.

A proof is a test marked ``proof`` anywhere under tests/; how much it does comes from ``effort(short, long)``.
"""

from __future__ import annotations

import os
import random

__all__ = ["drawn_seed", "effort"]


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
