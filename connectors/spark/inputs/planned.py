"""The inputs that a load reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DELETED", "Planned"]

DELETED: Final = "__deleted"
"""The column of changes that says whether the row is gone."""


class Planned(NamedTuple):
    """The rows after a position, and the position after them. Of changes the frame has the column ``DELETED``."""

    frame: DataFrame
    position: Mapping[str, Any]
    """Text, numbers and booleans."""
    note: str
    more: bool = False
    """Whether there is more already, which the next load reads."""
