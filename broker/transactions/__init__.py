"""Transactions: atomic writes to several partitions and to committed offsets (KIP-98, KIP-360, KIP-447, KIP-890).

``TransactionCoordinator`` decides, with plain values; ``broker.handlers.transactions`` translates. It stores its state
in ``__transaction_state``, in Kafka's own format, and writes its decisions into the partitions as markers.

About to change ...                                 read
possible transitions, epochs, fencing               ``transitions.py``
waiting, durability, recovery, timeouts             ``coordinator.py``
bytes in ``__transaction_state``                    ``records.py``; ``loading.py`` reads them back
the effect of a marker on partitions and offsets    ``markers.py``, ``broker/log/producer_state.py``, ``broker/groups/offsets/pending.py``

Invariants: (1) a partition has records of a transaction only if the coordinator's log lists it in the transaction; (2)
markers are written only once the outcome is durable; (3) the end of a transaction is written only once its markers are
durable; (4) of two producers with one transactional id only the one with the later epoch can write.
"""

from broker.transactions.config import TransactionConfig
from broker.transactions.coordinator import Then, TransactionCoordinator
from broker.transactions.markers import Marker, Markers
from broker.transactions.records import TRANSACTIONS_TOPIC
from broker.transactions.values import (
    EPOCH_BUMP,
    NO_PRODUCER,
    DescribedTransaction,
    ListedTransaction,
    Producer,
    Transaction,
    TransactionState,
)

__all__ = [
    "EPOCH_BUMP",
    "NO_PRODUCER",
    "TRANSACTIONS_TOPIC",
    "DescribedTransaction",
    "ListedTransaction",
    "Marker",
    "Markers",
    "Producer",
    "Then",
    "Transaction",
    "TransactionConfig",
    "TransactionCoordinator",
    "TransactionState",
]
