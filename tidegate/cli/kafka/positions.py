"""``--from POSITION`` and its like: a position in a topic as an option's type."""

from __future__ import annotations

from typing import Any, Final

import click

from tidegate.kit.errors import UsageError
from tidegate.records.positions import Position, parse_position

__all__ = ["POSITION"]


class _PositionType(click.ParamType[Position]):
    name = "POSITION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Position:
        if isinstance(value, Position):
            return value
        try:
            return parse_position(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


POSITION: Final = _PositionType()
