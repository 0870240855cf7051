"""Java's default calendar: Gregorian, and Julian before 15 October 1582."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CUTOVER_DAY", "MS_PER_DAY", "Civil", "civil", "day_number", "day_of_week", "day_of_year"]

MS_PER_DAY: Final = 86_400_000
CUTOVER_DAY: Final = -141_427
"""15 October 1582, in days since the epoch."""


class Civil(NamedTuple):
    """A date. Years before 1 continue backwards: 0 is 1 BC."""

    year: int
    month: int
    day: int


def civil(day: int) -> Civil:
    """The date of a number of days since the epoch."""
    if day < CUTOVER_DAY:
        return _julian_date(day)
    shifted = day + 719_468
    era, of_era = divmod(shifted, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    return _from_march(year_of_era + era * 400, of_year)


def _julian_date(day: int) -> Civil:
    era, of_era = divmod(day + 719_470, 1461)
    year_of_era = (of_era - of_era // 1460) // 365
    return _from_march(year_of_era + era * 4, of_era - 365 * year_of_era)


def _from_march(year: int, day_of_year: int) -> Civil:
    """A date from a year that begins in March and a day in it."""
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return Civil(year + (month >= 10), month + 3 if month < 10 else month - 9, day)


def day_number(year: int, month: int, day: int) -> int:
    """Days since the epoch. Months and days out of range carry over into other years and months."""
    more, month = divmod(month - 1, 12)
    year += more
    shifted = year - (month < 2)
    of_year = (153 * ((month + 10) % 12) + 2) // 5
    gregorian = shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + of_year - 719_468 + day - 1
    if gregorian >= CUTOVER_DAY:
        return gregorian
    return min(shifted * 365 + shifted // 4 + of_year - 719_470 + day - 1, CUTOVER_DAY - 1)


def day_of_week(day: int) -> int:
    """0 is Sunday."""
    return (day + 4) % 7


def day_of_year(day: int) -> int:
    """1 is the first of January."""
    return day - day_number(civil(day).year, 1, 1) + 1
