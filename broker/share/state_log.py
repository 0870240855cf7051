"""``__share_group_state`` as the share coordinator sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from broker.share.config import SHARE_STATE_TOPIC
from broker.state_topic import StateTopic

if TYPE_CHECKING:
    from broker.broker import Broker

__all__ = ["ShareStateLog"]


class ShareStateLog:
    """The topic is created with the first append."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topic = StateTopic(
            broker,
            SHARE_STATE_TOPIC,
            partitions=broker.config.share_state_partitions,
            make=broker.topics.share_state_topic,
        )

    @property
    def partitions(self) -> int:
        return self._topic.partitions

    def append(self, partition: int, entries: Sequence[tuple[bytes, bytes | None]]) -> asyncio.Future[None]:
        return self._topic.append(partition, entries)

    def read(self, partition: int) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        return self._topic.read(partition)

    def end_offset(self, partition: int) -> int:
        log = self._broker.logs.get(SHARE_STATE_TOPIC, partition)
        return 0 if log is None else log.log_end_offset

    def delete_before(self, partition: int, offset: int) -> None:
        """As DeleteRecords: whole segments go with the next round of retention."""
        log = self._broker.logs.get(SHARE_STATE_TOPIC, partition)
        if log is not None and offset > log.log_start_offset:
            log.delete_records(offset)
            self._broker.partitions.changed(log)
