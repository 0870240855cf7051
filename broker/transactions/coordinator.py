"""The transaction coordinator: producers of transactional ids, the partitions of their transactions, and how those end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol

from broker.coordinator.clock import Clock, LoopClock, Timer
from broker.coordinator.committed_offset import TopicPartition
from broker.coordinator.futures import fail, succeed, when_done
from broker.coordinator.state_log import StateLog, partition_for
from broker.errors import (
    BrokerError,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    InvalidPidMapping,
    InvalidRequest,
    InvalidTxnTimeout,
    NotCoordinator,
    TransactionAbortable,
    TransactionalIdNotFound,
    UnknownServerError,
)
from broker.transactions import transitions
from broker.transactions.config import TransactionConfig
from broker.transactions.loading import load
from broker.transactions.markers import Marker, MarkerLog
from broker.transactions.records import encode_key, encode_value
from broker.transactions.values import (
    DescribedTransaction,
    ListedTransaction,
    Producer,
    Transaction,
    TransactionState,
)
from tidegate.kit.logs import get_logger

__all__ = ["Then", "TransactionCoordinator"]

logger = get_logger(__name__)

_RETRY_MARKERS_MS: Final = 1_000

Then = Callable[[BrokerError | None], None]
"""Is called once with the outcome: at once, or when it is on disk."""


class Features(Protocol):
    """Feature levels of the cluster."""

    @property
    def transaction_version(self) -> int: ...


class _TransactionalId:
    """A transactional id in memory. ``waiting`` are requests that arrived while a step was being written."""

    __slots__ = ("ending", "transaction", "waiting", "writing")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.writing = False
        self.ending = False
        """Set from the decision to end a transaction until its markers are durable."""
        self.waiting: deque[Callable[[], None]] = deque()


class TransactionCoordinator:
    """All transactional ids of this broker. Call it from one thread; nothing blocks but the reservation of producer
    ids.

    Every step is in the log, as durable as an acknowledged record, before it is applied in memory and answered. A
    request that arrives meanwhile waits, so that requests of one connection are carried out in order. While a
    transaction is being ended, requests are refused with ConcurrentTransactions, as in Kafka. The end of a transaction
    is answered when its markers are durable.
    """

    def __init__(
        self,
        log: StateLog,
        markers: MarkerLog,
        config: TransactionConfig,
        *,
        new_producer_id: Callable[[], int],
        transaction_version: Callable[[], int] = lambda: 2,
        clock: Clock | None = None,
    ) -> None:
        self._log = log
        self._markers = markers
        self._config = config
        self._new_producer_id = new_producer_id
        self._version = transaction_version
        self._clock = clock or LoopClock()
        self._ids: dict[str, _TransactionalId] = {}
        self._timers: dict[str, Timer] = {}
        self._refusal: BrokerError | None = CoordinatorLoadInProgress("The transaction coordinator has not started.")

    def start(self) -> None:
        """Read the log back, complete decided transactions, and check those that take too long or were abandoned."""
        self._ids = {name: _TransactionalId(transaction) for name, transaction in load(self._log).items()}
        self._refusal = None
        for name, entry in self._ids.items():
            if entry.transaction.state.is_prepared:
                logger.info("a transaction is finished that was decided before", transactional_id=name)
                entry.ending = True
                self._write_markers(name, entry, lambda _: None)
        self._repeat("abort", self._config.transaction_abort_check_interval_ms, self.abort_overdue)
        self._repeat("expire", self._config.transaction_expiry_check_interval_ms, self.expire)

    def stop(self) -> None:
        """Refuse requests with NotCoordinator, on which clients look for another coordinator."""
        self._refusal = NotCoordinator("The broker is shutting down.")
        for timer in self._timers.values():
            timer.cancel()
        for entry in self._ids.values():
            self._go_on(entry)

    def partition(self, transactional_id: str) -> int:
        """The partition of ``__transaction_state`` for an id."""
        return partition_for(transactional_id, self._log.partitions)

    # -- producers -------------------------------------------------------------------------------------------------

    def init_producer_id(
        self, transactional_id: str, *, timeout_ms: int, expected: Producer | None = None
    ) -> asyncio.Future[Producer]:
        """Assign a producer identity, and fence its previous owners.

        ``expected`` is the caller's previous identity, if it continues after an error (KIP-360). An open transaction of
        the previous producer is aborted first: the call then fails with ConcurrentTransactions, and the caller has to
        retry.
        """
        future: asyncio.Future[Producer] = self._clock.create_future()
        self._in_turn(transactional_id, future, lambda: self._init(transactional_id, timeout_ms, expected, future))
        return future

    def _init(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None, future: asyncio.Future[Producer]
    ) -> None:
        self._check_open(transactional_id)
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            raise InvalidTxnTimeout(
                f"transaction.timeout.ms is {timeout_ms}; this broker takes 1 to "
                f"{self._config.transaction_max_timeout_ms} (transaction.max.timeout.ms)."
            )
        entry = self._ids.get(transactional_id)
        now_ms = self._clock.now_ms()
        if entry is None:
            entry = _TransactionalId(
                Transaction(producer_id=self._new_producer_id(), timeout_ms=timeout_ms, updated_ms=now_ms)
            )
        self._check_not_ending(entry)
        transitions.check_initialiser(entry.transaction, expected)
        if entry.transaction.state is TransactionState.ONGOING:
            again = ConcurrentTransactions("The transaction of the producer before is being aborted: come again.")
            self._end_by_broker(transactional_id, entry, lambda error: fail(future, error or again))
            return
        following = transitions.initialised(
            entry.transaction,
            timeout_ms=timeout_ms,
            expected=expected,
            now_ms=now_ms,
            new_producer_id=self._new_producer_id,
        )

        def written(error: BrokerError | None) -> None:
            if error is not None:
                fail(future, error)
            else:
                logger.debug("producer initialised", transactional_id=transactional_id, producer=following.producer)
                succeed(future, following.producer)

        self._write(transactional_id, entry, following, written)

    # -- partitions ------------------------------------------------------------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        then: Then,
        *,
        version: int = 0,
    ) -> None:
        """Add partitions to the producer's transaction, which begins if there is none.

        ``version`` is the caller's ``transaction.version``: 2 if it relies on Produce and TxnOffsetCommit for this.
        """
        self._in_turn(
            transactional_id, then, lambda: self._add(transactional_id, producer, partitions, then, version=version)
        )

    def _add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        then: Then,
        *,
        version: int,
    ) -> None:
        entry = self._find(transactional_id)
        transitions.check_producer(entry.transaction, producer)
        self._check_not_ending(entry)
        following = transitions.added(
            entry.transaction, producer, partitions, now_ms=self._clock.now_ms(), version=version
        )
        if following is None:
            then(None)
        else:
            self._write(transactional_id, entry, following, then)

    def is_busy(self, transactional_id: str) -> bool:
        """Whether a step is being written. New requests then wait in a queue."""
        entry = self._ids.get(transactional_id)
        return entry is not None and entry.writing

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Check that partitions are part of the producer's transaction. Those that are not get TransactionAbortable.

        Raises InvalidPidMapping, ProducerFenced, ConcurrentTransactions.
        """
        entry = self._find(transactional_id)
        transitions.check_producer(entry.transaction, producer)
        if entry.transaction.state.is_prepared:
            raise ConcurrentTransactions(f"The transaction of {transactional_id!r} is being ended.")
        return {
            where: None
            if where in entry.transaction.partitions
            else TransactionAbortable(f"{where[0]}-{where[1]} is not part of the transaction of {transactional_id!r}.")
            for where in partitions
        }

    # -- ends ------------------------------------------------------------------------------------------------------

    def end(
        self, transactional_id: str, producer: Producer, *, commit: bool, version: int = 0
    ) -> asyncio.Future[Producer]:
        """Commit or abort. Done when every partition has its marker; the result is the identity to continue with.

        ``version`` is the caller's ``transaction.version``; with 2 the epoch is raised.
        """
        future: asyncio.Future[Producer] = self._clock.create_future()
        self._in_turn(
            transactional_id,
            future,
            lambda: self._end(transactional_id, producer, future, commit=commit, version=version),
        )
        return future

    def _end(
        self, transactional_id: str, producer: Producer, future: asyncio.Future[Producer], *, commit: bool, version: int
    ) -> None:
        entry = self._find(transactional_id)
        if entry.ending and not entry.transaction.state.is_prepared:
            transitions.check_producer(entry.transaction, producer)
            self._check_not_ending(entry)
        following = transitions.ended(
            entry.transaction,
            producer,
            commit=commit,
            now_ms=self._clock.now_ms(),
            version=version,
            new_producer_id=self._new_producer_id,
        )
        if following is None:
            succeed(future, entry.transaction.producer)
            return

        def done(error: BrokerError | None) -> None:
            if error is None:
                succeed(future, entry.transaction.producer)
            else:
                fail(future, error)

        self._begin_end(transactional_id, entry, following, done)

    def _end_by_broker(self, transactional_id: str, entry: _TransactionalId, then: Then) -> None:
        following = transitions.fenced(
            entry.transaction,
            now_ms=self._clock.now_ms(),
            version=self._version(),
            new_producer_id=self._new_producer_id,
        )
        self._begin_end(transactional_id, entry, following, then)

    def _begin_end(self, transactional_id: str, entry: _TransactionalId, prepared: Transaction, then: Then) -> None:
        entry.ending = True

        def decided(error: BrokerError | None) -> None:
            if error is None:
                self._write_markers(transactional_id, entry, then)
            else:
                entry.ending = False
                then(error)

        self._write(transactional_id, entry, prepared, decided)

    def _write_markers(
        self, transactional_id: str, entry: _TransactionalId, then: Then, left: Collection[TopicPartition] | None = None
    ) -> None:
        """Write the markers of a transaction whose outcome is durable; ``left`` are the partitions still without one."""
        prepared = entry.transaction
        marker = Marker(
            prepared.producer,
            commit=prepared.state is TransactionState.PREPARE_COMMIT,
            version=prepared.client_version,
        )
        future = self._markers.write(marker, prepared.partitions if left is None else left)
        if future is None:
            self._complete(transactional_id, entry, then)
            return

        def written(done: asyncio.Future[set[TopicPartition]]) -> None:
            if done.cancelled() or isinstance(self._refusal, NotCoordinator):
                then(NotCoordinator("The broker stopped before the markers were on disk."))
            elif failed := done.result():
                self._later(transactional_id, lambda: self._write_markers(transactional_id, entry, then, failed))
            else:
                self._complete(transactional_id, entry, then)

        future.add_done_callback(written)

    def _complete(self, transactional_id: str, entry: _TransactionalId, then: Then) -> None:
        """Record that the markers are durable.

        That record need not be: after a crash the markers would be written once more.
        """
        over = transitions.completed(entry.transaction, now_ms=self._clock.now_ms())
        try:
            self._append(transactional_id, over)
        except BrokerError as error:
            logger.warning(
                "the end of a transaction could not be written", transactional_id=transactional_id, error=error.message
            )
            self._later(transactional_id, lambda: self._complete(transactional_id, entry, then))
            return
        entry.transaction = over
        entry.ending = False
        then(None)
        self._go_on(entry)

    # -- housekeeping ----------------------------------------------------------------------------------------------

    def abort_overdue(self) -> None:
        """Abort transactions that exceed their timeout, and fence their producers."""
        now_ms = self._clock.now_ms()
        for transactional_id, entry in list(self._ids.items()):
            transaction = entry.transaction
            if (
                transaction.state is not TransactionState.ONGOING
                or entry.writing
                or entry.ending
                or transaction.started_ms + transaction.timeout_ms >= now_ms
            ):
                continue
            logger.info(
                "a transaction is aborted: it took too long",
                transactional_id=transactional_id,
                timeout_ms=transaction.timeout_ms,
            )
            try:
                self._end_by_broker(transactional_id, entry, lambda error, name=transactional_id: _warn(name, error))  # type: ignore[misc]
            except BrokerError as error:
                _warn(transactional_id, error)

    def expire(self) -> None:
        """Remove transactional ids that were not used for ``transactional.id.expiration.ms``."""
        oldest = self._clock.now_ms() - self._config.transactional_id_expiration_ms
        expired: dict[int, list[str]] = {}
        for transactional_id, entry in self._ids.items():
            transaction = entry.transaction
            if transaction.state.is_over and transaction.updated_ms <= oldest and not (entry.writing or entry.ending):
                expired.setdefault(self.partition(transactional_id), []).append(transactional_id)
        for partition, names in expired.items():
            self._forget(partition, names)

    def _forget(self, partition: int, names: list[str]) -> None:
        forgotten = {name: self._ids[name] for name in names}
        for entry in forgotten.values():
            entry.writing = True

        def written(error: BrokerError | None) -> None:
            for name, entry in forgotten.items():
                entry.writing = False
                if error is None:
                    del self._ids[name]
                self._go_on(entry)
            if error is None:
                logger.info("transactional ids expired", count=len(forgotten))
            else:
                logger.warning("transactional ids could not be forgotten", error=error.message)

        try:
            future = self._log.append(partition, [(encode_key(name), None) for name in names])
        except BrokerError as error:
            written(error)
        else:
            when_done(future, written)

    def _repeat(self, name: str, interval_ms: int, do: Callable[[], None]) -> None:
        def run() -> None:
            self._timers[name] = self._clock.call_later(interval_ms, run)
            do()

        self._timers[name] = self._clock.call_later(interval_ms, run)

    def _later(self, transactional_id: str, do: Callable[[], None]) -> None:
        name = f"again {transactional_id}"

        def run() -> None:
            self._timers.pop(name, None)
            do()

        self._timers[name] = self._clock.call_later(_RETRY_MARKERS_MS, run)

    # -- views -----------------------------------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """Raises InvalidRequest for the empty id, TransactionalIdNotFound."""
        self._check_open(transactional_id)
        entry = self._ids.get(transactional_id)
        if entry is None:
            raise TransactionalIdNotFound(f"There is no transactional id {transactional_id!r}.")
        return DescribedTransaction(transactional_id, entry.transaction)

    def list_transactions(
        self,
        *,
        states: Collection[TransactionState] | None = None,
        producer_ids: Collection[int] = (),
        longer_than_ms: int = -1,
        matches: Callable[[str], bool] = lambda _: True,
    ) -> list[ListedTransaction]:
        """The transactional ids that pass every filter. None, empty and -1 match all."""
        self._check_open()
        now_ms = self._clock.now_ms()
        return [
            ListedTransaction(name, entry.transaction.producer_id, entry.transaction.state)
            for name, entry in self._ids.items()
            if (states is None or entry.transaction.state in states)
            and (not producer_ids or entry.transaction.producer_id in producer_ids)
            and (longer_than_ms < 0 or now_ms - entry.transaction.started_ms > longer_than_ms)
            and matches(name)
        ]

    def counts(self) -> Mapping[TransactionState, int]:
        """The number of transactional ids in each state, for metrics."""
        counts = dict.fromkeys(TransactionState, 0)
        for entry in self._ids.values():
            counts[entry.transaction.state] += 1
        return counts

    # -- inside ----------------------------------------------------------------------------------------------------

    def _check_open(self, transactional_id: str | None = None) -> None:
        if self._refusal is not None:
            raise self._refusal
        if transactional_id == "":
            raise InvalidRequest("The transactional id is empty.")

    def _find(self, transactional_id: str) -> _TransactionalId:
        self._check_open(transactional_id)
        entry = self._ids.get(transactional_id)
        if entry is None:
            raise InvalidPidMapping(
                f"There is no transactional id {transactional_id!r}: its producer has to begin anew."
            )
        return entry

    @staticmethod
    def _check_not_ending(entry: _TransactionalId) -> None:
        if entry.ending:
            raise ConcurrentTransactions("The last transaction is being ended.")

    def _in_turn(
        self, transactional_id: str, answer: asyncio.Future[Producer] | Then, step: Callable[[], None]
    ) -> None:
        """Take a step, or queue it until the previous one is written. Its errors are the answer."""
        entry = self._ids.get(transactional_id)
        if entry is not None and entry.writing and not entry.ending and not isinstance(self._refusal, NotCoordinator):
            entry.waiting.append(lambda: self._in_turn(transactional_id, answer, step))
            return
        try:
            step()
        except BrokerError as error:
            _refuse(answer, error)
        except Exception as error:
            logger.exception("a step of a transaction failed", transactional_id=transactional_id)
            _refuse(answer, UnknownServerError(f"A step of {transactional_id!r} failed: {error!r}"))

    def _append(self, transactional_id: str, transaction: Transaction) -> asyncio.Future[None]:
        entry = (encode_key(transactional_id), encode_value(transaction, self._version()))
        return self._log.append(self.partition(transactional_id), [entry])

    def _write(self, transactional_id: str, entry: _TransactionalId, following: Transaction, then: Then) -> None:
        """Make a step durable, then apply it. Waiting requests follow."""
        try:
            future = self._append(transactional_id, following)
        except BrokerError as error:
            future = self._clock.create_future()
            fail(future, error)
        entry.writing = True
        self._ids.setdefault(transactional_id, entry)

        def written(error: BrokerError | None) -> None:
            entry.writing = False
            if error is None:
                entry.transaction = following
            elif entry.transaction.epoch < 0:
                self._ids.pop(transactional_id, None)
            try:
                then(error)
            except Exception:
                logger.exception("an answer to a step of a transaction failed", transactional_id=transactional_id)
            if not entry.ending:
                self._go_on(entry)

        when_done(future, written)

    @staticmethod
    def _go_on(entry: _TransactionalId) -> None:
        waiting, entry.waiting = entry.waiting, deque()
        for step in waiting:
            step()


def _refuse(answer: asyncio.Future[Producer] | Then, error: BrokerError) -> None:
    if isinstance(answer, asyncio.Future):
        fail(answer, error)
    else:
        answer(error)


def _warn(transactional_id: str, error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("a transaction could not be aborted", transactional_id=transactional_id, error=error.message)
