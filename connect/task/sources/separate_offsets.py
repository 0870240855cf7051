"""A source's offsets in a topic of its own (``offsets.storage.topic``): created if missing, read whole when asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connect.stores.offsets import SourceOffset, canonical, parsed_offset
from connect.stores.topics import create_topic
from connect.stores.values import encoded

if TYPE_CHECKING:
    from broker.client import ClientConfig, NewTopic

__all__ = ["merged_offsets", "read_offsets", "write_offsets"]


async def read_offsets(
    admin_config: ClientConfig, consumer_config: ClientConfig, topic: NewTopic, connector: str, *, fit: bool
) -> list[SourceOffset]:
    """The positions of a connector that are in the topic now.

    With isolation.level=read_committed this waits for the transactions that are open there, as it has to: one of them may
    hold the positions asked for. Raises what the clients raise.
    """
    from broker.client import Admin, BatchConsumer, TopicPartition

    by_partition: dict[str, SourceOffset] = {}
    async with Admin(admin_config) as admin, BatchConsumer(consumer_config) as consumer:
        await create_topic(admin, topic, fit=fit)
        described = (await admin.describe_topics([topic.name]))[topic.name]
        partitions = [TopicPartition(topic.name, entry.partition) for entry in described.partitions]
        firsts, ends = await asyncio.gather(admin.beginning_offsets(partitions), admin.end_offsets(partitions))
        missing = {tp: end for tp, end in ends.items() if end > firsts[tp]}
        if missing:
            await consumer.assign(missing)
            await consumer.seek_to_beginning(*missing)
        while missing:
            for part in await consumer.fetch(max_wait_ms=500):
                for record in part.records():
                    parsed = parsed_offset(record, topic.name)
                    if parsed is None or parsed[0] != connector:
                        continue
                    _, partition, position = parsed
                    by_partition.pop(canonical(partition), None)
                    if position is not None:
                        by_partition[canonical(partition)] = position
                tp = TopicPartition(part.topic, part.partition)
                if part.next_offset >= missing.get(tp, 0):
                    missing.pop(tp, None)
    return list(by_partition.values())


async def write_offsets(
    producer_config: ClientConfig, topic: str, positions: Sequence[tuple[str, Mapping[str, Any] | None]]
) -> None:
    """Set positions by the keys of their records, None to forget one; returns when the log has them."""
    from broker.client import BatchProducer

    async with BatchProducer(producer_config) as producer:
        sent = [
            await producer.enqueue(topic, key.encode(), None if offset is None else encoded(dict(offset)))
            for key, offset in positions
        ]
        for future in sent:
            await future


def merged_offsets(separate: Sequence[SourceOffset], worker: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Positions as tasks are given them: those of the connector's own topic, and the worker's where that has none."""
    merged = {canonical(entry["partition"]): dict(entry) for entry in worker}
    for offset in separate:
        merged[canonical(offset.partition)] = {
            "partition": offset.partition,
            "offset": offset.offset,
            "key": offset.key,
        }
    return list(merged.values())
