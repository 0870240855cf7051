"""Reads ``__transaction_state`` back."""

from __future__ import annotations

from broker.coordinator.state_log import StateLog
from broker.errors import CorruptMessage
from broker.transactions.records import TRANSACTIONS_TOPIC, decode_key, decode_value
from broker.transactions.values import Transaction
from tidegate.kit.logs import get_logger

__all__ = ["load"]

logger = get_logger(__name__)


def load(log: StateLog) -> dict[str, Transaction]:
    """The transactional ids with their last written state. An unreadable record is logged and skipped."""
    result: dict[str, Transaction] = {}
    for partition in range(log.partitions):
        for offset, key, value in log.read(partition):
            try:
                name = decode_key(key or b"")
                if name is None:
                    raise CorruptMessage(f"its key is of a kind that is not known: {key!r}")
                if value is None:
                    result.pop(name, None)
                else:
                    result[name] = decode_value(value)
            except CorruptMessage as error:
                logger.error(
                    "record cannot be read",
                    topic=TRANSACTIONS_TOPIC,
                    partition=partition,
                    offset=offset,
                    error=error.message,
                )
    return result
