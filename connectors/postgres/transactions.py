"""Numbers events within their transactions, and writes records for their begin and end
(``provide.transaction.metadata``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.api import Record, RecordBatch
from connectors.debezium.envelope import TRANSACTION_BLOCK, TRANSACTION_KEY, TRANSACTION_VALUE
from connectors.postgres.changes import Events, Transaction

__all__ = ["TransactionTopic"]

_ORDERS: Final = "transaction_data_collection_order_"


@dataclass(slots=True)
class _Open:
    """``begin`` is the message number at its begin, until that was reported; ``end`` the one at its end."""

    transaction: Transaction
    begin: str | None
    counts: dict[str, int] = field(default_factory=dict)
    total: int = 0
    end: str | None = None


class TransactionTopic:
    """Call it for begins and ends as they are read; events are numbered later, when they have become columns."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._open: dict[int, _Open] = {}
        self._order = 0

    def begin(self, transaction: Transaction, lsn: int, resumed: Mapping[str, Any] | None = None) -> None:
        """``resumed`` is the offset, where part of the transaction was read before."""
        if resumed is None:
            self._open[transaction.number] = _Open(transaction, f"{transaction.xid}:{lsn}")
            return
        counts = {k.removeprefix(_ORDERS): int(v) for k, v in resumed.items() if k.startswith(_ORDERS)}
        self._open[transaction.number] = _Open(transaction, None, counts, sum(counts.values()))

    def end(self, transaction: Transaction, lsn: int) -> None:
        if transaction.number in self._open:
            self._open[transaction.number].end = f"{transaction.xid}:{lsn}"

    def next(self) -> int:
        """The number of the next change in any table."""
        self._order += 1
        return self._order

    def position(self, lsn: int) -> dict[str, Any]:
        """The members of an offset in the middle of a transaction."""
        for open_one in self._open.values():
            if open_one.end is None and open_one.counts:
                counts = {f"{_ORDERS}{name}": count for name, count in open_one.counts.items()}
                return {"transaction_id": f"{open_one.transaction.xid}:{lsn}", **counts}
        return {}

    def numbered(self, batches: Sequence[tuple[str, Events]]) -> tuple[list[pa.Array], list[RecordBatch]]:
        """The transaction block of every event, by table name; and the records for begins and ends."""
        cells: list[list[dict[str, Any] | None]] = [[None] * len(events) for _, events in batches]
        turns: dict[int, list[tuple[int, int, int, int]]] = {}
        for index, (_, events) in enumerate(batches):
            assert events.orders is not None
            counted = np.flatnonzero(events.ops.is_valid().to_numpy(zero_copy_only=False))
            numbers = np.repeat([t.number for t in events.transactions], events.runs)
            columns = (numbers, events.orders, events.lsns)
            for event, number, order, lsn in zip(
                counted.tolist(), *(c[counted].tolist() for c in columns), strict=True
            ):
                turns.setdefault(number, []).append((order, index, event, lsn))
        records = []
        for number, transaction in list(self._open.items()):
            if transaction.begin is not None and number in turns:
                records.append(self._record(transaction, "BEGIN", transaction.begin))
                transaction.begin = None
            for _, index, event, lsn in sorted(turns.get(number, ())):
                name = batches[index][0]
                transaction.counts[name] = transaction.counts.get(name, 0) + 1
                transaction.total += 1
                cells[index][event] = {
                    "id": f"{transaction.transaction.xid}:{lsn}",
                    "total_order": transaction.total,
                    "data_collection_order": transaction.counts[name],
                }
            if transaction.end is not None:
                if transaction.counts:
                    records.append(self._record(transaction, "END", transaction.end))
                del self._open[number]
        blocks = [pa.array(column, TRANSACTION_BLOCK.arrow_type) for column in cells]
        return blocks, [RecordBatch.from_records([record]) for record in records]

    def _record(self, transaction: _Open, status: str, number: str) -> Record:
        ended = status == "END"
        collections = [{"data_collection": name, "event_count": n} for name, n in sorted(transaction.counts.items())]
        value = {
            "status": status,
            "id": number,
            "event_count": transaction.total if ended else None,
            "data_collections": collections if ended else None,
            "ts_ms": transaction.transaction.micros // 1000,
        }
        return Record(self._topic, value, TRANSACTION_VALUE, {"id": number}, TRANSACTION_KEY)
