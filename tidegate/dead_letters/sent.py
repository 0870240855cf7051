"""Which letters of a queue were sent back: a committed offset, with the gaps before it as its metadata string."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from tidegate.kit.errors import UsageError

__all__ = ["NOTHING", "Sent", "read", "written"]

_LONGEST_NOTE: Final = 4096
"""Kafka's default of ``offset.metadata.max.bytes``."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The letters of a partition that were sent back: all before ``position``, except those in ``gaps``."""

    position: int = 0
    gaps: tuple[tuple[int, int], ...] = ()
    """First offset and end of each, in order."""
    at_ms: int = 0
    """When letters were sent back last; 0 if never, or if that is not known."""

    @property
    def first_open(self) -> int:
        return self.gaps[0][0] if self.gaps else self.position

    def __contains__(self, offset: int) -> bool:
        return offset < self.position and not any(begin <= offset < end for begin, end in self.gaps)

    def having(self, begin: int, end: int, at_ms: int) -> Sent:
        """The same with the offsets from ``begin`` to before ``end``, and with this time."""
        if begin >= end:
            return self
        gaps = [*self.gaps, *([(self.position, begin)] if begin > self.position else [])]
        parts = [part for first, after in gaps for part in ((first, min(after, begin)), (max(first, end), after))]
        left = tuple(dict.fromkeys(part for part in parts if part[0] < part[1]))
        return Sent(max(self.position, end), left, at_ms)

    def within(self, start: int, end: int) -> Sent:
        """The same for a log with these ends; of a log that ends before the position, which is another one, nothing."""
        if self.position > end:
            return Sent(start)
        gaps = tuple((max(first, start), after) for first, after in self.gaps if after > start)
        return Sent(max(self.position, start), gaps, self.at_ms)


def written(first: Sent, again: Sent) -> tuple[int, str]:
    """The offset to commit and its metadata string. Raises UsageError for more gaps than fit."""
    document = {"gaps": _text(first), "again": again.position, "again_gaps": _text(again), "at": first.at_ms}
    note = json.dumps(document | {"again_at": again.at_ms}, separators=(",", ":"))
    if len(note) > _LONGEST_NOTE:
        raise UsageError(
            f"{len(first.gaps) + len(again.gaps)} gaps between letters that are sent back are too many to note: send those in "
            "between first, or give --skip-others"
        )
    return first.position, note


def read(position: int, note: str) -> tuple[Sent, Sent]:
    """The offsets that were sent the first time and again, from a committed offset with its metadata string.

    An unknown string says nothing.
    """
    try:
        document = json.loads(note)
        first = Sent(position, _gaps(document["gaps"]), int(document["at"]))
        return first, Sent(int(document["again"]), _gaps(document["again_gaps"]), int(document["again_at"]))
    except (ValueError, KeyError, TypeError):
        return Sent(position), NOTHING


def _text(sent: Sent) -> str:
    return ",".join(f"{first}-{end - 1}" if end - first > 1 else str(first) for first, end in sent.gaps)


def _gaps(text: str) -> tuple[tuple[int, int], ...]:
    pairs = [part.partition("-") for part in text.split(",") if part]
    return tuple((int(first), int(last or first) + 1) for first, _, last in pairs)


NOTHING: Final = Sent()
