"""Transactional producers of others: the transactions part of Admin."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from aiokafka.client import CoordinationType
from aiokafka.protocol.transaction import InitProducerIdRequest

from broker.client.acls_admin import AclsAdmin
from broker.client.cluster import check

__all__ = ["TransactionsAdmin"]

_TRANSACTION_TIMEOUT_MS: Final = 60_000  # of transactions that nobody begins


class TransactionsAdmin(AclsAdmin):
    """Changes to transactional producers."""

    async def fence_producers(self, transactional_ids: Iterable[str]) -> None:
        """Abort what producers with these transactional ids have open, and refuse all that they send from now on (KIP-588).

        Returns when all are fenced; ids that nobody uses count as fenced. Raises what the coordinator refuses for good
        (TransactionalIdAuthorizationFailed ...).
        """
        await asyncio.gather(*(self.retried(lambda name=name: self._fence(name)) for name in transactional_ids))  # type: ignore[misc]

    async def _fence(self, transactional_id: str) -> None:
        about = f"fencing producers with transactional.id={transactional_id}"
        request = InitProducerIdRequest(transactional_id, _TRANSACTION_TIMEOUT_MS)
        answer = await self.ask_coordinator(transactional_id, request, about=about, kind=CoordinationType.TRANSACTION)
        check(answer.error_code, about)
