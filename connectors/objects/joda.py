"""Time patterns for ``path.format``: the letters of Joda-Time that are used in paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

__all__ = ["format_time", "problem_of"]

_TOKEN: Final = re.compile(r"''|'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")


def _number(value: int, width: int) -> str:
    return str(value).zfill(width)


def _year(value: int, width: int) -> str:
    """Two letters mean the last two digits, in Joda as in Java."""
    return _number(value % 100, 2) if width == 2 else _number(value, width)


def _month(at: datetime, width: int) -> str:
    return _number(at.month, width) if width < 3 else at.strftime("%b" if width == 3 else "%B")


def _fraction(at: datetime, width: int) -> str:
    return f"{at.microsecond:06d}".ljust(width, "0")[:width]


def _offset(at: datetime, width: int) -> str:
    if width > 2:
        return str(at.tzinfo)
    sign, hours, minutes = (shown := at.strftime("%z"))[:1], shown[1:3], shown[3:]  # %:z came with Python 3.12
    return f"{sign}{hours}:{minutes}" if width == 2 else shown


_LETTERS: Final[Mapping[str, Callable[[datetime, int], str]]] = {
    "Y": lambda at, width: _year(at.year, width),
    "y": lambda at, width: _year(at.year, width),
    "x": lambda at, width: _year(at.isocalendar().year, width),
    "w": lambda at, width: _number(at.isocalendar().week, width),
    "e": lambda at, width: _number(at.isoweekday(), width),
    "E": lambda at, width: at.strftime("%a" if width < 4 else "%A"),
    "M": _month,
    "d": lambda at, width: _number(at.day, width),
    "D": lambda at, width: _number(at.timetuple().tm_yday, width),
    "a": lambda at, _: at.strftime("%p"),
    "H": lambda at, width: _number(at.hour, width),
    "k": lambda at, width: _number(at.hour or 24, width),
    "K": lambda at, width: _number(at.hour % 12, width),
    "h": lambda at, width: _number(at.hour % 12 or 12, width),
    "m": lambda at, width: _number(at.minute, width),
    "s": lambda at, width: _number(at.second, width),
    "S": _fraction,
    "Z": _offset,
}


def problem_of(pattern: str) -> str | None:
    """Why a pattern is invalid, None when it is valid."""
    left = _TOKEN.sub("", pattern)
    if left:
        return f"Illegal pattern {pattern!r}: a quote is not closed"
    for token in _TOKEN.finditer(pattern):
        if (letter := token[1]) is not None and letter not in _LETTERS:
            return f"Illegal pattern component: {token[0]}; known letters are {', '.join(_LETTERS)}"
    return None


def format_time(pattern: str, at: datetime) -> str:
    """Format a time. Literal text is in single quotes, ``''`` is one quote; names are in English."""

    def shown(token: re.Match[str]) -> str:
        text = token[0]
        if token[1] is not None:
            return _LETTERS[token[1]](at, len(text))
        if text == "''":
            return "'"
        return text[1:-1].replace("''", "'") if text.startswith("'") else text

    return _TOKEN.sub(shown, pattern)
