"""Ready-made schemas with the names that Confluent's connector uses: the same fields, types and keys.

The values are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connectors.datagen.quickstarts.basics import BASICS
from connectors.datagen.quickstarts.industries import INDUSTRIES
from connectors.datagen.quickstarts.shapes import Quickstart

__all__ = ["QUICKSTARTS", "Quickstart"]

QUICKSTARTS: Final[Mapping[str, Quickstart]] = dict(sorted({**BASICS, **INDUSTRIES}.items()))
