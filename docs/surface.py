"""Writes docs/reference/public-surface.txt anew: the names and signatures that docs/explanation/versioning.md makes promises about.

Run by ``make surface``. A test compares, so that a change of the public surface is a decision and not an accident.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from api_pages import PUBLIC_MODULES, surface  # noqa: E402

__all__ = ["PUBLIC_MODULES", "RECORDED", "differences", "surface"]

RECORDED: Final = HERE / "reference" / "public-surface.txt"


def differences() -> tuple[list[str], list[str]]:
    """The lines that are no longer there, and those that are new."""
    recorded = RECORDED.read_text().splitlines() if RECORDED.exists() else []
    current = surface().splitlines()
    return [line for line in recorded if line not in current], [line for line in current if line not in recorded]


def main() -> int:
    gone, new = differences()
    RECORDED.write_text(surface())
    for sign, lines in (("-", gone), ("+", new)):
        for line in lines:
            print(sign, line)
    if gone:
        print("Lines with - may break users: docs/explanation/versioning.md says how to deprecate them first.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
