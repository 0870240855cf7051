"""Logical messages (``pg_logical_emit_message``) as records."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.api import Field, Record, RecordBatch, Schema, SchemaType
from connectors.debezium.envelope import message_envelope
from connectors.postgres.changes import Events, Transaction, source_column
from connectors.postgres.config import PostgresConfig
from connectors.postgres.tables import SOURCE

__all__ = ["LogicalMessages"]

_ENTRY: Final = "io.debezium.connector.postgresql.Message"
_KEY: Final = Schema.struct({"prefix": Schema(SchemaType.STRING, optional=True)}, name=f"{_ENTRY}Key", version=1)
_BLOCK: Final = Schema.struct(
    [
        Field("prefix", Schema(SchemaType.STRING, optional=True)),
        Field("content", Schema(SchemaType.BYTES, optional=True)),
    ],
    name=_ENTRY,
    version=1,
)
_VALUE: Final = message_envelope(_BLOCK, SOURCE, f"{_ENTRY}Value")


@dataclass(slots=True)
class LogicalMessages:
    """Collects messages; ``batch`` returns them as records, in order."""

    found: list[tuple[str, bytes]] = field(default_factory=list)
    lsns: list[int] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.found)

    def add(self, prefix: str, content: bytes, lsn: int, transaction: Transaction, order: int) -> None:
        self.found.append((prefix, content))
        self.lsns.append(lsn)
        self.transactions.append(transaction)
        self.orders.append(order)

    def events(self) -> Events:
        """As many members of ``Events`` as numbering them needs."""
        length = len(self)
        return Events(
            ops=pa.repeat(pa.scalar("m"), length),
            before=None,
            after=None,
            keys=None,
            lsns=np.array(self.lsns, np.int64),
            transactions=self.transactions,
            runs=np.ones(length, np.int64),
            orders=np.array(self.orders, np.int64),
            headers=None,
        )

    def batch(self, config: PostgresConfig, topic: str, blocks: list[Any]) -> RecordBatch:
        """``blocks`` are the transaction blocks; None for messages without one."""
        one_each = np.ones(len(self), np.int64)
        lsns = np.array(self.lsns, np.int64)
        sources = source_column(config.prefix, config.database, ("", ""), lsns, self.transactions, one_each).to_pylist()
        records = []
        for (prefix, content), source, block in zip(self.found, sources, blocks, strict=True):
            value = {
                "op": "m",
                "ts_ms": time.time_ns() // 1_000_000,
                "source": source,
                "transaction": block,
                "message": {"prefix": prefix, "content": content},
            }
            records.append(Record(topic, value, _VALUE, {"prefix": prefix}, _KEY))
        return RecordBatch.from_records(records)
