"""Default values of event fields: the constant formulas in ``defaultValue`` of Salesforce metadata.

Supported are quoted text, a number, ``TODAY()`` and ``NOW()`` with days added or subtracted, ``DATE(y, m, d)``,
``DATEVALUE("...")`` and ``DATETIMEVALUE("...")``, as far as they fit the field's type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Final

from events.errors import InvalidDefinition

__all__ = ["Default", "parse", "text_formula"]

Default = Callable[[int], str | float | int]
"""The value in the field's Avro type, for an event published at this time (milliseconds since 1970)."""

_DAY_MS: Final = 86_400_000
_NUMBER: Final = r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})"
_TEXT: Final = re.compile(r"""(?P<mark>["'])(?P<inner>(?:\\.|(?!(?P=mark)|\\).)*)(?P=mark)""", re.DOTALL)
_FROM_NOW: Final = re.compile(rf"(TODAY|NOW)\(\s*\)\s*(?:([+-])\s*({_NUMBER}))?", re.IGNORECASE)
_DATE: Final = re.compile(r"DATE\(\s*(\d{1,4})\s*,\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)", re.IGNORECASE)
_DATE_VALUE: Final = re.compile(r"""DATE(TIME)?VALUE\(\s*["']([0-9 T:.Z-]{1,30})["']\s*\)""", re.IGNORECASE)
_FORMS: Final = {
    "Text": "a text in quotes",
    "LongTextArea": "a text in quotes",
    "Number": "a number",
    "Date": 'TODAY(), TODAY() + 7, DATE(2026, 1, 31) or DATEVALUE("2026-01-31")',
    "DateTime": 'NOW(), NOW() - 0.5 or DATETIMEVALUE("2026-01-31 12:00:00")',
}


def text_formula(value: str) -> str:
    """The formula for a text."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse(kind: str, formula: str, *, field: str) -> Default:
    """The default of a formula for a field of type ``kind`` (its metadata name). Raises InvalidDefinition."""
    formula = formula.strip()
    made = None
    if kind in ("Text", "LongTextArea"):
        made = _text(formula)
    elif kind == "Number" and re.fullmatch(_NUMBER, formula):
        made = _constant(float(formula))
    elif kind == "Date":
        made = _from_now(formula, "TODAY") or _day(formula)
    elif kind == "DateTime":
        made = _from_now(formula, "NOW") or _moment(formula)
    if made is None:
        raise InvalidDefinition(
            f"Field {field}: default value {formula[:100]!r} is not one that {kind} fields can have here; "
            f"{_FORMS.get(kind, 'true or false')} can be one",
            fields=(field,),
        )
    return made


def _constant(value: str | float) -> Default:
    return lambda _: value


def _text(formula: str) -> Default | None:
    match = _TEXT.fullmatch(formula)
    if match is None:
        return None
    plain = {"n": "\n", "r": "\r", "t": "\t"}
    return _constant(re.sub(r"\\(.)", lambda m: plain.get(m[1], m[1]), match["inner"], flags=re.DOTALL))


def _from_now(formula: str, function: str) -> Default | None:
    match = _FROM_NOW.fullmatch(formula)
    if match is None or match[1].upper() != function:
        return None
    days = float(match[3] or 0) * (-1 if match[2] == "-" else 1)
    if not math.isfinite(days) or abs(days) > 400_000:
        return None
    if function == "TODAY":
        return lambda now_ms: (now_ms // _DAY_MS + int(days)) * _DAY_MS
    return lambda now_ms: now_ms + round(days * _DAY_MS)


def _day(formula: str) -> Default | None:
    match, said = _DATE.fullmatch(formula), _DATE_VALUE.fullmatch(formula)
    try:
        if match is not None:
            day = date(int(match[1]), int(match[2]), int(match[3]))
        elif said is not None and not said[1]:
            day = date.fromisoformat(said[2])
        else:
            return None
    except ValueError:
        return None
    return _constant((day - date(1970, 1, 1)).days * _DAY_MS)


def _moment(formula: str) -> Default | None:
    said = _DATE_VALUE.fullmatch(formula)
    if said is None or not said[1]:
        return None
    try:
        moment = datetime.fromisoformat(said[2])
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _constant(round(moment.timestamp() * 1000))
