"""Several events as one: a short Kafka transaction with a separate producer."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Final

from broker.client import BatchProducer, ClientConfig
from events.errors import BusUnavailable
from events.store.log import LogTransaction
from tidegate.kit.errors import TidegateError

__all__ = ["Transactions"]

TIMEOUT_MS: Final = 5000
"""Transaction timeout: an open transaction holds back every reader of its topics, so an abandoned one is aborted after
this time.
"""


class Transactions:
    """Opens transactions on one cluster. Any number may be open. Ids are reused, so that few remain."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config.with_properties(
            {
                "acks": "all",
                "enable.idempotence": "true",
                "transaction.timeout.ms": str(TIMEOUT_MS),
                "delivery.timeout.ms": str(TIMEOUT_MS),
                "request.timeout.ms": str(TIMEOUT_MS),
            }
        )
        self._prefix = f"tidegate-events-{uuid.uuid4().hex[:12]}"
        self._used: set[int] = set()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[LogTransaction]:
        """Commits at the end of the block, aborts when it raises. See EventLog.transaction."""
        slot = next(number for number in range(len(self._used) + 1) if number not in self._used)
        self._used.add(slot)
        producer = BatchProducer(self._config.with_properties({"transactional.id": f"{self._prefix}-{slot}"}))
        began = committing = False
        try:
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                await producer.start()
                await producer.begin_transaction()
                began = True
                yield _Open(producer)
                committing = True
                await producer.commit_transaction()
                began = False
        except TimeoutError as error:
            raise _late(committing) from error
        except TidegateError as error:
            if not error.retriable or isinstance(error, BusUnavailable):
                raise
            raise _late(committing, str(error)) from error
        finally:
            if began:
                # If it can't be aborted now, the coordinator aborts it after its timeout.
                with contextlib.suppress(TidegateError, TimeoutError):
                    async with asyncio.timeout(1):
                        await producer.abort_transaction()
            await producer.stop(timeout_s=0)
            self._used.discard(slot)


class _Open:
    """An open transaction."""

    def __init__(self, producer: BatchProducer) -> None:
        self._producer = producer

    async def append(self, topic: str, records: Sequence[tuple[bytes, bytes, int]]) -> list[int]:
        waiting = [
            await self._producer.enqueue(topic, key, value, partition=0, timestamp_ms=timestamp_ms)
            for key, value, timestamp_ms in records
        ]
        return [ack.offset for ack in await asyncio.gather(*waiting)]


def _late(committing: bool, why: str = "") -> BusUnavailable:
    said = why or f"it took longer than {TIMEOUT_MS / 1000:g} s"
    if committing:
        return BusUnavailable(
            f"The log did not confirm the events of this request, which may still be published: {said}"
        )
    return BusUnavailable(f"The log did not take the events of this request, and none is published: {said}")
