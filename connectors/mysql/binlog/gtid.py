"""Sets of global transaction ids: MySQL's (intervals per server uuid) and MariaDB's (the last of each domain)."""

from __future__ import annotations

import re
from typing import Final, Protocol

from connect.api import ConnectError, JavaRegex

__all__ = ["GtidSet", "MariaDbGtids", "MySqlGtids", "gtid_set"]

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class GtidSet(Protocol):
    """The transactions that a server has executed or a connector has read.

    Converted to text it has the form used in offsets and server variables.
    """

    def add(self, gtid: str) -> None: ...

    def within(self, other: GtidSet) -> bool:
        """Whether ``other`` contains all of this set."""
        ...


class MariaDbGtids:
    """For each domain, the server and the sequence number of its last transaction."""

    def __init__(self, text: str = "") -> None:
        """Raises ConnectError for an invalid text."""
        self.positions: dict[int, tuple[int, int]] = {}
        for part in filter(None, (p.strip() for p in text.replace("\n", "").split(","))):
            self.add(part)

    def add(self, gtid: str) -> None:
        try:
            domain, server, sequence = (int(part) for part in gtid.split("-"))
        except ValueError:
            raise ConnectError(f"{gtid!r} is no GTID of MariaDB's: they are domain-server-sequence") from None
        known = self.positions.get(domain)
        if known is None or known[1] <= sequence:
            self.positions[domain] = (server, sequence)

    def within(self, other: GtidSet) -> bool:
        if not isinstance(other, MariaDbGtids):
            return False
        return all(sequence <= other.positions.get(d, (0, -1))[1] for d, (_, sequence) in self.positions.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MariaDbGtids) and self.positions == other.positions

    def __hash__(self) -> int:
        return hash(str(self))

    def __bool__(self) -> bool:
        return bool(self.positions)

    def __str__(self) -> str:
        return ",".join(f"{d}-{server}-{sequence}" for d, (server, sequence) in sorted(self.positions.items()))


class MySqlGtids:
    """For each server uuid (with a tag where one is used), the intervals of transaction numbers; both ends are
    inclusive.
    """

    def __init__(self, text: str = "") -> None:
        """Raises ConnectError for an invalid text."""
        self.intervals: dict[str, list[tuple[int, int]]] = {}
        for part in filter(None, (p.strip() for p in text.replace("\n", "").split(","))):
            self._add_text(part)

    def _add_text(self, text: str) -> None:
        uuid, *parts = text.split(":")
        source = uuid.strip().lower()
        if not _UUID.fullmatch(source) or not parts:
            raise ConnectError(f"{text!r} is no GTID set of MySQL's: they are uuid:first-last:...")
        for part in parts:
            low, _, high = part.strip().partition("-")
            if not low.isdigit():
                source = f"{uuid.strip().lower()}:{low}"
                continue
            if high and not high.isdigit():
                raise ConnectError(f"{text!r} is no GTID set of MySQL's: {part!r} is no interval")
            self._join(source, int(low), int(high or low))

    def add(self, gtid: str) -> None:
        self._add_text(gtid)

    def _join(self, source: str, low: int, high: int) -> None:
        known = self.intervals.setdefault(source, [])
        if known and known[-1][1] + 1 == low:  # the usual case: the next transaction
            known[-1] = (known[-1][0], high)
            return
        merged: list[tuple[int, int]] = []
        for start, end in sorted([*known, (low, high)]):
            if merged and start <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        self.intervals[source] = merged

    def within(self, other: GtidSet) -> bool:
        if not isinstance(other, MySqlGtids):
            return False
        return all(
            any(low <= start and end <= high for low, high in other.intervals.get(source, ()))
            for source, intervals in self.intervals.items()
            for start, end in intervals
        )

    def retain(self, sources: JavaRegex | None, *, excluded: bool) -> MySqlGtids:
        """Only the transactions of servers that a pattern matches; of the others with ``excluded``."""
        made = MySqlGtids()
        for source, intervals in self.intervals.items():
            if sources is None or bool(sources.fullmatch(source)) is not excluded:
                made.intervals[source] = list(intervals)
        return made

    def united(self, other: MySqlGtids) -> MySqlGtids:
        """The transactions that are in either set."""
        made = MySqlGtids(str(self))
        for source, intervals in other.intervals.items():
            for low, high in intervals:
                made._join(source, low, high)
        return made

    def encoded(self) -> bytes:
        """In the form that COM_BINLOG_DUMP_GTID requires. Tags need a later form of that command and are rejected."""
        if any(":" in source for source in self.intervals):
            raise ConnectError(
                "tagged GTIDs (MySQL 8.3 and later) cannot be asked for: set gtid.source.includes, or read by file and position"
            )
        made = [len(self.intervals).to_bytes(8, "little")]
        for source, intervals in self.intervals.items():
            made += [bytes.fromhex(source.replace("-", "")), len(intervals).to_bytes(8, "little")]
            for low, high in intervals:
                made += [low.to_bytes(8, "little"), (high + 1).to_bytes(8, "little")]
        return b"".join(made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MySqlGtids) and self.intervals == other.intervals

    def __hash__(self) -> int:
        return hash(str(self))

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __str__(self) -> str:
        return ",".join(
            source + "".join(f":{low}-{high}" for low, high in intervals)
            for source, intervals in sorted(self.intervals.items())
        )


def gtid_set(text: str, *, mariadb: bool) -> MariaDbGtids | MySqlGtids:
    return MariaDbGtids(text) if mariadb else MySqlGtids(text)
