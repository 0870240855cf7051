"""The proofs: properties shown under kills, faults and random input, in a short and a long form.

A proof is a test marked ``proof`` anywhere under tests/; how much it does comes from ``effort(short, long)``.
"""

from __future__ import annotations

import os

__all__ = ["effort"]


def effort(short: int, long: int) -> int:
    """How many seeds, rounds or seconds: the short form in CI, the long one under ``make proof``."""
    return long if os.environ.get("TIDEGATE_PROOF") == "long" else short
