"""The part of Admin about other clients' transactional producers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from aiokafka.client import CoordinationType
from aiokafka.protocol.transaction import InitProducerIdRequest

from broker.client.acls_admin import AclsAdmin
from broker.client.cluster import check

__all__ = ["TransactionsAdmin"]

_TRANSACTION_TIMEOUT_MS: Final = 60_000  # for transactions that are never begun


class TransactionsAdmin(AclsAdmin):
    """Changes transactional producers."""

    async def fence_producers(self, transactional_ids: Iterable[str]) -> None:
        """Abort open transactions of these transactional ids, and refuse all later writes of their producers (KIP-588).

        Returns when all are fenced; unused ids count as fenced. Raises permanent refusals of the coordinator, for
        example TransactionalIdAuthorizationFailed.
        """
        await asyncio.gather(*(self.retried(lambda name=name: self._fence(name)) for name in transactional_ids))  # type: ignore[misc]

    async def _fence(self, transactional_id: str) -> None:
        about = f"fencing producers with transactional.id={transactional_id}"
        request = InitProducerIdRequest(transactional_id, _TRANSACTION_TIMEOUT_MS)
        answer = await self.ask_coordinator(transactional_id, request, about=about, kind=CoordinationType.TRANSACTION)
        check(answer.error_code, about)
