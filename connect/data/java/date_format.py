"""Java's SimpleDateFormat: its patterns, its lenient parsing, in UTC with English names.

Source: the class documentation of java.text.SimpleDateFormat and java.util.GregorianCalendar. Week fields (Y, w, W, F,
u) can be written but not read.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from connect.data.java.calendar import MS_PER_DAY, civil, day_number, day_of_week, day_of_year

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DateFormat", "date_format"]

_LETTERS: Final = "GyYMLwWDdFEuaHkKhmsSzZX"
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ZONES: Final = {
    "UTC": 0, "GMT": 0, "UT": 0, "Z": 0, "EST": -300, "EDT": -240, "CST": -360, "CDT": -300, "MST": -420, "MDT": -360,
    "PST": -480, "PDT": -420, "CET": 60, "CEST": 120, "BST": 60, "JST": 540,
    "Coordinated Universal Time": 0, "Greenwich Mean Time": 0,
}  # fmt: skip
_OFFSET: Final = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?")


class _Part(NamedTuple):
    """A field (``letter`` repeated ``width`` times), or literal ``text``."""

    letter: str
    width: int
    text: str = ""


@lru_cache(maxsize=100)
def date_format(pattern: str) -> DateFormat:
    """The format of a pattern, cached. Raises ValueError for a pattern that is invalid in Java too."""
    return DateFormat(pattern)


class DateFormat:
    """Times are milliseconds since the epoch, of any size. Thread-safe."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.parts = tuple(_parts(pattern))

    # -- writing

    def format(self, ms: int) -> str:
        """The text of a time."""
        day, in_day = divmod(ms, MS_PER_DAY)
        return "".join(part.text or _written(part, day, in_day) for part in self.parts)

    def format_column(self, times: pa.Array) -> pa.Array:
        """The texts of an int64 column, null where it is. Columnar for times in the Gregorian calendar."""
        from connect.data.java.date_columns import format_column

        return format_column(self.parts, self.format, times)

    # -- reading

    def parse(self, text: str) -> int | None:
        """The time at the beginning of a text; None if the text does not match the pattern."""
        fields: dict[str, int] = {}
        at = 0
        for number, part in enumerate(self.parts):
            if part.text:
                for letter in part.text:
                    if text[at : at + 1] != letter:
                        return None
                    at += 1
                continue
            following = self.parts[number + 1] if number + 1 < len(self.parts) else None
            adjacent = following is not None and not following.text
            read = _read(part, text, at, fields, bounded=adjacent)
            if read is None:
                return None
            at = read
        return _resolved(fields)

    def parse_column(self, texts: pa.Array) -> tuple[pa.Array, list[int]]:
        """The times of a string column, and the rows whose text does not match the pattern (null there)."""
        from connect.data.java.date_columns import parse_column

        return parse_column(self.parts, self.parse, texts)


def _parts(pattern: str) -> list[_Part]:
    parts: list[_Part] = []
    at = 0

    def literal(text: str) -> None:
        if parts and parts[-1].text:
            parts[-1] = _Part("", 0, parts[-1].text + text)
        else:
            parts.append(_Part("", 0, text))

    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            end = at + 1
            quoted = ""
            if pattern[end : end + 1] == "'":
                literal("'")
                at += 2
                continue
            while True:
                close = pattern.find("'", end)
                if close < 0:
                    raise ValueError("Unterminated quote")
                quoted += pattern[end:close]
                if pattern[close + 1 : close + 2] != "'":
                    break
                quoted += "'"
                end = close + 2
            literal(quoted)
            at = close + 1
        elif letter.isascii() and letter.isalpha():
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            end = at
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            if letter == "X" and end - at > 3:
                raise ValueError(f"invalid ISO 8601 format: length={end - at}")
            parts.append(_Part(letter, end - at))
            at = end
        else:
            literal(letter)
            at += 1
    return [part for part in parts if part.text or part.letter]


def _written(part: _Part, day: int, in_day: int) -> str:
    letter, count = part.letter, part.width
    date = civil(day)
    era_year = date.year if date.year > 0 else 1 - date.year
    if letter in "yY":
        year = era_year if letter == "y" else _week_year(day)
        return f"{year % 100:02d}" if count == 2 else f"{year:0{count}d}"
    if letter in "ML":
        if count >= 3:
            return _MONTHS[date.month - 1][: None if count >= 4 else 3]
        return f"{date.month:0{count}d}"
    if letter == "E":
        return _DAYS[day_of_week(day)][: None if count >= 4 else 3]
    if letter == "G":
        return "AD" if date.year > 0 else "BC"
    if letter == "a":
        return "AM" if in_day < MS_PER_DAY // 2 else "PM"
    if letter == "z":
        return "Coordinated Universal Time" if count >= 4 else "UTC"
    if letter == "Z":
        return "+0000"
    if letter == "X":
        return "Z"
    return f"{_number(letter, day, in_day):0{count}d}"


