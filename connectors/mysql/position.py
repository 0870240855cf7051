"""Positions in the log, in Debezium's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from connectors.mysql.binlog.gtid import MariaDbGtids, MySqlGtids

__all__ = ["Position", "place_number"]


@dataclass(slots=True)
class Position:
    """Where to continue, in Debezium's terms: the transaction that begins at ``file`` and ``pos`` (or follows
    ``gtids``).

    The first ``events`` events of it, and ``rows`` rows of the next event, are done.
    """

    file: str
    pos: int
    gtids: MariaDbGtids | MySqlGtids | None = None
    events: int = 0
    rows: int = 0
    server_id: int = 0
    seconds: int = 0

    def offset(self) -> dict[str, Any]:
        made: dict[str, Any] = {"file": self.file, "pos": self.pos}
        if self.gtids:
            made["gtids"] = str(self.gtids)
        more = {"event": self.events, "row": self.rows, "server_id": self.server_id, "ts_sec": self.seconds}
        return made | {name: value for name, value in more.items() if value}


def place_number(file: str, pos: int) -> int:
    """A position in one server's log as a number that grows with the log; the files are numbered."""
    number = file.rpartition(".")[2]
    return (int(number) << 64 if number.isdecimal() else 0) + pos
