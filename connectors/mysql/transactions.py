"""Transactions in the log, and the records of the transaction topic."""

from __future__ import annotations

from dataclasses import dataclass

from connect.api import Record, RecordBatch
from connectors.debezium.envelope import TRANSACTION_KEY, TRANSACTION_VALUE
from connectors.mysql.changes import Counts

__all__ = ["Transaction", "boundary"]


@dataclass(slots=True)
class Transaction:
    """``gtid`` is its id where there are GTIDs. ``counts`` is set only with transaction metadata."""

    gtid: str | None = None
    thread: int | None = None
    query: str | None = None
    open: bool = False
    ignored: bool = False
    counts: Counts | None = None
    begun: bool = False


def boundary(counts: Counts, status: str, seconds: int, topic: str) -> RecordBatch:
    """A record for the beginning (BEGIN) or the end (END, with the number of events) of a transaction."""
    ended = status == "END"
    tables = [{"data_collection": name, "event_count": n} for name, n in sorted(counts.tables.items())]
    value = {
        "status": status,
        "id": counts.transaction,
        "event_count": counts.total if ended else None,
        "data_collections": tables if ended else None,
        "ts_ms": seconds * 1000,
    }
    return RecordBatch.from_records(
        [Record(topic, value, TRANSACTION_VALUE, {"id": counts.transaction}, TRANSACTION_KEY)]
    )