def _number(letter: str, day: int, in_day: int) -> int:
    hour = in_day // 3_600_000
    match letter:
        case "d":
            return civil(day).day
        case "D":
            return day_of_year(day)
        case "H":
            return hour
        case "k":
            return hour or 24
        case "K":
            return hour % 12
        case "h":
            return hour % 12 or 12
        case "m":
            return in_day // 60_000 % 60
        case "s":
            return in_day // 1000 % 60
        case "S":
            return in_day % 1000
        case "u":
            return day_of_week(day) or 7
        case "F":
            return (civil(day).day - 1) // 7 + 1
        case "W":
            return (civil(day).day - 1 + day_of_week(day - civil(day).day + 1)) // 7 + 1
    return _week(day)[1]


def _week(day: int) -> tuple[int, int]:
    """Year and number of the week as in the United States: from Sunday; the first one contains 1 January."""
    year = civil(day).year
    following = day_number(year + 1, 1, 1)
    if day >= following - day_of_week(following):
        return year + 1, 1
    first = day_number(year, 1, 1)
    return year, (day - first + day_of_week(first)) // 7 + 1


def _week_year(day: int) -> int:
    return _week(day)[0]


def _read(part: _Part, text: str, at: int, fields: dict[str, int], *, bounded: bool) -> int | None:
    """Read one field into ``fields``. Returns the position after it, or None."""
    while text[at : at + 1] in (" ", "\t") and at < len(text):
        at += 1
    letter = part.letter
    if letter in "zZX":
        return _read_zone(part, text, at, fields)
    if letter == "G":
        return _read_name(text, at, ("BC", "AD"), "G", fields)
    if letter == "a":
        return _read_name(text, at, ("AM", "PM"), "a", fields)
    if letter == "E":
        names = (*_DAYS, *(name[:3] for name in _DAYS))
        return _read_name(text, at, names, "E", fields)
    if letter in "ML" and part.width >= 3:
        names = (*_MONTHS, *(name[:3] for name in _MONTHS))
        end = _read_name(text, at, names, "M", fields)
        if end is not None:
            fields["M"] = fields["M"] % 12 + 1
        return end
    if letter in "YwWFu":
        return None
    limit = at + part.width if bounded else len(text)
    matched = re.compile(r"-?\d+").match(text, at, limit)
    if matched is None:
        return None
    digits = matched.group()
    value = int(digits)
    if letter == "y" and part.width <= 2 and len(digits) == 2 and digits.isdigit():
        value = _full_year(value)
    letter = "M" if letter == "L" else letter
    fields.pop(letter, None)
    fields[letter] = value
    return matched.end()


def _full_year(two_digits: int) -> int:
    """The year of two digits, from 80 years ago to 19 years from now."""
    first = time.gmtime().tm_year - 80
    return first + (two_digits - first) % 100


def _read_name(text: str, at: int, names: tuple[str, ...], letter: str, fields: dict[str, int]) -> int | None:
    rest = text[at:].lower()
    matching = [name for name in names if rest.startswith(name.lower())]
    if not matching:
        return None
    longest = max(matching, key=len)
    fields[letter] = names.index(longest)
    return at + len(longest)


def _read_zone(part: _Part, text: str, at: int, fields: dict[str, int]) -> int | None:
    if part.letter == "X" and text[at : at + 1] == "Z":
        fields["z"] = 0
        return at + 1
    matched = _OFFSET.match(text, at)
    if matched is not None and not (part.letter == "X" and part.width > 1 and matched[3] is None):
        minutes = int(matched[2]) * 60 + int(matched[3] or 0)
        fields["z"] = minutes if matched[1] == "+" else -minutes
        return matched.end()
    if part.letter == "X":
        return None
    named = [name for name in _ZONES if text[at : at + len(name)].lower() == name.lower()]
    if not named:
        return None
    longest = max(named, key=len)
    fields["z"] = _ZONES[longest]
    return at + len(longest)


def _resolved(fields: dict[str, int]) -> int:
    """The time of the fields. If two fields conflict, the one read last wins."""
    year = fields.get("y", 1970)
    if fields.get("G") == 0:
        year = 1 - year
    order = list(fields)
    by_day_of_year = "D" in fields and ("d" not in fields or order.index("D") > order.index("d"))
    if by_day_of_year:
        day = day_number(year, 1, 1) + fields["D"] - 1
    else:
        day = day_number(year, fields.get("M", 1), fields.get("d", 1))
    hour = fields.get("H", fields["k"] % 24 if fields.get("k") == 24 else fields.get("k", 0))
    for letter in ("h", "K"):
        if letter in fields and not {"H", "k"} & set(order[order.index(letter) :]):
            half = 0 if letter == "h" and fields[letter] == 12 else fields[letter]
            hour = half + 12 * fields.get("a", 0)
    minutes = hour * 60 + fields.get("m", 0) - fields.get("z", 0)
    return day * MS_PER_DAY + minutes * 60_000 + fields.get("s", 0) * 1000 + fields.get("S", 0)
