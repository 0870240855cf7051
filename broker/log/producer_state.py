"""The state of a partition's idempotent and transactional producers (KIP-98), and the ``.snapshot`` files that keep it.

For each producer: its epoch, the last five batches (so that a repeated one is answered with its existing offsets), and
its open transaction.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import crc32c

from broker.errors import (
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from broker.protocol.records import NO_PRODUCER_ID, BatchHeader

__all__ = [
    "REMEMBERED_BATCHES",
    "CompletedTransaction",
    "KnownProducer",
    "ProducerBatch",
    "ProducerState",
    "read_snapshot",
]

REMEMBERED_BATCHES: Final = 5
"""A producer may have this many requests in flight, and may repeat any of them."""

_REFUSED_S: Final = 10.0
"""Clients retry within a second or so.

One that has dropped a batch continues after it, some clients with the same epoch.
"""
_MOST_REFUSED: Final = 1000

_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_HEAD: Final = struct.Struct(">hIi")
_SNAPSHOT_CRC_FROM: Final = 6
_SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
_SEQUENCE_MASK: Final = 0x7FFFFFFF
_new_tuple: Final = tuple.__new__
"""Creates a NamedTuple from the right number of fields without calling Python code."""
_EMPTY_SNAPSHOT: Final = struct.pack(">hIi", _SNAPSHOT_VERSION, crc32c.crc32c(bytes(4)), 0)


class ProducerBatch(NamedTuple):
    """One batch of a producer in the log."""

    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta


class KnownProducer(NamedTuple):
    """A producer as an administrator sees it. -1 means no batch, no marker, no open transaction."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int


