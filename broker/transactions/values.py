"""The state of a transactional id, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from broker.coordinator.committed_offset import TopicPartition

__all__ = [
    "EPOCH_BUMP",
    "LAST_EPOCH",
    "MAX_EPOCH",
    "NO_EPOCH",
    "NO_PRODUCER",
    "NO_PRODUCER_ID",
    "DescribedTransaction",
    "ListedTransaction",
    "Producer",
    "Transaction",
    "TransactionState",
]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
MAX_EPOCH: Final = 32767
LAST_EPOCH: Final = MAX_EPOCH - 1
"""The last epoch assigned to a producer: the next one is reserved for fencing it."""
EPOCH_BUMP: Final = 2
"""The protocol version from which on the end of each transaction raises the epoch (KIP-890, ``transaction.version``).
"""


class Producer(NamedTuple):
    """The identity of a producer's batches. An instance with a later epoch fences earlier ones."""

    id: int
    epoch: int


NO_PRODUCER: Final = Producer(NO_PRODUCER_ID, NO_EPOCH)


class TransactionState(Enum):
    """Kafka's states: the number in records, and the displayed name."""

    EMPTY = 0, "Empty"
    ONGOING = 1, "Ongoing"
    PREPARE_COMMIT = 2, "PrepareCommit"
    PREPARE_ABORT = 3, "PrepareAbort"
    COMPLETE_COMMIT = 4, "CompleteCommit"
    COMPLETE_ABORT = 5, "CompleteAbort"
    DEAD = 6, "Dead"
    PREPARE_EPOCH_FENCE = 7, "PrepareEpochFence"

    def __init__(self, number: int, title: str) -> None:
        self.number = number
        self.title = title

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided and the markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_over(self) -> bool:
        """Whether there is no transaction: the id may begin one, get a new producer, or expire."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transactional id and its current transaction, as in one record of ``__transaction_state``.

    ``last_epoch``, which is not in the record, is the previous epoch, if its owner may ask for the current one again
    (KIP-360). ``next_producer_id`` is set while a transaction ends whose producer has used up its epochs.
    ``client_version`` is the ``transaction.version`` of the client of the last step.
    """

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    updated_ms: int
    started_ms: int = -1
    client_version: int = 0

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.epoch)

    @property
    def epochs_exhausted(self) -> bool:
        return self.epoch >= LAST_EPOCH


class ListedTransaction(NamedTuple):
    """A transactional id in a list."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class DescribedTransaction(NamedTuple):
    """A transactional id with its current transaction; ``started_ms`` is -1 if there was none yet."""

    transactional_id: str
    transaction: Transaction
