"""Output of triggers: events and records, in one Kafka transaction with the position of their batch."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Final

from broker.client import BatchProducer, ClientConfig, TopicPartition
from events.model.payloads import frame
from events.store.catalog import Catalog
from events.triggers.api import Output
from tidegate.kit.errors import TidegateError

__all__ = ["Outputs"]

_TIMEOUT_MS: Final = 10_000
"""Transaction timeout: an open transaction holds readers back, so one of a dead process is aborted after this time."""


class Outputs:
    """One transactional producer per subscription, recreated with each tenure.

    The group's name is its transactional id.
    """

    def __init__(self, config: ClientConfig, catalog: Catalog, group: str, user_id: str) -> None:
        properties = {"transactional.id": group, "transaction.timeout.ms": str(_TIMEOUT_MS), "acks": "all"}
        self._config = config.with_properties(properties)
        self._catalog, self._group, self._user_id = catalog, group, user_id
        self._producer: BatchProducer | None = None

    async def renew(self) -> None:
        """Start a new producer.

        Returns when every earlier transaction of this subscription is over, here or elsewhere.
        """
        await self.stop()
        self._producer = await BatchProducer(self._config).start()

    async def write(self, outputs: Sequence[Output], partition: TopicPartition, position: int) -> None:
        """Write everything and commit the position with it. After an error the position is unknown: ask the broker."""
        records = [await self._record(output) for output in outputs]
        if self._producer is None:
            self._producer = await BatchProducer(self._config).start()
        try:
            await self._producer.begin_transaction()
            for topic, key, value, number in records:
                await self._producer.enqueue(topic, key, value, partition=number)
            await self._producer.send_offsets({partition: position}, self._group)
            await self._producer.commit_transaction()
        except BaseException:
            await self.stop()
            raise

    async def _record(self, output: Output) -> tuple[str, bytes | None, bytes | None, int | None]:
        if output.fields is None:
            return output.topic, output.key, output.value, None
        schema = await self._catalog.find(output.topic)
        now = time.time_ns() // 1_000_000
        payload = schema.encode_json(output.fields, created_ms=now, created_by=self._user_id)
        return schema.definition.name, str(uuid.uuid4()).encode(), frame(schema.id, payload), 0

    async def stop(self) -> None:
        """Leave an open transaction; the next producer with the same id aborts it."""
        producer, self._producer = self._producer, None
        if producer is not None:
            try:
                await producer.stop(timeout_s=1)
            except TidegateError:
                return