class CompletedTransaction(NamedTuple):
    """A transaction that the marker at ``last_offset`` ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


@dataclass(slots=True)
class _Producer:
    epoch: int
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    transaction_start: int | None = None
    batches: deque[ProducerBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))

    @property
    def next_sequence(self) -> int:
        """The sequence with which the next batch of this epoch must begin, if there was a batch."""
        return (self.batches[-1].last_sequence + 1) & _SEQUENCE_MASK


class _Refused(NamedTuple):
    """The first batch of an unknown producer that was refused with a retriable error; ``at`` is the last time."""

    epoch: int
    sequence: int
    at: float


class ProducerState:
    """The producers of one partition. ``where`` names the partition in errors; ``clock`` counts seconds."""

    def __init__(self, where: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._where, self._clock = where, clock
        self._producers: dict[int, _Producer] = {}
        self._open: dict[int, int] = {}
        self._refused: dict[int, _Refused] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def clear(self) -> None:
        self._producers.clear()
        self._open.clear()

    def refused(self, header: BatchHeader) -> None:
        """Record that a client's batch was refused with a retriable error, so that it will be retried.

        Until the retry an unknown producer may not continue after that batch. This is stricter than Kafka, which
        accepts any sequence of an unknown producer: librdkafka considers a batch written when a later one is
        acknowledged, and would lose the first.
        """
        if header.producer_id == NO_PRODUCER_ID or header.producer_id in self._producers:
            return
        if (refusal := self._refused_of(header)) is not None and _is_behind(header.base_sequence, refusal.sequence):
            return
        self._refused.pop(header.producer_id, None)
        self._refused[header.producer_id] = _Refused(header.producer_epoch, header.base_sequence, self._clock())
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]

    def _refused_of(self, header: BatchHeader) -> _Refused | None:
        """The refusal for the same instance of the producer, unless the producer will have dropped that batch by now."""
        refusal = self._refused.get(header.producer_id)
        if refusal is None or refusal.epoch != header.producer_epoch or self._clock() - refusal.at > _REFUSED_S:
            return None
        return refusal

    def _check_refused(self, header: BatchHeader) -> None:
        refusal = self._refused_of(header)
        if refusal is not None and _is_behind(header.base_sequence, refusal.sequence):
            raise OutOfOrderSequence(
                f"producer {header.producer_id} in {self._where} sent sequence {header.base_sequence} where {refusal.sequence}, "
                "which was refused, is next"
            )

    @property
    def first_open_transaction(self) -> int | None:
        """The first offset of the oldest open transaction; None without one."""
        return min(self._open.values()) if self._open else None

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether this instance of a producer has an open transaction here."""
        return producer_id in self._open and self._producers[producer_id].epoch == epoch

    def known(self) -> list[KnownProducer]:
        """All producers, in the order of their first batches."""
        return [
            KnownProducer(
                producer_id,
                producer.epoch,
                producer.batches[-1].last_sequence if producer.batches else -1,
                producer.last_timestamp,
                producer.coordinator_epoch,
                -1 if producer.transaction_start is None else producer.transaction_start,
            )
            for producer_id, producer in self._producers.items()
        ]

    def check(self, header: BatchHeader, transaction_version: int = 0) -> ProducerBatch | None:
        """Check a client's batch. Returns None if it may be appended, or the batch in the log that it repeats.

        Raises InvalidProducerEpoch, OutOfOrderSequence or InvalidTxnState. An unknown producer may begin with any
        sequence, because its records may have been deleted, but not after a ``refused`` batch. With version 2 of
        transactions it must begin with 0. Stricter than Kafka: sequences of a transaction that has ended are refused,
        not answered as repeated. librdkafka reuses them for other records after it aborts a transaction whose batches
        it considered unwritten, and would take the answer for theirs. When refused, it continues in a new epoch.
        """
        known = self._producers.get(header.producer_id)
        if known is None:
            if transaction_version >= 2 and header.is_transactional and header.base_sequence != 0:
                raise OutOfOrderSequence(
                    f"producer {header.producer_id} must begin its transaction in {self._where} with sequence 0, "
                    f"not {header.base_sequence}"
                )
            self._check_refused(header)
            return None
        if header.producer_epoch == known.epoch and known.batches and header.base_sequence == known.next_sequence:
            repeated = None  # the usual case
        else:
            repeated = self._out_of_line(header, known)
        if repeated is None and known.transaction_start is not None and not header.is_transactional:
            raise InvalidTxnState(
                f"producer {header.producer_id} in {self._where} sent a batch outside of its transaction that began at offset "
                f"{known.transaction_start}"
            )
        return repeated

    def _out_of_line(self, header: BatchHeader, known: _Producer) -> ProducerBatch | None:
        """Like ``check``, for a batch that does not directly follow its producer's last one."""
        who = f"producer {header.producer_id} in {self._where}"
        self.check_epoch(header.producer_id, header.producer_epoch)
        if header.producer_epoch > known.epoch:
            if header.base_sequence != 0:
                raise OutOfOrderSequence(
                    f"{who} must begin epoch {header.producer_epoch} with sequence 0, not {header.base_sequence}"
                )
        elif known.batches:
            for batch in known.batches:
                if batch.first_sequence == header.base_sequence and batch.last_sequence == header.last_sequence:
                    begun = known.transaction_start
                    if header.is_transactional and (begun is None or batch.last_offset < begun):
                        raise OutOfOrderSequence(
                            f"{who} sent sequences {header.base_sequence} to {header.last_sequence} of a transaction that "
                            "has ended"
                        )
                    return batch
            raise OutOfOrderSequence(f"{who} sent sequence {header.base_sequence} where {known.next_sequence} is next")
        elif header.base_sequence != 0:
            raise OutOfOrderSequence(
                f"{who} must begin epoch {header.producer_epoch} with sequence 0, not {header.base_sequence}"
            )
        return None

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Raises InvalidProducerEpoch if a later instance of the producer is known."""
        known = self._producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            raise InvalidProducerEpoch(
                f"producer {producer_id} in {self._where} sent epoch {epoch}, but epoch {known.epoch} is current"
            )

    def update(self, header: BatchHeader) -> None:
        """Record a data batch that is in the log, with its real offsets."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = _Producer(header.producer_epoch)
            self._refused.pop(header.producer_id, None)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        last_offset = header.base_offset + header.last_offset_delta
        fields = (
            header.base_sequence,
            header.last_sequence,
            last_offset,
            header.last_offset_delta,
            header.max_timestamp,
        )
        producer.batches.append(_new_tuple(ProducerBatch, fields))
        producer.last_timestamp = header.max_timestamp
        if producer.transaction_start is None and header.is_transactional:
            producer.transaction_start = self._open[header.producer_id] = header.base_offset

    def coordinator_epoch(self, producer_id: int) -> int:
        """The epoch of the producer's last marker; 0 if there was none."""
        known = self._producers.get(producer_id)
        return 0 if known is None else max(known.coordinator_epoch, 0)

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int) -> None:
        """Check that the transaction coordinator may end this producer's transaction; raises the fencing error if not.

        With version 2 of transactions (KIP-890) the coordinator raises the epoch before it ends a transaction. So a
        marker with the current epoch is late or repeated; a repeated one is harmless once no transaction is open
        (KIP-1228).
        """
        known = self._producers.get(producer_id)
        if known is None:
            return
        who = f"a marker for producer {producer_id} in {self._where}"
        stale = transaction_version >= 2 and epoch == known.epoch and known.transaction_start is not None
        if epoch < known.epoch or stale:
            raise InvalidProducerEpoch(f"{who} has epoch {epoch}, but epoch {known.epoch} is current")
        if coordinator_epoch < known.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"{who} comes from coordinator epoch {coordinator_epoch}, but {known.coordinator_epoch} is current"
            )

    def end_transaction(
        self, header: BatchHeader, coordinator_epoch: int, *, aborted: bool
    ) -> CompletedTransaction | None:
        """Apply a marker that is in the log. None if the producer had no open transaction here."""
        producer = self._producers.setdefault(header.producer_id, _Producer(header.producer_epoch))
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        start, producer.transaction_start = producer.transaction_start, None
        self._open.pop(header.producer_id, None)
        return None if start is None else CompletedTransaction(header.producer_id, start, header.base_offset, aborted)

    def fill_history(self, headers: Iterable[BatchHeader]) -> None:
        """Restore the batches before the last one, which a snapshot lacks, from the end of the log.

        ``headers`` extend to the log's end. Without this, a producer that repeats an older batch after a restart would
        get an out-of-order error.
        """
        seen: dict[int, deque[ProducerBatch]] = {}
        for header in headers:
            known = self._producers.get(header.producer_id)
            if known is None or header.is_control or header.producer_epoch != known.epoch:
                continue
            seen.setdefault(header.producer_id, deque(maxlen=REMEMBERED_BATCHES)).append(
                ProducerBatch(
                    header.base_sequence,
                    header.last_sequence,
                    header.last_offset,
                    header.last_offset_delta,
                    header.max_timestamp,
                )
            )
        for producer_id, producer_batches in seen.items():
            known = self._producers[producer_id]
            if known.batches and producer_batches[-1].last_offset == known.batches[-1].last_offset:
                known.batches = producer_batches

    def expire(self, older_than_ms: int) -> None:
        """Forget producers whose last batch is older, unless they are in a transaction."""
        for producer_id in [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.transaction_start is None and producer.last_timestamp < older_than_ms
        ]:
            del self._producers[producer_id]

    def snapshot(self) -> bytes:
        """Kafka's snapshot file (version 1), which has the last batch of each producer.

        A damaged file is detected by its checksum, and the state is rebuilt from the log.
        """
        if not self._producers:
            return _EMPTY_SNAPSHOT
        body = b"".join(_entry(producer_id, producer) for producer_id, producer in self._producers.items())
        counted = struct.pack(">i", len(self._producers)) + body
        return struct.pack(">hI", _SNAPSHOT_VERSION, crc32c.crc32c(counted)) + counted

    def load(self, path: str | Path) -> None:
        """Replace the state with a snapshot.

        Raises CorruptMessage for a damaged file, OSError for an unreadable one.
        """
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a start with 10,000 partitions has to be quick
            data = file.read()
        producers = {} if data == _EMPTY_SNAPSHOT else dict(read_snapshot(data))
        self._producers = producers
        self._open = {
            key: entry.transaction_start for key, entry in producers.items() if entry.transaction_start is not None
        }


