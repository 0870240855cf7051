"""The server-side assignors, each a pure function (``spec.Assignor``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.groups.modern.assignors.ranges import assign_ranges
from broker.groups.modern.assignors.spec import Assignor
from broker.groups.modern.assignors.uniform import assign_uniformly

__all__ = ["CONSUMER_ASSIGNORS"]

CONSUMER_ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""The assignors of consumer groups, by the names that members request."""
