"""Formats and parses dates for whole columns: the usual patterns with column arithmetic, others value by value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from connect.data.java.calendar import CUTOVER_DAY, MS_PER_DAY

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["format_column", "parse_column"]


class Part(Protocol):
    """A field or a literal of a pattern (see ``connect.data.java.date_format``)."""

    @property
    def letter(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def text(self) -> str: ...


_WIDTHS: Final = {"y": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 3}
"""Fields supported on columns, at the only width where no further cases have to be considered."""
_LAST_DAY: Final = 2_932_896
"""31 December 9999: later years need five digits."""


def format_column(parts: Sequence[Part], format_one: Callable[[int], str], times: pa.Array) -> pa.Array:
    """The texts of int64 milliseconds; ``format_one`` formats what columns do not support."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(times) == times.null_count:
        return pa.nulls(len(times), pa.string())
    bounds = pc.min_max(times).as_py()
    usual = all(part.text or _WIDTHS.get(part.letter) == part.width for part in parts)
    if not usual or bounds["min"] < CUTOVER_DAY * MS_PER_DAY or bounds["max"] >= (_LAST_DAY + 1) * MS_PER_DAY:
        return pa.array([None if ms is None else format_one(ms) for ms in times.to_pylist()], pa.string())
    stamps = times.cast(pa.timestamp("ms"))
    pieces: list[Any] = [
        part.text or pc.utf8_lpad(_FIELDS[part.letter](stamps).cast("string"), part.width, "0") for part in parts
    ]
    return pc.binary_join_element_wise(*pieces, "")


def _field(name: str) -> Callable[[pa.Array], pa.Array]:
    def field(stamps: pa.Array) -> pa.Array:
        import pyarrow.compute as pc

        return getattr(pc, name)(stamps)

    return field


_FIELDS: Final = {
    "y": _field("year"),
    "M": _field("month"),
    "d": _field("day"),
    "H": _field("hour"),
    "m": _field("minute"),
    "s": _field("second"),
    "S": _field("millisecond"),
}


def parse_column(
    parts: Sequence[Part], parse_one: Callable[[str], int | None], texts: pa.Array
) -> tuple[pa.Array, list[int]]:
    """Int64 milliseconds, and the rows whose text ``parse_one`` refuses too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parsed = _parsed(parts, texts)
    if parsed is not None:
        return parsed, []
    times: list[int | None] = []
    wrong: list[int] = []
    for row, text in enumerate(texts.to_pylist()):
        times.append(None if text is None else parse_one(text))
        if text is not None and times[-1] is None:
            wrong.append(row)
    return pc.cast(pa.array(times, pa.int64()), pa.int64()), wrong


def _parsed(parts: Sequence[Part], texts: pa.Array) -> pa.Array | None:
    """The times, if every text has the pattern's width and consists of ASCII digits and its literals."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    letters = [part.letter for part in parts if part.letter]
    usual = all(part.text or _WIDTHS.get(part.letter) == part.width for part in parts)
    if not usual or len(set(letters)) != len(letters) or texts.null_count == len(texts):
        return None
    pattern = "".join(re.escape(part.text) if part.text else f"[0-9]{{{part.width}}}" for part in parts)
    if not pc.all(pc.match_substring_regex(texts, f"^{pattern}$")).as_py():
        return None
    fields: dict[str, Any] = {}
    at = 0
    for part in parts:
        width = len(part.text) or part.width
        if part.letter:
            digits = pc.utf8_slice_codeunits(texts, at, at + width)
            fields[part.letter] = pc.fill_null(digits.cast(pa.int64()), 1970).to_numpy(zero_copy_only=False)
        at += width
    months = (fields.get("y", 1970) - 1970) * 12 + fields.get("M", 1) - 1
    first = np.asarray(months, "int64").astype("datetime64[M]").astype("datetime64[D]").astype("int64")
    days = first + fields.get("d", 1) - 1
    if np.ndim(days) == 0:
        days = np.full(len(texts), days)
    if (days[texts.is_valid().to_numpy(zero_copy_only=False)] < CUTOVER_DAY + 31).any():
        return None
    seconds = (fields.get("H", 0) * 60 + fields.get("m", 0)) * 60 + fields.get("s", 0)
    times = days * MS_PER_DAY + seconds * 1000 + fields.get("S", 0)
    return pc.if_else(texts.is_valid(), pa.array(times, pa.int64()), None)