def _entry(producer_id: int, producer: _Producer) -> bytes:
    last = producer.batches[-1] if producer.batches else ProducerBatch(-1, -1, -1, 0, -1)
    start = -1 if producer.transaction_start is None else producer.transaction_start
    return _SNAPSHOT_ENTRY.pack(
        producer_id, producer.epoch, last.last_sequence, last.last_offset, last.offset_delta, producer.last_timestamp,
        producer.coordinator_epoch, start,
    )  # fmt: skip


def _is_behind(sequence: int, other: int) -> bool:
    """Whether a sequence is after another, with wraparound."""
    return 0 < (sequence - other) & _SEQUENCE_MASK <= _SEQUENCE_MASK // 2


def read_snapshot(data: bytes) -> list[tuple[int, _Producer]]:
    """The producers in a snapshot file. Raises CorruptMessage if it is incomplete or its checksum is wrong."""
    if len(data) < _SNAPSHOT_HEAD.size:
        raise CorruptMessage(f"a producer snapshot has {len(data)} bytes, fewer than its head")
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        raise CorruptMessage(f"a producer snapshot has version {version}; version {_SNAPSHOT_VERSION} is known")
    if (
        crc != crc32c.crc32c(data[_SNAPSHOT_CRC_FROM:])
        or len(data) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size
    ):
        raise CorruptMessage("a producer snapshot does not have the checksum or the length it states")
    producers = []
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, start in _SNAPSHOT_ENTRY.iter_unpack(
        data[_SNAPSHOT_HEAD.size :]
    ):
        producer = _Producer(epoch, coordinator, timestamp, start if start >= 0 else None)
        if offset >= 0:
            first = (sequence - delta) & _SEQUENCE_MASK if sequence >= 0 else sequence
            producer.batches.append(ProducerBatch(first, sequence, offset, delta, timestamp))
        producers.append((producer_id, producer))
    return producers
