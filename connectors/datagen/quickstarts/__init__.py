"""Ready-made schemas, in the shapes of those that Confluent's connector has under these names: fields, types and what is the key.
The values are our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from connectors.datagen.quickstarts.basics import BASICS
from connectors.datagen.quickstarts.industries import INDUSTRIES
from connectors.datagen.quickstarts.shapes import Quickstart

__all__ = ["QUICKSTARTS", "Quickstart"]

QUICKSTARTS: Final[Mapping[str, Quickstart]] = dict(sorted({**BASICS, **INDUSTRIES}.items()))
