"""The part of Admin about other clients' transactional producers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from aiokafka.client import CoordinationType
from aiokafka.protocol.transaction import EndTxnRequest, InitProducerIdRequest

from broker.client.batches import TransactionalProducer
from broker.client.clients_admin import ClientsAdmin
from broker.client.cluster import check
from broker.errors import InvalidPidMapping, InvalidProducerEpoch, InvalidTxnState, ProducerFenced

__all__ = ["TransactionsAdmin"]

_TRANSACTION_TIMEOUT_MS: Final = 60_000  # for transactions that are never begun


class TransactionsAdmin(ClientsAdmin):
    """Changes transactional producers."""

    async def fence_producers(self, transactional_ids: Iterable[str]) -> None:
        """Abort open transactions of these transactional ids, and refuse all later writes of their producers (KIP-588).

        Returns when all are fenced; unused ids count as fenced. Raises permanent refusals of the coordinator, for
        example TransactionalIdAuthorizationFailed.
        """
        await asyncio.gather(*(self.retried(lambda name=name: self._fence(name)) for name in transactional_ids))  # type: ignore[misc]

    async def commit_transactions(self, transactions: Iterable[TransactionalProducer]) -> None:
        """Commit what other producers have written and left open (``BatchProducer.leave_transaction``).

        Each is committed for itself. A transaction that is committed already stays so. Raises InvalidProducerEpoch or
        InvalidTxnState, after all have been tried, for one that was aborted: by a later producer of its id, or because it
        was open for longer than its transaction.timeout.ms.
        """
        answers = await asyncio.gather(
            *(self.retried(lambda open_=open_: self._commit(open_)) for open_ in transactions),  # type: ignore[misc]
            return_exceptions=True,
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _commit(self, producer: TransactionalProducer) -> None:
        about = f"committing the transaction of transactional.id={producer.transactional_id}"
        check(await self._ended(producer, about, commit=True), about)

    async def claim_producer(self, transactional_id: str) -> TransactionalProducer:
        """Become the producer of an id, as a mark that others can look at with ``is_current``: nothing need be sent."""
        return await self.retried(lambda: self._fence(transactional_id))

    async def is_current(self, producer: TransactionalProducer) -> bool:
        """Whether nobody has claimed or fenced the id since this producer did. It must not have an open transaction."""
        about = f"looking at transactional.id={producer.transactional_id}"

        async def look() -> bool:
            # Of a producer without a transaction the coordinator refuses to end one, but first looks at its epoch.
            code = await self._ended(producer, about, commit=False)
            if code in (InvalidProducerEpoch.code, ProducerFenced.code, InvalidPidMapping.code):
                return False
            if code != InvalidTxnState.code:
                check(code, about)
            return True

        return await self.retried(look)

    async def _ended(self, producer: TransactionalProducer, about: str, *, commit: bool) -> int:
        request = EndTxnRequest(*producer, commit)
        kind = CoordinationType.TRANSACTION
        answer = await self.ask_coordinator(producer.transactional_id, request, about=about, kind=kind)
        return int(answer.error_code)

    async def _fence(self, transactional_id: str) -> TransactionalProducer:
        about = f"fencing producers with transactional.id={transactional_id}"
        request = InitProducerIdRequest(transactional_id, _TRANSACTION_TIMEOUT_MS)
        answer = await self.ask_coordinator(transactional_id, request, about=about, kind=CoordinationType.TRANSACTION)
        check(answer.error_code, about)
        return TransactionalProducer(transactional_id, answer.producer_id, answer.producer_epoch)
