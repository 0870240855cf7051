"""All scenarios: one module per family, one list."""

from __future__ import annotations

from itertools import chain
from typing import Final

from tests.conformance.differential.scenario import Scenario
from tests.conformance.differential.scenarios import (
    admin,
    cluster,
    configs,
    groups,
    modern_groups,
    records,
    security,
    share_data,
    topics,
    transactions,
)

__all__ = ["SCENARIOS"]

SCENARIOS: Final[tuple[Scenario, ...]] = tuple(
    chain.from_iterable(
        family.SCENARIOS
        for family in (
            cluster,
            topics,
            configs,
            records,
            groups,
            modern_groups,
            share_data,
            transactions,
            security,
            admin,
        )
    )
)
